// The body of a message that arrives in pieces on a connection, and is read as a body of fetch is: piece by piece or whole.
// While more is unread than `unreadMax`, the connection is not read, so that the sender has to wait.

import { ByteBuffer } from './bytes.ts'
import type { BodyPiece, BodyReader, MessageBody, TakePiece } from './read-body.ts'

/** The connection that a body comes from. */
export interface BodySource {
  pause(): void
  resume(): void
}

const unreadMax = 64 * 1024

const done: BodyPiece = { done: true, value: undefined }
const finished = Promise.resolve(done)

export abstract class ReceivedBody implements MessageBody, BodyReader {
  /** undefined: nothing more comes from it. */
  protected abstract readonly source: BodySource | undefined
  protected isComplete = false
  #failure: { readonly error: unknown } | undefined
  /** A small body comes in one piece. */
  #first: Uint8Array | undefined
  #others: Uint8Array[] | undefined
  #unreadBytes = 0
  #reading: PromiseWithResolvers<BodyPiece> | undefined
  #take: TakePiece | undefined

  /** Ends the reading before the end of the body. */
  abstract cancel(): Promise<void>

  getReader(): this {
    return this
  }

  read(take?: TakePiece): Promise<BodyPiece> {
    const piece = this.#first
    if (piece) {
      this.#first = this.#others?.shift()
      this.#unreadBytes -= piece.length
      if (this.#unreadBytes === 0) this.source?.resume()
      return Promise.resolve({ done: false, value: piece })
    }
    if (this.#failure) return Promise.reject(this.#failure.error)
    if (this.isComplete) return finished
    this.#take = take
    this.#reading = Promise.withResolvers()
    return this.#reading.promise
  }

  takeWhole(): Uint8Array | undefined {
    const whole = this.#first
    if (!this.isComplete || !whole || whole.length < this.#unreadBytes) return undefined
    this.dropUnread()
    return whole
  }

  async bytes(): Promise<Uint8Array> {
    const collected = new ByteBuffer()
    for (;;) {
      const { value } = await this.read()
      if (!value) return collected.take()
      collected.append(value)
    }
  }

  protected receivePiece(piece: Uint8Array): void {
    if (piece.length === 0) return
    if (this.#reading) return this.#endRead(this.#reading, piece)
    if (!this.#first) this.#first = piece
    else if (this.#others) this.#others.push(piece)
    else this.#others = [piece]
    this.#unreadBytes += piece.length
    if (this.#unreadBytes > unreadMax) this.source?.pause()
  }

  #endRead(reading: PromiseWithResolvers<BodyPiece>, piece: Uint8Array): void {
    try {
      const value = this.#take ? this.#take(piece) : piece
      if (!value) return
      reading.resolve({ done: false, value })
    } catch (error) {
      reading.reject(error)
    }
    this.#reading = this.#take = undefined
  }

  protected completeBody(): void {
    this.isComplete = true
    this.#reading?.resolve(done)
    this.#reading = this.#take = undefined
  }

  protected failBody(error: unknown): void {
    this.#failure = { error }
    this.#reading?.reject(error)
    this.#reading = this.#take = undefined
  }

  protected dropUnread(): void {
    this.#first = this.#others = undefined
    this.#unreadBytes = 0
  }
}
