// Bytes: their names, searching, collecting, and text in UTF-8. A byte order mark is a character like any other here; readers
// that know that it starts a stream drop it.

import { isUtf8 } from 'node:buffer'

// Names of the bytes that JSON and SSE are built from.

export const tab = 0x09
export const lineFeed = 0x0a
export const carriageReturn = 0x0d
export const space = 0x20
export const quote = 0x22
export const plus = 0x2b
export const comma = 0x2c
export const minus = 0x2d
export const dot = 0x2e
export const zero = 0x30
export const nine = 0x39
export const colon = 0x3a
export const openBracket = 0x5b
export const backslash = 0x5c
export const closeBracket = 0x5d
export const lowerE = 0x65
export const lowerF = 0x66
export const lowerN = 0x6e
export const lowerT = 0x74
export const lowerU = 0x75
export const openBrace = 0x7b
export const closeBrace = 0x7d

export function isDigit(byte: number): boolean {
  return byte >= zero && byte <= nine
}

export function isHex(byte: number): boolean {
  const lower = byte | 0x20
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66)
}

/** The value of a hexadecimal digit; of any other byte a number that means nothing. */
export function hexDigit(byte: number): number {
  return byte <= nine ? byte - zero : (byte | 0x20) - 0x57
}

// Searching.

/** Buffer's methods work on any Uint8Array, and a view to call them on costs more than the search in a small body. */
const { includes, indexOf } = Buffer.prototype

export function hasBytes(body: Uint8Array, word: Uint8Array): boolean {
  return includes.call(body, word)
}

/** The offset of the first match at or after `from`; -1 = none. */
export function findBytes(body: Uint8Array, word: Uint8Array, from = 0): number {
  return indexOf.call(body, word, from)
}

// Checks four bytes of a JSON string at once.

export const topBits = 0x80808080

/**
 * Has a top bit set if one of four bytes is a control character, a quote or a backslash; its other bits mean nothing.
 * Subtracting n from each byte sets the top bit of a byte below n; the mask leaves out bytes that had it set before.
 */
export function specialMarks(four: number): number {
  return ((four - 0x20202020) | ((four ^ 0x22222222) - 0x01010101) | ((four ^ 0x5c5c5c5c) - 0x01010101)) & ~four
}

// Bytes that arrive in pieces, collected in blocks. A list of pieces would be simpler, but a peer that sends single bytes
// would then cost a hundred times what it sent; one array that doubles would cost three times what it holds.

const blockMin = 1024
const blockMax = 1024 * 1024
const noBytes = new Uint8Array(0)

export class ByteBuffer {
  /** Blocks that are full. */
  #blocks: Uint8Array[] = []
  #block: Uint8Array<ArrayBuffer> = noBytes
  /** Bytes in the last block. */
  #used = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  append(piece: Uint8Array): void {
    const room = this.#block.length - this.#used
    if (piece.length <= room) this.#fill(piece)
    else {
      if (room > 0) this.#fill(piece.subarray(0, room))
      if (this.#used > 0) this.#blocks.push(this.#block)
      const left = piece.length - room
      this.#block = new Uint8Array(Math.max(blockMin, left, Math.min(this.#length, blockMax)))
      this.#used = 0
      this.#fill(room > 0 ? piece.subarray(room) : piece)
    }
  }

  #fill(bytes: Uint8Array): void {
    this.#block.set(bytes, this.#used)
    this.#used += bytes.length
    this.#length += bytes.length
  }

  /** Returns what was collected and starts again; the bytes belong to the caller. */
  take(): Uint8Array<ArrayBuffer> {
    const last = this.#block.subarray(0, this.#used)
    const taken = this.#blocks.length === 0 ? last : joined(this.#blocks, last, this.#length)
    if (this.#blocks.length > 0) this.#blocks = []
    this.#block = noBytes
    this.#used = this.#length = 0
    return taken
  }
}

function joined(blocks: readonly Uint8Array[], last: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(length)
  let at = 0
  for (const block of blocks) {
    whole.set(block, at)
    at += block.length
  }
  whole.set(last, at)
  return whole
}

// UTF-8.

/** Decodes a span without making a view first; invalid sequences become U+FFFD. */
export function utf8Text(bytes: Uint8Array, start: number, end: number): string {
  // Buffer's method works on any Uint8Array, at half the price of a subarray and a TextDecoder, and keeps a BOM.
  return Buffer.prototype.toString.call(bytes, 'utf8', start, end)
}

export function hasByteOrderMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

/** JSON must not begin with one, but readers may ignore it (RFC 8259, 8.1). Editors on Windows write it into files. */
export function withoutByteOrderMark(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return hasByteOrderMark(bytes) ? bytes.subarray(3) : bytes
}

/**
 * The offset of the first byte that begins no whole, valid character; the length if all is well. Each step checks half of
 * the remaining bytes, so the search costs about as much as the one check that failed before it.
 */
export function utf8FaultOffset(bytes: Uint8Array): number {
  // Everything before `low` is valid and ends with a whole character; the first fault begins before `high`.
  let low = 0
  let high = bytes.length
  while (high - low > 8) {
    const middle = low + ((high - low) >> 1)
    let cut = middle
    while (middle - cut < 3 && isContinuation(bytes[cut])) cut--
    if (isUtf8(bytes.subarray(low, cut))) low = cut
    else high = middle
  }
  let length = characterLength(bytes, low)
  while (length > 0) {
    low += length
    length = characterLength(bytes, low)
  }
  return low
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}

/** 0 where no valid character begins. */
function characterLength(bytes: Uint8Array, at: number): number {
  for (let length = 1; length <= 4 && at + length <= bytes.length; length++) {
    if (isUtf8(bytes.subarray(at, at + length))) return length
  }
  return 0
}

/** By the bytes alone, for data whose label cannot be trusted. Of compressed data every seventh byte is one of these. */
export function isText(bytes: Uint8Array): boolean {
  const oddMax = bytes.length / 20
  let odd = 0
  for (let at = 0; at < bytes.length && odd <= oddMax; at++) {
    const byte = bytes[at] as number
    if (byte < tab || (byte > carriageReturn && byte < space) || byte > 0xf7) odd++
  }
  return odd <= oddMax
}
