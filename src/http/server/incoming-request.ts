// A request as it was sent, without the `Request` of the runtime: its head, and a body that arrives while it is served.

import type { ClientRequest } from '../../pipeline/client-request.ts'
import { Cancellation } from '../../pipeline/deadline.ts'
import { type BodySource, ReceivedBody } from '../../wire/received-body.ts'
import type { RequestHead } from './request-reader.ts'

export interface RequestConnection extends BodySource {
  /** The client's address; undefined once it has left. */
  readonly address: string | undefined
  /** Tells a client that asked first (`Expect: 100-continue`) to send its body. */
  sendContinue(): void
}

/** The part of a connection that the handler of its requests needs. */
export interface ConnectionControl {
  /** The number of requests that have arrived completely and are being answered. */
  readonly pendingRequests: number
  /** How long the connection may be silent from now on; 0 = for ever. */
  timeout(seconds: number): void
  close(): void
}

const left = new Error('the client has left')

export class IncomingRequest extends ReceivedBody implements ClientRequest {
  bodyUsed = false
  /** The client asked whether to send its body, and neither a 100 nor the head of the answer was sent. */
  awaitsContinue: boolean
  #signal: Cancellation | undefined
  #isGone = false
  #isWanted = true
  protected override source: BodySource | undefined

  constructor(
    readonly headers: RequestHead,
    readonly connection: RequestConnection,
    private readonly hasBody: boolean,
  ) {
    super()
    this.source = connection
    // HTTP/1.0 has no 100: a client would take it for the answer.
    this.awaitsContinue = hasBody && !headers.isHttp10 && headers.has('expect')
  }

  get method(): string {
    return this.headers.method
  }

  /** The target of the request line. */
  get url(): string {
    return this.headers.target
  }

  get body(): this | null {
    return this.hasBody ? this : null
  }

  /** Aborts when the client leaves. */
  get signal(): Cancellation {
    if (!this.#signal) {
      this.#signal = new Cancellation()
      if (this.#isGone) this.#signal.abort()
    }
    return this.#signal
  }

  override read(): ReturnType<ReceivedBody['read']> {
    this.bodyUsed = true
    if (this.awaitsContinue) {
      this.awaitsContinue = false
      this.connection.sendContinue()
    }
    return super.read()
  }

  override takeWhole(): Uint8Array | undefined {
    const whole = super.takeWhole()
    if (whole) this.bodyUsed = true
    return whole
  }

  /** The rest is read from the socket and thrown away: a client that is still sending would not see an answer otherwise. */
  override async cancel(): Promise<void> {
    this.discard()
  }

  discard(): void {
    this.#isWanted = false
    this.dropUnread()
    this.source?.resume()
  }

  receive(piece: Uint8Array): void {
    if (this.#isWanted) this.receivePiece(piece)
  }

  complete(): void {
    this.awaitsContinue = false
    this.source?.resume()
    this.source = undefined
    this.completeBody()
  }

  /** The rest of the body cannot be read. */
  fail(error: unknown): void {
    this.source = undefined
    if (!this.isComplete) this.failBody(error)
  }

  clientLeft(): void {
    this.#isGone = true
    this.fail(left)
    this.#signal?.abort()
  }
}
