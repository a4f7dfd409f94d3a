// What a provider can do wrong below its words: status lines, headers, framing and redirects.

import { chunkedHead, goodBody, head, mebibyte, raw, respond, type Trick, type Turn, typeOf } from './turn.ts'

const endlessHeaders: readonly Trick[] = [
  {
    name: 'headers without an end',
    outcome: 'refused',
    async play({ call, reply }) {
      await reply.write('HTTP/1.1 200 OK\r\n')
      const lines = Array.from({ length: 100 }, (_, at) => `x-h${at}: ${'y'.repeat(600)}\r\n`).join('')
      for (let sent = 0; sent < 400 * mebibyte && !call.isClosed(); sent += lines.length) await reply.write(lines)
      reply.cut()
    },
  },
  {
    name: 'one header without an end',
    outcome: 'refused',
    async play({ call, reply }) {
      await reply.write('HTTP/1.1 200 OK\r\nx-h: ')
      const piece = 'y'.repeat(65_536)
      for (let sent = 0; sent < 400 * mebibyte && !call.isClosed(); sent += piece.length) await reply.write(piece)
      reply.cut()
    },
  },
  {
    name: 'a flood of 100 Continue, then an answer',
    outcome: 'legal',
    async play(turn) {
      const flood = 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(200)
      for (let sent = 0; sent < 100 && !turn.call.isClosed(); sent++) await turn.reply.write(flood)
      await respond(turn, goodBody(turn))
    },
  },
  {
    name: 'early hints with headers, then an answer',
    outcome: 'legal',
    async play(turn) {
      await turn.reply.write('HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\nx-canary: canary-header\r\n\r\n')
      await respond(turn, goodBody(turn))
    },
  },
]

/** Header lines as they must not be, each in an answer that is well otherwise. */
const oddLines: Readonly<Record<string, string>> = {
  'a bare CR in a header': 'x-a: b\rset-cookie: canary-cookie',
  'a bare LF in a header': 'x-a: b\nset-cookie: canary-cookie',
  'a NUL in a header': 'x-a: b\0c',
  'a header name with a space': 'x a: b',
  'a header without a colon': 'x-nothing',
  'a folded header': 'x-a: b\r\n canary-header',
  'bytes beyond ASCII in a header': 'x-a: \xff\xfe\x80',
  'an empty header name': ': b',
}

const lines: readonly Trick[] = Object.entries(oddLines).map(([name, line]) => ({
  name,
  outcome: 'legal',
  play: (turn) => {
    const body = goodBody(turn)
    const rest = `content-type: ${typeOf(turn)['content-type']}\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    return turn.reply.write(Buffer.from(`HTTP/1.1 200 OK\r\n${line}\r\n${rest}`, 'latin1'))
  },
}))

const poison = (turn: Turn): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: ${typeOf(turn)['content-type']}\r\ncontent-length: 13\r\n\r\ncanary-poison`

const framing: readonly Trick[] = [
  {
    name: 'response splitting: a second response behind the first',
    outcome: 'answered',
    play: async (turn) => {
      const body = goodBody(turn)
      const first = head(200, { ...typeOf(turn), 'content-length': String(Buffer.byteLength(body)) }) + body
      await turn.reply.write(first + poison(turn))
    },
  },
  {
    name: 'a length that is too large, then the end',
    outcome: ({ streamsUpstream }) => (streamsUpstream ? 'legal' : 'refused'),
    play: raw((turn) => head(200, { ...typeOf(turn), 'content-length': '99999' }) + goodBody(turn)),
  },
  {
    name: 'a length of petabytes',
    outcome: ({ streamsUpstream }) => (streamsUpstream ? 'legal' : 'refused'),
    play: raw((turn) => head(200, { ...typeOf(turn), 'content-length': '9007199254740991' }) + goodBody(turn)),
  },
  {
    name: 'a length that is too small',
    outcome: ({ streamsUpstream, stream }) => (streamsUpstream && stream ? 'legal' : 'refused'),
    play: raw((turn) => head(200, { ...typeOf(turn), 'content-length': '20' }) + goodBody(turn)),
  },
  ...['-1', 'abc', '1e3', '20, 30', ''].map(
    (length): Trick => ({
      name: `a length of "${length}"`,
      outcome: 'legal',
      play: raw((turn) => head(200, { ...typeOf(turn), 'content-length': length }) + goodBody(turn)),
    }),
  ),
  {
    name: 'two lengths that differ',
    outcome: 'legal',
    play: raw((turn) => head(200, { ...typeOf(turn), 'content-length': '20\r\ncontent-length: 30' }) + goodBody(turn)),
  },
  {
    name: 'a length and chunks',
    outcome: 'legal',
    play: raw((turn) => {
      const body = goodBody(turn)
      const headers = { ...typeOf(turn), 'content-length': '5', 'transfer-encoding': 'chunked' }
      return `${head(200, headers)}${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`
    }),
  },
  ...['gzip, chunked', 'chunked, chunked', 'identity', 'chunkedd', '\x0bchunked'].map(
    (coding): Trick => ({
      name: `a transfer coding of ${JSON.stringify(coding)}`,
      outcome: 'legal',
      play: raw((turn) => {
        const body = goodBody(turn)
        const headers = { ...typeOf(turn), 'transfer-encoding': coding }
        return `${head(200, headers)}${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`
      }),
    }),
  ),
  ...['FFFFFFFFFFFFFFFF', '-5', 'zz', '', `1${'0'.repeat(5000)}`].map(
    (size): Trick => ({
      name: `a chunk size of "${size.slice(0, 20)}"`,
      outcome: ({ streamsUpstream }) => (streamsUpstream ? 'legal' : 'refused'),
      play: raw(
        (turn) => `${head(200, { ...typeOf(turn), 'transfer-encoding': 'chunked' })}${size}\r\n${goodBody(turn)}`,
      ),
    }),
  ),
  {
    name: 'a chunk extension without an end',
    outcome: 'refused',
    async play(turn) {
      await chunkedHead(turn)
      await turn.reply.write('5;x=')
      const piece = 'y'.repeat(65_536)
      const { call, reply } = turn
      for (let sent = 0; sent < 64 * mebibyte && !call.isClosed(); sent += piece.length) await reply.write(piece)
      reply.cut()
    },
  },
  {
    name: 'trailers behind the chunks',
    outcome: 'answered',
    async play(turn) {
      await chunkedHead(turn, { trailer: 'set-cookie' })
      await turn.reply.chunk(goodBody(turn))
      await turn.reply.write('0\r\nset-cookie: canary-cookie\r\nx-canary: canary-header\r\n\r\n')
    },
  },
]

const statuses: readonly Trick[] = [
  ...['000', '99', '999', 'abc', '101', '204', '206', '304'].map(
    (status): Trick => ({
      name: `a status of ${status}`,
      outcome: 'refused',
      play: raw((turn) => {
        const body = goodBody(turn)
        return head(status, { ...typeOf(turn), 'content-length': String(Buffer.byteLength(body)) }) + body
      }),
    }),
  ),
  { name: 'no HTTP at all', outcome: 'refused', play: raw(() => 'SSH-2.0-OpenSSH_9.9\r\n') },
  { name: 'HTTP 0.9', outcome: 'refused', play: raw((turn) => goodBody(turn)) },
  {
    name: 'HTTP 1.0 without a length',
    outcome: 'legal',
    play: raw((turn) => `HTTP/1.0 200 OK\r\n${contentType(turn)}\r\n\r\n${goodBody(turn)}`),
  },
  ...[301, 302, 303, 307, 308].map(
    (status): Trick => ({
      name: `a redirect with ${status}`,
      outcome: 'refused',
      play: (turn) => turn.reply.write(head(status, { location: `${turn.canaryUrl}/stolen`, 'content-length': '0' })),
    }),
  ),
  {
    name: 'a 200 with a location and a refresh',
    outcome: 'answered',
    play: (turn) => respond(turn, goodBody(turn), { location: turn.canaryUrl, refresh: `0; url=${turn.canaryUrl}` }),
  },
]

function contentType(turn: Turn): string {
  return `content-type: ${typeOf(turn)['content-type']}`
}

export const httpTricks: readonly Trick[] = [...endlessHeaders, ...lines, ...framing, ...statuses]
