// What is measured: one row of data per cell. A new dialect pair, connection count or prompt size is a new row.

export type Surface = 'chat' | 'messages'

export interface Cell {
  readonly id: string
  readonly surface: Surface
  /** Events of the upstream's stream; 0 asks for a plain JSON reply. */
  readonly events: number
  readonly connections: number
  readonly promptBytes: number
  /** Measured without being named by --cells. */
  readonly byDefault: boolean
}

// Streams run on few connections because the upstream paces them: 16 streams of one event per millisecond leave the
// bare proxy about a quarter of a core, so events stay apart and CPU per event means the same for every contender that keeps up.
export const CELLS: readonly Cell[] = [
  { id: 'chat', surface: 'chat', events: 0, connections: 32, promptBytes: 1_000, byDefault: true },
  { id: 'chat-alone', surface: 'chat', events: 0, connections: 1, promptBytes: 1_000, byDefault: true },
  { id: 'chat-20k', surface: 'chat', events: 0, connections: 32, promptBytes: 20_000, byDefault: true },
  { id: 'chat-stream', surface: 'chat', events: 100, connections: 16, promptBytes: 1_000, byDefault: true },
  { id: 'chat-long-stream', surface: 'chat', events: 1_000, connections: 16, promptBytes: 1_000, byDefault: true },
  { id: 'messages', surface: 'messages', events: 0, connections: 32, promptBytes: 1_000, byDefault: false },
  { id: 'messages-stream', surface: 'messages', events: 100, connections: 16, promptBytes: 1_000, byDefault: false },
]

export const PATHS: Record<Surface, string> = { chat: '/v1/chat/completions', messages: '/v1/messages' }

/**
 * The request body of a cell. The wish for a number of events stands in the prompt because that is the one part which every
 * proxy hands on unchanged.
 */
export function requestBody(cell: Cell, model: string): string {
  const mark = cell.events > 0 ? `[events=${cell.events}] ` : ''
  const filler = 'The quick brown fox jumps over the lazy dog. '
  const text = (mark + filler.repeat(Math.ceil(cell.promptBytes / filler.length))).slice(0, cell.promptBytes)
  const stream = cell.events > 0
  if (cell.surface === 'messages') {
    return JSON.stringify({ model, max_tokens: 2048, stream, messages: [{ role: 'user', content: text }] })
  }
  return JSON.stringify({
    model,
    stream,
    ...(stream ? { stream_options: { include_usage: true } } : {}),
    max_tokens: 2048,
    temperature: 0.7,
    messages: [{ role: 'user', content: text }],
  })
}

export function requestHeaders(surface: Surface): Record<string, string> {
  return surface === 'messages'
    ? { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' }
    : { 'content-type': 'application/json' }
}
