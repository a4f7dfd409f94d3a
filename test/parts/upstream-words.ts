// The replies of a fake provider in any dialect, streamed or whole. Shares no code with what it tests. Recordings of real
// providers are in test/fixtures.

import type { UpstreamCall, UpstreamHandler, UpstreamReply } from './upstream.ts'

export type DialectName = 'chat' | 'messages' | 'responses' | 'gemini'

/** Tokens by price bucket. */
export interface Buckets {
  readonly input: number
  readonly output: number
  readonly read?: number
  readonly write?: number
  /** Only Messages can tell it from a short one. */
  readonly writeLong?: number
}

export interface Said {
  /** One record each; joined in a whole reply. */
  readonly texts: readonly string[]
  /** In the dialect's own form, or undefined for a provider that reports none. */
  readonly usage: unknown
  /** Usage in the first record of a Messages stream; the same as `usage` unless a test says otherwise. */
  readonly usageAtStart?: unknown
  readonly stop?: 'end' | 'length'
  /** The `service_tier` of the reply, in OpenAI's dialects; the others have it in `usage`. */
  readonly tier?: string | undefined
}

export function dialectOf(call: UpstreamCall): DialectName {
  if (call.path.endsWith('/responses')) return 'responses'
  if (isGeminiPath(call.path)) return 'gemini'
  return call.path.endsWith('/chat/completions') ? 'chat' : 'messages'
}

export function usageIn(dialect: DialectName, { input, output, read = 0, write = 0, writeLong = 0 }: Buckets): object {
  if (dialect === 'messages') {
    return {
      input_tokens: input,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: write + writeLong,
      cache_creation: { ephemeral_5m_input_tokens: write, ephemeral_1h_input_tokens: writeLong },
      output_tokens: output,
    }
  }
  if (writeLong > 0) throw new Error('OpenAI has no word for a one-hour cache')
  if (dialect === 'gemini') {
    if (write > 0) throw new Error('Gemini does not report cache writes')
    return {
      promptTokenCount: input + read,
      cachedContentTokenCount: read,
      candidatesTokenCount: output,
      totalTokenCount: input + read + output,
    }
  }
  const prompt = input + read + write
  if (dialect === 'responses') {
    return {
      input_tokens: prompt,
      input_tokens_details: { cached_tokens: read, cache_write_tokens: write },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: prompt + output,
    }
  }
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: read, cache_write_tokens: write },
  }
}

/** Says it all in the form that was asked for. */
export async function say(call: UpstreamCall, reply: UpstreamReply, said: Said): Promise<void> {
  const words = wordsOf(dialectOf(call))
  if (!wantsStream(call)) return await reply.json(200, words.whole(said))
  await reply.startStream()
  await reply.chunk(words.opening(said) + said.texts.map(words.text).join('') + words.ending(said))
  await reply.finish()
}

/** A provider that always answers with these texts and this usage. */
export function answerWith(
  used: Buckets,
  texts: readonly string[] = ['hello'],
  more: Partial<Said> = {},
): (call: UpstreamCall, reply: UpstreamReply) => Promise<void> {
  return (call, reply) => say(call, reply, { texts, usage: usageIn(dialectOf(call), used), ...more })
}

export interface DialectWords {
  /** Legal, but nothing a client would show. */
  opening(said: Pick<Said, 'usage' | 'usageAtStart' | 'tier'>): string
  text(text: string): string
  /** The end, with usage and the dialect's terminal marker. */
  ending(said: Pick<Said, 'usage' | 'stop' | 'tier'>): string
  whole(said: Said): object
}

export function wordsOf(dialect: DialectName): DialectWords {
  return { chat, messages, responses, gemini }[dialect]
}

const chatRecord = (choices: object[], more: object = {}): string =>
  record({ id: 'c', object: 'chat.completion.chunk', model: 'up', choices, ...more })
const chunk = (delta: object, finish: string | null = null): string =>
  chatRecord([{ index: 0, delta, finish_reason: finish }])

const chatStop = { end: 'stop', length: 'length' }

const chat: DialectWords = {
  opening: () => chunk({ role: 'assistant', content: '' }),
  text: (content) => chunk({ content }),
  ending({ usage, stop = 'end', tier }) {
    const counts = usage === undefined ? '' : chatRecord([], { usage, service_tier: tier })
    return `${chunk({}, chatStop[stop])}${counts}data: [DONE]\n\n`
  },
  whole: ({ texts, usage, stop = 'end', tier }) => ({
    id: 'c',
    object: 'chat.completion',
    service_tier: tier,
    model: 'up',
    choices: [{ index: 0, message: { role: 'assistant', content: texts.join('') }, finish_reason: chatStop[stop] }],
    ...(usage !== undefined && { usage }),
  }),
}

const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'up' }
const messagesStop = { end: 'end_turn', length: 'max_tokens' }

const messages: DialectWords = {
  opening({ usage, usageAtStart = usage }) {
    const counts = usageAtStart === undefined ? {} : { usage: usageAtStart }
    const started = event('message_start', { message: { ...message, content: [], stop_reason: null, ...counts } })
    return started + event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
  },
  text: (text) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
  ending({ usage, stop = 'end' }) {
    const delta = { stop_reason: messagesStop[stop], stop_sequence: null }
    return (
      event('content_block_stop', { index: 0 }) +
      event('message_delta', { delta, ...(usage !== undefined && { usage }) }) +
      event('message_stop', {})
    )
  },
  whole: ({ texts, usage, stop = 'end' }) => ({
    ...message,
    content: [{ type: 'text', text: texts.join('') }],
    stop_reason: messagesStop[stop],
    stop_sequence: null,
    ...(usage !== undefined && { usage }),
  }),
}

const response = { id: 'resp_1', object: 'response', model: 'up', created_at: 1, error: null }
const item = { id: 'msg_1', type: 'message', role: 'assistant' }
const place = { item_id: 'msg_1', output_index: 0, content_index: 0 }
const part = (text: string) => ({ type: 'output_text', text, annotations: [] })
const responsesStop = {
  end: { status: 'completed', incomplete_details: null },
  length: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
}

const responses: DialectWords = {
  opening: () =>
    event('response.created', { response: { ...response, status: 'in_progress', output: [], usage: null } }) +
    event('response.output_item.added', { output_index: 0, item: { ...item, status: 'in_progress', content: [] } }) +
    event('response.content_part.added', { ...place, part: part('') }),
  text: (delta) => event('response.output_text.delta', { ...place, delta }),
  ending({ usage, stop = 'end', tier }) {
    const { status } = responsesStop[stop]
    const ended = {
      ...response,
      service_tier: tier,
      ...responsesStop[stop],
      output: [],
      ...(usage !== undefined && { usage }),
    }
    return event(`response.${status}`, { response: ended })
  },
  whole: ({ texts, usage, stop = 'end', tier }) => ({
    ...response,
    service_tier: tier,
    ...responsesStop[stop],
    output: [{ ...item, status: 'completed', content: [part(texts.join(''))] }],
    ...(usage !== undefined && { usage }),
  }),
}

const geminiStop = { end: 'STOP', length: 'MAX_TOKENS' }
const candidate = (text: string, more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }],
  modelVersion: 'up',
  responseId: 'r1',
})

const gemini: DialectWords = {
  opening: () => record(candidate('')),
  text: (text) => record(candidate(text)),
  ending({ usage, stop = 'end' }) {
    const counts = usage === undefined ? {} : { usageMetadata: usage }
    return record({ ...candidate('', { finishReason: geminiStop[stop] }), ...counts })
  },
  whole: ({ texts, usage, stop = 'end' }) => ({
    ...candidate(texts.join(''), { finishReason: geminiStop[stop] }),
    ...(usage !== undefined && { usageMetadata: usage }),
  }),
}

function record(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

function event(type: string, members: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
}

/** The few records that most tests need: "hello", with 3 tokens in and 2 out. */
export interface Words {
  /** Legal, but nothing a client would show. */
  readonly opening: string
  says(text: string): string
  /** The end, with usage. */
  readonly ending: string
  /** The dialect's terminal marker, which only a whole answer has. */
  readonly terminal: string
  /** An error inside the stream. */
  readonly error: string
  readonly whole: string
}

const hello = ({ opening, text, ending, whole }: DialectWords, usage: object, atEnd = usage) => ({
  opening: opening({ usage, usageAtStart: { ...usage, output_tokens: 1 } }),
  says: text,
  ending: ending({ usage: atEnd }),
  whole: JSON.stringify(whole({ texts: ['hello'], usage })),
})

export const chatWords: Words = {
  ...hello(chat, { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }),
  terminal: '[DONE]',
  error: record({ error: { message: 'the engine fell over', type: 'server_error', code: null } }),
}

export const messagesWords: Words = {
  ...hello(messages, { input_tokens: 3, output_tokens: 2 }, { output_tokens: 2 }),
  terminal: 'message_stop',
  error: event('error', { error: { type: 'overloaded_error', message: 'Overloaded' } }),
}

export const responsesWords: Words = {
  ...hello(responses, { input_tokens: 3, output_tokens: 2, total_tokens: 5 }),
  terminal: 'response.completed',
  error: event('error', { code: 'server_error', message: 'the engine fell over', param: null }),
}

/** Gemini counts in every record. */
const counted = (text: string, more?: object) => ({
  ...candidate(text, more),
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
})

export const geminiWords: Words = {
  opening: record(counted('')),
  says: (text) => record(counted(text)),
  ending: record(counted('', { finishReason: 'STOP' })),
  terminal: '"finishReason"',
  error: record({ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }),
  whole: JSON.stringify(counted('hello', { finishReason: 'STOP' })),
}

export const helloWords: Readonly<Record<DialectName, Words>> = {
  chat: chatWords,
  messages: messagesWords,
  responses: responsesWords,
  gemini: geminiWords,
}

/** The whole answer of a Chat Completions provider. */
export const chatAnswer = (usage: object): object => chat.whole({ texts: ['hello'], usage })

export function isGeminiPath(path: string): boolean {
  return path.includes(':streamGenerateContent') || path.includes(':generateContent')
}

export function wantsStream(call: UpstreamCall): boolean {
  return call.path.includes(':streamGenerateContent') || call.json().stream === true
}

/** The words of the dialect a call came in. */
export function wordsFor(call: UpstreamCall): Words {
  return helloWords[dialectOf(call)]
}

/** Says hello, streamed or whole as it was asked. */
export const answerHello: UpstreamHandler = async (call, reply) => {
  const { opening, says, ending, whole } = wordsFor(call)
  if (!wantsStream(call)) return await reply.send(200, { 'content-type': 'application/json' }, whole)
  await reply.startStream()
  await reply.chunk(opening + says('hello') + ending)
  await reply.finish()
}

/** A whole answer that is a good one in either dialect, for tests that look at something else. */
export const eitherAnswer = {
  type: 'message',
  stop_reason: 'end_turn',
  content: [{ type: 'text', text: 'ok' }],
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'ok' } }],
  input_tokens: 1,
}
