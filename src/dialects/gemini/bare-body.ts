// A body that was announced as an event stream and is plain JSON: kept whole, to be read at the end. Its first byte that
// is not white space tells, since no line of a stream begins with a bracket.

import { ByteBuffer } from '../../wire/byte-buffer.ts'

const bytesMax = 4 * 1024 * 1024

export class BareBody {
  #isBare: boolean | undefined
  readonly #buffer = new ByteBuffer()
  isTooLarge = false

  /** What belongs to a stream, white space included that was kept until it was known; undefined = all is kept. */
  pass(chunk: Uint8Array): Uint8Array | undefined {
    this.#isBare ??= startsBare(chunk)
    if (this.#isBare === false && this.#buffer.length === 0) return chunk
    if (this.#buffer.length + chunk.length > bytesMax) this.isTooLarge = true
    if (!this.isTooLarge) this.#buffer.append(chunk)
    return this.#isBare === false ? this.#buffer.take() : undefined
  }

  /** All of it; undefined if it is none. */
  take(): Uint8Array | undefined {
    return this.#isBare && !this.isTooLarge ? this.#buffer.take() : undefined
  }
}

/** undefined = there is nothing but white space yet. */
function startsBare(chunk: Uint8Array): boolean | undefined {
  const first = chunk.find((byte) => byte > 0x20)
  return first === undefined ? undefined : first === 0x7b || first === 0x5b
}
