// The messages of a Chat Completions body as system blocks and turns, one turn per message.

import type { TextBlock, ToolResultBlock, Turn, UserBlock } from '../canonical/conversation.ts'
import { type RequestFields, shownWord } from '../request/fields.ts'
import { parseAssistant } from './parse-assistant.ts'
import { markOf, type ParseContext, readMark } from './parse-context.ts'
import { type ContentBlock, parsePart, parseTextPart, refusePart, warnPartMembers } from './parse-parts.ts'
import { reasoningFieldNames } from './parse-reasoning.ts'

interface ParsedMessages {
  readonly system: readonly TextBlock[]
  readonly turns: readonly Turn[]
}

/** A `function_call` that no `function` message has answered yet. */
interface LegacyCall {
  readonly id: string
  readonly name: string
}

const everywhere = ['role', 'content', 'name', 'cache_control', 'prompt_cache_breakpoint']
const knownMembers: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['system', new Set(everywhere)],
  ['developer', new Set(everywhere)],
  ['user', new Set(everywhere)],
  ['tool', new Set([...everywhere, 'tool_call_id', 'is_error'])],
  ['function', new Set(everywhere)],
  [
    'assistant',
    new Set([
      ...everywhere,
      ...reasoningFieldNames,
      'refusal',
      'audio',
      'tool_calls',
      'function_call',
      // Only ever output; clients send the whole message back.
      'annotations',
    ]),
  ],
])

export function parseMessages(body: RequestFields, context: ParseContext): ParsedMessages {
  const system: TextBlock[] = []
  const turns: Turn[] = []
  const legacy: LegacyCall[] = []
  for (const [index, message] of body.objects('messages').entries()) {
    const role = message.text('role')
    const known = knownMembers.get(role)
    if (!known) return message.refuse('role', `The role ${shownWord(role)} does not exist.`)
    message.warnUnknown(known, context.warnings)
    // A tool's name repeats what its call said; anywhere else a name is lost.
    if (role !== 'tool' && role !== 'function' && message.optionalText('name')) {
      context.warnings.add('name_dropped', message.pointer('name'))
    }
    const turn = parseTurn(message, { role, index, legacy }, context)
    if (turn.role === 'system' && turns.length === 0) system.push(...turn.blocks)
    else turns.push(turn)
  }
  return { system, turns }
}

interface Position {
  readonly role: string
  readonly index: number
  readonly legacy: LegacyCall[]
}

function parseTurn(message: RequestFields, { role, index, legacy }: Position, context: ParseContext): Turn {
  const place = message.at
  switch (role) {
    case 'system':
    case 'developer':
      return { role: 'system', blocks: marked(parseSystem(message, context), message, context), place }
    case 'user':
      return { role: 'user', blocks: marked(parseUser(message, context), message, context), place }
    case 'tool':
      return { role: 'user', blocks: [parseTool(message, message.text('tool_call_id'), context)], place }
    case 'function':
      return { role: 'user', blocks: [parseTool(message, answeredLegacyId(message, legacy), context)], place }
    default: {
      const legacyId = `call_legacy_${index}`
      const blocks = parseAssistant(message, legacyId, context)
      for (const block of blocks) {
        if (block.kind === 'tool-call' && block.id === legacyId) legacy.push({ id: legacyId, name: block.name })
      }
      return { role: 'assistant', blocks: marked(blocks, message, context), place }
    }
  }
}

function parseSystem(message: RequestFields, context: ParseContext): TextBlock[] {
  const content = message.textOrObjects('content')
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }]
  return content.map((part) => {
    warnPartMembers(part, context)
    return part.text('type') === 'text' ? parseTextPart(part, context) : refusePart(part, message.text('role'))
  })
}

function parseUser(message: RequestFields, context: ParseContext): UserBlock[] {
  const content = message.textOrObjects('content')
  if (typeof content === 'string') return [{ kind: 'text', text: content }]
  return content.map((part): UserBlock => {
    if (part.text('type') === 'tool_result') return parseToolResult(part, context)
    return parsePart(part, context) ?? refusePart(part, 'user')
  })
}

function parseTool(message: RequestFields, callId: string, context: ParseContext): ToolResultBlock {
  return {
    kind: 'tool-result',
    callId,
    content: parseResultContent(message, context),
    isError: message.optionalBoolean('is_error') ?? false,
    ...markOf(message, context),
  }
}

/** Messages-shaped. */
function parseToolResult(part: RequestFields, context: ParseContext): ToolResultBlock {
  return parseTool(part, part.text('tool_use_id'), context)
}

function parseResultContent(fields: RequestFields, context: ParseContext): ContentBlock[] {
  const content = fields.textOrObjects('content')
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }]
  return content.map((part) => parsePart(part, context) ?? refusePart(part, 'tool'))
}

function answeredLegacyId(message: RequestFields, legacy: LegacyCall[]): string {
  const name = message.text('name')
  const call = legacy.findIndex((open) => open.name === name)
  if (call === -1)
    return message.refuse('name', `The function message for ${shownWord(name)} answers no function call.`)
  return legacy.splice(call, 1)[0]?.id ?? ''
}

/** A mark on the message is a mark on the last of its blocks that can carry one. */
function marked<Block extends { readonly kind: string }>(
  blocks: readonly Block[],
  message: RequestFields,
  context: ParseContext,
): Block[] {
  const cacheMark = readMark(message, context)
  const last = cacheMark ? blocks.findLastIndex(({ kind }) => !unmarkable.has(kind)) : -1
  return blocks.map((block, i) => (i === last ? { ...block, cacheMark } : block))
}

const unmarkable: ReadonlySet<string> = new Set(['thinking', 'sealed-thinking', 'refusal'])
