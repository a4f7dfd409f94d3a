// A streamed answer: the provider's bytes in, the client's bytes out. The provider is read only while the client's socket accepts more,
// so that a slow reader slows the provider and does not fill our memory. The charge is settled before the terminal bytes;
// a failure is an explicit error event, never a made-up ending.

import type { RouteTimeouts } from '../catalog/model.ts'
import { keepAliveComment } from '../dialects/byte-lane/relay.ts'
import type { ProviderFault } from '../dialects/canonical/faults.ts'
import type { Failpoint } from '../kernel/failpoint.ts'
import { assert, Failure, unreachable } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import { isBroken } from '../providers/call-endpoint.ts'
import { classifyFault, type FaultClass } from '../routing/faults.ts'
import { SseOverflow } from '../wire/sse.ts'
import type { AnswerSink, AnswerStream } from './answer.ts'
import { awaitFinalUsage, drain, type OpenStream, type PendingRead, type Reply } from './attempt.ts'
import type { BlockedAnswer, HeldAnswer } from './check-answer.ts'
import type { Ticker, Watched } from './deadline.ts'
import type { Growth, Hold } from './hold.ts'
import type { End, Settled } from './settlement.ts'
import type { Held } from './stages.ts'

/** Why no provider replied. */
export type NoReply = Failure | 'client left'

export interface StreamDependencies {
  readonly ticker: Ticker
  readonly reach: Failpoint
  readonly pendingSettlements: Pick<PendingSettlements, 'track'>
  /** Logs a defect of ours; returns the error for the caller. */
  onDefect(error: unknown, id: RequestId): Failure
}

/** An open stream, or one that is still being tried while the client gets keep-alives. */
export type StreamSource =
  | { readonly kind: 'open'; readonly stream: OpenStream }
  | { readonly kind: 'pending'; readonly reply: Promise<Reply | NoReply> }

interface StreamInput {
  readonly held: Held
  readonly source: StreamSource
  /** Set if policies judge the answer: nothing of it is sent before they have. */
  readonly heldAnswer?: HeldAnswer | undefined
  /** Called once, before the last bytes are sent. `stream`: undefined = no provider replied. `lastBytes`: in place of its own. */
  settle(end: End, stream: OpenStream | undefined, lastBytes?: Uint8Array): Promise<Settled>
}

/** It writes to the client's socket, without a queue in between (docs/decisions/performance.md). */
export function streamAnswer(deps: StreamDependencies, input: StreamInput): AnswerStream {
  return new Pump(deps, input)
}

const nothing = new Uint8Array(0)

class Pump implements AnswerStream, Watched {
  tickerIndex = -1
  readonly #deps: StreamDependencies
  readonly #input: StreamInput
  readonly #held: Held
  readonly #clocks: StreamClocks
  #stream: OpenStream | undefined
  #sink: AnswerSink | undefined
  #phase: 'waiting' | 'flowing' | 'ended' = 'waiting'
  /** Why we aborted the upstream call, if we did. */
  #abortedFor: Interruption | undefined
  #pendingRead: PendingRead | undefined
  /** Set by the last write if the client's socket took no more; resolves when it does. */
  #full: Promise<void> | undefined
  /** By a failpoint. */
  #paused: Promise<void> | undefined
  /** Undefined once the answer may be sent. */
  #heldAnswer: HeldAnswer | undefined
  /** The end of the answer by a shutdown. */
  #expiring: Promise<void> | undefined

  constructor(deps: StreamDependencies, input: StreamInput) {
    this.#deps = deps
    this.#input = input
    this.#held = input.held
    this.#heldAnswer = input.heldAnswer
    if (input.source.kind === 'open') this.#stream = input.source.stream
    deps.ticker.watch(this)
    this.#clocks = new StreamClocks(deps.ticker.nowMs)
  }

  /** The whole answer. The server calls it once. */
  async run(sink: AnswerSink): Promise<void> {
    this.#sink = sink
    try {
      await this.#open(sink)
      if (this.#stream) await this.#forwardAll(sink, this.#stream)
    } catch (error) {
      if (!this.#isOver()) await this.#endByError(sink, error)
    }
    // The server ends the answer when this returns.
    await this.#expiring
  }

  async #forwardAll(sink: AnswerSink, stream: OpenStream): Promise<void> {
    const { hold } = this.#held
    const { reader, relay } = stream
    const mustGrow = () => relay.outputBytes >= hold.growAtBytes
    // Nearly every event of every stream comes this way, so it makes no promise. Returns undefined to be given the next piece,
    // `nothing` to end the read because there is more to do below, or the piece itself once the answer is over:
    // `awaitFinalUsage` waits for the same read, and uses it.
    const take = (piece: Uint8Array): Uint8Array | undefined => {
      if (this.#isOver()) return piece
      this.#forward(sink, stream, relay.push(piece))
      const isMoreToDo =
        this.#full || this.#paused || relay.finished || relay.fault || mustGrow() || this.#heldAnswer?.isFull
      return isMoreToDo ? nothing : undefined
    }
    while (this.#phase === 'flowing') {
      this.#pendingRead = reader.read(take)
      const { done, value } = await this.#pendingRead
      if (this.#isOver()) return
      this.#pendingRead = undefined
      if (done) this.#forward(sink, stream, relay.end())
      // It had arrived before this read, which then does not call `take`.
      else if (value && value !== nothing) this.#forward(sink, stream, relay.push(value))
      if (this.#paused) await this.#paused
      if (this.#isOver()) return
      if (relay.finished || relay.fault) await this.#endReply(sink, stream, done)
      else if (done) await this.#interrupt(sink, interruptions.closed)
      else if (mustGrow()) await this.#grow(sink, stream, hold)
      if (this.#heldAnswer?.isFull && !this.#isOver()) await this.#sendUnjudged(sink, stream, this.#heldAnswer)
      if (this.#full) await this.#untilTaken(this.#full)
    }
  }

  /** Waits for the answer of a provider and forwards the bytes that were read before. */
  async #open(sink: AnswerSink): Promise<void> {
    const { source } = this.#input
    // Headers that are sent early need bytes to travel with.
    if (source.kind === 'pending') void sink.write(keepAliveComment)
    const reply = source.kind === 'open' ? source.stream : await source.reply
    if (this.#isOver()) {
      // The client left just as a provider began to reply; its attempt, which would have ended the call, is over.
      abortReply(reply)
      return
    }
    if (reply === 'client left') return this.clientLeft()
    if (reply instanceof Failure) return await this.#end(sink, { ending: 'not served', failure: reply })
    assert(reply.kind === 'stream', 'a streamed request is answered by a stream')
    this.#stream = reply
    this.#phase = 'flowing'
    this.#clocks.opened(this.#deps.ticker.nowMs)
    this.#forward(sink, reply, reply.first)
    if (reply.relay.finished || reply.relay.fault) await this.#endReply(sink, reply, false)
    if (this.#full) await this.#untilTaken(this.#full)
  }

  #forward(sink: AnswerSink, { relay, capture }: OpenStream, bytes: Uint8Array): void {
    const { reach, ticker } = this.#deps
    this.#clocks.received(ticker.nowMs, relay.outputBytes)
    capture?.push(bytes)
    if (bytes.length === 0) this.#full = undefined
    else if (this.#heldAnswer) this.#heldAnswer.push(bytes)
    else {
      this.#clocks.sent(ticker.nowMs)
      this.#full = sink.write(bytes)
    }
    this.#paused = reach('mid_stream')
  }

  /** The provider is not read until the client has read more. */
  async #untilTaken(full: Promise<void>): Promise<void> {
    const { ticker } = this.#deps
    this.#clocks.pause(ticker.nowMs)
    await full
    this.#clocks.resume(ticker.nowMs)
  }

  #endReply(sink: AnswerSink, { relay }: OpenStream, isClosed: boolean): Promise<void> {
    if (!relay.fault) return this.#end(sink, { ending: 'complete' })
    return this.#interrupt(sink, reportedInterruption(relay.fault, isClosed))
  }

  /** A rejected read is the provider's connection or our own abort; any other error is our defect. */
  #endByError(sink: AnswerSink, error: unknown): Promise<void> {
    if (this.#abortedFor !== undefined) return this.#interrupt(sink, this.#abortedFor)
    if (error instanceof SseOverflow) return this.#interrupt(sink, interruptions.endless)
    if (isBroken(error)) return this.#interrupt(sink, interruptions.broken)
    const failure = this.#deps.onDefect(error, this.#id)
    return this.#end(sink, { ending: 'ended by us', failure })
  }

  async #interrupt(sink: AnswerSink, { how, why }: Interruption): Promise<void> {
    const stream = this.#stream
    const provider = stream?.candidate.provider.id ?? 'unknown'
    const tokens = stream ? stream.meter.usageOfPart(stream.relay).outputTokens : 0
    const after = tokens > 0 ? ` after ${tokens} output token${tokens === 1 ? '' : 's'}` : ''
    const message = `Provider ${provider} ${how}${after}. The answer ends here. Request ${this.#id}.`
    await this.#end(sink, { ending: 'interrupted', failure: new Failure('STREAM_INTERRUPTED', message), why })
  }

  /** Extends the hold with the answer; if that fails, the answer ends with what was paid for. */
  async #grow(sink: AnswerSink, { relay }: OpenStream, hold: Pick<Hold, 'grow'>): Promise<void> {
    const growth = await hold.grow(relay.outputBytes)
    if (growth === 'enough' || this.#isOver()) return
    const ending = growth === 'no ledger' ? 'ended by us' : 'hold exhausted'
    await this.#end(sink, { ending, failure: growthFailure(growth, this.#id) })
  }

  /** The answer is too long to be judged. */
  async #sendUnjudged(sink: AnswerSink, stream: OpenStream, heldAnswer: HeldAnswer): Promise<void> {
    const blocked = heldAnswer.checkFull(stream)
    if (blocked) return await this.#endBlocked(sink, { ending: 'ended by us' }, blocked)
    this.#heldAnswer = undefined
    this.#forward(sink, stream, heldAnswer.take())
  }

  async #end(sink: AnswerSink, end: End): Promise<void> {
    this.#close()
    const { failure } = end
    const stream = this.#stream
    const relay = stream?.relay
    const heldAnswer = stream && this.#heldAnswer
    // An answer that the gateway itself ends, for example at a shutdown, is not waited for.
    const isJudged = heldAnswer && end.ending !== 'ended by us'
    const blocked = isJudged ? await heldAnswer.check(stream) : undefined
    if (blocked) return await this.#endBlocked(sink, end, blocked)
    const { unsettled, chargeUsd } = await this.#input.settle(end, isJudged ? stream : this.#exported(stream))
    const { surface, record } = this.#held.exchange
    const sent = unsettled ?? (failure && withCost(failure, chargeUsd))
    if (isJudged && !unsettled) void sink.write(heldAnswer.take())
    const names = { model: record.model ?? '', createdSeconds: Math.floor(record.startedAt / 1000) }
    if (sent) sink.end(surface.renderStreamFailure(sent, record.id, relay?.numbering, names))
    else sink.end(relay && surface.streamEnd ? Buffer.concat([relay.terminal, surface.streamEnd]) : relay?.terminal)
    const paused = this.#deps.reach('after_terminal')
    if (paused) await paused
  }

  /** Sends a refusal in place of the answer, which is charged as it ended. */
  async #endBlocked(sink: AnswerSink, { ending, why }: End, blocked: BlockedAnswer): Promise<void> {
    this.#close()
    const { body, lastBytes, failure } = blocked
    const { unsettled } = await this.#input.settle({ ending, why, failure }, this.#stream, lastBytes)
    const { surface, record } = this.#held.exchange
    sink.end(unsettled ? surface.renderStreamFailure(unsettled, record.id) : body)
  }

  /** The client has gone: it cancelled, disconnected, or read nothing for too long. */
  async clientLeft(): Promise<void> {
    if (this.#isOver()) return
    const { source } = this.#input
    // The server does not call `run` if the client left before.
    if (!this.#sink && source.kind === 'pending') void this.#abandon(source.reply)
    const stream = this.#stream
    if (!stream?.relay.awaitsUsage) return void (await this.#settleLeft())
    this.#stop()
    const settling = awaitFinalUsage(stream, this.#pendingRead).then(async () => void (await this.#settleLeft()))
    await this.#deps.pendingSettlements.track(settling, stream.abort)
  }

  async #abandon(pending: Promise<Reply | NoReply>): Promise<void> {
    try {
      abortReply(await pending)
    } catch (error) {
      this.#deps.onDefect(error, this.#id)
    }
  }

  #settleLeft(): Promise<Settled> {
    this.#close()
    const stream = this.#stream
    // A stream is opened by its first content.
    const left = stream ? 'client left after content' : 'client left before content'
    return this.#input.settle({ ending: stream?.relay.finished ? 'complete' : left }, this.#exported(stream))
  }

  /** An answer that policies would have judged, and have not, is not exported either. */
  #exported(stream: OpenStream | undefined): OpenStream | undefined {
    return this.#heldAnswer && stream ? { ...stream, capture: undefined } : stream
  }

  tick(nowMs: number): void {
    if (this.#isOver()) return
    this.#held.exchange.connection.keepOpen()
    const stream = this.#stream
    // The server then calls `clientLeft`.
    if (this.#clocks.hasStalled(nowMs)) return this.#held.exchange.connection.drop()
    if (this.#clocks.needsKeepAlive(nowMs)) this.#keepAlive(nowMs)
    const interruption = stream && this.#clocks.overdue(nowMs, stream.timeouts)
    if (!interruption) return
    // The pending read rejects, and the pump reports the interruption.
    this.#abortedFor ??= interruption
    stream.abort()
  }

  expire(): void {
    const message = `Tollgate was shut down. Request ${this.#id}.`
    // A client that leaves at this moment needs no error.
    if (!this.#sink || this.#isOver()) return
    const failure = new Failure('STREAM_INTERRUPTED', message)
    const ending = this.#end(this.#sink, { ending: 'ended by us', failure })
    this.#expiring = ending.catch(() => this.clientLeft())
  }

  #keepAlive(nowMs: number): void {
    this.#clocks.sent(nowMs)
    const relay = this.#heldAnswer ? undefined : this.#stream?.relay
    void this.#sink?.write(relay?.keepAlive() ?? keepAliveComment)
  }

  /** Stops writing and timing. */
  #stop(): void {
    this.#phase = 'ended'
    this.#deps.ticker.unwatch(this)
  }

  #close(): void {
    this.#stop()
    const stream = this.#stream
    // After a complete answer the connection can be reused.
    if (stream?.relay.finished && !stream.relay.isStoppedEarly) drain(stream, this.#deps.ticker)
    else stream?.abort()
  }

  #isOver(): boolean {
    return this.#phase === 'ended'
  }

  get #id(): RequestId {
    return this.#held.exchange.record.id
  }
}

function abortReply(reply: Reply | NoReply): void {
  if (typeof reply === 'object' && 'abort' in reply) reply.abort()
}

// ── Timing ──

/** Official clients and proxies give up on silence; a comment or ping this often keeps them waiting. */
const keepAliveMs = 15_000
/** A client that reads nothing for this long is treated as gone. */
const writeStallMs = 30_000

/** When each side of a stream was last active, and what is due. Knows times only; the pump acts on them. */
export class StreamClocks {
  readonly #startedMs: number
  /** The last bytes from the provider. */
  #receivedMs: number
  /** The last content; a provider's pings show that it is alive, not that it makes progress. */
  #contentMs: number
  #contentBytes = 0
  /** The last bytes to the client. */
  #sentMs: number
  /** Since when the client has not asked for more; undefined while it waits. */
  #pausedSinceMs: number | undefined

  constructor(nowMs: number) {
    this.#startedMs = this.#receivedMs = this.#contentMs = this.#sentMs = nowMs
  }

  /** A provider has begun to answer; the time before may have been spent on others. */
  opened(nowMs: number): void {
    this.#receivedMs = this.#contentMs = nowMs
  }

  /** `outputBytes`: total content so far. */
  received(nowMs: number, outputBytes: number): void {
    this.#receivedMs = nowMs
    if (outputBytes !== this.#contentBytes) this.#contentMs = nowMs
    this.#contentBytes = outputBytes
  }

  sent(nowMs: number): void {
    this.#sentMs = nowMs
  }

  /** The client's buffer is full, and the provider is not read. */
  pause(nowMs: number): void {
    this.#pausedSinceMs = nowMs
  }

  /** The client asks for more. Time in which the provider was not read does not count as its silence. */
  resume(nowMs: number): void {
    if (this.#pausedSinceMs === undefined) return
    const pausedMs = nowMs - this.#pausedSinceMs
    this.#receivedMs += pausedMs
    this.#contentMs += pausedMs
    this.#pausedSinceMs = undefined
  }

  /** Whether the client has stopped reading. */
  hasStalled(nowMs: number): boolean {
    return this.#pausedSinceMs !== undefined && nowMs - this.#pausedSinceMs > writeStallMs
  }

  needsKeepAlive(nowMs: number): boolean {
    return this.#pausedSinceMs === undefined && nowMs - this.#sentMs >= keepAliveMs
  }

  /** Whether the provider's time is up, and why. */
  overdue(nowMs: number, { totalMs, idleMs, contentIdleMs }: RouteTimeouts): Interruption | undefined {
    if (nowMs - this.#startedMs > totalMs) return interruptions.total
    if (this.#pausedSinceMs !== undefined) return undefined
    if (nowMs - this.#receivedMs > idleMs) return interruptions.idle
    return nowMs - this.#contentMs > contentIdleMs ? interruptions.contentIdle : undefined
  }
}

// ── Interruptions ──

/** Why an answer ends before its end. */
interface Interruption {
  /** The provider's behaviour, for the client's message. */
  readonly how: string
  /** The fault class for the provider's health. */
  readonly why: FaultClass
}

const interruptions = {
  closed: { how: 'closed the stream', why: 'broken' },
  broken: { how: 'broke off', why: 'broken' },
  endless: { how: 'sent an event without an end', why: 'garbled' },
  idle: { how: 'fell silent', why: 'timed out' },
  contentIdle: { how: 'sent only keep-alives', why: 'timed out' },
  // The request's deadline: a model that keeps writing, or a slow reader, says nothing about the provider.
  total: { how: 'took too long', why: 'had too little time' },
} as const satisfies Record<string, Interruption>

/** The provider sent an error event; `isClosed`: as the last thing. */
function reportedInterruption(fault: ProviderFault, isClosed: boolean): Interruption {
  return { how: isClosed ? interruptions.closed.how : 'reported an error', why: classifyFault(fault).class }
}

/** Adds the charge of an incomplete answer to its error. */
function withCost(failure: Failure, cost: string | undefined): Failure {
  if (cost === undefined) return failure
  return new Failure(failure.code, failure.message, { ...failure.facts, metadata: { cost } })
}

/** The error of an answer that ends because no more could be held for it. */
export function growthFailure(growth: Exclude<Growth, 'enough'>, requestId: RequestId): Failure {
  switch (growth) {
    case 'no ledger':
      return new Failure(
        'OVERLOADED',
        `Tollgate cannot reach its ledger, so it cannot pay for more of this answer. The answer ends here. Request ${requestId}.`,
        { retryAfterMs: 1000 },
      )
    case 'out of money':
      return new Failure(
        'INSUFFICIENT_BALANCE',
        `The wallet cannot pay for more of this answer, so it ends here. Top up: console → Billing, or \`tollgate wallet topup\`. Request ${requestId}.`,
        { shouldRetry: false },
      )
    case 'over limit':
      return new Failure(
        'LIMIT_EXCEEDED',
        `A spend limit leaves no room for more of this answer, so it ends here. Raise the limit: console → API keys or Projects & limits, or \`tollgate limits set\`. Request ${requestId}.`,
        { shouldRetry: false },
      )
    default:
      return unreachable(growth)
  }
}

// ── Pending settlements ──

/** Streams whose clients have left and whose usage is still to come. Shutdown waits for them before the ledger closes. */
export class PendingSettlements {
  readonly #open = new Map<Promise<void>, () => void>()

  /** `abort` ends the wait for the usage. */
  async track(settling: Promise<void>, abort: () => void): Promise<void> {
    this.#open.set(settling, abort)
    try {
      await settling
    } finally {
      this.#open.delete(settling)
    }
  }

  async close(): Promise<void> {
    for (const abort of this.#open.values()) abort()
    await Promise.allSettled(this.#open.keys())
  }
}
