// One upstream call: the request in the endpoint's dialect, sent, and read until there is a reply. A streamed reply
// counts from its first meaningful event, a whole one from its last byte. Anything that goes wrong before is a fault that
// the client never sees.

import type { RouteTimeouts } from '../catalog/model.ts'
import { replyFault } from '../dialects/canonical/faults.ts'
import type { Envelope, Warning } from '../dialects/canonical/translation.ts'
import type { StreamRelay } from '../dialects/reply/relay.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Failpoint } from '../kernel/failpoint.ts'
import { assert, Failure } from '../kernel/failure.ts'
import type { Usage } from '../kernel/usage.ts'
import { callEndpoint, isBadCredential, isBroken, isUnreachable } from '../providers/call-endpoint.ts'
import type { UpstreamResponse } from '../providers/provider.ts'
import { describeFault } from '../routing/exhausted.ts'
import type { AttemptOptions } from '../routing/failover.ts'
import {
  type AttemptFault,
  attemptFault,
  cannotCarry,
  classifyFault,
  isBilled,
  refusesReasoning,
} from '../routing/faults.ts'
import type { Health } from '../routing/health.ts'
import type { Candidate } from '../routing/plan.ts'
import { ByteBuffer, openBrace, space, withoutByteOrderMark } from '../wire/bytes.ts'
import { isEncoded, readResponseBody, readResponseStart, type TakePiece } from '../wire/read-body.ts'
import { SseOverflow } from '../wire/sse.ts'
import { StreamCapture } from './capture-content.ts'
import {
  AttemptDeadline,
  type AttemptTimes,
  attemptTimes,
  explainTimeout,
  firstReplyMs,
  type Ticker,
  type Watched,
} from './deadline.ts'
import { collectedReply, type Lane, type LaneDependencies, openLane } from './lanes.ts'
import { Meter } from './meter.ts'
import type { Held } from './stages.ts'

interface AnyReply {
  readonly candidate: Candidate
  readonly lane: Lane['name']
  readonly warnings: readonly Warning[]
  /** Knows what was sent to the candidate, and so what the reply may cost. */
  readonly meter: Meter
  /** When it counted as a reply: at the first meaningful event of a stream, at the end of a whole one. */
  readonly repliedMs: number
}

/** A provider that has begun to answer; its first bytes for the client are ready. */
export interface OpenStream extends AnyReply {
  readonly kind: 'stream'
  readonly reader: { read(take?: TakePiece): Promise<{ done: boolean; value?: Uint8Array | undefined }> }
  readonly relay: StreamRelay
  readonly first: Uint8Array
  readonly timeouts: RouteTimeouts
  /** Set if its content is exported. */
  readonly capture: StreamCapture | undefined
  /** Ends the upstream call at once. */
  abort(): void
}

export interface WholeReply extends AnyReply {
  readonly kind: 'whole'
  /** For the client. */
  readonly body: Uint8Array
  /** What is billed. */
  readonly usage: Usage
}

export type Reply = OpenStream | WholeReply

export function isReply(outcome: Reply | AttemptFault): outcome is Reply {
  return 'kind' in outcome
}

const replyBytesMax = 64 * 1024 * 1024
const faultBytesMax = 64 * 1024
/** Time to read an error body, usually a line of text; one that never ends must not delay the next route. */
const errorBodyMs = 2_000
/** Bytes buffered for the client before the first meaningful event: as much as one record. */
const preludeBytesMax = 4 * 1024 * 1024
/** A pooled connection that breaks this soon and without a byte was most likely already closed. */
const staleMs = 1_000

export interface AttemptDependencies extends LaneDependencies {
  readonly clock: Clock
  readonly ticker: Ticker
  readonly reach: Failpoint
  readonly health: Pick<Health, 'firstEventLimitMs'>
}

interface RunningAttempt {
  readonly held: Held
  readonly candidate: Candidate
  readonly meter: Meter
  readonly lane: Lane
  readonly times: AttemptTimes
  readonly deadline: AttemptDeadline
  readonly ticker: Ticker
  readonly clock: Clock
}

export async function attempt(
  deps: AttemptDependencies,
  held: Held,
  candidate: Candidate,
  { isFresh, isLast, superseded }: AttemptOptions,
): Promise<Reply | AttemptFault> {
  const { clock, ticker, reach, health } = deps
  const { exchange, hold } = held
  const { attempts } = exchange
  if (exchange.clientGone.aborted) return attemptFault('client left')
  const recorded = attempts.begin(candidate)
  const meter = new Meter(held, candidate)
  const lane = openLane(deps, held, candidate, meter)
  if (lane instanceof Failure) {
    // Nothing was sent.
    attempts.remove(recorded)
    return cannotCarry(lane)
  }
  exchange.record.lane = lane.name
  const isStreamed = held.admitted.envelope.stream
  const times = attemptTimes(candidate, health, { isStreamed, isLast, earlier: exchange.record.attempts })
  const { startedMs } = recorded
  const replyMs = firstReplyMs(times, lane.generationMs)
  const deadline = new AttemptDeadline(startedMs, replyMs, exchange, superseded, times.timeouts.connectMs)
  // A whole reply must be complete by `replyMs`, which its first byte would otherwise extend to `leftMs`: some hosts send white
  // space while they generate it.
  const isShortened = !lane.streamsUpstream && replyMs < times.leftMs
  const readTimes = isShortened ? { ...times, leftMs: replyMs } : times
  const running: RunningAttempt = { held, candidate, meter, lane, times: readTimes, deadline, ticker, clock }
  let gotHeaders = false
  let result: Reply | AttemptFault
  ticker.watch(deadline)
  hold.markSent()
  recorded.markSent(meter)
  try {
    const { provider, endpoint } = candidate
    const { path, headers, body } = lane
    const call = { path, headers, body, signal: deadline.signal, isFresh, isWrapped: true, watch: deadline }
    const response = await callEndpoint(provider, endpoint, call)
    gotHeaders = true
    const paused = reach('after_send')
    if (paused) await paused
    result = await readReply(running, response)
    const pausedAgain = lane.streamsUpstream ? reach('after_first_byte') : undefined
    if (pausedAgain) await pausedAgain
  } catch (error) {
    const tookMs = clock.monotonicMs() - startedMs
    result = explainTimeout(faultOf(error, deadline), tookMs, times)
    if (result.class === 'broken' && !gotHeaders) {
      if (tookMs > staleMs) result = { ...result, isAmbiguous: true }
      else if (!isFresh) result = { ...result, isStale: true }
    }
  } finally {
    deadline.end()
    ticker.unwatch(deadline)
  }
  const isLost = isReply(result) && superseded?.aborted === true
  const outcome = !isReply(result) ? describeFault(result) : isLost ? 'superseded' : 'ok'
  const isCosted = isReply(result) ? isLost : !deadline.isConnecting && isBilled(result)
  attempts.end(recorded, outcome, isCosted ? meter : undefined)
  return result
}

/** Throws what neither the network nor an abort explains: it is our defect, not the provider's. */
function faultOf(error: unknown, deadline: AttemptDeadline): AttemptFault {
  const isAborted = deadline.signal.aborted
  deadline.abort()
  if (isBadCredential(error)) return attemptFault('refused our credential')
  if (isUnreachable(error)) return deadline.fault('unreachable')
  if (error instanceof SseOverflow) return deadline.fault('garbled')
  if (!isAborted && !isBroken(error)) throw error
  return deadline.fault('broken')
}

async function readReply(running: RunningAttempt, response: UpstreamResponse): Promise<Reply | AttemptFault> {
  const { deadline, lane, clock } = running
  if (!isSuccess(response)) {
    deadline.shortenTo(errorBodyMs, clock.monotonicMs())
    return readRefusal(running, response)
  }
  if (isEncoded(response.headers)) return garbled('an encoded answer', deadline)
  if (lane.streamsUpstream) return readStream(running, response)
  const body = response.takeWhole?.() ?? (await readWhole(running, response))
  if ('class' in body) return body
  return wholeReplyOf(running, response, withoutByteOrderMark(body as Uint8Array<ArrayBuffer>))
}

/** Some hosts answer with 201, or with the 203 of a proxy that has changed something. */
function isSuccess({ status }: UpstreamResponse): boolean {
  return status >= 200 && status <= 203
}

/** Classifies an error response by its status, its headers and as much of its text as arrives in time. */
async function readRefusal(
  { held, candidate, lane, deadline }: RunningAttempt,
  response: UpstreamResponse,
): Promise<AttemptFault> {
  const { content, envelope } = held.admitted
  const body = await readResponseStart(response, faultBytesMax)
  const aborted = deadline.abortedByUs()
  if (aborted) return aborted
  const text = isEncoded(response.headers) ? '' : new TextDecoder().decode(body)
  const said = candidate.dialect.readFault(response.status, response.headers, text)
  // Most hosts of this API have no compaction: the model is asked for a summary instead.
  if (envelope.upstreamPath !== undefined && lane.name === 'bytes' && [404, 405, 501].includes(response.status)) {
    content.lacksPath = true
    return { ...attemptFault('lacks what was asked for', said), isRepeatable: true }
  }
  const fault = classifyFault(said, lane.body)
  // On the byte lane the history is the caller's, and its own client knows how to repair it.
  const speaksAnother = candidate.dialect.id !== held.exchange.surface.id
  if (!speaksAnother || !refusesReasoning(said)) return fault
  const hasForgotten = content.forgetReasoning()
  return hasForgotten ? { ...fault, isRepeatable: true } : fault
}

function wholeReplyOf(
  { held, candidate, meter, lane, clock }: RunningAttempt,
  response: UpstreamResponse,
  body: Uint8Array<ArrayBuffer>,
): WholeReply | AttemptFault {
  const reply = isUnrequestedStream(held.admitted.envelope, response, body)
    ? collectStream(lane.relayStream(), body)
    : lane.relayReply(body)
  if ('fault' in reply) return classifyFault(reply.fault, lane.body)
  const { name, warnings } = lane
  const repliedMs = clock.monotonicMs()
  return { kind: 'whole', candidate, lane: name, warnings, meter, repliedMs, body: reply.body, usage: reply.usage }
}

/** With the idle limit of a stream from its first byte on. */
async function readWhole(
  { times, deadline }: RunningAttempt,
  response: UpstreamResponse,
): Promise<Uint8Array<ArrayBuffer> | AttemptFault> {
  const body = await readResponseBody(response, replyBytesMax, () => deadline.gotBytes(times))
  return body === 'too-large' ? garbled(`an answer of over ${replyBytesMax} bytes`, deadline) : body
}

function isEventStream({ headers }: UpstreamResponse): boolean {
  return headers.get('content-type')?.startsWith('text/event-stream') ?? false
}

/**
 * Whether a provider streams although a whole reply was requested; on the byte lane the stream is then collected. Some
 * hosts label a whole reply as a stream. Of several choices only the first would be collected.
 */
function isUnrequestedStream(envelope: Envelope, response: UpstreamResponse, body: Uint8Array): boolean {
  return (
    !envelope.embeddings &&
    isEventStream(response) &&
    envelope.choices === 1 &&
    body.find((byte) => byte > space) !== openBrace
  )
}

function collectStream(relay: StreamRelay, stream: Uint8Array): ReturnType<Lane['relayReply']> {
  relay.push(stream)
  if (!relay.finished && relay.fault === undefined) relay.end()
  return collectedReply(relay)
}

async function readStream(running: RunningAttempt, response: UpstreamResponse): Promise<Reply | AttemptFault> {
  const { lane, times, deadline } = running
  if (!isEventStream(response) || !response.body) return readWholeAsStream(running, response)
  const reader = response.body.getReader()
  const relay = lane.relayStream()
  running.meter.readFrom(relay)
  const first = new ByteBuffer()
  let readBytes = 0
  while (!relay.meaningful) {
    const { done, value } = await reader.read()
    // A reply that is collected here continues past its first event, with the limits of a stream.
    if (relay.outputBytes > 0) deadline.gotBytes(times)
    const bytes = done ? relay.end() : relay.push(value ?? new Uint8Array(0))
    first.append(bytes)
    readBytes += value?.length ?? 0
    if (relay.fault) {
      deadline.abort()
      return classifyFault(relay.fault, lane.body)
    }
    if ((done || relay.finished) && !relay.meaningful) return garbled('an empty answer', deadline)
    // A provider could send comments and blank lines without end and fill our memory.
    const isTooMuch = first.length > preludeBytesMax || readBytes > replyBytesMax
    if (isTooMuch && !relay.meaningful) return garbled('an answer without a beginning or an end', deadline)
  }
  return replyOf(running, relay, reader, first.take())
}

/** A stream, or the whole reply if it was collected from one. */
function replyOf(
  { held, candidate, meter, lane, times, deadline, ticker, clock }: RunningAttempt,
  relay: StreamRelay,
  reader: OpenStream['reader'],
  first: Uint8Array,
): Reply {
  const { name, warnings } = lane
  const repliedMs = clock.monotonicMs()
  const facts = { candidate, lane: name, warnings, meter, repliedMs }
  const { signal } = deadline
  const abort = () => signal.abort()
  if (relay.isWhole) {
    if (relay.isStoppedEarly) abort()
    else drain({ reader, abort }, ticker)
    assert(relay.usage, 'a whole reply has been metered')
    return { kind: 'whole', ...facts, body: relay.terminal, usage: relay.usage }
  }
  const { timeouts } = times
  const capture = held.exchange.record.content && new StreamCapture(held, relay)
  return { kind: 'stream', ...facts, reader, relay, first, timeouts, capture, abort }
}

const ended: OpenStream['reader'] = { read: () => Promise.resolve({ done: true, value: undefined }) }

/** A whole reply in place of a stream. Of several choices only the first could be passed on. */
async function readWholeAsStream(running: RunningAttempt, response: UpstreamResponse): Promise<Reply | AttemptFault> {
  const { held, lane, deadline } = running
  const isJson = response.headers.get('content-type')?.includes('json')
  if (!isJson || held.admitted.envelope.choices > 1) return garbled('an answer that is no event stream', deadline)
  const body = await readWhole(running, response)
  if ('class' in body) return body
  const { relay, bytes } = lane.relayWhole(withoutByteOrderMark(body))
  return relay.fault ? classifyFault(relay.fault, lane.body) : replyOf(running, relay, ended, bytes)
}

function garbled(what: string, deadline: AttemptDeadline): AttemptFault {
  deadline.abort()
  return deadline.fault('garbled', replyFault(what))
}

// ── Draining ──

/** The end of a body follows the end of the answer by a turn of the provider's event loop, or a proxy or two. */
const drainMs = 500
const drainBytesMax = 64 * 1024

/** Reads the rest of a complete answer in the background, so that its connection can be reused; aborts if it does not end. */
export function drain(stream: Pick<OpenStream, 'reader' | 'abort'>, ticker: Ticker): void {
  void new Drain(stream, ticker).run()
}

class Drain implements Watched {
  tickerIndex = -1
  #untilMs = Number.POSITIVE_INFINITY

  constructor(
    private readonly stream: Pick<OpenStream, 'reader' | 'abort'>,
    private readonly ticker: Ticker,
  ) {}

  async run(): Promise<void> {
    const { stream, ticker } = this
    ticker.watch(this)
    this.#untilMs = ticker.nowMs + drainMs
    try {
      for (let bytes = 0; bytes <= drainBytesMax; ) {
        const { done, value } = await stream.reader.read()
        if (done) return
        bytes += value?.length ?? 0
      }
      stream.abort()
    } catch {
      // The connection broke and cannot be reused.
    } finally {
      ticker.unwatch(this)
    }
  }

  tick(nowMs: number): void {
    if (nowMs >= this.#untilMs) this.stream.abort()
  }

  expire(): void {
    this.stream.abort()
  }
}

/** How long to wait for the final usage; providers send it right after the content. */
const finalUsageMs = 2_000

export type PendingRead = ReturnType<OpenStream['reader']['read']>

/**
 * Keeps reading for a moment after the client left at the end of its answer, because the usage is still to come.
 * `pending`: a read that is in progress. Resolves at the end of the stream or when the time is up.
 */
export async function awaitFinalUsage(
  { reader, relay, abort }: OpenStream,
  pending: PendingRead | undefined,
): Promise<void> {
  const timer = setTimeout(abort, finalUsageMs)
  try {
    let next = pending
    while (!relay.finished && !relay.fault) {
      const { done, value } = await (next ?? reader.read())
      next = undefined
      if (done) return void relay.end()
      if (value) relay.push(value)
    }
  } catch {
    // Interrupted by the provider or by the timeout: bill what was counted until then.
  } finally {
    clearTimeout(timer)
  }
}
