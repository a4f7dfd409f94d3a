// What a provider can do wrong with the form of its body: encodings that unpack to more than anyone can hold, types that
// are not what they are called, and an end in the middle.

import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { goodBody, head, mebibyte, raw, respond, type Trick, typeOf } from './turn.ts'

/** 64 MiB that travel as a few kilobytes. */
const zeros = Buffer.alloc(64 * mebibyte, 0x20)
const bombs: Readonly<Record<string, () => Uint8Array>> = {
  gzip: () => gzipSync(zeros),
  br: () => brotliCompressSync(zeros, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: () => zstdCompressSync(zeros),
  deflate: () => deflateSync(zeros),
}

const encodings: readonly Trick[] = Object.entries(bombs).flatMap(([coding, bomb]): Trick[] => [
  {
    name: `a bomb packed with ${coding}`,
    outcome: 'refused',
    play: (turn) => respond(turn, bomb(), { 'content-encoding': coding }),
  },
  {
    name: `a 400 with a bomb packed with ${coding}`,
    outcome: 'refused',
    async play({ reply }) {
      const body = bomb()
      const headers = { 'content-type': 'application/json', 'content-encoding': coding }
      await reply.send(400, headers, body)
    },
  },
])

const types: readonly Trick[] = [
  {
    name: 'an answer called HTML',
    outcome: ({ streamsUpstream }) => (streamsUpstream ? 'refused' : 'answered'),
    play: (turn) => respond(turn, goodBody(turn), { 'content-type': 'text/html' }),
  },
  {
    name: 'an answer without a type',
    outcome: 'legal',
    play: raw((turn) => `HTTP/1.1 200 OK\r\n\r\n${goodBody(turn)}`),
  },
  {
    name: 'an answer called UTF-16',
    outcome: 'answered',
    play: (turn) =>
      respond(turn, goodBody(turn), { 'content-type': `${typeOf(turn)['content-type']}; charset=utf-16le` }),
  },
  {
    name: 'an answer in UTF-16',
    outcome: 'refused',
    play: (turn) => respond(turn, Buffer.from(goodBody(turn), 'utf16le')),
  },
  {
    name: 'a whole reply called a stream',
    outcome: ({ streamsUpstream }) => (streamsUpstream ? 'refused' : 'answered'),
    play: (turn) => respond(turn, turn.words.whole, { 'content-type': 'text/event-stream' }),
  },
  {
    name: 'a stream called JSON',
    outcome: 'refused',
    play: ({ reply, words }) =>
      reply.send(200, { 'content-type': 'application/json' }, words.opening + words.says('hello') + words.ending),
  },
]

/** The provider stops in the middle of what it says and keeps its ear open. */
const halves: readonly Trick[] = [
  { name: 'half a status line, then half-closed', outcome: 'refused', play: raw(() => 'HTTP/1.1 20') },
  { name: 'half a head, then half-closed', outcome: 'refused', play: raw(() => 'HTTP/1.1 200 OK\r\ncontent-ty') },
  {
    name: 'a head and nothing, half-closed',
    outcome: 'refused',
    play: raw((turn) => head(200, { ...typeOf(turn), 'transfer-encoding': 'chunked' })),
  },
  {
    name: 'half a body, then half-closed',
    outcome: ({ streamsUpstream }) => (streamsUpstream ? 'legal' : 'refused'),
    play: raw((turn) => {
      const body = goodBody(turn)
      const length = String(Buffer.byteLength(body))
      return head(200, { ...typeOf(turn), 'content-length': length }) + body.slice(0, body.length * 0.6)
    }),
  },
]

export const formTricks: readonly Trick[] = [...encodings, ...types, ...halves]
