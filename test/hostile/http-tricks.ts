// Faults of a provider below its content: status lines, headers, framing and redirects.

import { chunkedHead, goodBody, head, mebibyte, raw, respond, type Trick, type Turn, trick, typeOf } from './turn.ts'

const endlessHeaders: readonly Trick[] = [
  trick('headers without an end', 'refused', async ({ call, reply }) => {
    await reply.write('HTTP/1.1 200 OK\r\n')
    const lines = Array.from({ length: 100 }, (_, at) => `x-h${at}: ${'y'.repeat(600)}\r\n`).join('')
    for (let sent = 0; sent < 400 * mebibyte && !call.isClosed(); sent += lines.length) await reply.write(lines)
    reply.cut()
  }),
  trick('one header without an end', 'refused', async ({ call, reply }) => {
    await reply.write('HTTP/1.1 200 OK\r\nx-h: ')
    const piece = 'y'.repeat(65_536)
    for (let sent = 0; sent < 400 * mebibyte && !call.isClosed(); sent += piece.length) await reply.write(piece)
    reply.cut()
  }),
  trick('a flood of 100 Continue, then an answer', 'legal', async (turn) => {
    const flood = 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(200)
    for (let sent = 0; sent < 100 && !turn.call.isClosed(); sent++) await turn.reply.write(flood)
    await respond(turn, goodBody(turn))
  }),
  trick('early hints with headers, then an answer', 'legal', async (turn) => {
    await turn.reply.write('HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\nx-canary: canary-header\r\n\r\n')
    await respond(turn, goodBody(turn))
  }),
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

const lines: readonly Trick[] = Object.entries(oddLines).map(([name, line]) =>
  trick(name, 'legal', (turn) => {
    const body = goodBody(turn)
    const rest = `${contentType(turn)}\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    return turn.reply.write(Buffer.from(`HTTP/1.1 200 OK\r\n${line}\r\n${rest}`, 'latin1'))
  }),
)

const poison = (turn: Turn): string =>
  `HTTP/1.1 200 OK\r\n${contentType(turn)}\r\ncontent-length: 13\r\n\r\ncanary-poison`

const unlessStreamed: Trick['outcome'] = ({ streamsUpstream }) => (streamsUpstream ? 'legal' : 'refused')

/** The good answer with these headers, and the end of the connection. */
function sentWith(
  name: string,
  outcome: Trick['outcome'],
  headers: Readonly<Record<string, string>>,
  framed = (body: string): string => body,
): Trick {
  return trick(
    name,
    outcome,
    raw((turn) => head(200, { ...typeOf(turn), ...headers }) + framed(goodBody(turn))),
  )
}

const inOneChunk = (body: string): string => `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`

const framing: readonly Trick[] = [
  trick('response splitting: a second response behind the first', 'answered', async (turn) => {
    const body = goodBody(turn)
    const first = head(200, { ...typeOf(turn), 'content-length': String(Buffer.byteLength(body)) }) + body
    await turn.reply.write(first + poison(turn))
  }),
  sentWith('a length that is too large, then the end', unlessStreamed, { 'content-length': '99999' }),
  sentWith('a length of petabytes', unlessStreamed, { 'content-length': '9007199254740991' }),
  sentWith(
    'a length that is too small',
    ({ streamsUpstream, stream }) => (streamsUpstream && stream ? 'legal' : 'refused'),
    { 'content-length': '20' },
  ),
  ...['-1', 'abc', '1e3', '20, 30', ''].map((length) =>
    sentWith(`a length of "${length}"`, 'legal', { 'content-length': length }),
  ),
  sentWith('two lengths that differ', 'legal', { 'content-length': '20\r\ncontent-length: 30' }),
  sentWith('a length and chunks', 'legal', { 'content-length': '5', 'transfer-encoding': 'chunked' }, inOneChunk),
  ...['gzip, chunked', 'chunked, chunked', 'identity', 'chunkedd', '\x0bchunked'].map((coding) =>
    sentWith(`a transfer coding of ${JSON.stringify(coding)}`, 'legal', { 'transfer-encoding': coding }, inOneChunk),
  ),
  ...['FFFFFFFFFFFFFFFF', '-5', 'zz', '', `1${'0'.repeat(5000)}`].map((size) =>
    sentWith(
      `a chunk size of "${size.slice(0, 20)}"`,
      unlessStreamed,
      { 'transfer-encoding': 'chunked' },
      (body) => `${size}\r\n${body}`,
    ),
  ),
  trick('a chunk extension without an end', 'refused', async (turn) => {
    await chunkedHead(turn)
    await turn.reply.write('5;x=')
    const piece = 'y'.repeat(65_536)
    const { call, reply } = turn
    for (let sent = 0; sent < 64 * mebibyte && !call.isClosed(); sent += piece.length) await reply.write(piece)
    reply.cut()
  }),
  trick('trailers behind the chunks', 'answered', async (turn) => {
    await chunkedHead(turn, { trailer: 'set-cookie' })
    await turn.reply.chunk(goodBody(turn))
    await turn.reply.write('0\r\nset-cookie: canary-cookie\r\nx-canary: canary-header\r\n\r\n')
  }),
]

const statuses: readonly Trick[] = [
  ...['000', '99', '999', 'abc', '101', '204', '206', '304'].map((status) =>
    trick(
      `a status of ${status}`,
      'refused',
      raw((turn) => {
        const body = goodBody(turn)
        return head(status, { ...typeOf(turn), 'content-length': String(Buffer.byteLength(body)) }) + body
      }),
    ),
  ),
  trick(
    'no HTTP at all',
    'refused',
    raw(() => 'SSH-2.0-OpenSSH_9.9\r\n'),
  ),
  trick(
    'HTTP 0.9',
    'refused',
    raw((turn) => goodBody(turn)),
  ),
  trick(
    'HTTP 1.0 without a length',
    'legal',
    raw((turn) => `HTTP/1.0 200 OK\r\n${contentType(turn)}\r\n\r\n${goodBody(turn)}`),
  ),
  ...[301, 302, 303, 307, 308].map((status) =>
    trick(`a redirect with ${status}`, 'refused', (turn) =>
      turn.reply.write(head(status, { location: `${turn.canaryUrl}/stolen`, 'content-length': '0' })),
    ),
  ),
  trick('a 200 with a location and a refresh', 'answered', (turn) =>
    respond(turn, goodBody(turn), { location: turn.canaryUrl, refresh: `0; url=${turn.canaryUrl}` }),
  ),
]

function contentType(turn: Turn): string {
  return `content-type: ${typeOf(turn)['content-type']}`
}

export const httpTricks: readonly Trick[] = [...endlessHeaders, ...lines, ...framing, ...statuses]
