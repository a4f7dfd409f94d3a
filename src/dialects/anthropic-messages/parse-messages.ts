// The messages of a request as turns. Claude's own server-side blocks have no counterpart elsewhere and are left out by
// name; what a user sent is never left out silently.

import type { JsonNode } from '../../wire/json-node.ts'
import type { TextBlock, ToolResultBlock, Turn, UserBlock } from '../canonical/conversation.ts'
import { RequestFields, shownWord } from '../request/fields.ts'
import { parseAssistant } from './parse-assistant.ts'
import { parseContentBlock, parseText, warnBlockMembers } from './parse-blocks.ts'
import { markOf, type ParseContext } from './parse-context.ts'
import { parseToolChange, type ToolChange } from './parse-tool-changes.ts'

export interface ParsedMessages {
  /** System messages in front of all others. */
  readonly leading: readonly TextBlock[]
  readonly turns: readonly Turn[]
  readonly toolChanges: readonly ToolChange[]
}

const spokenMembers: ReadonlySet<string> = new Set(['role', 'content'])
const systemMembers: ReadonlySet<string> = new Set(['role', 'content', 'clear_at', 'output_config'])

/** `raw` is the list as it was written, for the text of tool inputs. */
export function parseMessages(list: readonly unknown[], raw: JsonNode, context: ParseContext): ParsedMessages {
  const messages = list.map((message, i) => RequestFields.of(message, `/messages/${i}`))
  const roles = messages.map((message) => message.text('role'))
  const lastUser = roles.lastIndexOf('user')
  let leading: TextBlock[] = []
  let toolChanges: ToolChange[] = []
  let turns: Turn[] = []
  for (const [i, message] of messages.entries()) {
    const node = () => raw.element(i)
    if (roles[i] === 'user') {
      message.warnUnknown(spokenMembers, context.warnings)
      turns.push({ role: 'user', blocks: parseUser(message, node, context), place: message.at })
    } else if (roles[i] === 'assistant') {
      message.warnUnknown(spokenMembers, context.warnings)
      const parsed = parseAssistant(message, node, context)
      if (parsed.toolChanges.length > 0) toolChanges = toolChanges.concat(parsed.toolChanges)
      // What stands before a compaction is replaced by its summary.
      if (parsed.startsAnew) turns = []
      turns.push(...parsed.turns)
    } else if (roles[i] === 'system') {
      const system = parseSystemMessage(message, node, context)
      if (system.toolChanges.length > 0) toolChanges = toolChanges.concat(system.toolChanges)
      if (message.value('clear_at') === 'next_user_message' && lastUser > i) continue
      if (turns.length === 0) leading = leading.concat(system.blocks)
      else if (system.blocks.length > 0) turns.push({ role: 'system', blocks: system.blocks, place: message.at })
    } else {
      message.refuse('role', `\`messages[${i}].role\` must be user, assistant or system, not ${shownWord(roles[i])}.`)
    }
  }
  return { leading, turns, toolChanges }
}

function parseUser(message: RequestFields, node: () => JsonNode | undefined, context: ParseContext): UserBlock[] {
  const content = message.textOrObjects('content')
  if (typeof content === 'string') {
    if (message.value('content') === undefined) message.missing('content')
    return content === '' ? [] : [{ kind: 'text', text: content }]
  }
  return content.flatMap((block, i): UserBlock[] => {
    const parsed = parseContentBlock(block, context)
    if (parsed) return parsed
    const type = block.text('type')
    if (type === 'tool_result') {
      return [parseToolResult(block, () => node()?.member('content')?.element(i)?.member('content'), context)]
    }
    return block.refuse('type', `A ${shownWord(type)} block in a user message is not available for this model.`)
  })
}

const resultMembers: ReadonlySet<string> = new Set(['type', 'tool_use_id', 'content', 'is_error', 'cache_control'])

function parseToolResult(
  fields: RequestFields,
  node: () => JsonNode | undefined,
  context: ParseContext,
): ToolResultBlock {
  fields.warnUnknown(resultMembers, context.warnings)
  const content = fields.textOrObjects('content')
  return {
    kind: 'tool-result',
    callId: fields.text('tool_use_id'),
    content:
      typeof content === 'string'
        ? textBlocks(content)
        : content.flatMap((block, i) => {
            // References, browser states and what is still to come: the model can read their JSON.
            const asJson = () => node()?.element(i)?.text ?? ''
            return parseContentBlock(block, context) ?? [{ kind: 'text' as const, text: asJson(), ...markOf(block) }]
          }),
    isError: fields.optionalBoolean('is_error') ?? false,
    ...markOf(fields),
  }
}

function textBlocks(text: string): TextBlock[] {
  return text === '' ? [] : [{ kind: 'text', text }]
}

function parseSystemMessage(
  message: RequestFields,
  node: () => JsonNode | undefined,
  context: ParseContext,
): { blocks: TextBlock[]; toolChanges: ToolChange[] } {
  message.warnUnknown(systemMembers, context.warnings)
  const config = message.optionalObject('output_config')
  if (config && config.names.length > 0) {
    context.warnings.add('output_config_dropped', message.pointer('output_config'))
  }
  const content = message.textOrObjects('content')
  if (typeof content === 'string') return { blocks: textBlocks(content), toolChanges: [] }
  const blocks: TextBlock[] = []
  const toolChanges: ToolChange[] = []
  for (const [i, block] of content.entries()) {
    if (block.text('type') === 'text') {
      warnBlockMembers(block, context)
      blocks.push(parseText(block, context))
      continue
    }
    const change = parseToolChange(block, () => node()?.member('content')?.element(i), context)
    if (change) toolChanges.push(change)
  }
  return { blocks, toolChanges }
}
