// Reads HTTP/1.1 messages from bytes that are cut anywhere: what requests (http/server/request-reader.ts) and responses have
// in common, and responses. Strict: whatever two readers might understand differently (two lengths, a length and chunks, a
// bare line feed, a folded header) is a fault and ends the connection.

import { carriageReturn, hexDigit, isHex, lineFeed, space, tab } from './bytes.ts'

export class HttpFault extends Error {
  override readonly name: string = 'HttpFault'
  /** As broken connections have one: nothing that follows can be read. */
  readonly code = 'MALFORMED_MESSAGE'

  /** `status`: how a server answers such a request. */
  constructor(
    message: string,
    readonly status = 400,
  ) {
    super(message)
  }
}

/** Read access to headers: `Headers` has it too. */
export type HeaderReader = Pick<Headers, 'get'>
export type RequestHeaders = Pick<Headers, 'get' | 'has'> & Iterable<[string, string]>

/** All heads of one response, informational ones included. */
const responseHeadMax = 64 * 1024
const trailersMax = 64 * 1024
/** Of one chunk. */
const extensionMax = 4 * 1024
/** Hexadecimal digits of a chunk's size: more than a petabyte, and exact as a number. */
const sizeDigitsMax = 13

const statusLine = /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: |\r\n|$)/
/** Lines without control characters, of which all but the first start with a name and a colon. */
const wellFormed =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  /^[^\0-\x08\x0a-\x1f\x7f]*(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\0-\x08\x0a-\x1f\x7f]*)*$/

/** After the size of a chunk: names and values, separated as RFC 9112, section 7.1.1, has it, but without blanks. */
const chunkExtensions =
  /^(?:;[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:=(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+|"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"))?)+$/
/** A header that is not one of the two that say how long the body is. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const trailer = /^(?!content-length:|transfer-encoding:)[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\0-\x08\x0a-\x1f\x7f]*$/i

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
      const value = trimmed(this.#text, at + start.length, end < 0 ? this.#text.length : end)
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

/** Not `trim`: it takes a no-break space, which is a byte of a value, for a blank. */
export function trimmed(text: string, start: number, end: number): string {
  let from = start
  let to = end
  while (from < to && isBlank(text.charCodeAt(from))) from++
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--
  return text.slice(from, to)
}

function isBlank(code: number): boolean {
  return code === space || code === tab
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
  /** A line of the trailers; the empty one is the last. */
  | 'trailer'
  | 'trailer end'
  | 'complete'

const nothing = new Uint8Array(0)
const blankLine = Buffer.from('\r\n\r\n')
const { indexOf, latin1Slice } = Buffer.prototype
const semicolon = 0x3b

/** How long the body is: a number of bytes, or one of these. */
export type Framing = number
const inChunks: Framing = -1
const untilClose: Framing = -2

export abstract class MessageReader<Head> {
  /** Head of the message; undefined until it is complete. */
  head: Head | undefined
  /** What came after the end of the message. */
  rest: Uint8Array = nothing
  #state: State = 'head'
  /** The start of a head that is incomplete. */
  #carry: Uint8Array = nothing
  #headBytes = 0
  #trailerBytes = 0
  #extensionBytes = 0
  /** Bytes of the body or chunk that are still to come. */
  #remaining = 0
  /** Digits of a chunk's size so far. */
  #digits = 0
  /** A chunk's extensions or a trailer so far. Both are checked and skipped. */
  #line = ''

  /** `extensionsMax`: bytes of chunk extensions in one message. */
  constructor(
    private readonly headMax: number,
    private readonly extensionsMax: number,
  ) {}

  /** undefined: it is only informational, and another head follows. */
  protected abstract parse(text: string): Head | undefined
  protected abstract frame(head: Head): Framing
  /** Where the head starts. */
  protected startOf(_bytes: Uint8Array): number {
    return 0
  }

  /** What has arrived of a head that is incomplete; all before `from` was checked before. */
  protected checkPart(_part: Uint8Array, _from: number): void {}

  get isComplete(): boolean {
    return this.#state === 'complete'
  }

  get hasBegun(): boolean {
    return this.#state !== 'head' || this.#carry.length > 0
  }

  /**
   * Returns the bytes of the body that are in `input`, without the framing of chunks: their data are moved together within
   * `input`, so the caller may keep only what is returned. Throws an HttpFault.
   */
  read(input: Uint8Array): Uint8Array {
    let bytes = input
    let at = 0
    if (this.#state === 'head') {
      const carried = this.#carry.length
      if (carried > 0) {
        bytes = Buffer.concat([this.#carry, input])
        this.#carry = nothing
      }
      at = this.#readHead(bytes, carried)
      if (at < 0) return nothing
    }
    if (at === bytes.length) return nothing
    if (this.#state === 'length' && bytes.length - at <= this.#remaining) {
      this.#remaining -= bytes.length - at
      if (this.#remaining === 0) this.#state = 'complete'
      return at === 0 ? bytes : pieceOf(bytes, at, bytes.length)
    }
    return this.#readBody(bytes, at)
  }

  /** For the next message on the connection. */
  reset(): void {
    this.head = undefined
    this.rest = nothing
    this.#state = 'head'
    this.#carry = nothing
    this.#headBytes = this.#trailerBytes = this.#extensionBytes = this.#remaining = this.#digits = 0
    this.#line = ''
  }

  /** The connection has ended. Throws an HttpFault if the message needed more of it. */
  end(): void {
    if (this.#state === 'until close') this.#state = 'complete'
    if (this.#state !== 'complete') throw new HttpFault('the connection ended before the message did')
  }

  /** The offset of the body, or -1 if the head is incomplete. The first `carried` bytes, read before, are not searched again. */
  #readHead(bytes: Uint8Array, carried: number): number {
    for (let at = this.startOf(bytes); ; ) {
      const end: number = indexOf.call(bytes, blankLine, Math.max(at, carried - blankLine.length + 1))
      if (this.#headBytes + (end < 0 ? bytes.length : end) > this.headMax) {
        throw new HttpFault('the head is too long', 431)
      }
      if (end < 0) {
        this.#headBytes += at
        this.#carry = bytes.subarray(at)
        this.checkPart(this.#carry, Math.max(0, carried - at))
        return -1
      }
      const head = this.parse(latin1Slice.call(bytes, at, end))
      at = end + blankLine.length
      if (head === undefined) continue
      this.#begin(this.frame(head))
      this.head = head
      return at
    }
  }

  #begin(framing: Framing): void {
    if (framing === inChunks) this.#state = 'chunk size'
    else if (framing === untilClose) this.#state = 'until close'
    else if (framing === 0) this.#state = 'complete'
    else {
      this.#state = 'length'
      this.#remaining = framing
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
          this.rest = bytes.subarray(at)
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
        return this.#readExtension(byte)
      case 'chunk size end':
        expectByte(byte, lineFeed)
        this.#state = this.#remaining === 0 ? 'trailer' : 'chunk'
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
      if (++this.#digits > sizeDigitsMax) throw malformedChunk()
      this.#remaining = this.#remaining * 16 + hexDigit(byte)
      return
    }
    if (this.#digits === 0) throw malformedChunk()
    this.#digits = 0
    if (byte === carriageReturn) this.#state = 'chunk size end'
    else if (byte === semicolon) {
      this.#state = 'chunk extension'
      this.#line = ';'
    } else throw malformedChunk()
  }

  #readExtension(byte: number): void {
    if (byte !== carriageReturn) {
      this.#line += String.fromCharCode(byte)
      if (byte === lineFeed || this.#line.length > extensionMax) throw malformedChunk()
      if (++this.#extensionBytes > this.extensionsMax) throw new HttpFault('the chunk extensions are too long')
      return
    }
    if (!chunkExtensions.test(this.#line)) throw malformedChunk()
    this.#line = ''
    this.#state = 'chunk size end'
  }

  #readTrailer(byte: number): void {
    if (++this.#trailerBytes > trailersMax) throw new HttpFault('the trailers are too long')
    if (this.#state === 'trailer end') {
      expectByte(byte, lineFeed)
      this.#state = this.#line === '' ? 'complete' : 'trailer'
      this.#line = ''
    } else if (byte === carriageReturn) {
      if (this.#line !== '' && !trailer.test(this.#line)) throw malformedTrailer()
      this.#state = 'trailer end'
    } else {
      if (byte === lineFeed) throw malformedTrailer()
      this.#line += String.fromCharCode(byte)
    }
  }
}

/** RFC 9112, section 6.3, but a length beside chunks is refused. undefined: neither is given. */
export function framingOf(head: HeaderReader & { readonly isHttp10: boolean }): Framing | undefined {
  const length = head.get('content-length')
  const coding = head.get('transfer-encoding')
  if (coding !== null && (length !== null || coding.toLowerCase() !== 'chunked' || head.isHttp10)) {
    throw new HttpFault('the transfer coding is not supported')
  }
  if (coding !== null) return inChunks
  if (length === null) return undefined
  if (!/^[0-9]{1,15}$/.test(length)) throw new HttpFault('the length is no number')
  return Number(length)
}

export class ResponseReader extends MessageReader<ResponseHead> {
  #isKeptOpen = true

  constructor() {
    // A provider may stream for an hour, with an extension on every chunk.
    super(responseHeadMax, Number.POSITIVE_INFINITY)
  }

  /** Whether the connection can carry another response after this one. */
  get isReusable(): boolean {
    return this.#isKeptOpen && !this.hasExcess
  }

  /** Whether bytes followed the response, which belong to no request. */
  get hasExcess(): boolean {
    return this.rest.length > 0
  }

  protected override parse(text: string): ResponseHead | undefined {
    const head = new ResponseHead(text)
    if (head.status === 101) throw new HttpFault('the protocol was switched')
    return head.status < 200 ? undefined : head
  }

  protected override frame(head: ResponseHead): Framing {
    this.#isKeptOpen = !head.isHttp10 && !/\bclose\b/i.test(head.get('connection') ?? '')
    const framing = framingOf(head)
    if (head.status === 204 || head.status === 304) return 0
    if (framing === undefined) this.#isKeptOpen = false
    return framing ?? untilClose
  }
}

/** A view needs the ArrayBuffer of the array, which costs more than a copy of a few kilobytes (a fifth of the time that an event takes). */
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

function malformedTrailer(): HttpFault {
  return new HttpFault('a trailer is malformed')
}
