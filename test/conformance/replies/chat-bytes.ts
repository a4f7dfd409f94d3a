// Replies as OpenAI sends them, with all members.

import type { ProviderBytes } from './reply-fixture.ts'

export interface ChatReplyParts {
  /** One per chunk, after the one with the role; a string is a complete chunk. */
  readonly deltas: readonly (object | string)[]
  /** Members of the whole message beside the role. */
  readonly message: object
  readonly finish: string
  /** Beside the finish reason, in the choice that ends it. */
  readonly ending?: object
  readonly usage?: object
}

const head = (object: string) => ({
  id: 'chatcmpl-Up1',
  object,
  created: 1_794_700_000,
  model: 'up-model',
  service_tier: 'default',
  system_fingerprint: null,
})
const record = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
export const chatUsage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }

export function chatBytes(parts: ChatReplyParts): ProviderBytes {
  const { deltas, message, finish, ending = {}, usage = chatUsage } = parts
  const chunk = (delta: object, finish_reason: string | null = null, more: object = {}): string => {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason, ...more }]
    return record({ ...head('chat.completion.chunk'), choices, usage: null })
  }
  const choice = {
    index: 0,
    message: { role: 'assistant', content: null, refusal: null, annotations: [], ...message },
    logprobs: null,
    finish_reason: finish,
    ...ending,
  }
  return {
    stream: [
      chunk({ role: 'assistant', content: '' }),
      ...deltas.map((delta) => (typeof delta === 'string' ? delta : chunk(delta))),
      chunk({}, finish, ending),
      record({ ...head('chat.completion.chunk'), choices: [], usage }),
      'data: [DONE]\n\n',
    ].join(''),
    whole: JSON.stringify({ ...head('chat.completion'), choices: [choice], usage }, null, 2),
  }
}

/** The first delta of a call, and one with more of its arguments. */
export const callOpening = (index: number, id: string, name: string, text = ''): object => ({
  tool_calls: [{ index, id, type: 'function', function: { name, arguments: text } }],
})
export const callArguments = (index: number, text: string): object => ({
  tool_calls: [{ index, function: { arguments: text } }],
})
export const wholeCall = (id: string, name: string, text: string): object => ({
  id,
  type: 'function',
  function: { name, arguments: text },
})
