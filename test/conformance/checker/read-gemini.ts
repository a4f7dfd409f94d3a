// generateContent replies and streams as what they say. Trusts nothing and judges nothing: whatever is odd reads as
// absent, and the grammar says what was wrong.

import type { SseEvent } from '../../../src/wire/sse.ts'
import { count, type ReplyCall, type ReplyContent, type ReplyUsage } from './reply-content.ts'
import { listOf, type Members, membersOf, parseJson } from './violation.ts'

export function readGeminiReply(reply: unknown): ReplyContent {
  return tell([membersOf(reply)])
}

export function readGeminiStream(events: readonly SseEvent[]): ReplyContent {
  return tell(events.map(({ data }) => membersOf(parseJson(data))))
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The records of a stream are pieces of one reply; usage is a running total. */
function tell(records: readonly Members[]): ReplyContent {
  const candidates = records.flatMap((record) => listOf(record.candidates).slice(0, 1).map(membersOf))
  const parts = candidates.flatMap(({ content }) => listOf(membersOf(content).parts).map(membersOf))
  const ended = candidates.findLast(({ finishReason }) => finishReason !== undefined)
  const blocked = records.map(({ promptFeedback }) => membersOf(promptFeedback)).find((each) => each.blockReason)
  const calls = parts.flatMap(callOf)
  const stop = text(ended?.finishReason) || text(blocked?.blockReason)
  const error = records.map((record) => record.error).find(Boolean)
  const { message, details } = membersOf(error)
  return {
    text: textIn(parts, false),
    reasoning: textIn(parts, true),
    calls,
    // Some servers have a word of their own for calls.
    stop: /^(STOP|FUNCTION_CALL)$/.test(stop) && calls.length > 0 ? 'tool_calls' : stop,
    stopSequence: undefined,
    refusal: text(ended?.finishMessage) || undefined,
    usage: usageOf(records.findLast(({ usageMetadata }) => usageMetadata !== undefined)?.usageMetadata),
    models: [
      ...new Set(records.flatMap(({ modelVersion }) => (typeof modelVersion === 'string' ? [modelVersion] : []))),
    ],
    proof: parts.flatMap(({ thoughtSignature }) => thoughtSignature ?? []),
    error: error ? { type: 'error', code: membersOf(listOf(details)[0]).reason, message } : undefined,
  }
}

function textIn(parts: readonly Members[], isThought: boolean): string {
  let joined = ''
  let isApart = false
  for (const part of parts) {
    const isOther = (part.thought === true) !== isThought || part.functionCall !== undefined
    const piece = isOther ? '' : text(part.text)
    if (piece !== '') joined += (joined !== '' && isApart ? '\n\n' : '') + piece
    isApart = isOther || (isApart && piece === '')
  }
  return joined
}

function callOf({ functionCall }: Members): ReplyCall[] {
  if (functionCall === undefined) return []
  const { id, name, args } = membersOf(functionCall)
  return [{ id: text(id), name: text(name), arguments: JSON.stringify(args ?? {}), custom: false }]
}

/** Cached tokens are part of the prompt; thoughts are output beside the candidates. */
function usageOf(value: unknown): ReplyUsage | undefined {
  if (value === undefined) return undefined
  const usage = membersOf(value)
  const cacheRead = count(usage.cachedContentTokenCount)
  const thoughts = usage.thoughtsTokenCount
  return {
    input: count(usage.promptTokenCount) - cacheRead,
    cacheRead,
    cacheWrite: 0,
    output: count(usage.candidatesTokenCount) + count(thoughts),
    reasoning: typeof thoughts === 'number' ? thoughts : undefined,
    cost: usage.cost,
  }
}
