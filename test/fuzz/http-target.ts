// The reader of requests against a reader that is written another way and sees all bytes at once, for any cut of any bytes:
// where two readers disagree, a request can be smuggled past the one in front.

import fc from 'fast-check'
import { HttpFault, RequestReader } from '../../src/wire/http-message.ts'
import { trouble } from './corpus.ts'
import { cutAt, cuts, damaged, utf8 } from './damage.ts'
import { type FuzzTarget, insist } from './target.ts'

/** Complete requests as JSON, and what the bytes after them are. */
interface Outcome {
  readonly requests: readonly string[]
  readonly left: 'fault' | 'more' | 'end'
}

function read(pieces: readonly Uint8Array[]): Outcome {
  const requests: string[] = []
  let reader = new RequestReader()
  let body = ''
  try {
    for (const piece of pieces) {
      for (let input: Uint8Array = piece.slice(); input.length > 0; ) {
        body += Buffer.from(reader.read(input)).toString('latin1')
        const { head, isComplete, rest } = reader
        if (!head || !isComplete) break
        requests.push(JSON.stringify([head.method, head.target, [...head], body]))
        body = ''
        reader = new RequestReader()
        input = rest.slice()
      }
    }
  } catch (error) {
    if (error instanceof HttpFault) return { requests, left: 'fault' }
    throw error
  }
  return { requests, left: reader.hasBegun ? 'more' : 'end' }
}

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const headPattern = new RegExp(`^(${token}) ([^\\0-\\x20]+) HTTP/1\\.([01])$`)
const fieldPattern = new RegExp(`^(${token}):([\\t\\x20-\\x7e\\x80-\\xff]*)$`)
const headMax = 16 * 1024

/** RFC 9112, but what may be read in two ways is a fault. */
function readWhole(bytes: Uint8Array): Outcome {
  const requests: string[] = []
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
    const [, method, target, minor] = headPattern.exec(first) ?? []
    const fields = new Map<string, string[]>()
    for (const line of lines) {
      const [, name, value = ''] = fieldPattern.exec(line) ?? []
      if (name === undefined) return { requests, left: 'fault' }
      const key = name.toLowerCase()
      fields.set(key, [...(fields.get(key) ?? []), value.replace(/^[\t ]+|[\t ]+$/g, '')])
    }
    const body = bodyOf(text.slice(head.length + 4), fields, minor === '0')
    const hosts = fields.get('host')?.length ?? 0
    if (method === undefined || hosts > 1 || (minor === '1' && hosts === 0)) return { requests, left: 'fault' }
    if (typeof body === 'string') return { requests, left: body }
    const shown = [...fields].map(([name, values]) => [name, values.join(name === 'cookie' ? '; ' : ', ')])
    requests.push(JSON.stringify([method, target, shown, body.content]))
    text = body.rest
  }
}

type Body = { readonly content: string; readonly rest: string } | 'fault' | 'more'

function bodyOf(text: string, fields: ReadonlyMap<string, readonly string[]>, isHttp10: boolean): Body {
  const lengths = fields.get('content-length')
  const codings = fields.get('transfer-encoding')
  if (codings) {
    if (lengths || isHttp10 || codings.join(', ').toLowerCase() !== 'chunked') return 'fault'
    return chunksOf(text)
  }
  if (!lengths) return { content: '', rest: text }
  const [length = ''] = lengths
  if (lengths.length > 1 || !/^[0-9]{1,15}$/.test(length)) return 'fault'
  return text.length < Number(length)
    ? 'more'
    : { content: text.slice(0, Number(length)), rest: text.slice(Number(length)) }
}

function chunksOf(text: string): Body {
  let content = ''
  let rest = text
  for (;;) {
    const size = /^([0-9a-fA-F]{1,13})(?:[\t ;][^\r\n]{0,4096})?\r\n/.exec(rest)
    if (!size)
      return /^(?:[0-9a-fA-F]{0,13}|[0-9a-fA-F]{1,13}[\t ;][^\r\n]{0,4096})(?:(?<=.)\r)?$/.test(rest) ? 'more' : 'fault'
    rest = rest.slice(size[0].length)
    const length = Number.parseInt(size[1] ?? '', 16)
    if (length === 0) break
    if (rest.length < length + 2) return '\r\n'.startsWith(rest.slice(length)) ? 'more' : 'fault'
    if (!rest.startsWith('\r\n', length)) return 'fault'
    content += rest.slice(0, length)
    rest = rest.slice(length + 2)
  }
  const trailers = /^(?:[^\r\n][^\n\r]*\r\n)*\r\n/.exec(rest)
  if (trailers) return { content, rest: rest.slice(trailers[0].length) }
  return /^(?:[^\r\n][^\n\r]*\r\n)*(?:[^\r\n][^\n\r]*)?\r?$/.test(rest) ? 'more' : 'fault'
}

function check(bytes: Uint8Array<ArrayBuffer>, places: readonly number[]): void {
  const whole = JSON.stringify(readWhole(bytes))
  const cut = JSON.stringify(read(cutAt(bytes, places)))
  insist(cut === whole, `read ${cut}, and another reader ${whole}`)
}

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

export const httpTarget: FuzzTarget = {
  name: 'http-request',
  shareInputs: 3_000,
  open() {
    const all = [...trouble('http-request'), ...corpus]
    return {
      property: fc.property(damaged(all), cuts, check),
      examples: all.map((bytes) => [new Uint8Array(bytes), [0x8000]]),
    }
  },
}
