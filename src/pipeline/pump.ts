// The pump: upstream bytes in, client bytes out, read only while the client's socket takes more, so that a slow reader
// slows the provider instead of filling our memory. Settling comes before the terminal bytes; a failure is an
// honest error record, never a made-up ending.

import type { StreamRelay } from '../dialects/byte-lane/relay.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { assert } from '../kernel/assert.ts'
import type { Failpoint } from '../kernel/failpoint.ts'
import { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import { isBroken } from '../providers/call-endpoint.ts'
import type { FaultClass } from '../routing/fault.ts'
import { SseOverflow } from '../wire/sse-splitter.ts'
import type { Answered, OpenStream } from './attempt.ts'
import { type Bill, cutShort } from './bill.ts'
import type { Connection } from './connection.ts'
import { hearOut, type Reading } from './hear-out.ts'
import { type Cut, cuts, interruption, reportedCut, withCost } from './interruption.ts'
import type { Owed } from './owed.ts'
import { readOut } from './read-out.ts'
import type { Ending } from './settlement.ts'
import type { Settled } from './story.ts'
import { StreamClocks } from './stream-clocks.ts'
import type { Ticker, Watched } from './ticker.ts'

/** How the tries of a request came out. */
export type Opened = Answered | Failure | 'client left'

/** How an answer ended. */
export interface End {
  readonly ending: Ending
  /** What the client is told of it. */
  readonly failure?: Failure | undefined
  /** What its provider did, where that broke off. */
  readonly why?: FaultClass | undefined
}

export interface PumpInput {
  readonly surface: Dialect
  readonly requestId: RequestId
  /** Already open, or still being tried while the client is kept alive. */
  readonly opening: OpenStream | Promise<Opened>
  readonly ticker: Ticker
  readonly connection: Connection
  /** What the caller is told of a defect of ours; the details go to the log. */
  readonly onDefect: (error: unknown) => Failure
  /** The hold, which grows with the answer. */
  readonly bill: Pick<Bill, 'growAtBytes' | 'grow'> | undefined
  readonly reach: Failpoint
  readonly owed: Pick<Owed, 'track'>
  /** How many output tokens have passed, as they are billed. */
  readonly tokensOf: (relay: StreamRelay) => number
  /** Called once, before the last bytes go out; a Failure takes the place of a proper end. */
  readonly settle: (end: End, relay: StreamRelay | undefined) => Promise<Settled>
}

const nothing = new Uint8Array(0)

type Controller = ReadableStreamDefaultController<Uint8Array>

export class Pump implements Watched {
  seat = -1
  readonly #input: PumpInput
  #stream: OpenStream | undefined
  #controller: Controller | undefined
  #phase: 'opening' | 'flowing' | 'ended' = 'opening'
  readonly #clocks: StreamClocks
  /** Why we cut the provider off, where we did. */
  #cutFor: Cut | undefined
  /** A read of the provider that is under way. */
  #reading: Reading | undefined

  constructor(input: PumpInput) {
    this.#input = input
    input.ticker.watch(this)
    this.#clocks = new StreamClocks(input.ticker.nowMs)
  }

  async pull(controller: Controller): Promise<void> {
    this.#controller = controller
    this.#clocks.resume(this.#input.ticker.nowMs)
    try {
      if (this.#phase === 'opening') await this.#open(controller)
      const stream = this.#stream
      const { bill, reach } = this.#input
      // One promise per read and nothing else: this loop runs for every event of every stream.
      while (stream && this.#phase === 'flowing' && (controller.desiredSize ?? 0) > 0) {
        this.#reading = stream.reader.read()
        const { done, value } = await this.#reading
        const paused = reach('mid_stream')
        if (paused) await paused
        if (this.#isOver()) return
        this.#reading = undefined
        const bytes = done ? stream.relay.end() : stream.relay.push(value ?? nothing)
        if (this.#forward(controller, stream, bytes)) await this.#conclude(controller, stream, done)
        else if (done) await this.#interrupt(controller, cuts.closed)
        else if (bill && stream.relay.outputBytes >= bill.growAtBytes) await this.#grow(controller, stream, bill)
      }
    } catch (error) {
      if (!this.#isOver()) await this.#fail(controller, error)
    }
    this.#clocks.pause(this.#input.ticker.nowMs)
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
    if (opened instanceof Failure) return await this.#end(controller, { ending: 'not served', failure: opened })
    assert(opened.kind === 'stream', 'a streamed request is answered by a stream')
    this.#stream = opened
    this.#phase = 'flowing'
    this.#clocks.opened(this.#input.ticker.nowMs)
    if (this.#forward(controller, opened, opened.first)) await this.#conclude(controller, opened, false)
  }

  /** Hands bytes to the client and answers whether they were the last. */
  #forward(controller: Controller, { relay }: OpenStream, bytes: Uint8Array): boolean {
    const { nowMs } = this.#input.ticker
    this.#clocks.heard(nowMs, relay.outputBytes)
    if (bytes.length > 0) {
      this.#clocks.spoke(nowMs)
      controller.enqueue(bytes)
    }
    return relay.finished || relay.fault !== undefined
  }

  #conclude(controller: Controller, { relay }: OpenStream, isClosed: boolean): Promise<void> {
    if (!relay.fault) return this.#end(controller, { ending: 'complete' })
    return this.#interrupt(controller, reportedCut(relay.fault, isClosed))
  }

  /** A read that rejects is the provider's end of the wire or our own cut; anything else is a defect of ours. */
  #fail(controller: Controller, error: unknown): Promise<void> {
    if (this.#cutFor !== undefined) return this.#interrupt(controller, this.#cutFor)
    if (error instanceof SseOverflow) return this.#interrupt(controller, cuts.endless)
    if (isBroken(error)) return this.#interrupt(controller, cuts.broken)
    return this.#end(controller, { ending: 'ended by us', failure: this.#input.onDefect(error) })
  }

  async #interrupt(controller: Controller, { how, why }: Cut): Promise<void> {
    const { candidate, relay } = this.#stream ?? {}
    const provider = candidate?.provider.id ?? 'unknown'
    const tokens = relay ? this.#input.tokensOf(relay) : 0
    const failure = interruption({ provider, how, tokens, requestId: this.#input.requestId })
    await this.#end(controller, { ending: 'interrupted', failure, why })
  }

  /** The hold follows the answer; where it cannot, the answer ends with what was paid for. */
  async #grow(controller: Controller, { relay }: OpenStream, bill: Pick<Bill, 'grow'>): Promise<void> {
    const growing = bill.grow(relay.outputBytes)
    const growth = growing instanceof Promise ? await growing : growing
    if (growth === 'enough' || this.#isOver()) return
    const ending = growth === 'no ledger' ? 'ended by us' : 'out of money'
    await this.#end(controller, { ending, failure: cutShort(growth, this.#input.requestId) })
  }

  async #end(controller: Controller, end: End): Promise<void> {
    this.#close()
    const { failure } = end
    const relay = this.#stream?.relay
    const { unsettled, cost } = await this.#input.settle(end, relay)
    const { surface, requestId } = this.#input
    const told = unsettled ?? (failure && withCost(failure, cost))
    const last = told === undefined ? relay?.terminal : surface.renderStreamFailure(told, requestId)
    if (last !== undefined && last.length > 0) controller.enqueue(last)
    controller.close()
    const paused = this.#input.reach('after_terminal')
    if (paused) await paused
  }

  /** The client has gone, by cancelling, by its connection, or by taking nothing for too long. */
  async leave(): Promise<void> {
    if (this.#isOver()) return
    const stream = this.#stream
    if (!stream?.relay.isOwed) return void (await this.#settleLeft())
    this.#over()
    const settling = hearOut(stream, this.#reading).then(async () => void (await this.#settleLeft()))
    await this.#input.owed.track(settling, stream.abort)
  }

  #settleLeft(): Promise<Settled> {
    this.#close()
    const relay = this.#stream?.relay
    const left = relay?.meaningful ? 'client left after content' : 'client left before content'
    return this.#input.settle({ ending: relay?.finished ? 'complete' : left }, relay)
  }

  tick(nowMs: number): void {
    if (this.#isOver()) return
    this.#input.connection.keepOpen()
    const stream = this.#stream
    if (this.#clocks.hasStalled(nowMs)) return void this.#stall()
    if (this.#clocks.owesSign(nowMs)) this.#keepAlive(nowMs)
    const cut = stream && this.#clocks.cutFor(nowMs, stream.timeouts)
    if (cut) this.#cut(stream, cut)
  }

  expire(): void {
    const failure = new Failure('STREAM_INTERRUPTED', `Tollgate was shut down. Request ${this.#input.requestId}.`)
    // A client that goes in this very moment has nothing to be told.
    if (!this.#controller || this.#isOver()) return
    this.#end(this.#controller, { ending: 'ended by us', failure }).catch(() => this.leave())
  }

  #keepAlive(nowMs: number): void {
    this.#clocks.spoke(nowMs)
    this.#controller?.enqueue(this.#stream?.relay.keepAlive() ?? this.#input.surface.keepAlive)
  }

  /** Ends the provider's side; the pending read rejects and the pump tells the client. */
  #cut(stream: OpenStream, why: Cut): void {
    this.#cutFor ??= why
    stream.abort()
  }

  async #stall(): Promise<void> {
    await this.leave()
    // Closing the stream alone would not free the socket. Last, because settling gives it back its usual idle limit.
    this.#input.connection.drop()
  }

  /** Nothing more is written, and no clock runs. */
  #over(): void {
    this.#phase = 'ended'
    this.#input.ticker.unwatch(this)
  }

  #close(): void {
    this.#over()
    const stream = this.#stream
    // A connection whose answer has come to its own end can carry the next one.
    if (stream?.relay.finished && !stream.relay.isCut) readOut(stream, this.#input.ticker)
    else stream?.abort()
  }

  #isOver(): boolean {
    return this.#phase === 'ended'
  }
}
