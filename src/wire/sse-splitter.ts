// Cuts a byte stream into raw SSE records, each with the blank line that ends it. All records put together are the
// stream, byte for byte; what they say is not looked at.

import { assert } from '../kernel/assert.ts'
import { carriageReturn, lineFeed } from './ascii.ts'
import { ByteBuffer } from './byte-buffer.ts'
import { SseLines } from './sse-lines.ts'

/** Also of one line: a picture comes as such. */
const recordBytesMaxDefault = 4 * 1024 * 1024

export interface SseLimits {
  readonly recordBytesMax?: number
}

/** Thrown out of push: the peer sent more without an end than anyone should have to hold. */
export class SseOverflow extends Error {
  override readonly name = 'SseOverflow'
}

export class SseSplitter {
  readonly #recordBytesMax: number
  readonly #lines = new SseLines()
  /** The beginning of a record whose end has not arrived. */
  readonly #pending = new ByteBuffer()
  /** How much of the line at the end of the pending bytes is there. */
  #lineBytes = 0
  /** The last byte was a CR: an LF in front of the next chunk belongs to that line end and makes no blank line. */
  #afterCarriageReturn = false

  constructor(limits: SseLimits = {}) {
    this.#recordBytesMax = limits.recordBytesMax ?? recordBytesMaxDefault
  }

  /**
   * Records that lie inside the chunk are views of it, so the chunk must not be written to again. A blank line that is
   * a CR at the end of the chunk ends its record at once; should an LF follow, it goes in front of the next record.
   */
  push(chunk: Uint8Array, onRecord: (record: Uint8Array) => void): void {
    if (chunk.length === 0) return
    const lines = this.#lines
    lines.open(chunk, this.#afterCarriageReturn && chunk[0] === lineFeed ? 1 : 0)
    let recordStart = 0
    while (lines.advance()) {
      const lineBytes = this.#lineBytes + lines.end - lines.start
      if (lines.end === chunk.length) {
        this.#lineBytes = lineBytes
      } else {
        this.#lineBytes = 0
        if (lineBytes === 0) {
          onRecord(this.#record(chunk, recordStart, lines.next))
          recordStart = lines.next
        }
      }
    }
    this.#afterCarriageReturn = chunk[chunk.length - 1] === carriageReturn
    if (recordStart < chunk.length) {
      this.#checkSize(chunk.length - recordStart)
      this.#pending.append(chunk.subarray(recordStart))
    }
  }

  /** Hands out what never got its blank line. */
  end(onRecord: (record: Uint8Array) => void): void {
    this.#lineBytes = 0
    this.#afterCarriageReturn = false
    if (this.#pending.length > 0) onRecord(this.#pending.take())
  }

  #record(chunk: Uint8Array, start: number, end: number): Uint8Array {
    assert(end > start, 'a record has bytes')
    this.#checkSize(end - start)
    // A provider mostly sends one event at a time, and a view of all of it would be the dearest step here.
    const rest = start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end)
    if (this.#pending.length === 0) return rest
    this.#pending.append(rest)
    return this.#pending.take()
  }

  #checkSize(more: number): void {
    if (this.#pending.length + more <= this.#recordBytesMax) return
    throw new SseOverflow(`an SSE record of more than ${this.#recordBytesMax} bytes`)
  }
}
