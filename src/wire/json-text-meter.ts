// Counts the bytes of text in passing JSON: the strings under certain names, at any depth, unescaped, in UTF-8. It makes no
// objects, because it sees every event of a stream. Broken JSON is counted up to where it breaks.

import { backslash, colon, comma, hexDigit, lowerU, openBrace, openBracket, quote } from './bytes.ts'
import { passSpace, passString } from './json-scan.ts'

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

function isBeforeColon(data: Uint8Array, from: number, end: number): boolean {
  const at = passSpace(data, from, end)
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
