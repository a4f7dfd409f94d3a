// Requests that are nearly right, from a seed: pipelined, with the headers, chunks, trailers and ends of lines that parsers have
// disagreed on, damaged at random, and cut at random places.

/** A whole number from 0 up to, and without, `below`. */
export type Random = (below: number) => number

/** mulberry32: small, and good enough to choose from lists. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

const lineEnds = ['\n', '\r', '\r\r\n', '\n\r', '\r\n ', '\r\n\t', '\0\r\n', ' \r\n', '\r\n\r\n', '']
const starts = ['\r\n', '\n', '\r\n\r\n', ' ', '\r', '\0']
const requestLines = [
  ...[
    'GET  / HTTP/1.1',
    'GET\t/ HTTP/1.1',
    'GET /\tHTTP/1.1',
    'GET / HTTP/1.1 ',
    'GET / HTTP/1.2',
    'GET / HTTP/2.0',
    'GET /',
  ],
  ...[
    'get / HTTP/1.1',
    'FROB / HTTP/1.1',
    'GET / http/1.1',
    'GET /\0 HTTP/1.1',
    'GET /\xe9 HTTP/1.1',
    'GET /\x7f HTTP/1.1',
  ],
  ...[
    'OPTIONS * HTTP/1.1',
    'GET a HTTP/1.1',
    'GET http://h/a HTTP/1.1',
    'GET http://h#a HTTP/1.1',
    'GET http:// HTTP/1.1',
  ],
  ...[
    'GET / HTTP/1.1\x0b',
    'GET /a#b HTTP/1.1',
    'GET /\nX: y',
    'GET /a b HTTP/1.1',
    'GET / HTTP/01.1',
    'GET / HTTP/1.10',
    ' / HTTP/1.1',
  ],
]
const lines = [
  ...[
    'Content-Length: 5',
    'Content-Length: 5',
    'content-length:5 ',
    'Content-Length: 0',
    'Content-Length: 05',
    'Content-Length: +5',
  ],
  ...['Content-Length: 5,5', 'Content-Length:', 'Content-Length: 1e1', 'Content-Length: 5\t', 'Content-Length:\x0b5'],
  ...[
    'Content-Length : 5',
    'Content-Length: 5;',
    'Content-Length: 99999999999999999999',
    'Content-Length: -5',
    'Content_Length: 3',
  ],
  ...[
    'Content-Length: 5 5',
    'Content-Length: 0x5',
    'Content-Length: 00000000000000005',
    'Content-Length: \xb2',
    'Content-Length: 5\r\nContent-Length: 5',
  ],
  ...[
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: chunked',
    'transfer-encoding:chunked',
    'Transfer-Encoding: CHUNKED',
  ],
  ...[
    'Transfer-Encoding: identity',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: chunked, gzip',
    'Transfer-Encoding:',
  ],
  ...[
    'Transfer-Encoding: chunked,',
    'Transfer-Encoding: ,chunked',
    'Transfer-Encoding: chunked ;a',
    'Transfer-Encoding: xchunked',
  ],
  ...[
    'Transfer-Encoding:\tchunked\t',
    'Transfer-Encoding: chunked\x00',
    'Transfer-Encoding: \x85chunked',
    'Transfer_Encoding: chunked',
  ],
  ...[
    'Transfer-Encoding: chunked\xa0',
    'Transfer-Encoding : chunked',
    'Transfer-Encoding\x00: chunked',
    'Transfer-Encoding: "chunked"',
  ],
  ...['Host: y', 'Connection: close', 'Connection: keep-alive', 'Connection: upgrade', 'Connection: transfer-encoding'],
  ...[
    'Connection: Close , x',
    'Connection: close x',
    'Proxy-Connection: close',
    'Expect: 100-continue',
    'Expect: x',
    'Trailer: x',
    'TE: trailers',
  ],
  ...[
    'X: \x7f',
    'X: \x01',
    'X: \xff',
    'X:',
    'X',
    '"X": 1',
    'X Y: 1',
    ': v',
    'X: a\tb',
    '(X): a',
    'X\x80: a',
    'X: \xa0y ',
    'Cookie: a',
  ],
]
const hosts = ['Host: a/b', 'Host: a b', 'Host: u@a', 'Host: [::1', 'Host:', 'Host: a:b', 'Host: \xe9', 'Host : a', '']
const extensions = [
  ...[
    ';a=b',
    ';a',
    ';a="b"',
    ';a="b;\\"c"',
    ';a;b=c',
    ' ;a',
    ' ',
    '\t',
    ' x',
    ';',
    ';a="b\r\n',
    ';a=\x00',
    ';\x7f',
    ';\xff',
    ';a=',
    ';=b',
  ],
  ...[
    ';a b',
    ';a="\x01"',
    ';a="b',
    ';a="b"c',
    ';;a',
    'h',
    '_',
    '.0',
    ';a="\xff"',
    ';a=b=c',
    ';a=b"c"',
    ';a\tb',
    ';a="\t"',
    ';"a"',
  ],
]
const sizePrefixes = ['0', '000000000000', '+', ' ', '0x', '-', '0000000000000000', '\0']
const contents = ['a', 'hello', 'abcdefghijk', '\r\n', '0\r\n\r\n', 'G', 'GET /in HTTP/1.1\r\nHost: x\r\n\r\n']
const lastSizes = ['00', '0;x', '0 ', '-0', '', '0;', '0x0', '0;a="']
const trailers = [
  'X: y',
  'X',
  ' x',
  'Content-Length: 5',
  ': x',
  'X\0: y',
  'X: \x01',
  'X : y',
  'Transfer-Encoding: chunked',
  'X: \0',
  'X:',
  'é: x',
]
const inserts = [
  '\0',
  '\r',
  '\n',
  '\r\n',
  ' ',
  '\t',
  ':',
  ';',
  ',',
  '"',
  '0',
  '5',
  'f',
  'x',
  '\x7f',
  '\x80',
  '\xff',
  '=',
  '\\',
  '/',
]

/** One of them, mostly the first. */
function usually(random: Random, usual: string, others: readonly string[], rarity: number): string {
  return random(rarity) > 0 ? usual : pick(random, others)
}

function pick(random: Random, from: readonly string[]): string {
  return from[random(from.length)] ?? ''
}

function chunks(random: Random, lineEnd: () => string): string {
  let text = ''
  for (let left = random(4); left > 0; left--) {
    const content = pick(random, contents)
    const size =
      usually(random, '', sizePrefixes, 12) + content.length.toString(16) + usually(random, '', extensions, 4)
    text += size + lineEnd() + content + lineEnd()
  }
  text += usually(random, '0', lastSizes, 8) + lineEnd()
  if (random(4) === 0) text += pick(random, trailers) + lineEnd()
  return text + lineEnd()
}

/** More than our limits, which llhttp does not have. */
function long(random: Random): string {
  if (random(400) > 0) return ''
  return random(2) === 0 ? `X: ${'y'.repeat(17_000)}\r\n` : 'x: y\r\n'.repeat(201)
}

function request(random: Random): string {
  const lineEnd = () => usually(random, '\r\n', lineEnds, 40)
  const method = pick(random, ['GET', 'POST', 'POST', 'PUT', 'HEAD', 'DELETE'])
  const version = usually(random, '1.1', ['1.0'], 8)
  let head = usually(random, '', starts, 12)
  head += usually(random, `${method} /${pick(random, ['', 'a', 'b?c'])} HTTP/${version}`, requestLines, 10) + lineEnd()
  head += usually(random, 'Host: x', hosts, 12) + lineEnd() + long(random)
  let isChunked = false
  for (let left = random(4); left > 0; left--) {
    const line = pick(random, lines)
    isChunked ||= /chunked/i.test(line)
    head += line + lineEnd()
  }
  const body = isChunked ? chunks(random, lineEnd) : pick(random, ['', '', 'hello', 'hello', 'GET / HTTP/1.1\r\n\r\n'])
  return `${head}\r\n${body}`
}

function damaged(random: Random, text: string): string {
  const at = random(text.length + 1)
  return text.slice(0, at) + pick(random, inserts) + text.slice(at + random(3))
}

/** The pieces in which one input arrives, each byte a character. */
export function requestPieces(random: Random): string[] {
  let text = ''
  for (let left = 1 + random(3); left > 0; left--) text += request(random)
  text += 'GET /next HTTP/1.1\r\nHost: n\r\n\r\n'
  for (let left = random(5) === 0 ? 1 + random(3) : 0; left > 0; left--) text = damaged(random, text)
  const cuts = Array.from({ length: random(5) }, () => random(text.length + 1)).sort((a, b) => a - b)
  return [...cuts, text.length].map((end, at) => text.slice(at === 0 ? 0 : cuts[at - 1], end)).filter(Boolean)
}
