// Finds members and measures text in the JSON of a passing stream event: no allocation, no validation beyond what is needed
// to keep its place. For bytes from a provider, where a mistake means that an event passes unedited; never for requests.

import {
  backslash,
  carriageReturn,
  closeBrace,
  closeBracket,
  colon,
  comma,
  lineFeed,
  lowerU,
  openBrace,
  openBracket,
  quote,
  space,
  tab,
} from './bytes.ts'

/** Byte offsets of a value; both -1 when the member is not there. */
export interface JsonSpan {
  readonly start: number
  readonly end: number
}

interface Slot {
  readonly name: Uint8Array
  readonly span: { start: number; end: number }
}

/** Finds the members with certain names. One instance serves many events, one after the other. */
export class JsonSpans<Name extends string> {
  readonly of: Readonly<Record<Name, JsonSpan>>
  readonly #slots: readonly Slot[]

  constructor(names: readonly Name[]) {
    this.#slots = names.map((name) => ({ name: new TextEncoder().encode(name), span: { start: -1, end: -1 } }))
    this.of = Object.fromEntries(names.map((name, i) => [name, this.#slots[i]?.span])) as Record<Name, JsonSpan>
  }

  /**
   * False if [start, end) is not one object, and then no member is there. Of a name written twice the last one counts,
   * as in JSON.parse; a name written with escapes is not recognised.
   */
  read(data: Uint8Array, start: number, end: number): boolean {
    this.#clear()
    if (this.#scan(data, start, end)) return true
    this.#clear()
    return false
  }

  #clear(): void {
    for (const { span } of this.#slots) {
      span.start = -1
      span.end = -1
    }
  }

  #scan(data: Uint8Array, start: number, end: number): boolean {
    let at = passSpace(data, start, end)
    if (at >= end || data[at] !== openBrace) return false
    at = passSpace(data, at + 1, end)
    if (at < end && data[at] === closeBrace) return true
    for (;;) {
      if (at >= end || data[at] !== quote) return false
      const nameEnd = passString(data, at, end)
      if (nameEnd === -1) return false
      const slot = this.#slotFor(data, at + 1, nameEnd - 1)
      at = passSpace(data, nameEnd, end)
      if (at >= end || data[at] !== colon) return false
      const valueStart = passSpace(data, at + 1, end)
      const valueEnd = passValue(data, valueStart, end)
      if (valueEnd === -1) return false
      if (slot !== undefined) {
        slot.span.start = valueStart
        slot.span.end = valueEnd
      }
      at = passSpace(data, valueEnd, end)
      if (at >= end) return false
      if (data[at] === closeBrace) return true
      if (data[at] !== comma) return false
      at = passSpace(data, at + 1, end)
    }
  }

  #slotFor(data: Uint8Array, start: number, end: number): Slot | undefined {
    for (const slot of this.#slots) {
      if (slot.name.length === end - start && equals(data, start, slot.name)) return slot
    }
    return undefined
  }
}

function passSpace(data: Uint8Array, from: number, end: number): number {
  let at = from
  while (at < end && isSpace(data[at] as number)) at++
  return at
}

function isSpace(byte: number): boolean {
  return byte <= space && (byte === space || byte === lineFeed || byte === carriageReturn || byte === tab)
}

/** The first bytes of a string are compared one by one: most strings end there, and a search only pays for longer ones. */
const steppedBytes = 64

/** The offset after the closing quote, or -1. */
function passString(data: Uint8Array, from: number, end: number): number {
  let at = from + 1
  while (at < end) {
    for (const stop = Math.min(end, at + steppedBytes); at < stop; at++) {
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

function passValue(data: Uint8Array, from: number, end: number): number {
  if (from >= end) return -1
  const first = data[from] as number
  if (first === quote) return passString(data, from, end)
  if (first === openBrace || first === openBracket) return passContainer(data, from, end)
  let at = from
  while (at < end && !endsScalar(data[at] as number)) at++
  return at > from ? at : -1
}

function endsScalar(byte: number): boolean {
  return byte === comma || byte === closeBrace || byte === closeBracket || isSpace(byte)
}

/** Counts brackets of both kinds alike: in what a provider sent, they match. */
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

// Counts the bytes of text in passing JSON: the strings under certain names, at any depth, unescaped, in UTF-8. Broken
// JSON is counted up to where it breaks.

/** One instance serves many events, one after the other. */
export class JsonTextMeter {
  /** Result of the last count: a bit for each watched name with a string that is not empty. */
  seen = 0
  readonly #names: readonly Uint8Array[]
  readonly #watched: readonly Uint8Array[]

  /** `watched`: names that set a bit of `seen`, whether or not their text is counted. */
  constructor(names: readonly string[], watched: readonly string[] = []) {
    this.#names = names.map((name) => new TextEncoder().encode(name))
    this.#watched = watched.map((name) => new TextEncoder().encode(name))
  }

  count(data: Uint8Array, start: number, end: number): number {
    let bytes = 0
    let isCounted = false
    let bit = 0
    this.seen = 0
    for (let at = start; at < end; at++) {
      const byte = data[at]
      if (byte === quote) {
        const close = passString(data, at, end) - 1
        if (close < 0) return bytes
        if (isBeforeColon(data, close + 1, end)) {
          isCounted = this.#has(data, at + 1, close)
          bit = this.#bitOf(data, at + 1, close)
        } else {
          if (isCounted) bytes += textBytes(data, at + 1, close)
          if (close > at + 1) this.seen |= bit
        }
        at = close
      } else if (byte === comma || byte === openBrace || byte === openBracket) {
        isCounted = false
        bit = 0
      }
    }
    return bytes
  }

  #bitOf(data: Uint8Array, start: number, end: number): number {
    for (let i = 0; i < this.#watched.length; i++) {
      const name = this.#watched[i] as Uint8Array
      if (name.length === end - start && equals(data, start, name)) return 1 << i
    }
    return 0
  }

  #has(data: Uint8Array, start: number, end: number): boolean {
    for (const name of this.#names) {
      if (name.length === end - start && equals(data, start, name)) return true
    }
    return false
  }
}

function isBeforeColon(data: Uint8Array, behind: number, end: number): boolean {
  let at = behind
  while (at < end && (data[at] as number) <= 0x20) at++
  return at < end && data[at] === colon
}

function equals(data: Uint8Array, start: number, name: Uint8Array): boolean {
  for (let i = 0; i < name.length; i++) if (data[start + i] !== name[i]) return false
  return true
}

function textBytes(data: Uint8Array, start: number, end: number): number {
  let bytes = 0
  for (let at = start; at < end; at++) {
    if (data[at] !== backslash) {
      bytes++
    } else if (data[at + 1] === lowerU) {
      bytes += escapedBytes(data, at + 2)
      at += 5
    } else {
      bytes++
      at++
    }
  }
  return bytes
}

/** UTF-8 bytes of a \u escape; the halves of a pair are two each, of the four that the pair has. */
function escapedBytes(data: Uint8Array, at: number): number {
  let code = 0
  for (let i = 0; i < 4; i++) code = code * 16 + hexDigit(data[at + i] ?? 0x30)
  if (code < 0x80) return 1
  if (code < 0x800) return 2
  return code >= 0xd800 && code < 0xe000 ? 2 : 3
}

function hexDigit(byte: number): number {
  return byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x57
}
