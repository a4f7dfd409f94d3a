// Responses and their streams as what they say. Trusts nothing and judges nothing: whatever is odd reads as absent, and
// the grammar says what was wrong.

import type { SseEvent } from '../../../src/wire/sse.ts'
import { count, type ReplyCall, type ReplyContent, type ReplyUsage } from './reply-content.ts'
import { listOf, type Members, membersOf, parseJson } from './violation.ts'

export function readResponsesReply(reply: unknown): ReplyContent {
  return tell(membersOf(reply), [])
}

/** By the events that clients build their items from; the last event has the status and the usage. */
export function readResponsesStream(events: readonly SseEvent[]): ReplyContent {
  let response: Members = {}
  const models: string[] = []
  const output: unknown[] = []
  for (const { event, data } of events) {
    const record = membersOf(parseJson(data))
    const { model, ...rest } = membersOf(record.response)
    if (record.response !== undefined) response = rest
    if (typeof model === 'string') models.push(model)
    const at = Number(record.output_index)
    if (event === 'response.output_item.done') output[at] = record.item
    // The part of an unfinished item that was sent.
    if (event === 'response.output_text.delta') {
      const before = membersOf(listOf(membersOf(output[at]).content)[0]).text ?? ''
      output[at] = { type: 'message', content: [{ type: 'output_text', text: `${before}${record.delta}` }] }
    }
  }
  return tell({ ...response, output }, models)
}

function tell(response: Members, models: readonly string[]): ReplyContent {
  const items = listOf(response.output).map(membersOf)
  const parts = items.map(({ type, content }) => (type === 'message' ? listOf(content).map(membersOf) : []))
  const calls = items.flatMap(callOf)
  const refusal = parts.flat().flatMap((part) => (part.type === 'refusal' ? [String(part.refusal)] : []))
  const { reason } = membersOf(response.incomplete_details)
  const thoughts = items.filter(({ type }) => type === 'reasoning')
  const named = [...models, response.model].filter((model) => typeof model === 'string')
  const error = response.error == null ? undefined : membersOf(response.error)
  return {
    text: textOf(items),
    reasoning: thoughts
      .flatMap(({ summary }) => listOf(summary).map((part) => String(membersOf(part).text ?? '')))
      .join('\n\n'),
    calls,
    stop: typeof reason === 'string' ? reason : calls.length > 0 ? 'tool_calls' : String(response.status ?? ''),
    stopSequence: undefined,
    refusal: refusal.length > 0 ? refusal.join('') : undefined,
    usage: usageOf(response.usage),
    models: [...new Set(named)],
    proof: thoughts,
    error: error && { type: error.type, code: error.code, message: error.message },
  }
}

function textOf(items: readonly Members[]): string {
  let text = ''
  let isBroken = false
  for (const { type, content } of items) {
    for (const part of type === 'message' ? listOf(content).map(membersOf) : []) {
      if (part.type !== 'output_text' || part.text === '') continue
      text += (text !== '' && isBroken ? '\n\n' : '') + String(part.text)
      isBroken = false
    }
    isBroken = true
  }
  return text
}

function callOf({ type, call_id: id, name, arguments: json, input }: Members): ReplyCall[] {
  if (type !== 'function_call' && type !== 'custom_tool_call') return []
  const custom = type === 'custom_tool_call'
  return [{ id: String(id ?? ''), name: String(name ?? ''), arguments: String((custom ? input : json) ?? ''), custom }]
}

function usageOf(value: unknown): ReplyUsage | undefined {
  if (value === undefined || value === null) return undefined
  const usage = membersOf(value)
  const { cached_tokens, cache_write_tokens } = membersOf(usage.input_tokens_details)
  const { reasoning_tokens: reasoning } = membersOf(usage.output_tokens_details)
  const [cacheRead, cacheWrite] = [count(cached_tokens), count(cache_write_tokens)]
  return {
    input: count(usage.input_tokens) - cacheRead - cacheWrite,
    cacheRead,
    cacheWrite,
    output: count(usage.output_tokens),
    // The dialect has no way to say that it was not reported.
    reasoning: typeof reasoning === 'number' && reasoning > 0 ? reasoning : undefined,
    cost: usage.cost,
  }
}
