// Chat Completions replies and streams as what they say. Trusts nothing and judges nothing: whatever is odd reads as
// absent, and the grammar says what was wrong.

import type { SseEvent } from '../../../src/wire/sse.ts'
import { count, type ReplyCall, type ReplyContent, type ReplyError, type ReplyUsage } from './reply-content.ts'
import { isMembers, listOf, type Members, membersOf, parseJson } from './violation.ts'

export function readChatReply(reply: unknown): ReplyContent {
  const reading = new ChatReading()
  const members = membersOf(reply)
  const choice = membersOf(listOf(members.choices)[0])
  const message = membersOf(choice.message)
  reading.model(members.model)
  reading.say(message)
  reading.details(message.reasoning_details)
  for (const [index, call] of listOf(message.tool_calls).entries()) reading.call({ index, ...membersOf(call) })
  reading.stop(choice)
  reading.usage(members.usage)
  return reading.content()
}

export function readChatStream(events: readonly SseEvent[]): ReplyContent {
  const reading = new ChatReading()
  for (const { data } of events) {
    const chunk = parseJson(data)
    if (!isMembers(chunk)) continue
    if ('error' in chunk) {
      reading.fail(membersOf(chunk.error))
      continue
    }
    reading.model(chunk.model)
    reading.usage(chunk.usage)
    const choice = membersOf(listOf(chunk.choices)[0])
    const delta = membersOf(choice.delta)
    reading.say(delta)
    reading.details(delta.reasoning_details)
    for (const call of listOf(delta.tool_calls)) reading.call(membersOf(call))
    reading.stop(choice)
  }
  return reading.content()
}

class ChatReading {
  #text = ''
  #reasoning = ''
  #refusal: string | undefined
  #stop = ''
  #stopSequence: string | undefined
  #usage: ReplyUsage | undefined
  #proof: readonly unknown[] = []
  #error: ReplyError | undefined
  readonly #models = new Set<string>()
  readonly #calls = new Map<unknown, { id: string; name: string; arguments: string; custom: boolean }>()

  model(model: unknown): void {
    if (typeof model === 'string') this.#models.add(model)
  }

  say({ content, refusal, reasoning_content: reasoning, reasoning: other }: Members): void {
    if (typeof content === 'string') this.#text += content
    if (typeof refusal === 'string') this.#refusal = (this.#refusal ?? '') + refusal
    // Some hosts send the same text under both names.
    const thought = reasoning ?? other
    if (typeof thought === 'string') this.#reasoning += thought
  }

  details(details: unknown): void {
    if (Array.isArray(details)) this.#proof = details
  }

  call(call: Members): void {
    const custom = isMembers(call.custom)
    const called = membersOf(call.function ?? call.custom)
    const known = this.#calls.get(call.index) ?? { id: '', name: '', arguments: '', custom }
    if (typeof call.id === 'string' && known.id === '') known.id = call.id
    if (typeof called.name === 'string' && known.name === '') known.name = called.name
    const text = called.arguments ?? called.input
    if (typeof text === 'string') known.arguments += text
    this.#calls.set(call.index, known)
  }

  stop({ finish_reason: finish, stop_reason: sequence }: Members): void {
    if (typeof finish === 'string') this.#stop = finish
    // An extension of several servers; theirs may also be the number of a token.
    if (typeof sequence === 'string') this.#stopSequence = sequence
  }

  usage(value: unknown): void {
    if (!isMembers(value)) return
    const prompt = membersOf(value.prompt_tokens_details)
    const { reasoning_tokens: reasoning } = membersOf(value.completion_tokens_details)
    const cacheRead = count(prompt.cached_tokens)
    const cacheWrite = count(prompt.cache_write_tokens)
    this.#usage = {
      input: count(value.prompt_tokens) - cacheRead - cacheWrite,
      cacheRead,
      cacheWrite,
      output: count(value.completion_tokens),
      reasoning: typeof reasoning === 'number' ? reasoning : undefined,
      cost: value.cost,
    }
  }

  fail({ type, code, message }: Members): void {
    this.#error = { type, code, message }
  }

  content(): ReplyContent {
    return {
      text: this.#text,
      reasoning: this.#reasoning,
      calls: [...this.#calls.values()] satisfies ReplyCall[],
      stop: this.#stop,
      stopSequence: this.#stopSequence,
      refusal: this.#refusal,
      usage: this.#usage,
      models: [...this.#models],
      proof: this.#proof,
      error: this.#error,
    }
  }
}
