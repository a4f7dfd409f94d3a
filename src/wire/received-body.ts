// The body of a message that arrives in pieces on a connection, and is read as a body of fetch is: piece by piece or whole.
// While more is unread than `unreadMax`, the connection is not read, so that the sender has to wait. Who reads piece by
// piece works on each, so a large one is handed out in several turns of the event loop, between which others get theirs.

import { ByteBuffer } from './bytes.ts'
import type { BodyPiece, BodyReader, MessageBody, TakePiece } from './read-body.ts'

/** The connection that a body comes from. */
export interface BodySource {
  pause(): void
  resume(): void
}

const unreadMax = 64 * 1024
/** A few milliseconds of work, if all of it is tiny events. */
const turnBytesMax = 32 * 1024

const nothing = new Uint8Array(0)
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
  /** Read as a whole. */
  #isCollected = false
  /** What was handed out in this turn of the pieces that had to wait for a read. */
  #turnBytes = 0
  #reading: PromiseWithResolvers<BodyPiece> | undefined
  #take: TakePiece | undefined

  /** Ends the reading before the end of the body. */
  abstract cancel(): Promise<void>

  getReader(): this {
    return this
  }

  read(take?: TakePiece): Promise<BodyPiece> {
    if (this.#first && this.#turnBytes < turnBytesMax)
      return Promise.resolve({ done: false, value: this.#nextInTurn() })
    if (!this.#first && this.#failure) return Promise.reject(this.#failure.error)
    if (!this.#first && this.isComplete) return finished
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
    this.#isCollected = true
    for (;;) {
      while (this.#first) collected.append(this.#next(Number.POSITIVE_INFINITY))
      const { value } = await this.read()
      if (!value) return collected.take()
      collected.append(value)
    }
  }

  protected receivePiece(piece: Uint8Array): void {
    if (piece.length === 0) return
    if (this.#reading && !this.#first && (piece.length <= turnBytesMax || this.#isCollected))
      return this.#endRead(this.#reading, piece)
    if (!this.#first) this.#first = piece
    else if (this.#others) this.#others.push(piece)
    else this.#others = [piece]
    this.#unreadBytes += piece.length
    if (this.#unreadBytes > unreadMax) this.source?.pause()
    if (this.#reading) this.#handOut()
  }

  #handOut(): void {
    while (this.#reading && this.#first && this.#turnBytes < turnBytesMax)
      this.#endRead(this.#reading, this.#nextInTurn())
    this.#endIfOver()
  }

  #nextInTurn(): Uint8Array {
    const piece = this.#next(turnBytesMax - this.#turnBytes)
    // Nothing is left to wait for the next turn, as nearly always.
    if (!this.#first && this.#turnBytes === 0) return piece
    if (this.#turnBytes === 0) setImmediate(() => this.#beginTurn())
    this.#turnBytes += piece.length
    return piece
  }

  #beginTurn(): void {
    this.#turnBytes = 0
    this.#handOut()
  }

  /** The unread bytes that come next, in at most so many. */
  #next(max: number): Uint8Array {
    const first = this.#first ?? nothing
    const isWhole = first.length <= max
    const piece = isWhole ? first : first.subarray(0, max)
    if (isWhole) {
      this.#first = this.#others?.shift()
      if (this.#others?.length === 0) this.#others = undefined
    } else this.#first = first.subarray(max)
    this.#unreadBytes -= piece.length
    if (this.#unreadBytes === 0) this.source?.resume()
    return piece
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
    this.#endIfOver()
  }

  protected failBody(error: unknown): void {
    this.#failure = { error }
    this.#endIfOver()
  }

  /** Ends the read that waits for more, if there is no more. */
  #endIfOver(): void {
    if (!this.#reading || this.#first) return
    if (this.#failure) this.#reading.reject(this.#failure.error)
    else if (this.isComplete) this.#reading.resolve(done)
    else return
    this.#reading = this.#take = undefined
  }

  protected dropUnread(): void {
    this.#first = this.#others = undefined
    this.#unreadBytes = 0
  }
}
