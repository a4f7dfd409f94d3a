// One assistant message of the history: what was said, then the calls, and the reasoning where it stood between them.

import type { AssistantBlock, ToolCallBlock } from '../canonical/conversation.ts'
import { recordOf } from '../canonical/json.ts'
import { isOwnSignature } from '../canonical/signature.ts'
import { type RequestFields, wrongType } from '../request/fields.ts'
import { markOf, type ParseContext } from './parse-context.ts'
import { parseTextPart, refusePart } from './parse-parts.ts'
import { parseReasoningFields, parseReasoningPart } from './parse-reasoning.ts'
import { placeReasoning } from './reasoning-places.ts'

/** `legacyId` is what a `function_call` of this message is known by. */
export function parseAssistant(message: RequestFields, legacyId: string, context: ParseContext): AssistantBlock[] {
  if (message.value('audio') !== undefined) {
    message.refuse('audio', 'Audio of an earlier answer is not available for this model; send its text.')
  }
  const calls = message
    .objects('tool_calls')
    .flatMap((call) => [...parseProof(call, message, context), parseCall(call, context)])
  const said = parseContent(message, context).filter((block) => !isAmong(calls, block))
  const inContent = said.some(({ kind }) => kind === 'thinking' || kind === 'sealed-thinking')
  const refusal = message.optionalText('refusal')
  const blocks: AssistantBlock[] = [
    ...said,
    ...(refusal ? [{ kind: 'refusal', text: refusal } as const] : []),
    ...calls,
    ...parseLegacyCall(message, legacyId, context),
  ]
  return inContent ? blocks : placeReasoning(parseReasoningFields(message, context), blocks)
}

/** Some clients keep a call in both forms. One form alone may use an id twice: some models have one for all calls. */
function isAmong(calls: readonly AssistantBlock[], block: AssistantBlock): boolean {
  if (block.kind !== 'tool-call') return false
  return calls.some((call) => call.kind === 'tool-call' && call.id === block.id)
}

function parseContent(message: RequestFields, context: ParseContext): AssistantBlock[] {
  const content = message.textOrObjects('content')
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }]
  return content.flatMap((part): AssistantBlock[] => {
    switch (part.text('type')) {
      case 'text':
      case 'output_text': {
        const block = parseTextPart(part, context)
        return block.text === '' && !block.cacheMark ? [] : [block]
      }
      case 'refusal':
        return [{ kind: 'refusal', text: part.text('refusal') }]
      case 'thinking':
      case 'redacted_thinking':
        return parseReasoningPart(part)
      case 'tool_use':
        return [parseToolUse(part, context)]
      default:
        return refusePart(part, 'assistant')
    }
  })
}

/** Ours, of the thinking before a call; it counts where the details did not come back. Google's own nobody can read. */
function parseProof(call: RequestFields, message: RequestFields, context: ParseContext): AssistantBlock[] {
  if (call.value('extra_content') === undefined) return []
  const signature = recordOf(recordOf(call.value('extra_content')).google).thought_signature
  if (typeof signature !== 'string' || !isOwnSignature(signature)) {
    context.warnings.add('thinking_dropped', call.pointer('extra_content'))
    return []
  }
  const hasDetails = message.objects('reasoning_details').length > 0
  return hasDetails ? [] : [{ kind: 'thinking', text: '', signature }]
}

function parseCall(call: RequestFields, context: ParseContext): ToolCallBlock {
  const id = nonEmpty(call, 'id')
  const type = call.optionalWord('type', ['function', 'custom']) ?? 'function'
  const detail = call.optionalObject(type) ?? call.missing(type)
  return {
    kind: 'tool-call',
    id,
    name: nonEmpty(detail, 'name'),
    arguments: type === 'custom' ? (detail.optionalText('input') ?? '') : argumentText(detail, 'arguments', context),
    custom: type === 'custom',
    ...markOf(call, context),
  }
}

/** Messages-shaped. */
function parseToolUse(part: RequestFields, context: ParseContext): ToolCallBlock {
  return {
    kind: 'tool-call',
    id: nonEmpty(part, 'id'),
    name: nonEmpty(part, 'name'),
    arguments: argumentText(part, 'input', context),
    custom: false,
    ...markOf(part, context),
  }
}

function parseLegacyCall(message: RequestFields, id: string, context: ParseContext): ToolCallBlock[] {
  const call = message.optionalObject('function_call')
  if (!call) return []
  const name = nonEmpty(call, 'name')
  return [{ kind: 'tool-call', id, name, arguments: argumentText(call, 'arguments', context), custom: false }]
}

/** A string is the text itself; clients that send the object instead get the text of it. */
function argumentText(fields: RequestFields, name: string, context: ParseContext): string {
  const value = fields.value(name)
  if (value === undefined || typeof value === 'string') return value ?? ''
  if (typeof value !== 'object') return wrongType(fields.pointer(name), 'a string', value)
  return context.rawText(fields.pointer(name))
}

function nonEmpty(fields: RequestFields, name: string): string {
  const text = fields.text(name)
  return text === '' ? fields.missing(name) : text
}
