// A reply of the gateway as what it says, read from the bytes by the strict grammar and by each official client's own
// accumulator.

import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { type SseEvent, SseReader } from '../../../src/wire/sse.ts'
import {
  type ClientName,
  type ClientSettings,
  chatClientNames,
  createChatClient,
  createMessageClient,
  createResponseClient,
  isChatClient,
  isResponseClient,
  messageClientNames,
  type ResponseClientName,
  responseClientNames,
} from '../../parts/official-clients.ts'
import type { Pair, Stage, SurfaceName } from '../cells.ts'
import { checkChatReply, checkChatStream } from '../checker/grammar-chat.ts'
import { checkGeminiReply, checkGeminiStream } from '../checker/grammar-gemini.ts'
import { checkMessagesReply, checkMessagesStream } from '../checker/grammar-messages.ts'
import { checkResponsesReply, checkResponsesStream } from '../checker/grammar-responses.ts'
import { readChatReply, readChatStream } from '../checker/read-chat.ts'
import { readGeminiReply, readGeminiStream } from '../checker/read-gemini.ts'
import { readMessagesReply, readMessagesStream } from '../checker/read-messages.ts'
import { readResponsesReply, readResponsesStream } from '../checker/read-responses.ts'
import type { ReplyContent } from '../checker/reply-content.ts'
import { parseJson, type Violation } from '../checker/violation.ts'
import type { Meaning, ReplyFixture } from './reply-fixture.ts'

export const clientsOf: Readonly<Record<SurfaceName, readonly (ClientName | ResponseClientName)[]>> = {
  chat: chatClientNames,
  messages: messageClientNames,
  responses: responseClientNames,
  // The official client is too large to be a dependency.
  gemini: [],
}

export interface Mode {
  readonly stream: boolean
}

export interface ReadReply {
  readonly content: ReplyContent
  readonly violations: readonly Violation[]
  readonly body: string
}

export function readReply(surface: SurfaceName, body: string, { stream }: Mode): ReadReply {
  if (stream) {
    const reader = new SseReader()
    const events = [...reader.push(new TextEncoder().encode(body)), ...reader.end()]
    return { ...streamReaders[surface](events), body }
  }
  return { ...replyReaders[surface](JSON.parse(body)), body }
}

type Read = Omit<ReadReply, 'body'>

const streamReaders: Readonly<Record<SurfaceName, (events: readonly SseEvent[]) => Read>> = {
  chat: (events) => ({ content: readChatStream(events), violations: checkChatStream(events, { wantsUsage: true }) }),
  messages: (events) => ({ content: readMessagesStream(events), violations: checkMessagesStream(events) }),
  responses: (events) => ({ content: readResponsesStream(events), violations: checkResponsesStream(events) }),
  gemini: (events) => ({ content: readGeminiStream(events), violations: checkGeminiStream(events) }),
}

const replyReaders: Readonly<Record<SurfaceName, (reply: unknown) => Read>> = {
  chat: (reply) => ({ content: readChatReply(reply), violations: checkChatReply(reply) }),
  messages: (reply) => ({ content: readMessagesReply(reply), violations: checkMessagesReply(reply) }),
  responses: (reply) => ({ content: readResponsesReply(reply), violations: checkResponsesReply(reply) }),
  gemini: (reply) => ({ content: readGeminiReply(reply), violations: checkGeminiReply(reply) }),
}

/** The request that a fixture answers; undefined where the surface has none. */
export function askBody({ surface }: Pair, { asks }: ReplyFixture, { stream }: Mode): object | undefined {
  if (asks && !asks[surface]) return undefined
  const go = [{ role: 'user', content: 'go' }]
  if (surface === 'responses') return { input: go, stream, ...asks?.[surface] }
  if (surface === 'gemini') {
    const { generationConfig, ...rest } = { generationConfig: {}, ...asks?.gemini }
    const thinkingConfig = { includeThoughts: true }
    const contents = [{ role: 'user', parts: [{ text: 'go' }] }]
    return {
      contents,
      stream,
      generationConfig: { maxOutputTokens: 1000, thinkingConfig, ...generationConfig },
      ...rest,
    }
  }
  const body = { messages: go, stream, ...asks?.[surface] }
  if (surface === 'messages') return { max_tokens: 1000, ...body }
  return stream ? { ...body, stream_options: { include_usage: true } } : body
}

/** The answer as an official client reads it; a stream goes through its accumulator. */
export async function readByClient(
  { gateway }: Stage,
  name: ClientName | ResponseClientName,
  body: object,
  { stream }: Mode,
  fetching: NonNullable<ClientSettings['fetch']> = fetch,
): Promise<ReplyContent> {
  const asked: unknown = body
  if (isResponseClient(name)) {
    const settings = { baseURL: `${gateway.url}/v1`, apiKey: gateway.key, fetch: fetching }
    const { responses } = createResponseClient(name, settings)
    if (!stream) {
      return readResponsesReply(await responses.create(asked as OpenAI.Responses.ResponseCreateParamsNonStreaming))
    }
    return readResponsesReply(await responses.stream(asked as Parameters<typeof responses.stream>[0]).finalResponse())
  }
  if (isChatClient(name)) {
    const client = createChatClient(name, { baseURL: `${gateway.url}/v1`, apiKey: gateway.key, fetch: fetching })
    if (!stream) {
      return readChatReply(await client.chat.completions.create(asked as OpenAI.ChatCompletionCreateParamsNonStreaming))
    }
    const running = client.chat.completions.stream(asked as Parameters<typeof client.chat.completions.stream>[0])
    return readChatReply(await running.finalChatCompletion())
  }
  const client = createMessageClient(name, { baseURL: gateway.url, apiKey: gateway.key, fetch: fetching })
  if (!stream)
    return readMessagesReply(await client.messages.create(asked as Anthropic.MessageCreateParamsNonStreaming))
  return readMessagesReply(await client.messages.stream(asked as Anthropic.MessageStreamParams).finalMessage())
}

const stops: Readonly<Record<string, Meaning['stop']>> = {
  stop: 'end',
  end_turn: 'end',
  stop_sequence: 'end',
  length: 'length',
  max_tokens: 'length',
  tool_calls: 'tool-calls',
  tool_use: 'tool-calls',
  content_filter: 'refusal',
  refusal: 'refusal',
  completed: 'end',
  max_output_tokens: 'length',
  STOP: 'end',
  MAX_TOKENS: 'length',
  SAFETY: 'refusal',
}

/**
 * The same independent of a dialect. Refusals are equal in every form: a chat provider sends `stop` and the reason in a
 * separate member, which other dialects send as text.
 */
export function meaningOf(content: ReplyContent): Meaning {
  const { text, reasoning, calls, stop, stopSequence, refusal, usage } = content
  return {
    text: text === refusal ? '' : text.replace(/\n{2,}/g, '\n\n'),
    reasoning,
    calls: calls.map(({ id, name, arguments: json }) => ({ id, name, arguments: json })),
    stop: refusal === undefined ? (stops[stop] ?? (`unknown: ${stop}` as Meaning['stop'])) : 'refusal',
    stopSequence,
    refusal,
    usage: usage ?? { input: -1, cacheRead: 0, cacheWrite: 0, output: -1, reasoning: undefined, cost: undefined },
  }
}

/** For readers that parse arguments: the values count, not how they were written. */
export function withValues(meant: Meaning): Meaning {
  const calls = meant.calls.map((call) => {
    const value = parseJson(call.arguments)
    return value === undefined ? call : { ...call, arguments: JSON.stringify(value) }
  })
  return { ...meant, calls }
}
