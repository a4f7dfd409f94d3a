import { describe, expect, test } from 'bun:test'
import { HttpFault, ResponseReader } from './http-message.ts'

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'))

interface Read {
  readonly status: number | undefined
  readonly type: string | null | undefined
  readonly body: string
  readonly isComplete: boolean
  readonly isReusable: boolean
}

/** Reads a response in pieces; `isClosed`: the connection ends behind them. */
function read(pieces: readonly Uint8Array[], isClosed = false): Read | 'fault' {
  const reader = new ResponseReader()
  let body = ''
  try {
    // A reader may move the bytes that it is given.
    for (const piece of pieces) body += Buffer.from(reader.read(piece.slice())).toString('latin1')
    if (isClosed) reader.end()
  } catch (error) {
    if (error instanceof HttpFault) return 'fault'
    throw error
  }
  const { head, isComplete, isReusable } = reader
  return { status: head?.status, type: head?.get('content-type'), body, isComplete, isReusable }
}

/** Whole, byte by byte, and split once at every byte. */
function readEveryWay(text: string, isClosed = false): Read | 'fault' {
  const bytes = bytesOf(text)
  const whole = read([bytes], isClosed)
  expect(
    read(
      Array.from(bytes, (byte) => new Uint8Array([byte])),
      isClosed,
    ),
  ).toEqual(whole)
  for (let at = 1; at < bytes.length; at++) {
    expect(read([bytes.subarray(0, at), bytes.subarray(at)], isClosed)).toEqual(whole)
  }
  return whole
}

const ok = 'HTTP/1.1 200 OK\r\n'
const json = 'content-type: application/json\r\n'
const chunked = `${ok}${json}transfer-encoding: chunked\r\n\r\n`
const complete = { status: 200, type: 'application/json', isComplete: true, isReusable: true }

describe('reads, however it is cut,', () => {
  test.each([
    ['a length', `${ok}${json}content-length: 5\r\n\r\nhello`, { body: 'hello' }],
    [
      'names and values in any letters',
      `${ok}Content-TYPE:application/json \r\nCONTENT-length:\t1\r\n\r\nx`,
      { body: 'x' },
    ],
    ['no body', `${ok}${json}content-length: 0\r\n\r\n`, { body: '' }],
    ['chunks', `${chunked}5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n`, { body: 'hello world' }],
    ['chunks with extensions', `${chunked}5;a=b\r\nhello\r\n1;c="d;\\"\xff";e\r\n!\r\n0;x\r\n\r\n`, { body: 'hello!' }],
    [
      'a large size in both cases',
      `${chunked}00000000000aB\r\n${'x'.repeat(171)}\r\n0\r\n\r\n`,
      { body: 'x'.repeat(171) },
    ],
    ['trailers', `${chunked}1\r\nx\r\n0\r\nset-cookie: a\r\nb: c\r\n\r\n`, { body: 'x' }],
    ['a coding in capitals', `${ok}${json}Transfer-Encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`, { body: 'x' }],
    [
      'informational responses',
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\na: b\r\n\r\n${ok}${json}content-length: 1\r\n\r\nx`,
      { body: 'x' },
    ],
    ['an error', `HTTP/1.1 429 \r\n${json}content-length: 1\r\n\r\nx`, { body: 'x', status: 429 }],
    ['a status line without a reason', `HTTP/1.1 503\r\n${json}content-length: 1\r\n\r\nx`, { body: 'x', status: 503 }],
    ['204, which has no body', `HTTP/1.1 204 No Content\r\n${json}\r\n`, { body: '', status: 204 }],
    [
      '304, which has no body',
      `HTTP/1.1 304 Not Modified\r\n${json}content-length: 9\r\n\r\n`,
      { body: '', status: 304 },
    ],
    [
      'a connection that closes',
      `${ok}${json}connection: keep-alive, Close\r\ncontent-length: 1\r\n\r\nx`,
      { body: 'x', isReusable: false },
    ],
    ['HTTP/1.0', `HTTP/1.0 200 OK\r\n${json}content-length: 1\r\n\r\nx`, { body: 'x', isReusable: false }],
    [
      'no further than the end',
      `${ok}${json}content-length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\n`,
      { body: 'x', isReusable: false },
    ],
    ['no further than the last chunk', `${chunked}1\r\nx\r\n0\r\n\r\nmore`, { body: 'x', isReusable: false }],
    [
      'nothing behind an empty body',
      `HTTP/1.1 204 No Content\r\n${json}\r\nmore`,
      { body: '', status: 204, isReusable: false },
    ],
  ])('%s', (_, text, expected) => {
    expect(readEveryWay(text)).toEqual({ ...complete, ...expected })
  })

  test('a body until the connection ends', () => {
    const text = `${ok}${json}\r\nhello`
    expect(readEveryWay(text)).toEqual({ ...complete, body: 'hello', isComplete: false, isReusable: false })
    expect(readEveryWay(text, true)).toEqual({ ...complete, body: 'hello', isReusable: false })
  })
})

const longName = 'x'.repeat(70_000)

test.each([
  ['no HTTP', 'SSH-2.0-OpenSSH_9.9\r\n\r\n'],
  ['another version', 'HTTP/2 200 OK\r\n\r\n'],
  ['a status of two digits', 'HTTP/1.1 99 OK\r\n\r\n'],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
  ['a status below 100', 'HTTP/1.1 000 OK\r\n\r\n'],
  ['a switch of protocols', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
  ['a line break in the status line', 'HTTP/1.1 200 O\nK\r\n\r\n'],
  ['a bare CR', `${ok}a: b\rc\r\n\r\n`],
  ['a bare LF', `${ok}a: b\nc: d\r\n\r\n`],
  ['a NUL', `${ok}a: b\0\r\n\r\n`],
  ['a name with a space', `${ok}a b: c\r\n\r\n`],
  ['a space before the colon', `${ok}content-length : 1\r\n\r\nx`],
  ['a line without a colon', `${ok}abc\r\n\r\n`],
  ['an empty name', `${ok}: b\r\n\r\n`],
  ['a folded line', `${ok}a: b\r\n c\r\n\r\n`],
  ['two lengths', `${ok}content-length: 1\r\ncontent-length: 2\r\n\r\nxx`],
  ['one length twice', `${ok}content-length: 1\r\ncontent-length: 1\r\n\r\nx`],
  ['a negative length', `${ok}content-length: -1\r\n\r\n`],
  ['a length with an exponent', `${ok}content-length: 1e3\r\n\r\n`],
  ['an empty length', `${ok}content-length:\r\n\r\n`],
  ['a length beyond what a number holds', `${ok}content-length: 9007199254740993\r\n\r\n`],
  ['a length and chunks', `${ok}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`],
  ['chunks in HTTP/1.0', 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n'],
  ['two codings', `${ok}transfer-encoding: gzip, chunked\r\n\r\n`],
  ['chunks twice', `${ok}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n`],
  ['no size', `${chunked}\r\nx\r\n`],
  ['a size that is no number', `${chunked}zz\r\nx\r\n`],
  ['a negative size', `${chunked}-1\r\nx\r\n`],
  ['a size of fourteen digits', `${chunked}10000000000000\r\n`],
  ['a size line that ends in LF', `${chunked}1\nx\r\n0\r\n\r\n`],
  ['an extension with a bare LF', `${chunked}1;a\nx\r\n`],
  ['a blank after a size', `${chunked}1 \r\nx\r\n0\r\n\r\n`],
  ['a word after a size', `${chunked}1 y\r\nx\r\n0\r\n\r\n`],
  ['a blank before an extension', `${chunked}1 ;a\r\nx\r\n0\r\n\r\n`],
  ['an extension without a name', `${chunked}1;\r\nx\r\n0\r\n\r\n`],
  ['an extension with a blank', `${chunked}1;a b\r\nx\r\n0\r\n\r\n`],
  ['an extension with a NUL', `${chunked}1;a=\0\r\nx\r\n0\r\n\r\n`],
  ['a quoted extension with a control character', `${chunked}1;a="\x7f"\r\nx\r\n0\r\n\r\n`],
  ['a quoted extension without its end', `${chunked}1;a="b\r\nx\r\n0\r\n\r\n`],
  ['an extension without an end', `${chunked}1;${'a'.repeat(5_000)}`],
  ['a chunk longer than its size', `${chunked}1\r\nxy\r\n0\r\n\r\n`],
  ['a chunk without its line break', `${chunked}1\r\nx\n0\r\n\r\n`],
  ['a trailer without a colon', `${chunked}0\r\nabc\r\n\r\n`],
  ['a trailer with a NUL', `${chunked}0\r\na: \0\r\n\r\n`],
  ['a trailer without a name', `${chunked}0\r\n: a\r\n\r\n`],
  ['a length as a trailer', `${chunked}0\r\nContent-Length: 1\r\n\r\n`],
  ['a coding as a trailer', `${chunked}0\r\ntransfer-encoding: chunked\r\n\r\n`],
  ['a folded trailer', `${chunked}0\r\na: b\r\n c\r\n\r\n`],
  ['a trailer with a bare LF', `${chunked}0\r\na: b\n\r\n`],
  ['trailers without an end', `${chunked}0\r\na: ${longName}`],
  ['a head without an end', `${ok}a: ${longName}`],
  ['informational responses without an end', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(3_000)],
])('refuses %s', (_, text) => {
  expect(read([bytesOf(text)])).toBe('fault')
  const half = text.length >> 1
  expect(read([bytesOf(text.slice(0, half)), bytesOf(text.slice(half))])).toBe('fault')
  if (text.length < 1_000) expect(readEveryWay(text)).toBe('fault')
})

test.each([
  ['before its head', ok],
  ['inside its head', `${ok}${json}content-le`],
  ['before its length', `${ok}content-length: 3\r\n\r\nab`],
  ['inside a chunk', `${chunked}5\r\nab`],
  ['before the last chunk', `${chunked}2\r\nab\r\n`],
  ['before the end of the trailers', `${chunked}2\r\nab\r\n0\r\n`],
])('a response that is cut %s is a fault', (_, text) => {
  expect(readEveryWay(text, true)).toBe('fault')
})

test('joins the values of equal names', () => {
  const reader = new ResponseReader()
  reader.read(bytesOf(`${ok}Via: a\r\ndate: x\r\nvia:  b\r\ncontent-length: 0\r\n\r\n`))
  expect(reader.head?.get('via')).toBe('a, b')
  expect(reader.head?.get('date')).toBe('x')
  expect(reader.head?.get('x')).toBeNull()
})

test('mutated responses end in a response or a fault, the same however they are cut', () => {
  let seed = 20_261_116
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return seed % below
  }
  const parts = [
    '\r\n',
    '\n',
    '\r',
    ':',
    ' ',
    '0',
    '5',
    'f',
    ';',
    'chunked',
    'content-length: 3',
    'HTTP/1.1 100 ',
    '\0',
    'x',
  ]
  const seeds = [
    `${ok}${json}content-length: 5\r\n\r\nhello`,
    `${chunked}5\r\nhello\r\n6;e=1\r\n world\r\n0\r\na: b\r\n\r\n`,
    `HTTP/1.1 100 Continue\r\n\r\n${ok}${json}\r\nhello`,
  ]
  const outcomes = { fault: 0, read: 0 }
  for (let n = 0; n < 10_000; n++) {
    let text = seeds[random(seeds.length)] as string
    for (let edits = 1 + random(3); edits > 0; edits--) {
      const at = random(text.length + 1)
      text = text.slice(0, at) + (parts[random(parts.length)] as string) + text.slice(at + random(4))
    }
    const bytes = bytesOf(text)
    const isClosed = random(2) === 0
    const whole = read([bytes], isClosed)
    const [first = 0, second = 0] = [random(bytes.length + 1), random(bytes.length + 1)].sort((a, b) => a - b)
    const cut = [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)]
    expect(read(cut, isClosed)).toEqual(whole)
    outcomes[whole === 'fault' ? 'fault' : 'read']++
  }
  expect(outcomes.fault).toBeGreaterThan(2_000)
  expect(outcomes.read).toBeGreaterThan(2_000)
})
