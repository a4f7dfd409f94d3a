// Records of a Messages provider, for tests that decide what it says.

export const event = (type: string, members: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
export const start = event('message_start', { message: { id: 'msg_1', usage: { input_tokens: 10, output_tokens: 1 } } })
export const open = (index: number, block: object): string =>
  event('content_block_start', { index, content_block: block })
export const delta = (index: number, type: string, members: object): string =>
  event('content_block_delta', { index, delta: { type, ...members } })
export const close = (index: number): string => event('content_block_stop', { index })
export const text = (index: number, words: string): string =>
  open(index, { type: 'text', text: '' }) + delta(index, 'text_delta', { text: words }) + close(index)
export const ending = (reason: string | null, more: object = {}): string =>
  event('message_delta', { delta: { stop_reason: reason, stop_sequence: null, ...more }, usage: { output_tokens: 7 } })
export const stop = event('message_stop')
