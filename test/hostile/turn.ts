// The means of a hostile provider in one call: the request, bare bytes to answer with, and the marks by which its
// content is recognised where it must not appear.

import type { UpstreamCall, UpstreamReply } from '../parts/upstream.ts'
import { type Words, wantsStream, wordsFor } from '../parts/upstream-words.ts'

export interface Turn {
  readonly call: UpstreamCall
  readonly reply: UpstreamReply
  /** Whether the gateway asked for a stream. */
  readonly streams: boolean
  readonly words: Words
  /** An address that must not be called. */
  readonly canaryUrl: string
}

export function turnOf(call: UpstreamCall, reply: UpstreamReply, canaryUrl: string): Turn {
  return { call, reply, canaryUrl, streams: wantsStream(call), words: wordsFor(call) }
}

/**
 * answered: whole and paid for · refused: an error of the vocabulary, unpaid · interrupted: content, then an error in the
 * stream's own form · legal: any of these, where HTTP leaves it to the runtime.
 */
export type Outcome = 'answered' | 'refused' | 'interrupted' | 'legal'

export interface Trick {
  readonly name: string
  readonly outcome: Outcome | ((cell: Cell) => Outcome)
  play(turn: Turn): void | Promise<void>
  /** MiB that memory may grow while it is played; such a trick is played one cell at a time. */
  readonly growthMax?: number
}

export function trick(name: string, outcome: Trick['outcome'], play: Trick['play']): Trick {
  return { name, outcome, play }
}

/** Where a trick is played. */
export interface Cell {
  /** The client asked for a stream. */
  readonly stream: boolean
  /** The provider was asked for one, which is also so for a translated call without an output cap. */
  readonly streamsUpstream: boolean
}

export const mebibyte = 1024 * 1024

/** In every head that a trick sends; no client may ever see one of these. */
export const leakedHeaders = {
  'set-cookie': 'session=canary-cookie; Path=/',
  server: 'canary-server',
  'x-canary': 'canary-header',
  'access-control-allow-origin': 'canary-origin',
  'openai-organization': 'canary-organization',
}

export function head(status: number | string, headers: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries({ ...leakedHeaders, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} X\r\n${lines.join('')}\r\n`
}

/** The type that was asked for. */
export function typeOf({ streams }: Turn): Record<string, string> {
  return { 'content-type': streams ? 'text/event-stream' : 'application/json' }
}

/** A body that is well, in the form that was asked for. */
export function goodBody({ streams, words }: Turn): string {
  return streams ? words.opening + words.says('hello') + words.ending : words.whole
}

/** A whole response with its length. */
export function respond(turn: Turn, body: string | Uint8Array, headers: Record<string, string> = {}): Promise<void> {
  const bytes = Buffer.from(body)
  const length = { 'content-length': String(bytes.length) }
  return turn.reply.write(Buffer.concat([Buffer.from(head(200, { ...typeOf(turn), ...length, ...headers })), bytes]))
}

/** Chunks until the gateway has had enough, and never more than this; what is left of it shows in memory. */
export async function forever(turn: Turn, piece: Uint8Array | string, bytesMax = 400 * mebibyte): Promise<void> {
  const bytes = Buffer.from(piece)
  const framed = Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
  for (let sent = 0; sent < bytesMax && !turn.call.isClosed(); sent += bytes.length) await turn.reply.write(framed)
}

export const chunkedHead = (turn: Turn, headers: Record<string, string> = {}): Promise<void> =>
  turn.reply.write(head(200, { ...typeOf(turn), 'transfer-encoding': 'chunked', ...headers }))

/** Raw bytes, and the end of the connection. */
export const raw =
  (bytes: (turn: Turn) => string): Trick['play'] =>
  async (turn) => {
    await turn.reply.write(bytes(turn))
    turn.reply.cut()
  }
