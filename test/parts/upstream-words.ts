// The few records a fake provider needs to hold up a conversation in either dialect. What a real one sends stands in
// test/fixtures.

import type { UpstreamCall } from './upstream.ts'
import { geminiWords, isGeminiPath, responsesWords } from './upstream-only-words.ts'

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

/** The words of the dialect a call came in. */
export function wordsFor(call: UpstreamCall): Words {
  if (call.path.endsWith('/chat/completions')) return chatWords
  if (call.path.endsWith('/responses')) return responsesWords
  return isGeminiPath(call.path) ? geminiWords : messagesWords
}

/** A whole answer that is a good one in either dialect, for tests that look at something else. */
export const eitherAnswer = {
  type: 'message',
  stop_reason: 'end_turn',
  content: [{ type: 'text', text: 'ok' }],
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'ok' } }],
  input_tokens: 1,
}
