// Replies as Anthropic sends them, with all members.

import type { ProviderBytes } from './reply-fixture.ts'

export interface MessagesBlock {
  /** As it begins in a stream. */
  readonly start: object
  readonly deltas: readonly object[]
  /** As it is in a whole reply; a string is its JSON. */
  readonly whole: object | string
}

export interface MessagesReplyParts {
  readonly blocks: readonly MessagesBlock[]
  readonly stop: string
  readonly sequence?: string
  readonly details?: object
  readonly usage?: object
  /** Records between the blocks and the end. */
  readonly between?: string
}

const event = (type: string, members: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
export const messagesUsage = { input_tokens: 10, output_tokens: 5 }

export function messagesBytes(parts: MessagesReplyParts): ProviderBytes {
  const { blocks, stop, sequence = null, details = null, usage = messagesUsage, between = '' } = parts
  const counts = {
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    output_tokens_details: null,
    server_tool_use: null,
    service_tier: 'standard',
    inference_geo: null,
    speed: null,
    ...usage,
  }
  const message = { id: 'msg_Up1', type: 'message', role: 'assistant', model: 'up-model' }
  const ending = { stop_reason: stop, stop_sequence: sequence, stop_details: details, container: null }
  const begun = { stop_reason: null, stop_sequence: null, stop_details: null, container: null }
  const start = { ...message, content: [], ...begun, diagnostics: null, usage: { ...counts, output_tokens: 1 } }
  const whole = JSON.stringify({ ...message, content: [], ...ending, diagnostics: null, usage: counts })
  const content = blocks.map((block) => (typeof block.whole === 'string' ? block.whole : JSON.stringify(block.whole)))
  return {
    stream: [
      event('message_start', { message: start }),
      ...blocks.flatMap(({ start: content_block, deltas }, index) => [
        event('content_block_start', { index, content_block }),
        ...deltas.map((delta) => event('content_block_delta', { index, delta })),
        event('content_block_stop', { index }),
      ]),
      between,
      event('message_delta', { delta: ending, usage: counts }),
      event('message_stop'),
    ].join(''),
    whole: whole.replace('"content":[]', () => `"content":[${content.join(',')}]`),
  }
}

export const textBlock = (...pieces: string[]): MessagesBlock => ({
  start: { type: 'text', text: '', citations: null },
  deltas: pieces.map((text) => ({ type: 'text_delta', text })),
  whole: { type: 'text', text: pieces.join(''), citations: null },
})

/** The input is spliced into the whole reply as it is written. */
export const callBlock = (id: string, name: string, ...pieces: string[]): MessagesBlock => ({
  start: { type: 'tool_use', id, name, input: {}, caller: { type: 'direct' } },
  deltas: ['', ...pieces].map((partial_json) => ({ type: 'input_json_delta', partial_json })),
  whole: `{"type":"tool_use","id":"${id}","name":"${name}","input":${pieces.join('') || '{}'},"caller":{"type":"direct"}}`,
})

export const thinkingBlock = (signature: string, ...pieces: string[]): MessagesBlock => ({
  start: { type: 'thinking', thinking: '', signature: '' },
  deltas: [...pieces.map((thinking) => ({ type: 'thinking_delta', thinking })), { type: 'signature_delta', signature }],
  whole: { type: 'thinking', thinking: pieces.join(''), signature },
})

export const sealedBlock = (data: string): MessagesBlock => ({
  start: { type: 'redacted_thinking', data },
  deltas: [],
  whole: { type: 'redacted_thinking', data },
})
