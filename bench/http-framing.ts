// Reads HTTP/1.1 messages off a raw socket: where a head, a body and a message end, and nothing else. Shared by the load
// generator and the fake upstream so that both cost as little as possible beside the contender; it trusts its peer.

export interface MessageHandlers {
  /** Start line and header lines, without the blank line. */
  head(head: string): void
  /** Body bytes without chunk framing; a view that is valid during the call only. */
  body(bytes: Uint8Array): void
  end(): void
}

type State = 'head' | 'length' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailer'

const CR = 13
const LF = 10
const NOTHING = new Uint8Array(0)

export class MessageReader {
  readonly #handlers: MessageHandlers
  #state: State = 'head'
  /** Bytes of the current body or chunk that are still to come. */
  #remaining = 0
  /** An unfinished head or line from earlier reads. */
  #carry: Uint8Array = NOTHING

  constructor(handlers: MessageHandlers) {
    this.#handlers = handlers
  }

  read(bytes: Uint8Array): void {
    let input = bytes
    if (this.#carry.length > 0) {
      input = joined(this.#carry, bytes)
      this.#carry = NOTHING
    }
    let at = 0
    while (at < input.length) {
      const next = this.#step(input, at)
      if (next < 0) {
        // The socket's buffer is reused after the call, so what is kept must be a copy.
        this.#carry = input.slice(at)
        return
      }
      at = next
    }
  }

  /** The position after what was consumed, or -1 when a head or line is incomplete. */
  #step(input: Uint8Array, at: number): number {
    switch (this.#state) {
      case 'head':
        return this.#readHead(input, at)
      case 'length':
      case 'chunk':
        return this.#readBody(input, at)
      case 'chunk-size': {
        const lineEnd = input.indexOf(LF, at)
        if (lineEnd < 0) return -1
        this.#remaining = hexadecimal(input, at)
        this.#state = this.#remaining === 0 ? 'trailer' : 'chunk'
        return lineEnd + 1
      }
      case 'chunk-end': {
        const lineEnd = input.indexOf(LF, at)
        if (lineEnd < 0) return -1
        this.#state = 'chunk-size'
        return lineEnd + 1
      }
      case 'trailer': {
        const lineEnd = input.indexOf(LF, at)
        if (lineEnd < 0) return -1
        if (lineEnd - at <= 1) this.#finish()
        return lineEnd + 1
      }
    }
  }

  #readHead(input: Uint8Array, at: number): number {
    const headEnd = blankLine(input, at)
    if (headEnd < 0) return -1
    const head = Buffer.from(input.buffer, input.byteOffset + at, headEnd - at).toString('latin1')
    this.#handlers.head(head)
    const lengthLine = /\r\ncontent-length: *(\d+)/i.exec(head)
    if (lengthLine) {
      this.#remaining = Number(lengthLine[1])
      this.#state = 'length'
      if (this.#remaining === 0) this.#finish()
    } else if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      this.#state = 'chunk-size'
    } else {
      this.#finish()
    }
    return headEnd + 4
  }

  #readBody(input: Uint8Array, at: number): number {
    const end = Math.min(input.length, at + this.#remaining)
    this.#handlers.body(input.subarray(at, end))
    this.#remaining -= end - at
    if (this.#remaining === 0) {
      if (this.#state === 'length') this.#finish()
      else this.#state = 'chunk-end'
    }
    return end
  }

  #finish(): void {
    this.#state = 'head'
    this.#handlers.end()
  }
}

function blankLine(input: Uint8Array, from: number): number {
  for (let at = input.indexOf(CR, from); at >= 0; at = input.indexOf(CR, at + 1)) {
    if (at + 3 >= input.length) return -1
    if (input[at + 1] === LF && input[at + 2] === CR && input[at + 3] === LF) return at
  }
  return -1
}

function hexadecimal(input: Uint8Array, from: number): number {
  let value = 0
  for (let at = from; ; at++) {
    const byte = input[at] ?? 0
    if (byte >= 48 && byte <= 57) value = value * 16 + byte - 48
    else if ((byte | 32) >= 97 && (byte | 32) <= 102) value = value * 16 + (byte | 32) - 87
    else return value
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length)
  both.set(first)
  both.set(second, first.length)
  return both
}
