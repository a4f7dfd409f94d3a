// Messages replies and streams as what they say. Trusts nothing and judges nothing: whatever is odd reads as absent, and
// the grammar says what was wrong.

import type { SseEvent } from '../../../src/wire/sse.ts'
import { count, type ReplyCall, type ReplyContent, type ReplyUsage } from './reply-content.ts'
import { listOf, type Members, membersOf, parseJson } from './violation.ts'

/** A block as it is in the end; `json` is the text of a call's input where it came in pieces. */
interface Block {
  readonly members: Record<string, unknown>
  json: string
}

export function readMessagesReply(reply: unknown): ReplyContent {
  const message = membersOf(reply)
  const blocks = listOf(message.content).map((block): Block => ({ members: { ...membersOf(block) }, json: '' }))
  return tell(message, blocks, undefined)
}

export function readMessagesStream(events: readonly SseEvent[]): ReplyContent {
  let message: Members = {}
  let error: Members | undefined
  const blocks = new Map<unknown, Block>()
  for (const { event, data } of events) {
    const record = membersOf(parseJson(data))
    if (event === 'message_start') message = membersOf(record.message)
    if (event === 'content_block_start') {
      blocks.set(record.index, { members: { ...membersOf(record.content_block) }, json: '' })
    }
    if (event === 'content_block_delta') fill(blocks.get(record.index), membersOf(record.delta))
    if (event === 'message_delta') {
      const usage = { ...membersOf(message.usage), ...withoutNulls(membersOf(record.usage)) }
      message = { ...message, ...membersOf(record.delta), usage }
    }
    if (event === 'error') error = membersOf(record.error)
  }
  return tell(message, [...blocks.values()], error)
}

function fill(block: Block | undefined, { type, ...delta }: Members): void {
  if (!block) return
  for (const [name, piece] of Object.entries(delta)) {
    if (typeof piece !== 'string') continue
    if (type === 'input_json_delta') block.json += piece
    else if (type === 'signature_delta') block.members.signature = piece
    else block.members[name] = `${block.members[name] ?? ''}${piece}`
  }
}

/** Counts are running totals; one that is null says nothing new. */
function withoutNulls(usage: Members): Members {
  return Object.fromEntries(Object.entries(usage).filter(([, value]) => value !== null))
}

function tell(message: Members, blocks: readonly Block[], error: Members | undefined): ReplyContent {
  const thoughts = blocks.filter(({ members: { type } }) => type === 'thinking' || type === 'redacted_thinking')
  const texts = thoughts.flatMap(({ members: { thinking } }) => (typeof thinking === 'string' ? [thinking] : []))
  const { stop_reason: stop, stop_sequence: sequence, stop_details: details, model } = message
  const { explanation } = membersOf(details)
  return {
    text: textOf(blocks),
    reasoning: texts.join('\n\n'),
    calls: blocks.flatMap(callOf),
    stop: typeof stop === 'string' ? stop : '',
    stopSequence: typeof sequence === 'string' ? sequence : undefined,
    refusal: typeof explanation === 'string' ? explanation : undefined,
    usage: usageOf(message.usage),
    models: typeof model === 'string' ? [model] : [],
    proof: thoughts.map(({ members }) => members),
    error: error && { type: error.type, code: error.code, message: error.message },
  }
}

function textOf(blocks: readonly Block[]): string {
  let text = ''
  let before: unknown
  for (const { members } of blocks) {
    if (members.type === 'text') text += (text !== '' && before !== 'text' ? '\n\n' : '') + String(members.text ?? '')
    before = members.type
  }
  return text
}

function callOf({ members: { type, id, name, input }, json }: Block): ReplyCall[] {
  if (type !== 'tool_use') return []
  const text = json.trim() === '' ? JSON.stringify(input ?? {}) : json
  return [{ id: String(id ?? ''), name: String(name ?? ''), arguments: text, custom: false }]
}

function usageOf(value: unknown): ReplyUsage | undefined {
  if (value === undefined) return undefined
  const usage = membersOf(value)
  const { thinking_tokens: reasoning } = membersOf(usage.output_tokens_details)
  return {
    input: count(usage.input_tokens),
    cacheRead: count(usage.cache_read_input_tokens),
    cacheWrite: count(usage.cache_creation_input_tokens),
    output: count(usage.output_tokens),
    reasoning: typeof reasoning === 'number' ? reasoning : undefined,
    cost: usage.cost,
  }
}
