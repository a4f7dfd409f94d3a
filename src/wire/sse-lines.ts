// Walks over the lines of SSE bytes, whatever ends them: LF, CRLF or CR, also mixed. Both line ends are searched for
// natively and each only once, so that a far CR is not looked for again at every LF.

import { carriageReturn, lineFeed } from './ascii.ts'

export class SseLines {
  /** The current line without what ends it is [start, end); `next` is behind what ends it. */
  start = 0
  end = 0
  next = 0
  #bytes: Uint8Array = new Uint8Array(0)
  #lineFeedAt = -1
  #carriageReturnAt = -1

  open(bytes: Uint8Array, from: number): void {
    this.#bytes = bytes
    this.next = from
    this.#lineFeedAt = -1
    this.#carriageReturnAt = -1
  }

  /** To the next line; the last one may be cut short, and then `end` is the end of the bytes. False behind it. */
  advance(): boolean {
    const bytes = this.#bytes
    const start = this.next
    if (start >= bytes.length) return false
    if (this.#lineFeedAt < start) this.#lineFeedAt = find(bytes, lineFeed, start)
    if (this.#carriageReturnAt < start) this.#carriageReturnAt = find(bytes, carriageReturn, start)
    const end = Math.min(this.#lineFeedAt, this.#carriageReturnAt)
    const isPair = end === this.#carriageReturnAt && this.#lineFeedAt === end + 1
    this.start = start
    this.end = end
    this.next = Math.min(end + (isPair ? 2 : 1), bytes.length)
    return true
  }
}

/** The length of the bytes if it is not there, so that the smaller of two is always the nearer one. */
function find(bytes: Uint8Array, byte: number, from: number): number {
  if (bytes[from] === byte) return from
  const at = bytes.indexOf(byte, from)
  return at === -1 ? bytes.length : at
}
