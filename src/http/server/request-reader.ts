// Reads the requests of one connection, and decides which of them no handler should see. Strict, as wire/http-message.ts is:
// test/llhttp/differences.ts lists every difference to llhttp, the parser of Node. It knows nothing of sockets.

import { carriageReturn, colon, lineFeed, space } from '../../wire/bytes.ts'
import {
  type Framing,
  framingOf,
  HttpFault,
  MessageReader,
  type RequestHeaders,
  trimmed,
} from '../../wire/http-message.ts'

/** As Node and Bun have it. */
const headMax = 16 * 1024
/** Clients send about 15, and each proxy adds a few. Apache and HAProxy allow 100, Bun 200. */
const headersMax = 200
/** In all chunks of a body together. */
const extensionsMax = 16 * 1024

/** A request line and headers without control characters. Bytes beyond ASCII are taken as they are, as every server does. */
const requestHead =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ [^\0-\x20]+ HTTP\/[0-9]\.[0-9](?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\0-\x08\x0a-\x1f\x7f]*)*$/
/** A host and a port (RFC 9110, section 7.2). It may be empty. Whether a literal is an IPv6 address is not checked. */
const host = /^(?:\[[0-9a-f:.]+\]|[a-z0-9._~!$&'()*+,;=%-]*)(?::[0-9]*)?$/i
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])
/** A path, or a URL as proxies are sent, whose host has only the characters that leave no doubt where it ends. */
const target = /^(\/|https?:\/\/[a-z0-9._:[\]-]+([/?]|$))/i

/** Names are in lower case. Of a request nearly every header is asked for, of a response two or three. */
export class RequestHead implements RequestHeaders {
  readonly method: string
  /** As it was sent, each byte a character. */
  readonly target: string
  readonly isHttp10: boolean
  /** The values of equal names are joined by commas. */
  readonly #fields = new Map<string, string>()

  constructor(text: string) {
    if (!requestHead.test(text)) throw new HttpFault('the head of the request is malformed')
    const methodEnd = text.indexOf(' ')
    const targetEnd = text.indexOf(' ', methodEnd + 1)
    const lineEnd = targetEnd + versionLength
    this.isHttp10 = text.startsWith(' HTTP/1.0', targetEnd)
    if (!this.isHttp10 && !text.startsWith(' HTTP/1.1', targetEnd)) {
      throw new HttpFault('the version is not HTTP/1.1', 505)
    }
    this.method = text.startsWith('POST ') ? 'POST' : text.slice(0, methodEnd)
    this.target = text.slice(methodEnd + 1, targetEnd)
    let lines = 0
    for (let at = lineEnd; at < text.length; ) {
      if (++lines > headersMax) throw new HttpFault(`it has more than ${headersMax} headers`, 431)
      const end = text.indexOf('\r\n', at + 2)
      const stop = end < 0 ? text.length : end
      this.#addLine(text, at + 2, stop)
      at = stop
    }
    // It is to be ignored there (RFC 9110, section 7.8).
    if (this.isHttp10) this.#fields.delete('upgrade')
    const sentHost = this.#fields.get('host')
    if (sentHost === undefined && !this.isHttp10) throw new HttpFault('the host is missing')
    if (sentHost !== undefined && !host.test(sentHost)) throw new HttpFault('the host is malformed')
  }

  get(name: string): string | null {
    return this.#fields.get(name) ?? null
  }

  has(name: string): boolean {
    return this.#fields.has(name)
  }

  [Symbol.iterator](): MapIterator<[string, string]> {
    return this.#fields.entries()
  }

  #addLine(text: string, start: number, end: number): void {
    const name = usualName(text, start) ?? text.slice(start, text.indexOf(':', start)).toLowerCase()
    const value = trimmed(text, start + name.length + 1, end)
    const before = this.#fields.get(name)
    if (before !== undefined && name === 'host') throw new HttpFault('it has two hosts')
    const separator = name === 'cookie' ? '; ' : ', '
    this.#fields.set(name, before === undefined ? value : `${before}${separator}${value}`)
  }
}

const versionLength = ' HTTP/1.1'.length

/** Names that most clients send, by their first letter: the same text each time. */
const usualNames: string[][] = Array.from({ length: 32 }, () => [])
for (const name of [
  ...['host', 'connection', 'content-length', 'content-type', 'authorization', 'accept', 'accept-encoding'],
  ...[
    'accept-language',
    'user-agent',
    'x-api-key',
    'anthropic-version',
    'anthropic-beta',
    'transfer-encoding',
    'cookie',
  ],
]) {
  usualNames[name.charCodeAt(0) & 31]?.push(name)
}

/** The name at the start of a line, in lower case, if it is a usual one. */
function usualName(text: string, start: number): string | undefined {
  const names = usualNames[text.charCodeAt(start) & 31] as string[]
  for (let place = 0; place < names.length; place++) {
    const name = names[place] as string
    let at = 0
    // Of the characters that a name can have, only a letter becomes a letter, and only a hyphen a hyphen.
    while (at < name.length && (text.charCodeAt(start + at) | 0x20) === name.charCodeAt(at)) at++
    if (at === name.length && text.charCodeAt(start + at) === colon) return name
  }
  return undefined
}

export class RequestReader extends MessageReader<RequestHead> {
  constructor() {
    super(headMax, extensionsMax)
  }

  protected override parse(text: string): RequestHead {
    return new RequestHead(text)
  }

  /** Empty lines before a request are skipped (RFC 9112, section 2.2): some clients send one after a body. */
  protected override startOf(bytes: Uint8Array): number {
    let at = 0
    while (bytes[at] === carriageReturn && bytes[at + 1] === lineFeed) at += 2
    return at
  }

  /** Clients that speak another protocol, such as TLS, or end their lines with a line feed alone, wait for an answer. */
  protected override checkPart(part: Uint8Array, from: number): void {
    const [first = 0x41, second] = part
    const isEmptyLine = first === carriageReturn && second === undefined
    if ((first <= space || first >= 0x7f) && !isEmptyLine) throw new HttpFault('it is not HTTP')
    for (let at = part.indexOf(lineFeed, from); at >= 0; at = part.indexOf(lineFeed, at + 1)) {
      if (part[at - 1] !== carriageReturn) throw new HttpFault('a line does not end with CRLF')
    }
  }

  protected override frame(head: RequestHead): Framing {
    return framingOf(head) ?? 0
  }
}

/** Why a well-formed request is not served; undefined: it is. */
export function refusalOf(head: RequestHead): HttpFault | undefined {
  if (!knownMethods.has(head.method)) return new HttpFault('the method is not known', 501)
  if (!target.test(head.target)) return new HttpFault('the target is not a path')
  const expected = head.get('expect')
  // HTTP/1.0 has no expectations, and a server has to ignore them there (RFC 9110, section 10.1.1).
  if (expected !== null && !head.isHttp10 && expected.toLowerCase() !== '100-continue') {
    return new HttpFault('the expectation is not known', 417)
  }
  return undefined
}

/** Whether the client keeps its connection after the request. */
export function isKept(head: RequestHead): boolean {
  const connection = head.get('connection')
  return !hasToken(connection, 'close') && (!head.isHttp10 || hasToken(connection, 'keep-alive'))
}

/** Whether a header that is a list, such as `Connection`, contains the token. */
export function hasToken(value: string | null | undefined, token: string): boolean {
  if (value == null) return false
  return (
    value === token ||
    value
      .toLowerCase()
      .split(/[\s,]+/)
      .includes(token)
  )
}
