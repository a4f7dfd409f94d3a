// What is measured: one row of data per cell, the whole matrix made by multiplication, and the request bodies of a cell.
// A new dialect pair, connection count or prompt size is a new entry in the lists below.

export type Surface = 'chat' | 'messages' | 'responses'

export interface Cell {
  readonly id: string
  /** The caller's dialect. */
  readonly surface: Surface
  /** The upstream's dialect. */
  readonly provider: Surface
  /** Events of the upstream's stream; 0 asks for a plain JSON reply. */
  readonly events: number
  /** Milliseconds between two events of a stream. */
  readonly paceMs: number
  /** Median of the upstream's time to its first byte; 0 answers at once. */
  readonly waitMs: number
  /** In an open loop the most that may be open at a time. */
  readonly connections: number
  readonly promptBytes: number
  /** Requests begun in a second, however long the answers take; 0 is a closed loop. */
  readonly arrivalsPerSecond: number
  /** The cell whose `direct` and `bare` this one is compared with, if they cannot do its work. */
  readonly twin: string
  /** Measured without being named by --cells or asked for by --all. */
  readonly byDefault: boolean
}

type Shape = Partial<Omit<Cell, 'id' | 'twin' | 'surface' | 'provider'>>

const PAIRS: readonly (readonly [surface: Surface, provider: Surface])[] = [
  ['chat', 'chat'],
  ['messages', 'messages'],
  ['chat', 'messages'],
  ['messages', 'chat'],
  ['responses', 'responses'],
  ['responses', 'chat'],
]
const CONNECTIONS = [1, 32, 512]
const PROMPT_BYTES = [1_000, 20_000, 200_000]

// The upstream sends about 16 events per millisecond in all: the bare proxy then needs a quarter of a core, events stay
// apart, and CPU per event means the same for every contender that keeps up. Of 512 streams each is slower and shorter, so that
// one still ends within a second.
const PACES: Readonly<Record<number, { readonly events: number; readonly paceMs: number }>> = {
  1: { events: 100, paceMs: 1 },
  32: { events: 100, paceMs: 2 },
  512: { events: 30, paceMs: 32 },
}

/** `chat`, `messages`, `chat-to-messages` …, with what differs from 32 connections and 1 KB behind it. */
function matrix(): Cell[] {
  const byDefault = new Set(['chat', 'chat-stream', 'chat-to-messages', 'chat-to-messages-stream'])
  return PAIRS.flatMap(([surface, provider]) =>
    [false, true].flatMap((isStreamed) =>
      CONNECTIONS.flatMap((connections) =>
        PROMPT_BYTES.map((promptBytes) => {
          const ending =
            (isStreamed ? '-stream' : '') +
            (connections === 32 ? '' : `-${connections}c`) +
            (promptBytes === 1_000 ? '' : `-${promptBytes / 1000}k`)
          const id = (surface === provider ? surface : `${surface}-to-${provider}`) + ending
          const pace = isStreamed ? PACES[connections] : undefined
          return cell(surface, provider, id, surface + ending, {
            ...pace,
            connections,
            promptBytes,
            byDefault: byDefault.has(id),
          })
        }),
      ),
    ),
  )
}

/** Cells outside the matrix: long streams, a slow upstream, and open loops. */
function singles(): Cell[] {
  const chat = (id: string, shape: Shape) => cell('chat', 'chat', id, id, shape)
  const slowly = { waitMs: 300, connections: 512 }
  return [
    chat('chat-long-stream', { events: 1_000, paceMs: 2 }),
    chat('chat-real', slowly),
    chat('chat-stream-real', { ...slowly, events: 50, paceMs: 20 }),
    chat('chat-open-100', { arrivalsPerSecond: 100, connections: 512 }),
    chat('chat-open', { arrivalsPerSecond: 1_000, connections: 512, byDefault: true }),
    chat('chat-open-3000', { arrivalsPerSecond: 3_000, connections: 512 }),
    chat('chat-open-real', { ...slowly, arrivalsPerSecond: 300 }),
    chat('chat-stream-open', { arrivalsPerSecond: 100, connections: 512, events: 50, paceMs: 2 }),
  ]
}

function cell(surface: Surface, provider: Surface, id: string, twin: string, shape: Shape): Cell {
  const plain = { events: 0, paceMs: 1, waitMs: 0, connections: 32, promptBytes: 1_000, arrivalsPerSecond: 0 }
  return { id, surface, provider, twin, byDefault: false, ...plain, ...shape }
}

export const CELLS: readonly Cell[] = [...matrix(), ...singles()]

export const PATHS: Record<Surface, string> = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
}

/**
 * The request body of a cell. The prompt says what the upstream should reply, because it is the one part that
 * every proxy forwards unchanged.
 */
export function requestBody(shape: RequestShape, model: string): string {
  const { surface, events, promptBytes } = shape
  const filler = 'The quick brown fox jumps over the lazy dog. '
  const text = (upstreamDirective(shape) + filler.repeat(Math.ceil(promptBytes / filler.length))).slice(0, promptBytes)
  const stream = events > 0
  if (surface === 'messages') {
    return JSON.stringify({ model, max_tokens: 2048, stream, messages: [{ role: 'user', content: text }] })
  }
  if (surface === 'responses') {
    const input = [{ role: 'user', content: text }]
    return JSON.stringify({ model, stream, store: false, max_output_tokens: 2048, temperature: 0.7, input })
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

export interface RequestShape extends Pick<Cell, 'surface' | 'events' | 'paceMs' | 'waitMs' | 'promptBytes'> {
  /** Text of one event of a stream; absent = a word. */
  readonly eventBytes?: number
}

function upstreamDirective({ events, paceMs, waitMs, eventBytes = 0 }: RequestShape): string {
  const wait = waitMs > 0 ? `[wait=${waitMs}] ` : ''
  return events > 0 ? `${wait}[events=${events} pace=${paceMs} size=${eventBytes}] ` : wait
}

export function requestHeaders(surface: Surface): Record<string, string> {
  return surface === 'messages'
    ? { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' }
    : { 'content-type': 'application/json' }
}

export function describeCell(cell: Cell): string {
  const reply = cell.events > 0 ? `streams of ${cell.events} events` : 'JSON'
  const load =
    cell.arrivalsPerSecond > 0
      ? `open loop, ${cell.arrivalsPerSecond} begun per second`
      : `${cell.connections} connection${cell.connections === 1 ? '' : 's'}`
  const wait = cell.waitMs > 0 ? `, upstream takes ${cell.waitMs} ms` : ''
  const translated = cell.surface === cell.provider ? '' : `, × of ${cell.twin}'s bare`
  return `${cell.id}: ${reply}, ${load}, ${cell.promptBytes / 1000} KB prompt${wait}${translated}`
}
