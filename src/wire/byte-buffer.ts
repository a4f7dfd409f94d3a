// Bytes that arrive in pieces, collected in one growing array. A list of pieces would be simpler, but a peer that sends
// single bytes would then cost a hundred times what it sent.

const capacityMin = 1024

export class ByteBuffer {
  #bytes: Uint8Array<ArrayBuffer>
  #length = 0

  /** `capacity`: how much is expected; memory is used only as it comes. */
  constructor(capacity = 0) {
    this.#bytes = new Uint8Array(capacity)
  }

  get length(): number {
    return this.#length
  }

  append(piece: Uint8Array): void {
    const needed = this.#length + piece.length
    if (needed > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(capacityMin, needed, this.#bytes.length * 2))
      grown.set(this.#bytes.subarray(0, this.#length))
      this.#bytes = grown
    }
    this.#bytes.set(piece, this.#length)
    this.#length = needed
  }

  /** Hands over what was collected and starts anew; the bytes belong to the caller and are not written again. */
  take(): Uint8Array<ArrayBuffer> {
    const taken = this.#bytes.subarray(0, this.#length)
    this.#bytes = new Uint8Array(0)
    this.#length = 0
    return taken
  }
}
