// The readers of requests and responses against readers that are written another way and see all bytes at once, for any cut
// of any bytes: where two readers disagree, a request can be smuggled past the one in front.

import fc from 'fast-check'
import { type RequestHead, RequestReader } from '../../src/http/server/request-reader.ts'
import { HttpFault, ResponseReader } from '../../src/wire/http-message.ts'
import { trouble } from './corpus.ts'
import { cutAt, cuts, damaged, utf8 } from './damage.ts'
import { type FuzzTarget, insist } from './target.ts'

export interface SeenRequest {
  readonly method: string
  readonly target: string
  readonly isHttp10: boolean
  readonly fields: readonly (readonly [string, string])[]
  readonly body: string
}

/** Complete requests, and what the bytes after them are: another one up to its fault, a part of one, or nothing. */
interface Outcome {
  readonly requests: readonly SeenRequest[]
  readonly left: 'fault' | 'more' | 'end'
  /** The one whose body is incomplete or has the fault; without its body, which depends on the cut. */
  readonly begun?: SeenRequest | undefined
}

function read(pieces: readonly Uint8Array[]): Outcome {
  const requests: SeenRequest[] = []
  const reader = new RequestReader()
  let body = ''
  try {
    for (const piece of pieces) {
      for (let input: Uint8Array = piece.slice(); input.length > 0; ) {
        body += Buffer.from(reader.read(input)).toString('latin1')
        const { head, isComplete, rest } = reader
        if (!head || !isComplete) break
        requests.push(seen(head, body))
        body = ''
        input = rest.slice()
        reader.reset()
      }
    }
  } catch (error) {
    if (error instanceof HttpFault) return { requests, left: 'fault', begun: reader.head && seen(reader.head) }
    throw error
  }
  return { requests, left: reader.hasBegun ? 'more' : 'end', begun: reader.head && seen(reader.head) }
}

function seen(head: RequestHead, body = ''): SeenRequest {
  const { method, target, isHttp10 } = head
  return { method, target, isHttp10, fields: [...head], body }
}

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const headPattern = new RegExp(`^(${token}) ([^\\0-\\x20]+) HTTP/1\\.([01])$`)
const fieldPattern = new RegExp(`^(${token}):([\\t\\x20-\\x7e\\x80-\\xff]*)$`)
const headMax = 16 * 1024
const headersMax = 200

/** RFC 9112, but what may be read in two ways is a fault. */
export function readWhole(bytes: Uint8Array): Outcome {
  const requests: SeenRequest[] = []
  let text = Buffer.from(bytes).toString('latin1')
  for (;;) {
    text = text.replace(/^(?:\r\n)+/, '')
    if (text === '') return { requests, left: 'end' }
    const [head = '', ...after] = text.split('\r\n\r\n')
    const isIncomplete = after.length === 0
    if (head.length > headMax) return { requests, left: 'fault' }
    const isBegun = /^(?:\r|[\x21-\x7e](?:[^\n]|(?<=\r)\n)*)$/.test(text)
    if (isIncomplete) return { requests, left: isBegun ? 'more' : 'fault' }
    const [first = '', ...lines] = head.split('\r\n')
    const [, method, target = '', minor] = headPattern.exec(first) ?? []
    const fields = fieldsOf(lines)
    const hosts = fields?.get('host') ?? []
    if (!fields || method === undefined || hosts.length > 1 || !hosts.every(isHost)) return { requests, left: 'fault' }
    if ((minor === '1' && hosts.length === 0) || lines.length > headersMax) return { requests, left: 'fault' }
    const length = lengthOf(fields, minor === '0')
    if (length === 'fault') return { requests, left: 'fault' }
    const body = bodyOf(text.slice(head.length + 4), length ?? 0)
    const joined = [...fields].map(([name, values]) => [name, values.join(name === 'cookie' ? '; ' : ', ')] as const)
    const request = { method, target, isHttp10: minor === '0', fields: joined, body: '' }
    if (typeof body === 'string') return { requests, left: body, begun: request }
    requests.push({ ...request, body: body.content })
    text = body.rest
  }
}

type Fields = ReadonlyMap<string, readonly string[]>

function fieldsOf(lines: readonly string[]): Fields | undefined {
  const fields = new Map<string, string[]>()
  for (const line of lines) {
    const [, name, value = ''] = fieldPattern.exec(line) ?? []
    if (name === undefined) return undefined
    const key = name.toLowerCase()
    fields.set(key, [...(fields.get(key) ?? []), value.replace(/^[\t ]+|[\t ]+$/g, '')])
  }
  return fields
}

/** undefined: nothing says how long the body is. */
function lengthOf(fields: Fields, isHttp10: boolean): number | 'chunked' | undefined | 'fault' {
  const lengths = fields.get('content-length')
  const codings = fields.get('transfer-encoding')
  if (codings) {
    const isPlain = !lengths && !isHttp10 && codings.join(', ').toLowerCase() === 'chunked'
    return isPlain ? 'chunked' : 'fault'
  }
  if (!lengths) return undefined
  const [length = ''] = lengths
  return lengths.length > 1 || !/^[0-9]{1,15}$/.test(length) ? 'fault' : Number(length)
}

type Body = { readonly content: string; readonly rest: string } | 'fault' | 'more'

function bodyOf(text: string, length: number | 'chunked'): Body {
  if (length === 'chunked') return chunksOf(text)
  return text.length < length ? 'more' : { content: text.slice(0, length), rest: text.slice(length) }
}

function chunksOf(text: string): Body {
  let content = ''
  let rest = text
  for (;;) {
    const line = lineOf(rest)
    const [, digits = '', extensions = ''] = /^([0-9a-fA-F]{0,13})(;[\s\S]{0,4095})?$/.exec(line.text) ?? []
    const isSize = digits.length + extensions.length === line.text.length
    if (!isSize || (digits === '' && line.text !== '')) return 'fault'
    if (line.isOpen) return 'more'
    if (digits === '' || (extensions !== '' && !areExtensions(extensions))) return 'fault'
    if (line.isCut) return 'more'
    rest = line.after
    const length = Number.parseInt(digits, 16)
    if (length === 0) break
    if (rest.length < length + 2) return '\r\n'.startsWith(rest.slice(length)) ? 'more' : 'fault'
    if (!rest.startsWith('\r\n', length)) return 'fault'
    content += rest.slice(0, length)
    rest = rest.slice(length + 2)
  }
  for (;;) {
    const line = lineOf(rest)
    if (line.text.includes('\n')) return 'fault'
    if (line.isOpen) return 'more'
    const isFraming = /^(content-length|transfer-encoding):/i.test(line.text)
    if (line.text !== '' && (isFraming || !fieldPattern.test(line.text))) return 'fault'
    if (line.isCut) return 'more'
    rest = line.after
    if (line.text === '') return { content, rest }
  }
}

/** Up to the next CR. `isOpen`: there is none. `isCut`: nothing follows it. Anything but a LF after it makes the text wrong. */
function lineOf(rest: string) {
  const end = rest.indexOf('\r')
  if (end < 0) return { text: rest.includes('\n') ? '\n' : rest, isOpen: true, isCut: true, after: '' }
  const isCut = end + 1 === rest.length
  const text = rest.slice(0, end)
  const isWrong = text.includes('\n') || (!isCut && rest[end + 1] !== '\n')
  return { text: isWrong ? '\n' : text, isOpen: false, isCut, after: rest.slice(end + 2) }
}

/** Quoted values are replaced by a byte that neither names nor values can have. */
function areExtensions(text: string): boolean {
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) return false
  const [before, ...all] = text.replace(/"(?:[^"\\]|\\.)*"/g, '\0').split(';')
  const isToken = (part: string) => new RegExp(`^${token}$`).test(part)
  return (
    before === '' &&
    all.every((one) => {
      const [name = '', value, ...more] = one.split('=')
      return isToken(name) && more.length === 0 && (value === undefined || value === '\0' || isToken(value))
    })
  )
}

function isHost(value: string): boolean {
  const name = value.replace(/:[0-9]*$/, '')
  return /^\[.*\]$/.test(name)
    ? /^[0-9a-f:.]+$/i.test(name.slice(1, -1))
    : [...name].every((letter) => /[a-z0-9._~!$&'()*+,;=%-]/i.test(letter))
}

function checkRequests(bytes: Uint8Array<ArrayBuffer>, places: readonly number[]): void {
  const whole = JSON.stringify(readWhole(bytes))
  const cut = JSON.stringify(read(cutAt(bytes, places)))
  insist(cut === whole, `read ${cut}, and another reader ${whole}`)
}

// ── Responses ──

interface ResponseOutcome {
  /** Status, some headers and body, as JSON; undefined = it is not complete. */
  readonly response?: string | undefined
  readonly left: 'fault' | 'more' | 'end'
  /** Whether the connection can carry another response. */
  readonly isReusable?: boolean
}

const namesRead = ['content-type', 'x', 'retry-after']

/** `isClosed`: the connection ends after the bytes. */
function readResponse(pieces: readonly Uint8Array[], isClosed: boolean): ResponseOutcome {
  const reader = new ResponseReader()
  let body = ''
  let after = 0
  try {
    for (const piece of pieces) {
      if (reader.isComplete) after += piece.length
      else body += Buffer.from(reader.read(piece.slice())).toString('latin1')
    }
    if (isClosed && reader.head) reader.end()
  } catch (error) {
    if (error instanceof HttpFault) return { left: 'fault' }
    throw error
  }
  const { head, isComplete, isReusable } = reader
  if (!head || !isComplete) return { left: 'more' }
  const response = JSON.stringify([head.status, namesRead.map((name) => head.get(name)), body])
  return { response, left: 'end', isReusable: isReusable && after === 0 }
}

const statusPattern = /^HTTP\/1\.([01]) ([1-9][0-9][0-9])(?: [\t\x20-\x7e\x80-\xff]*)?$/
const responseHeadMax = 64 * 1024

/** RFC 9112 and 9110, with the same exceptions. */
function readWholeResponse(bytes: Uint8Array, isClosed: boolean): ResponseOutcome {
  let text = Buffer.from(bytes).toString('latin1')
  for (let before = 0; ; ) {
    const headEnd = text.indexOf('\r\n\r\n')
    if (before + (headEnd < 0 ? text.length : headEnd) > responseHeadMax) return { left: 'fault' }
    if (headEnd < 0) return { left: 'more' }
    const [first = '', ...lines] = text.slice(0, headEnd).split('\r\n')
    const [, minor, digits] = statusPattern.exec(first) ?? []
    const fields = fieldsOf(lines)
    const status = Number(digits)
    if (digits === undefined || !fields || status === 101) return { left: 'fault' }
    text = text.slice(headEnd + 4)
    before += headEnd + 4
    if (status < 200) continue
    const length = lengthOf(fields, minor === '0')
    if (length === 'fault') return { left: 'fault' }
    const hasNone = status === 204 || status === 304
    if (length === undefined && !hasNone && !isClosed) return { left: 'more' }
    const untilClose = { content: text, rest: '' }
    const body = hasNone ? { content: '', rest: text } : length === undefined ? untilClose : bodyOf(text, length)
    if (typeof body === 'string') return { left: isClosed ? 'fault' : body }
    const shown = namesRead.map((name) => fields.get(name)?.join(', ') ?? null)
    const isKept = minor === '1' && !/\bclose\b/i.test(fields.get('connection')?.join(', ') ?? '')
    return {
      response: JSON.stringify([status, shown, body.content]),
      left: 'end',
      isReusable: isKept && (length !== undefined || hasNone) && body.rest === '',
    }
  }
}

function checkResponse(bytes: Uint8Array<ArrayBuffer>, places: readonly number[], isClosed: boolean): void {
  const whole = JSON.stringify(readWholeResponse(bytes, isClosed))
  const cut = JSON.stringify(readResponse(cutAt(bytes, places), isClosed))
  insist(cut === whole, `read ${cut}, and another reader ${whole}`)
}

// ── Messages that are nearly right ──

/** At any place, or at nearly every one. */
const anyCuts = fc.oneof({ weight: 9, arbitrary: cuts }, fc.constant(Array.from({ length: 512 }, (_, at) => at * 128)))

/** Mostly one of the first, sometimes one of the second. */
function mostly(right: readonly string[], wrong: readonly string[]): fc.Arbitrary<string> {
  return fc.oneof({ weight: 14, arbitrary: fc.constantFrom(...right) }, fc.constantFrom(...wrong))
}

const requestLine = mostly(
  ['GET / HTTP/1.1', 'POST /a HTTP/1.1', 'POST /b?c HTTP/1.1', 'HEAD /d HTTP/1.1', 'PUT http://h:1/e HTTP/1.1'],
  [
    ...['GET / HTTP/1.0', 'GET  / HTTP/1.1', 'GET / HTTP/1.2', 'GET / HTTP/2.0', 'GET /', '', ' GET / HTTP/1.1'],
    ...['get / http/1.1', 'FROB / HTTP/1.1', 'OPTIONS * HTTP/1.1', 'GET /\0 HTTP/1.1', 'GET /\xe9 HTTP/1.1'],
    ...[
      'GET / HTTP/1.1 ',
      'GET http://h#/a HTTP/1.1',
      'GET /a\tb HTTP/1.1',
      'GET /\x7f HTTP/1.1',
      '\r\nGET / HTTP/1.1',
    ],
  ],
)
const statusLine = mostly(
  ['HTTP/1.1 200 OK', 'HTTP/1.1 429 Too Many Requests', 'HTTP/1.1 200', 'HTTP/1.1 500 '],
  [
    ...[
      'HTTP/1.1 100 Continue',
      'HTTP/1.1 103 x',
      'HTTP/1.1 101 x',
      'HTTP/1.1 204 x',
      'HTTP/1.1 304 x',
      'HTTP/1.0 200 OK',
    ],
    ...['HTTP/1.1  200 OK', 'HTTP/2 200', 'HTTP/1.1 2000', 'HTTP/1.1 200\tOK', 'HTTP/1.1 099 x', 'http/1.1 200 OK', ''],
    ...['HTTP/1.1 200 O\0K', 'HTTP/1.1 200 \xa0', 'HTTP/1.1 200 a\nb', 'HTTP/1.1 200 a\rb', 'HTTP/1.1 99 x'],
  ],
)
const fieldLine = mostly(
  ['x: y', 'X:z', 'cookie: a=b', 'Content-Type:\tapplication/json ', 'connection: keep-alive', 'x: ', 'x:\xa0y\xa0'],
  [
    ...[
      'host: b',
      'Host:c',
      'host : a',
      ' folded',
      '\tfolded',
      'no colon',
      ': no name',
      'x: a\nb',
      'x: a\rb',
      'x: \0',
      '',
    ],
    ...[
      'Connection: close',
      'connection: a, Close',
      'expect: 100-continue',
      'expect: x',
      'x\xe9: y',
      'x: \x7f',
      'x\0: y',
      'x y: z',
    ],
    ...[
      'transfer-encoding: chunked',
      'Transfer-Encoding : chunked',
      'transfer-encoding: gzip, chunked',
      'content-length: 3',
    ],
    ...['transfer-encoding: chunked, chunked', 'transfer-encoding:\x0bchunked', 'transfer-encoding:\xa0chunked'],
    ...[
      'transfer-encoding:',
      'content-length: 3, 3',
      'content-length: +3',
      'content-length: -1',
      'content-length: 0x3',
    ],
    ...[
      'content-length:',
      'content-length: 9999999999999999',
      'content-length: 1e1',
      'content-length:\xa03',
      'content_length: 3',
    ],
  ],
)
const lineEnd = fc.oneof(
  { weight: 200, arbitrary: fc.constant('\r\n') },
  fc.constantFrom('\n', '\r', '\r\r\n', '', '\n\r'),
)
const content = fc.constantFrom('', 'a', 'hello', '0\r\n\r\n', 'GET /x HTTP/1.1\r\nhost: a\r\n\r\n', '\r\n', '\xff\0')
const chunk = fc
  .tuple(
    content,
    mostly(
      ['', '', ';a=b', ';a="b;c";d'],
      [
        ...[
          ' ',
          ';a="\n"',
          '\t;a',
          ' 1',
          'g',
          ';a\rb',
          '\0',
          ';\0',
          ';',
          ',',
          '.0',
          'h',
          ';a="b\\"c"',
          ';a="b',
          ';a b',
        ],
        ...[';a=', ';=b', ';a=b"c"', ';"a"', ';a=\x7f', ';\xff', ';a="\xff"', ';a;;b', ';a=b=c', ';a="\\'],
      ],
    ),
    mostly(['', '0'], ['0x', '+', '-', ' ', '0'.repeat(13), 'fffffffffffff']),
    lineEnd,
    lineEnd,
  )
  .map(([text, extension, before, end, after]) =>
    text === '' ? '' : `${before}${text.length.toString(16)}${extension}${end}${text}${after}`,
  )
const lastChunk = mostly(
  ['0\r\n\r\n', '0\r\nt: u\r\n\r\n', '00;a\r\n\r\n'],
  [
    '0\n\n',
    '0\r\n',
    '0\r\nx\r\n\r\n',
    '0\r\nx: y\nz: a\r\n\r\n',
    '0\r\n\rx',
    '\r\n\r\n',
    '0\r\n a\r\n\r\n',
    '0\r\n\0\r\n\r\n',
    '0\r\nx: \0\r\n\r\n',
    '0\r\nx : y\r\n\r\n',
    '0\r\nContent-Length: 3\r\n\r\n',
    '0\r\n: y\r\n\r\n',
  ],
)
const framedBody = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ line: [], text: '' }) },
  { weight: 3, arbitrary: content.map((text) => ({ line: [`Content-Length: ${text.length}`], text })) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.array(chunk, { maxLength: 3 }), lastChunk)
      .map(([chunks, last]) => ({ line: ['Transfer-Encoding: chunked'], text: chunks.join('') + last })),
  },
  { weight: 1, arbitrary: content.map((text) => ({ line: [], text })) },
)

/** Up to four messages, one after the other. */
function messages(
  firstLine: fc.Arbitrary<string>,
  usual: fc.Arbitrary<readonly string[]>,
): fc.Arbitrary<Uint8Array<ArrayBuffer>> {
  const message = fc
    .tuple(
      firstLine,
      usual,
      fc.array(fieldLine, { maxLength: 3 }),
      framedBody,
      fc.array(lineEnd, { minLength: 8, maxLength: 8 }),
    )
    .map(([first, always, lines, { line, text }, ends]) => {
      const head = [first, ...always, ...lines, ...line, '']
      return head.map((each, at) => each + ends[at]).join('') + text
    })
  return fc
    .array(message, { minLength: 1, maxLength: 4 })
    .map((all) => new Uint8Array(Buffer.from(all.join(''), 'latin1')))
}

const hostLine = mostly(
  ['Host: a', 'host: a.b:80', 'Host: [::1]:8080', 'Host:'],
  [
    'Host: a/b',
    'Host: a b',
    'Host: u@a',
    'Host: [::1',
    'Host: a:b',
    'Host: \xe9',
    'Host: a#',
    'Host: a\\',
    'Host: [a]b',
  ],
)
export const requestMessages = messages(
  requestLine,
  hostLine.map((line) => [line]),
)

const post = 'POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n'
const corpus = [
  'GET / HTTP/1.1\r\nhost: a\r\n\r\n',
  'GET /a?b HTTP/1.0\r\n\r\nGET /c HTTP/1.1\r\nhost:b\r\ncookie: a=b\r\ncookie: c=d\r\nx:\t y \r\nX: z\r\n\r\n',
  `${post}Content-Length: 5\r\n\r\nhello${post}Content-Length: 0\r\n\r\n`,
  `${post}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n${post}content-length: 2\r\n\r\nok`,
  `${post}Content-Length: 5\r\n\r\nhello\r\n\r\nGET / HTTP/1.1\nhost: a\n\n`,
  `${post}transfer-encoding: Chunked\r\n\r\nA;a=b\r\n0123456789\r\n00\r\nx: y\r\n\r\n`,
  `${post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\nhost: a\r\n\r\n`,
  `${post}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`,
  `${post}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`,
].map(utf8)

const responseCorpus = [
  'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx: y\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  'HTTP/1.0 200 OK\r\nretry-after: 1\r\n\r\nuntil the end',
].map(utf8)

const requests: FuzzTarget = {
  name: 'http-request',
  shareInputs: 1_000,
  open() {
    const all = [...trouble('http-request'), ...corpus]
    return {
      property: fc.property(fc.oneof(damaged(all), requestMessages), anyCuts, checkRequests),
      examples: all.map((bytes) => [new Uint8Array(bytes), [0x8000]]),
    }
  },
}

const responses: FuzzTarget = {
  name: 'http-response',
  shareInputs: 1_000,
  open() {
    const all = [...trouble('http-response'), ...responseCorpus]
    return {
      property: fc.property(
        fc.oneof(damaged(all), messages(statusLine, fc.constant([]))),
        anyCuts,
        fc.boolean(),
        checkResponse,
      ),
      examples: all.map((bytes) => [new Uint8Array(bytes), [0x8000], true]),
    }
  },
}

export const httpTargets: readonly FuzzTarget[] = [requests, responses]
