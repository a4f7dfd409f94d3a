// Two scanners of JSON bytes, for json.ts. `checkJsonObject` proves that a document is JSON as RFC 8259 defines it. The
// `pass…` functions only find where a value ends: they are several times as fast, and suffice for documents that were
// checked and for a provider's bytes, where a mistake means that an event passes unedited. Neither builds values.

import {
  backslash,
  carriageReturn,
  closeBrace,
  closeBracket,
  colon,
  comma,
  dot,
  isDigit,
  isHex,
  lineFeed,
  lowerE,
  lowerF,
  lowerN,
  lowerT,
  lowerU,
  minus,
  openBrace,
  openBracket,
  plus,
  quote,
  space,
  specialMarks,
  tab,
  topBits,
  zero,
} from './bytes.ts'

// ── Checking ──

/** Containers inside containers, the top-level object being the first. */
export const jsonDepthMax = 64

export interface ScanFault {
  readonly reason: 'syntax' | 'depth' | 'not-object'
  readonly message: string
  readonly offset: number
}

/** The offsets of the document's object. UTF-8 is checked by the caller. */
export function checkJsonObject(body: Uint8Array): { readonly start: number; readonly end: number } | ScanFault {
  const checker = new JsonChecker(body)
  const first = checker.peek()
  const start = checker.at
  if (first === -1) return { reason: 'syntax', message: 'unexpected end of the body', offset: start }
  if (first !== openBrace) return { reason: 'not-object', message: 'expected a JSON object', offset: start }
  const isValue = checker.passValue()
  const end = checker.at
  if (isValue && checker.peek() !== -1) checker.fail('unexpected bytes after the object')
  return checker.fault ?? { start, end }
}

/** 1 for each byte that makes an escape with the backslash in front of it alone. */
const shortEscapes = new Uint8Array(256)
for (const byte of new TextEncoder().encode('"\\/bfnrt')) shortEscapes[byte] = 1
const trueWord = new TextEncoder().encode('true')
const falseWord = new TextEncoder().encode('false')
const nullWord = new TextEncoder().encode('null')

/** The first bytes of a string are compared one by one: only a longer one is worth the DataView, which takes 4 µs. */
const steppedBytes = 4096
/** 1 for each byte that ends a plain part of a string: a quote, a backslash or a control character. */
const stringStops = new Uint8Array(256)
stringStops.fill(1, 0, space)
stringStops[quote] = stringStops[backslash] = 1

/** Every pass… method starts at `at`, and either moves `at` past what it names or sets `fault` and returns false. */
class JsonChecker {
  at = 0
  fault: ScanFault | undefined
  private readonly end: number
  /** Made for the first long string: it needs the ArrayBuffer of the body. */
  private words: DataView | undefined

  constructor(private readonly body: Uint8Array) {
    this.end = body.length
  }

  /** Passes whitespace and returns the byte after it; -1 at the end. */
  peek(): number {
    this.at = passSpace(this.body, this.at, this.end)
    return this.byteAt(this.at)
  }

  /** One value and everything inside it, without recursion. */
  passValue(): boolean {
    // The byte that will close each container that is open, the innermost last.
    const closers: number[] = []
    for (;;) {
      const byte = this.peek()
      if (byte === openBrace || byte === openBracket) {
        if (closers.length >= jsonDepthMax) return this.fail('nested too deeply', 'depth')
        this.at++
        const closer = byte + 2
        if (this.peek() === closer) {
          this.at++
        } else {
          closers.push(closer)
          if (byte === openBrace && !this.passName()) return false
          continue
        }
      } else if (!this.passScalar(byte)) {
        return false
      }
      // A value has ended: close what ends with it, up to the comma in front of the next one.
      for (;;) {
        const closer = closers.at(-1)
        if (closer === undefined) return true
        const next = this.peek()
        if (next === comma) {
          this.at++
          if (closer === closeBrace && !this.passName()) return false
          break
        }
        if (next !== closer) return this.fail(`expected \`,\` or \`${String.fromCharCode(closer)}\``)
        this.at++
        closers.pop()
      }
    }
  }

  /** A syntax error at the end of the bytes means that the body is incomplete. */
  fail(message: string, reason: ScanFault['reason'] = 'syntax'): false {
    const isIncomplete = this.at >= this.end && reason === 'syntax'
    this.fault = { reason, message: isIncomplete ? 'unexpected end of the body' : message, offset: this.at }
    return false
  }

  /** A member's name and its colon. */
  private passName(): boolean {
    if (this.peek() !== quote) return this.fail('expected a name in double quotes')
    if (!this.passString()) return false
    if (this.peek() !== colon) return this.fail('expected `:` after a name')
    this.at++
    return true
  }

  private passScalar(byte: number): boolean {
    switch (byte) {
      case quote:
        return this.passString()
      case lowerT:
        return this.passWord(trueWord)
      case lowerF:
        return this.passWord(falseWord)
      case lowerN:
        return this.passWord(nullWord)
      default:
        if (byte === minus || isDigit(byte)) return this.passNumber()
        return this.fail('expected a value')
    }
  }

  private passString(): boolean {
    const { body, end } = this
    let at = this.at + 1
    const stop = Math.min(at + steppedBytes, end)
    while (at < stop && stringStops[body[at] as number] === 0) at++
    if (at < stop && body[at] === quote) {
      this.at = at + 1
      return true
    }
    while (at < end) {
      at = this.passPlain(at)
      // One of the next four bytes is special, or fewer than four are left.
      for (const stop = Math.min(at + 4, end); at < stop; at++) {
        const byte = body[at] as number
        if (byte === quote) {
          this.at = at + 1
          return true
        }
        if (byte === backslash) {
          this.at = at + 1
          if (!this.passEscape()) return false
          at = this.at
          break
        }
        if (byte < space) {
          this.at = at
          return this.fail('a raw control character in a string')
        }
      }
    }
    this.at = end
    return this.fail('unterminated string')
  }

  /**
   * Passes string bytes eight at a time, and four at the end, while none of them is special. The prompts are most of what
   * a gateway reads, and this takes less than half the time of looking at single bytes.
   */
  private passPlain(from: number): number {
    const { body, end } = this
    this.words ??= new DataView(body.buffer, body.byteOffset, body.length)
    const { words } = this
    let at = from
    while (at + 8 <= end) {
      const marks = specialMarks(words.getInt32(at, true)) | specialMarks(words.getInt32(at + 4, true))
      if ((marks & topBits) !== 0) break
      at += 8
    }
    if (at + 4 <= end && (specialMarks(words.getInt32(at, true)) & topBits) === 0) at += 4
    return at
  }

  /** After a backslash. */
  private passEscape(): boolean {
    const byte = this.byteAt(this.at)
    if (byte === lowerU) {
      for (const stop = ++this.at + 4; this.at < stop; this.at++) {
        if (!isHex(this.byteAt(this.at))) return this.fail('a bad escape in a string')
      }
      return true
    }
    if (shortEscapes[byte] !== 1) return this.fail('a bad escape in a string')
    this.at++
    return true
  }

  private passWord(word: Uint8Array): boolean {
    for (const byte of word) {
      if (this.byteAt(this.at) !== byte) return this.fail('expected a value')
      this.at++
    }
    return true
  }

  private passNumber(): boolean {
    if (this.byteAt(this.at) === minus) this.at++
    if (this.byteAt(this.at) === zero) this.at++
    else if (!this.passDigits()) return false
    if (this.byteAt(this.at) === dot) {
      this.at++
      if (!this.passDigits()) return false
    }
    if ((this.byteAt(this.at) | 0x20) === lowerE) {
      this.at++
      const sign = this.byteAt(this.at)
      if (sign === plus || sign === minus) this.at++
      if (!this.passDigits()) return false
    }
    return true
  }

  private passDigits(): boolean {
    if (!isDigit(this.byteAt(this.at))) return this.fail('expected a digit')
    do this.at++
    while (isDigit(this.byteAt(this.at)))
    return true
  }

  private byteAt(at: number): number {
    return at < this.end ? (this.body[at] as number) : -1
  }
}

// ── Passing over values ──

// Every function starts at `from`, never reads at or after `end`, and returns the offset after what it names; -1 = it does
// not end there.

/** Whitespace, which may be none. */
export function passSpace(data: Uint8Array, from: number, end: number): number {
  let at = from
  while (at < end && isSpace(data[at] as number)) at++
  return at
}

export function isSpace(byte: number): boolean {
  return byte <= space && (byte === space || byte === lineFeed || byte === carriageReturn || byte === tab)
}

/** The first bytes of a string are compared one by one: most strings end there, and a search only pays for longer ones. */
const searchedFrom = 64

/** `from`: its opening quote. */
export function passString(data: Uint8Array, from: number, end: number): number {
  let at = from + 1
  while (at < end) {
    for (const stop = Math.min(end, at + searchedFrom); at < stop; at++) {
      const byte = data[at] as number
      if (byte === quote) return at + 1
      if (byte === backslash) at++
    }
    const found = data.indexOf(quote, at)
    if (found === -1 || found >= end) return -1
    at = found + 1
    if (!isEscaped(data, found)) return at
  }
  return -1
}

/** Whether an odd number of backslashes precedes it. */
function isEscaped(data: Uint8Array, at: number): boolean {
  let before = at
  while (data[before - 1] === backslash) before--
  return (at - before) % 2 === 1
}

/** `ends`: of the containers, if they are known. */
export function passValue(data: Uint8Array, from: number, end: number, ends?: JsonEnds): number {
  if (from >= end) return -1
  const first = data[from] as number
  if (first === quote) return passString(data, from, end)
  if (first === openBrace || first === openBracket) return ends?.[from] || passContainer(data, from, end)
  let at = from
  while (at < end && !endsScalar(data[at] as number)) at++
  return at > from ? at : -1
}

function endsScalar(byte: number): boolean {
  return byte === comma || byte === closeBrace || byte === closeBracket || isSpace(byte)
}

/** Counts brackets of both kinds alike: in a checked document, and in what providers send, they match. */
function passContainer(data: Uint8Array, from: number, end: number): number {
  let depth = 0
  let at = from
  while (at < end) {
    const byte = data[at] as number
    if (byte === quote) {
      at = passString(data, at, end)
      if (at === -1) return -1
      continue
    }
    at++
    // With bit 5 set a bracket is the brace of its side, and no other byte becomes one.
    const brace = byte | 0x20
    if (brace === openBrace) depth++
    else if (brace === closeBrace && --depth === 0) return at
  }
  return -1
}

/**
 * The offset after each container, by that of its opening bracket; 0 elsewhere. An array, because a document may be all
 * brackets: a map of them takes thirty times the memory and blocks the event loop for seconds.
 */
export type JsonEnds = Uint32Array

/** Finds all ends in one scan, so that reading level by level does not scan the inner levels again. Needs valid JSON. */
export function readJsonEnds(data: Uint8Array): JsonEnds {
  const ends = new Uint32Array(data.length)
  const open: number[] = []
  for (let at = 0; at < data.length; at++) {
    const byte = data[at]
    if (byte === quote) at = passString(data, at, data.length) - 1
    else if (byte === openBrace || byte === openBracket) open.push(at)
    else if (byte === closeBrace || byte === closeBracket) ends[open.pop() ?? at] = at + 1
  }
  return ends
}
