// Faults in the form of a provider's body: encodings that unpack to more than anyone can hold, types that
// are not what they are called, and an end in the middle.

import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { goodBody, head, mebibyte, raw, respond, type Trick, trick, typeOf } from './turn.ts'

/** 64 MiB that travel as a few kilobytes. */
const zeros = Buffer.alloc(64 * mebibyte, 0x20)
/** Packed once: every path gets the same bytes. */
const bombs: Readonly<Record<string, Uint8Array>> = {
  gzip: gzipSync(zeros),
  br: brotliCompressSync(zeros, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: zstdCompressSync(zeros),
  deflate: deflateSync(zeros),
}

const encodings: readonly Trick[] = Object.entries(bombs).flatMap(([coding, bomb]): Trick[] => [
  trick(`a bomb packed with ${coding}`, 'refused', (turn) => respond(turn, bomb, { 'content-encoding': coding })),
  trick(`a 400 with a bomb packed with ${coding}`, 'refused', async ({ reply }) => {
    const headers = { 'content-type': 'application/json', 'content-encoding': coding }
    await reply.send(400, headers, bomb)
  }),
])

const types: readonly Trick[] = [
  trick(
    'an answer called HTML',
    ({ streamsUpstream }) => (streamsUpstream ? 'refused' : 'answered'),
    (turn) => respond(turn, goodBody(turn), { 'content-type': 'text/html' }),
  ),
  trick(
    'an answer without a type',
    'legal',
    raw((turn) => `HTTP/1.1 200 OK\r\n\r\n${goodBody(turn)}`),
  ),
  trick('an answer called UTF-16', 'answered', (turn) =>
    respond(turn, goodBody(turn), { 'content-type': `${typeOf(turn)['content-type']}; charset=utf-16le` }),
  ),
  trick('an answer in UTF-16', 'refused', (turn) => respond(turn, Buffer.from(goodBody(turn), 'utf16le'))),
  trick(
    'a whole reply called a stream',
    ({ streamsUpstream }) => (streamsUpstream ? 'refused' : 'answered'),
    (turn) => respond(turn, turn.words.whole, { 'content-type': 'text/event-stream' }),
  ),
  trick('a stream called JSON', 'refused', ({ reply, words }) =>
    reply.send(200, { 'content-type': 'application/json' }, words.opening + words.says('hello') + words.ending),
  ),
]

/** The provider stops in the middle of what it says and keeps its ear open. */
const halves: readonly Trick[] = [
  trick(
    'half a status line, then half-closed',
    'refused',
    raw(() => 'HTTP/1.1 20'),
  ),
  trick(
    'half a head, then half-closed',
    'refused',
    raw(() => 'HTTP/1.1 200 OK\r\ncontent-ty'),
  ),
  trick(
    'a head and nothing, half-closed',
    'refused',
    raw((turn) => head(200, { ...typeOf(turn), 'transfer-encoding': 'chunked' })),
  ),
  trick(
    'half a body, then half-closed',
    ({ streamsUpstream }) => (streamsUpstream ? 'legal' : 'refused'),
    raw((turn) => {
      const body = goodBody(turn)
      const length = String(Buffer.byteLength(body))
      return head(200, { ...typeOf(turn), 'content-length': length }) + body.slice(0, body.length * 0.6)
    }),
  ),
]

export const formTricks: readonly Trick[] = [...encodings, ...types, ...halves]
