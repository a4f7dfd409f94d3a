// Walks over JSON as RFC 8259 defines it, without recursion and without building values: it only says where things end
// and whether they are well-formed. UTF-8 is checked before, by the caller.

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

export interface ScanFault {
  readonly reason: 'syntax' | 'depth'
  readonly message: string
  readonly offset: number
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
export class JsonScanner {
  fault: ScanFault | undefined
  /** After the closing quote of the last name. */
  nameEnd = 0

  /** Made for the first long string: it needs the ArrayBuffer of the body. */
  private words: DataView | undefined

  constructor(
    private readonly body: Uint8Array,
    public at: number,
    private readonly end: number,
    private readonly depthMax: number,
    /** The ends of containers, if they are known. */
    private readonly ends?: JsonEnds,
  ) {}

  /** Passes whitespace and returns the byte after it; -1 at the end. */
  peek(): number {
    const { body, end } = this
    let at = this.at
    let byte = -1
    while (at < end) {
      byte = body[at] as number
      if (byte > space || (byte !== space && byte !== lineFeed && byte !== carriageReturn && byte !== tab)) break
      at++
    }
    this.at = at
    return at < end ? byte : -1
  }

  /** One value and everything inside it; `depth` counts the containers around it. */
  passValue(depth: number): boolean {
    if (this.ends !== undefined && this.passKnown(this.ends)) return true
    const first = this.peek()
    if (first !== openBrace && first !== openBracket) return this.passScalar(first)
    // The byte that will close each container opened here, the innermost last.
    const closers: number[] = []
    for (;;) {
      const byte = this.peek()
      if (byte === openBrace || byte === openBracket) {
        if (depth + closers.length >= this.depthMax) return this.fail('nested too deeply', 'depth')
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

  private passKnown(ends: JsonEnds): boolean {
    this.peek()
    const end = ends[this.at] ?? 0
    if (end === 0) return false
    this.at = end
    return true
  }

  /** A member's name and its colon. */
  passName(): boolean {
    if (this.peek() !== quote) return this.fail('expected a name in double quotes')
    if (!this.passString()) return false
    this.nameEnd = this.at
    if (this.peek() !== colon) return this.fail('expected `:` after a name')
    this.at++
    return true
  }

  passString(): boolean {
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

  /** A syntax error at the end of the bytes means that the body is incomplete. */
  fail(message: string, reason: ScanFault['reason'] = 'syntax'): false {
    const isIncomplete = this.at >= this.end && reason === 'syntax'
    this.fault = { reason, message: isIncomplete ? 'unexpected end of the body' : message, offset: this.at }
    return false
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

// The end of every object and array of a document, found in one scan. Reading a document level by level would otherwise
// scan the inner levels again and again.

/**
 * The offset after the closing bracket, by that of the opening one; 0 elsewhere. An array, because a document may be all
 * brackets: a map of them takes thirty times the memory and blocks the event loop for seconds.
 */
export type JsonEnds = Uint32Array

/** The document must be valid JSON. */
export function readJsonEnds(body: Uint8Array): JsonEnds {
  const ends = new Uint32Array(body.length)
  const open: number[] = []
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (byte === quote) at = closingQuote(body, at)
    else if (byte === openBrace || byte === openBracket) open.push(at)
    else if (byte === closeBrace || byte === closeBracket) ends[open.pop() ?? at] = at + 1
  }
  return ends
}

function closingQuote(body: Uint8Array, start: number): number {
  let at = start + 1
  while (at < body.length && body[at] !== quote) at += body[at] === backslash ? 2 : 1
  return at
}
