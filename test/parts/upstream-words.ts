// The few records a fake provider needs for a conversation in any dialect. Recordings of real providers are in
// test/fixtures.

import type { UpstreamCall, UpstreamHandler } from './upstream.ts'

export interface Words {
  /** Legal, but nothing a client would show. */
  readonly opening: string
  says(text: string): string
  /** The end, with usage: 3 in, 2 out. */
  readonly ending: string
  /** The dialect's terminal marker, which only a whole answer has. */
  readonly terminal: string
  /** An error inside the stream. */
  readonly error: string
  readonly whole: string
}

function chunk(delta: object, more: object = {}): string {
  const choices = [{ index: 0, delta, finish_reason: null, ...more }]
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'up', choices })}\n\n`
}

const chatUsage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }

export const chatWords: Words = {
  opening: chunk({ role: 'assistant', content: '' }),
  says: (content) => chunk({ content }),
  ending: `${chunk({}, { finish_reason: 'stop' })}data: ${JSON.stringify({ model: 'up', choices: [], usage: chatUsage })}\n\ndata: [DONE]\n\n`,
  terminal: '[DONE]',
  error: 'data: {"error":{"message":"the engine fell over","type":"server_error","code":null}}\n\n',
  whole: JSON.stringify({
    id: 'c',
    object: 'chat.completion',
    model: 'up',
    choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
    usage: chatUsage,
  }),
}

/** The whole answer of a Chat Completions provider with another usage. */
export const chatAnswer = (usage: object): object => ({ ...JSON.parse(chatWords.whole), usage })

function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}

const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'up', stop_reason: null }

export const messagesWords: Words = {
  opening:
    event('message_start', { message: { ...message, content: [], usage: { input_tokens: 3, output_tokens: 1 } } }) +
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  says: (text) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
  ending:
    event('content_block_stop', { index: 0 }) +
    event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } }) +
    event('message_stop', {}),
  terminal: 'message_stop',
  error: event('error', { error: { type: 'overloaded_error', message: 'Overloaded' } }),
  whole: JSON.stringify({
    ...message,
    content: [{ type: 'text', text: 'hello' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 3, output_tokens: 2 },
  }),
}

const geminiUsage = { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 }

const geminiReply = (parts: readonly object[], more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
  usageMetadata: geminiUsage,
  modelVersion: 'up',
  responseId: 'r1',
})
const geminiRecord = (value: object): string => `data: ${JSON.stringify(value)}\n\n`

export const geminiWords: Words = {
  opening: geminiRecord(geminiReply([{ text: '' }])),
  says: (text) => geminiRecord(geminiReply([{ text }])),
  ending: geminiRecord(geminiReply([{ text: '' }], { finishReason: 'STOP' })),
  terminal: '"finishReason"',
  error: geminiRecord({ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }),
  whole: JSON.stringify(geminiReply([{ text: 'hello' }], { finishReason: 'STOP' })),
}

const responsesEvent = (type: string, members: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
const responsesUsage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 }
const item = { type: 'message', id: 'msg_1', role: 'assistant', content: [] as object[] }
const said = { ...item, content: [{ type: 'output_text', text: 'hello', annotations: [] }] }
const response = { id: 'resp_1', object: 'response', model: 'up', status: 'completed', usage: responsesUsage }

export const responsesWords: Words = {
  opening:
    responsesEvent('response.created', { response: { id: 'resp_1', status: 'in_progress', output: [] } }) +
    responsesEvent('response.output_item.added', { output_index: 0, item }) +
    responsesEvent('response.content_part.added', {
      ...{ output_index: 0, item_id: 'msg_1', content_index: 0 },
      part: { type: 'output_text', text: '', annotations: [] },
    }),
  says: (delta) =>
    responsesEvent('response.output_text.delta', { output_index: 0, item_id: 'msg_1', content_index: 0, delta }),
  ending: responsesEvent('response.completed', { response: { ...response, output: [] } }),
  terminal: 'response.completed',
  error: responsesEvent('error', { code: 'server_error', message: 'the engine fell over', param: null }),
  whole: JSON.stringify({ ...response, output: [said] }),
}

export function isGeminiPath(path: string): boolean {
  return path.includes(':streamGenerateContent') || path.includes(':generateContent')
}

export function wantsStream(call: UpstreamCall): boolean {
  return call.path.includes(':streamGenerateContent') || call.json().stream === true
}

/** The words of the dialect a call came in. */
export function wordsFor(call: UpstreamCall): Words {
  if (call.path.endsWith('/chat/completions')) return chatWords
  if (call.path.endsWith('/responses')) return responsesWords
  return isGeminiPath(call.path) ? geminiWords : messagesWords
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
