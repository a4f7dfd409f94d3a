// Turns calls of functions that stood for custom tools back: `{"input": "…"}` becomes the bare text, as it streams.

import type { ReplyEvent } from '../canonical/reply-event.ts'
import type { ReplyStage } from './reply-stage.ts'

/** Everything up to the first character of the input. */
const opening = /^\s*\{\s*"input"\s*:\s*"/
/** Where the input has not begun by then it is read at the end: looking again with every piece would take its square. */
const openingLengthMax = 4096

const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

export class UnwrapCustomCalls implements ReplyStage {
  #input: InputReader | undefined

  /** The caller's names of the custom tools. */
  constructor(private readonly tools: ReadonlySet<string>) {}

  push(event: ReplyEvent): readonly ReplyEvent[] {
    if (event.type === 'block-start') {
      const { block } = event
      if (block.kind !== 'tool-call' || block.custom || !this.tools.has(block.name)) return [event]
      this.#input = new InputReader()
      return [{ type: 'block-start', block: { ...block, custom: true } }]
    }
    if (this.#input === undefined) return [event]
    if (event.type === 'arguments-delta') return delta(this.#input.push(event.text))
    if (event.type !== 'block-end') return [event]
    const rest = this.#input.end()
    this.#input = undefined
    return [...delta(rest), event]
  }
}

function delta(text: string): readonly ReplyEvent[] {
  return text === '' ? [] : [{ type: 'arguments-delta', text }]
}

/** Reads the string behind `"input":` out of arguments that come in pieces. */
class InputReader {
  /** Arguments that are not read yet; before the input begins, all of them. */
  #unread = ''
  #place: 'before' | 'inside' | 'behind' = 'before'
  /** How much was looked at in vain. */
  #lookedLength = 0

  push(text: string): string {
    if (this.#place === 'behind') return ''
    this.#unread += text
    if (this.#place === 'before') {
      if (this.#lookedLength > openingLengthMax) return ''
      this.#lookedLength = this.#unread.length
      const found = opening.exec(this.#unread)
      if (!found) return ''
      this.#place = 'inside'
      this.#unread = this.#unread.slice(found[0].length)
    }
    return this.#readInside()
  }

  /** Arguments of another shape than asked for are looked at as a whole, and passed on as they are if need be. */
  end(): string {
    if (this.#place !== 'before' || this.#unread.trim() === '') return ''
    try {
      const value: unknown = JSON.parse(this.#unread)
      const input = typeof value === 'object' && value !== null && 'input' in value ? value.input : undefined
      return typeof input === 'string' ? input : this.#unread
    } catch {
      return this.#unread
    }
  }

  #readInside(): string {
    let at = 0
    for (;;) {
      const character = this.#unread[at]
      if (character === undefined) break
      if (character === '"') {
        this.#place = 'behind'
        break
      }
      if (character !== '\\') at += 1
      else {
        const length = this.#unread[at + 1] === 'u' ? 6 : 2
        if (at + length > this.#unread.length) break
        at += length
      }
    }
    const text = unescaped(this.#unread.slice(0, at))
    this.#unread = this.#unread.slice(at)
    return text
  }
}

/** A string's inside; what is no escape stays, for a model may write what JSON does not know. */
function unescaped(text: string): string {
  if (!text.includes('\\')) return text
  return text.replaceAll(/\\(?:u([0-9a-fA-F]{4})|([\s\S]))/g, (whole, hex: string | undefined, short: string) => {
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
    return escapes[short] ?? (short === '"' || short === '\\' || short === '/' ? short : whole)
  })
}
