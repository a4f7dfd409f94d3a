// The pump: upstream bytes in, client bytes out, read only while the client's socket takes more, so that a slow reader
// slows the provider instead of filling our memory. Settling comes before the terminal bytes; a failure is an
// honest error record, never a made-up ending.

import type { Dialect } from '../dialects/dialect.ts'
import { assert } from '../kernel/assert.ts'
import { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import type { Usage } from '../kernel/usage.ts'
import { isBroken } from '../providers/call-endpoint.ts'
import { SseOverflow } from '../wire/sse-splitter.ts'
import type { Answered, OpenStream } from './attempt.ts'
import type { Connection, StreamEnd } from './story.ts'
import type { Ticker, Watched } from './ticker.ts'

/** How the tries of a request came out. */
export type Opened = Answered | Failure | 'client left'

export interface StreamAnswerInput {
  readonly surface: Dialect
  readonly requestId: RequestId
  /** Already open, or still being tried while the client is kept alive. */
  readonly opening: OpenStream | Promise<Opened>
  readonly ticker: Ticker
  readonly connection: Connection
  /** What the caller is told of a defect of ours; the details go to the log. */
  readonly onDefect: (error: unknown) => Failure
  /** Called once, before the last bytes go out. */
  readonly settle: (end: StreamEnd, usage: Usage | undefined) => void | Promise<void>
}

/** Official clients and proxies give up on silence; a comment or ping this often keeps them. */
const keepAliveMs = 15_000
/**
 * Reads that may wait for a client's socket. A pull that stays in its loop costs a fifth less per event than one call
 * for each (bench/README.md), and eight reads of 16 KiB are all a slow client can make us hold.
 */
const readAheadMax = 8
/** A client that takes nothing for this long is treated as gone. */
const writeStallMs = 30_000

export function answerStream(input: StreamAnswerInput): ReadableStream<Uint8Array> {
  const pump = new Pump(input)
  return new ReadableStream(
    {
      start(controller) {
        // Headers that go out early need bytes to travel with.
        if (input.opening instanceof Promise) controller.enqueue(input.surface.keepAlive)
      },
      pull: (controller) => pump.pull(controller),
      cancel: () => pump.leave(),
    },
    { highWaterMark: readAheadMax },
  )
}

const nothing = new Uint8Array(0)

type Controller = ReadableStreamDefaultController<Uint8Array>

class Pump implements Watched {
  seat = -1
  readonly #input: StreamAnswerInput
  #stream: OpenStream | undefined
  #controller: Controller | undefined
  #phase: 'opening' | 'flowing' | 'ended' = 'opening'
  readonly #startedAtMs: number
  /** When bytes last came from the provider. */
  #heardAtMs: number
  /** When bytes last went to the client. */
  #spokeAtMs: number
  /** Since when the client has not asked for more; undefined while it waits for us. */
  #clientBusySinceMs: number | undefined
  /** Why we cut the provider off, where we did. */
  #cutFor: string | undefined

  constructor(input: StreamAnswerInput) {
    this.#input = input
    this.#startedAtMs = this.#heardAtMs = this.#spokeAtMs = input.ticker.nowMs
    input.ticker.watch(this)
  }

  async pull(controller: Controller): Promise<void> {
    this.#controller = controller
    this.#clientBusySinceMs = undefined
    try {
      if (this.#phase === 'opening') await this.#open(controller)
      const stream = this.#stream
      // One promise per read and nothing else: this loop runs for every event of every stream.
      while (stream && this.#phase === 'flowing' && (controller.desiredSize ?? 0) > 0) {
        const { done, value } = await stream.reader.read()
        if (this.#isOver()) return
        const bytes = done ? stream.relay.end() : stream.relay.push(value ?? nothing)
        if (this.#forward(controller, stream, bytes)) await this.#conclude(controller, stream)
        else if (done) await this.#interrupt(controller, 'closed the stream')
      }
    } catch (error) {
      if (!this.#isOver()) await this.#fail(controller, error)
    }
    this.#clientBusySinceMs = this.#input.ticker.nowMs
  }

  /** Waits for a provider to be committed, and passes on the bytes that were read for it. */
  async #open(controller: Controller): Promise<void> {
    const opened = await this.#input.opening
    if (this.#isOver()) {
      // It opened for a client that had just gone; nobody else would end it.
      if (typeof opened === 'object' && 'abort' in opened) opened.abort()
      return
    }
    if (opened === 'client left') return this.leave()
    if (opened instanceof Failure) return await this.#end(controller, opened)
    assert(opened.kind === 'stream', 'a streamed request is answered by a stream')
    this.#stream = opened
    this.#phase = 'flowing'
    if (this.#forward(controller, opened, opened.first)) await this.#conclude(controller, opened)
  }

  /** Hands bytes to the client and answers whether they were the last. */
  #forward(controller: Controller, { relay }: OpenStream, bytes: Uint8Array): boolean {
    this.#heardAtMs = this.#input.ticker.nowMs
    if (bytes.length > 0) {
      this.#spokeAtMs = this.#heardAtMs
      controller.enqueue(bytes)
    }
    return relay.finished || relay.fault !== undefined
  }

  #conclude(controller: Controller, { relay }: OpenStream): Promise<void> {
    return relay.fault ? this.#interrupt(controller, 'reported an error') : this.#end(controller, 'complete')
  }

  /** A read that rejects is the provider's end of the wire or our own cut; anything else is a defect of ours. */
  #fail(controller: Controller, error: unknown): Promise<void> {
    if (this.#cutFor !== undefined) return this.#interrupt(controller, this.#cutFor)
    if (error instanceof SseOverflow) return this.#interrupt(controller, 'sent an event without an end')
    if (isBroken(error)) return this.#interrupt(controller, 'broke off')
    return this.#end(controller, this.#input.onDefect(error))
  }

  async #interrupt(controller: Controller, how: string): Promise<void> {
    const stream = this.#stream
    const provider = stream?.candidate.provider.id ?? 'unknown'
    const tokens = stream?.relay.usage ? ` after ${stream.relay.usage.outputTokens} output tokens` : ''
    const message = `Provider ${provider} ${how}${tokens}; what came before is all there is. Request ${this.#input.requestId}.`
    await this.#end(controller, new Failure('STREAM_INTERRUPTED', message))
  }

  async #end(controller: Controller, end: 'complete' | Failure): Promise<void> {
    this.#close()
    await this.#input.settle(end, this.#stream?.relay.usage)
    const { surface, requestId } = this.#input
    const last = end === 'complete' ? this.#stream?.relay.terminal : surface.renderStreamFailure(end, requestId)
    if (last !== undefined && last.length > 0) controller.enqueue(last)
    controller.close()
  }

  /** The client has gone, by cancelling, by its connection, or by taking nothing for too long. */
  leave(): void {
    if (this.#phase === 'ended') return
    this.#close()
    void this.#input.settle('client left', this.#stream?.relay.usage)
  }

  tick(nowMs: number): void {
    this.#input.connection.keepOpen()
    const stream = this.#stream
    if (this.#clientBusySinceMs !== undefined && nowMs - this.#clientBusySinceMs > writeStallMs) return this.#stall()
    if (this.#clientBusySinceMs === undefined && nowMs - this.#spokeAtMs >= keepAliveMs) this.#keepAlive(nowMs)
    if (!stream) return
    if (nowMs - this.#startedAtMs > stream.timeouts.totalMs) this.#cut(stream, 'took too long')
    else if (this.#clientBusySinceMs === undefined && nowMs - this.#heardAtMs > stream.timeouts.idleMs) {
      this.#cut(stream, 'fell silent')
    }
  }

  expire(): void {
    const failure = new Failure('STREAM_INTERRUPTED', `Tollgate was shut down. Request ${this.#input.requestId}.`)
    // A client that goes in this very moment has nothing to be told.
    if (this.#controller && !this.#isOver()) this.#end(this.#controller, failure).catch(() => this.leave())
  }

  #keepAlive(nowMs: number): void {
    this.#spokeAtMs = nowMs
    this.#controller?.enqueue(this.#stream?.relay.keepAlive() ?? this.#input.surface.keepAlive)
  }

  /** Ends the provider's side; the pending read rejects and the pump tells the client. */
  #cut(stream: OpenStream, why: string): void {
    this.#cutFor ??= why
    stream.abort()
  }

  #stall(): void {
    this.leave()
    // Closing the stream alone would not free the socket. Last, because settling gives it back its usual idle limit.
    this.#input.connection.drop()
  }

  #close(): void {
    this.#phase = 'ended'
    this.#input.ticker.unwatch(this)
    this.#stream?.abort()
  }

  #isOver(): boolean {
    return this.#phase === 'ended'
  }
}
