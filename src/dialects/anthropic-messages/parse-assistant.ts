// Assistant messages: text, calls and reasoning go on in their order. What Anthropic's own tools left behind cannot be
// shown to another model as it is; it is left out with a warning, or told in words where nothing else would be left.

import type { JsonNode } from '../../wire/json-node.ts'
import type { AssistantBlock, Turn } from '../canonical/conversation.ts'
import { type RequestFields, shownWord } from '../request/fields.ts'
import { parseText } from './parse-blocks.ts'
import { markOf, type ParseContext } from './parse-context.ts'
import { parseToolChange, type ToolChange } from './parse-tool-changes.ts'

export interface ParsedAssistant {
  readonly turns: readonly Turn[]
  /** It holds a summary that stands for everything before. */
  readonly startsAnew: boolean
  readonly toolChanges: readonly ToolChange[]
}

export function parseAssistant(
  message: RequestFields,
  node: () => JsonNode | undefined,
  context: ParseContext,
): ParsedAssistant {
  const content = message.textOrObjects('content')
  if (typeof content === 'string') {
    const blocks: AssistantBlock[] = content === '' ? [] : [{ kind: 'text', text: content }]
    return { turns: [{ role: 'assistant', blocks, place: message.at }], startsAnew: false, toolChanges: [] }
  }
  const turns: Turn[] = []
  const toolChanges: ToolChange[] = []
  let startsAnew = false
  let blocks: AssistantBlock[] = []
  let dropped: string[] = []
  const endTurn = () => {
    const told = dropped.map((text): AssistantBlock => ({ kind: 'text', text }))
    const kept = blocks.length > 0 ? blocks : told
    if (kept.length > 0) turns.push({ role: 'assistant', blocks: kept, place: message.at })
    blocks = []
    dropped = []
  }
  for (const [i, block] of content.entries()) {
    const blockNode = () => node()?.member('content')?.element(i)
    const type = block.text('type')
    if (type === 'compaction') {
      // Only the last summary counts; everything up to it, in this message too, is what it sums up.
      turns.length = 0
      blocks = []
      dropped = []
      startsAnew = true
      turns.push(...summaryTurn(block, context))
      for (const [j, change] of block.objects('tool_changes').entries()) {
        const changeNode = () => blockNode()?.member('tool_changes')?.element(j)
        const parsed = parseToolChange(change, changeNode, context)
        if (parsed) toolChanges.push(parsed)
      }
      continue
    }
    const parsed = parseBlock(block, type, blockNode, context)
    if (parsed) blocks.push(parsed)
    else dropped.push(inWords(block, type, blockNode))
  }
  endTurn()
  return { turns, startsAnew, toolChanges }
}

/** undefined = left out, and warned about. */
function parseBlock(
  block: RequestFields,
  type: string,
  node: () => JsonNode | undefined,
  context: ParseContext,
): AssistantBlock | undefined {
  switch (type) {
    case 'text':
      return parseText(block, context)
    case 'tool_use':
      return parseToolUse(block, node)
    case 'thinking':
      return { kind: 'thinking', text: block.text('thinking'), signature: block.optionalText('signature') || undefined }
    case 'redacted_thinking':
      return { kind: 'sealed-thinking', data: block.text('data') }
    case 'image':
    case 'document':
    case 'container_upload':
      return block.refuse('type', `A ${shownWord(type)} block in an assistant message is not available for this model.`)
    default:
      context.warnings.add(/^\w{1,64}$/.test(type) ? `${type}_dropped` : 'block_dropped', block.at)
      return undefined
  }
}

function parseToolUse(block: RequestFields, node: () => JsonNode | undefined): AssistantBlock {
  const caller = block.optionalObject('caller')
  const callerType = caller?.text('type') ?? 'direct'
  if (caller && callerType !== 'direct') {
    caller.refuse('type', `Tool calls made by ${shownWord(callerType)} can only be continued at Anthropic.`)
  }
  const input = block.value('input')
  // Some clients replay the text of the object, or the empty text of a call without arguments.
  const raw = typeof input === 'string' ? input : input === undefined ? '{}' : node()?.member('input')?.text
  if (raw === undefined) block.refuse('input', 'A member of this block stands twice.')
  return {
    kind: 'tool-call',
    id: block.text('id'),
    name: block.text('name'),
    arguments: raw,
    custom: false,
    ...markOf(block),
  }
}

function summaryTurn(block: RequestFields, context: ParseContext): Turn[] {
  const summary = block.optionalText('content')
  if (summary === undefined || summary.trim() === '') {
    context.warnings.add('compaction_dropped', block.at)
    return []
  }
  const text = `Summary of the conversation so far:\n\n${summary}`
  return [{ role: 'user', blocks: [{ kind: 'text', text, ...markOf(block) }], place: block.at }]
}

function inWords(block: RequestFields, type: string, node: () => JsonNode | undefined): string {
  const name = block.value('name')
  if (type.endsWith('_tool_use') && typeof name === 'string') {
    return `[${name} ${node()?.member('input')?.text ?? '{}'}]`
  }
  const results = block.value('content')
  const titles = Array.isArray(results)
    ? results.flatMap((result: { title?: unknown; url?: unknown } | null) =>
        typeof result?.url === 'string'
          ? `\n${typeof result.title === 'string' ? result.title : ''} ${result.url}`
          : [],
      )
    : []
  return `[${type}]${titles.join('')}`
}
