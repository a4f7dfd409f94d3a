// Records of a Chat Completions provider, for tests that decide what it says.

import { targetOf } from './translation.ts'

export const target = targetOf('m-1', 'acme/openai-chat')()
/** The signature of a thinking block of that target, in the notation of replies. */
export const signed = 'signed by acme/openai-chat'

export const record = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
export const chunk = (delta: unknown, finish: string | null = null, more: object = {}): string =>
  record({ id: 'c1', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }], ...more })
export const calls = (...fragments: unknown[]): string => chunk({ tool_calls: fragments })
export const args = (text: string | null): object => ({ function: { arguments: text } })
export const named = (name: string, text = ''): object => ({ type: 'function', function: { name, arguments: text } })
export const done = 'data: [DONE]\n\n'
/** The end of a reply with calls. */
export const finished = `${chunk({}, 'tool_calls')}${done}`
