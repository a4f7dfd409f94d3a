// HTTP/1.1 responses, from bytes that are cut anywhere. Strict: whatever two readers might understand differently (two
// lengths, a length and chunks, a bare line feed, a folded header) is a fault and ends the connection.

import { carriageReturn, hexDigit, isHex, lineFeed, space, tab } from './bytes.ts'

export class HttpFault extends Error {
  override readonly name: string = 'HttpFault'
  /** As broken connections have one: nothing that follows can be read. */
  readonly code = 'MALFORMED_RESPONSE'
}

/** Read access to headers: `Headers` has it too. */
export type HeaderReader = Pick<Headers, 'get'>

/** All heads of one response, informational ones included; also its trailers. */
const headBytesMax = 64 * 1024
const extensionBytesMax = 4 * 1024
/** Hexadecimal digits of a chunk's size: more than a petabyte, and exact as a number. */
const sizeDigitsMax = 13

const statusLine = /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: |\r\n|$)/
/** Lines without control characters, of which all but the first start with a name and a colon. */
const wellFormed =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  /^[^\0-\x08\x0a-\x1f\x7f]*(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\0-\x08\x0a-\x1f\x7f]*)*$/

export class ResponseHead implements HeaderReader {
  readonly status: number
  readonly isHttp10: boolean
  readonly #text: string
  readonly #lower: string

  constructor(text: string) {
    const [, minor, status] = statusLine.exec(text) ?? []
    if (status === undefined || !wellFormed.test(text)) throw new HttpFault('the head of the response is malformed')
    this.status = Number(status)
    this.isHttp10 = minor === '0'
    this.#text = text
    this.#lower = text.toLowerCase()
  }

  /** The values of equal names are joined by commas. `name` is in lower case. */
  get(name: string): string | null {
    const start = lineStart(name)
    let joined: string | null = null
    for (let at = this.#lower.indexOf(start); at >= 0; at = this.#lower.indexOf(start, at + 2)) {
      const end = this.#text.indexOf('\r\n', at + 2)
      const value = this.#text.slice(at + start.length, end < 0 ? undefined : end).trim()
      joined = joined === null ? value : `${joined}, ${value}`
    }
    return joined
  }
}

/** The program asks for the same few names again and again. */
const lineStarts = new Map<string, string>()

function lineStart(name: string): string {
  const known = lineStarts.get(name)
  if (known !== undefined) return known
  const start = `\r\n${name}:`
  lineStarts.set(name, start)
  return start
}

type State =
  | 'head'
  /** Until this many bytes have arrived. */
  | 'length'
  | 'until close'
  | 'chunk size'
  | 'chunk extension'
  | 'chunk size end'
  | 'chunk'
  | 'chunk end'
  | 'chunk end feed'
  /** At the start of a line. */
  | 'trailers'
  | 'trailer'
  | 'trailer end'
  | 'trailers end'
  | 'complete'

const nothing = new Uint8Array(0)
const blankLine = Buffer.from('\r\n\r\n')
const { indexOf, latin1Slice } = Buffer.prototype

export class ResponseReader {
  /** Head of the final response; undefined until it is complete. */
  head: ResponseHead | undefined
  /** Whether the connection can carry another response after this one. */
  isReusable = true
  #state: State = 'head'
  /** The start of a head that is incomplete. */
  #carry: Uint8Array = nothing
  #headBytes = 0
  /** Bytes of the body or chunk that are still to come. */
  #remaining = 0
  /** Digits of a chunk's size, or bytes of its extension. */
  #count = 0

  get isComplete(): boolean {
    return this.#state === 'complete'
  }

  /**
   * Returns the bytes of the body that are in `input`, whose chunks are moved together; they belong to the caller, as
   * does nothing else of `input`. Throws an HttpFault.
   */
  read(input: Uint8Array): Uint8Array {
    let bytes = input
    let at = 0
    if (this.#state === 'head') {
      if (this.#carry.length > 0) {
        bytes = Buffer.concat([this.#carry, input])
        this.#carry = nothing
      }
      at = this.#readHead(bytes)
      if (at < 0) return nothing
    }
    if (this.#state === 'length' && bytes.length - at <= this.#remaining) {
      this.#remaining -= bytes.length - at
      if (this.#remaining === 0) this.#state = 'complete'
      return at === 0 ? bytes : pieceOf(bytes, at, bytes.length)
    }
    return this.#readBody(bytes, at)
  }

  /** The connection has ended. Throws an HttpFault if the response needed more of it. */
  end(): void {
    if (this.#state === 'until close') this.#state = 'complete'
    if (this.#state !== 'complete') throw new HttpFault('the connection ended before the response did')
  }

  /** The offset of the body, or -1 if the head is incomplete. */
  #readHead(bytes: Uint8Array): number {
    for (let at = 0; ; ) {
      const end: number = indexOf.call(bytes, blankLine, at)
      if (this.#headBytes + (end < 0 ? bytes.length : end) > headBytesMax) throw new HttpFault('the head is too long')
      if (end < 0) {
        this.#headBytes += at
        this.#carry = bytes.subarray(at)
        return -1
      }
      const head = new ResponseHead(latin1Slice.call(bytes, at, end))
      at = end + blankLine.length
      if (head.status >= 200) {
        this.head = head
        this.#frame(head)
        return at
      }
      if (head.status === 101) throw new HttpFault('the protocol was switched')
    }
  }

  /** RFC 9112, section 6.3, but a length beside chunks is refused. */
  #frame(head: ResponseHead): void {
    const length = head.get('content-length')
    const coding = head.get('transfer-encoding')
    this.isReusable = !head.isHttp10 && !/\bclose\b/i.test(head.get('connection') ?? '')
    if (coding !== null && (length !== null || coding.toLowerCase() !== 'chunked' || head.isHttp10)) {
      throw new HttpFault('the transfer coding is not supported')
    }
    if (length !== null && !/^[0-9]{1,15}$/.test(length)) throw new HttpFault('the length is no number')
    if (head.status === 204 || head.status === 304 || length === '0') this.#state = 'complete'
    else if (coding !== null) this.#state = 'chunk size'
    else if (length !== null) {
      this.#state = 'length'
      this.#remaining = Number(length)
    } else {
      this.#state = 'until close'
      this.isReusable = false
    }
  }

  #readBody(bytes: Uint8Array, from: number): Uint8Array {
    // The body so far is bytes[start, end).
    let start = from
    let end = from
    let at = from
    while (at < bytes.length) {
      if (this.#state !== 'chunk' && this.#state !== 'length' && this.#state !== 'until close') {
        if (this.#state === 'complete') {
          // Bytes after the response, for which there was no request.
          this.isReusable = false
          break
        }
        this.#readFraming(bytes[at++] as number)
        continue
      }
      const left = bytes.length - at
      const length = this.#state === 'until close' ? left : Math.min(left, this.#remaining)
      if (start === end) start = end = at
      else if (end !== at) bytes.copyWithin(end, at, at + length)
      end += length
      at += length
      if (this.#state === 'until close') break
      this.#remaining -= length
      if (this.#remaining === 0) this.#state = this.#state === 'chunk' ? 'chunk end' : 'complete'
    }
    return pieceOf(bytes, start, end)
  }

  /** One byte between the parts of a chunked body. */
  #readFraming(byte: number): void {
    switch (this.#state) {
      case 'chunk size':
        return this.#readSize(byte)
      case 'chunk extension':
        if (byte === carriageReturn) this.#state = 'chunk size end'
        else if (byte === lineFeed || ++this.#count > extensionBytesMax) throw malformedChunk()
        return
      case 'chunk size end':
        expectByte(byte, lineFeed)
        this.#count = 0
        this.#state = this.#remaining === 0 ? 'trailers' : 'chunk'
        return
      case 'chunk end':
        expectByte(byte, carriageReturn)
        this.#state = 'chunk end feed'
        return
      case 'chunk end feed':
        expectByte(byte, lineFeed)
        this.#state = 'chunk size'
        return
      default:
        return this.#readTrailer(byte)
    }
  }

  #readSize(byte: number): void {
    if (isHex(byte)) {
      if (++this.#count > sizeDigitsMax) throw malformedChunk()
      this.#remaining = this.#remaining * 16 + hexDigit(byte)
      return
    }
    if (this.#count === 0) throw malformedChunk()
    this.#count = 0
    if (byte === carriageReturn) this.#state = 'chunk size end'
    else if (byte === space || byte === tab || byte === 0x3b) this.#state = 'chunk extension'
    else throw malformedChunk()
  }

  /** Trailers are skipped. */
  #readTrailer(byte: number): void {
    if (++this.#headBytes > headBytesMax) throw new HttpFault('the trailers are too long')
    if (this.#state === 'trailer end' || this.#state === 'trailers end') {
      expectByte(byte, lineFeed)
      this.#state = this.#state === 'trailer end' ? 'trailers' : 'complete'
      return
    }
    if (byte === lineFeed) throw malformedChunk()
    if (byte === carriageReturn) this.#state = this.#state === 'trailers' ? 'trailers end' : 'trailer end'
    else this.#state = 'trailer'
  }
}

/** A view needs the ArrayBuffer of the array, which costs more than a copy of a few kilobytes (a fifth of an event). */
const copiedBytesMax = 8 * 1024

function pieceOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  if (start === end) return nothing
  return end - start <= copiedBytesMax ? bytes.slice(start, end) : bytes.subarray(start, end)
}

function expectByte(byte: number, expected: number): void {
  if (byte !== expected) throw malformedChunk()
}

function malformedChunk(): HttpFault {
  return new HttpFault('a chunk is malformed')
}
