// One upstream call: the request in the endpoint's dialect, sent, and read up to the point where the provider is
// committed. A streamed answer is committed by its first meaningful event, a whole one by its last byte; everything
// that goes wrong before is a fault that the client never sees.

import type { RouteTimeouts } from '../catalog/model.ts'
import type { StreamRelay } from '../dialects/byte-lane/relay.ts'
import { replyFault } from '../dialects/canonical/faults.ts'
import type { Warning } from '../dialects/canonical/translation.ts'
import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Failpoint } from '../kernel/failpoint.ts'
import { Failure } from '../kernel/failure.ts'
import type { Usage } from '../kernel/usage.ts'
import { callEndpoint, isBadCredential, isBroken, isUnreachable } from '../providers/call-endpoint.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { AttemptOptions } from '../routing/failover.ts'
import { type AttemptFault, attemptFault, cannotCarry, classifyFault, refusesReasoning } from '../routing/fault.ts'
import type { Health } from '../routing/health/health.ts'
import { ByteBuffer } from '../wire/byte-buffer.ts'
import { isEncoded, readResponseBody, readResponseStart } from '../wire/read-body.ts'
import { SseOverflow } from '../wire/sse-splitter.ts'
import { AttemptTime } from './attempt-time.ts'
import type { Call } from './call.ts'
import { type Lane, openLane } from './lane.ts'
import { Patience } from './patience.ts'
import { readOut } from './read-out.ts'
import type { Ticker } from './ticker.ts'
import { collectReply, isEventStream, isUnaskedStream } from './unasked-stream.ts'

/** A provider that has begun to answer; its first bytes for the client are ready. */
export interface OpenStream {
  readonly kind: 'stream'
  readonly candidate: Candidate
  readonly lane: Lane['name']
  readonly warnings: readonly Warning[]
  readonly reader: { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }> }
  readonly relay: StreamRelay
  readonly first: Uint8Array
  readonly timeouts: RouteTimeouts
  /** Ends the upstream call at once. */
  abort(): void
}

export interface WholeReply {
  readonly kind: 'whole'
  readonly candidate: Candidate
  readonly lane: Lane['name']
  readonly warnings: readonly Warning[]
  readonly body: Uint8Array
  readonly usage: Usage
}

export type Answered = OpenStream | WholeReply

export function isAnswered(outcome: Answered | AttemptFault): outcome is Answered {
  return 'kind' in outcome
}

const replyBytesMax = 64 * 1024 * 1024
const faultBytesMax = 64 * 1024
/** What a refusal says beside its status is a line of text; one that never ends must not hold up the next route. */
const refusalMs = 2_000
/** What may be kept for the client before the first meaningful event: as much as one record. */
const preludeBytesMax = 4 * 1024 * 1024

export interface AttemptDependencies {
  readonly clock: Clock
  readonly ticker: Ticker
  readonly reach: Failpoint
  readonly health: Pick<Health, 'firstEventLimitMs'>
}

/**
 * A route that responded this recently can be reached, so its calls are sent without watching the connection, which
 * would cost about 50 µs of CPU each (docs/decisions/0020).
 */
const respondedRecentlyMs = 1_000

/** A connection that breaks this soon and without a byte was most likely dead before. */
const staleMs = 1_000

/** An attempt that is under way. */
interface Running {
  readonly call: Call
  readonly candidate: Candidate
  readonly lane: Lane
  readonly time: AttemptTime
  readonly patience: Patience
  readonly ticker: Ticker
}

export function createAttempt({ clock, ticker, reach, health }: AttemptDependencies) {
  return async (
    call: Call,
    candidate: Candidate,
    { isFresh, isLast, lost }: AttemptOptions,
  ): Promise<Answered | AttemptFault> => {
    const isFirst = call.story.record.attempts.length <= 1
    if (!isFirst && call.clientGone.aborted) return attemptFault('client left')
    const lane = openLane(call, candidate)
    if (lane instanceof Failure) return cannotCarry(lane)
    const time = new AttemptTime(call, candidate, health, { isLast })
    const startedMs = clock.monotonicMs()
    const patience = new Patience(startedMs, time.firstAnswerMs(lane), call, lost, time.timeouts.connectMs)
    const running: Running = { call, candidate, lane, time, patience, ticker }
    let isAnswering = false
    ticker.watch(patience)
    try {
      const { provider, endpoint, key } = candidate
      const { path, headers, body } = lane
      const watch = startedMs - key.respondedMs > respondedRecentlyMs ? patience : undefined
      const response = await callEndpoint(provider, endpoint, {
        ...{ path, headers, body, signal: patience.signal, isFresh, isWrapped: true },
        ...(watch && { watch }),
      })
      isAnswering = true
      key.respondedMs = ticker.nowMs
      const paused = reach('after_send')
      if (paused) await paused
      if (!isAnswer(response)) {
        patience.hurry(clock.monotonicMs(), refusalMs)
        return await refusal(running, response)
      }
      if (isEncoded(response.headers)) return garbled('an encoded answer', patience)
      if (!lane.streamsUpstream) return await readReply(running, response)
      const opened = await openStream(running, response)
      const held = reach('after_first_byte')
      if (held) await held
      return opened
    } catch (error) {
      const isEnded = patience.signal.aborted
      patience.abort()
      if (isBadCredential(error)) return attemptFault('refused our credential')
      if (isUnreachable(error)) return patience.fault('unreachable')
      if (error instanceof SseOverflow) return patience.fault('garbled')
      // What neither the network nor an abort explains is a defect of ours, and must not pass for the provider's.
      if (!isEnded && !isBroken(error)) throw error
      const tookMs = clock.monotonicMs() - startedMs
      const fault = time.explain(patience.fault('broken'), tookMs)
      if (fault.class !== 'broken' || isAnswering) return fault
      if (tookMs > staleMs) return { ...fault, isAmbiguous: true }
      return isFresh ? fault : { ...fault, isStale: true }
    } finally {
      patience.end()
      ticker.unwatch(patience)
    }
  }
}

/** Some hosts answer with a 201, or with the 203 of a proxy that has changed something. */
function isAnswer({ status }: Response): boolean {
  return status >= 200 && status <= 203
}

/** By its status, its headers and whatever comes of its text: that alone decides nothing. */
async function refusal({ call, candidate, lane, patience }: Running, response: Response): Promise<AttemptFault> {
  const body = await readResponseStart(response, faultBytesMax)
  const aside = patience.endedAside()
  if (aside) return aside
  const text = isEncoded(response.headers) ? '' : new TextDecoder().decode(body)
  const said = candidate.dialect.readFault(response.status, response.headers, text)
  const fault = classifyFault(said, lane.body)
  // On the byte lane the history is the caller's, and its own clients know what to do about it.
  const isMendable = candidate.dialect !== call.surface && refusesReasoning(said) && call.forgetReasoning()
  return isMendable ? { ...fault, isRepeatable: true } : fault
}

async function readReply(running: Running, response: Response): Promise<WholeReply | AttemptFault> {
  const { call, candidate, lane } = running
  const body = await readWhole(running, response)
  if ('class' in body) return body
  const reply = isUnaskedStream(call, response, body)
    ? collectReply(lane.relayStream(), body)
    : call.surface.relayReply(body, call)
  if ('fault' in reply) return classifyFault(reply.fault, lane.body)
  const { name, warnings } = lane
  return { kind: 'whole', candidate, lane: name, warnings, body: reply.body, usage: reply.usage }
}

/** Watched like a stream from its first byte on. */
async function readWhole(
  { time, patience }: Running,
  response: Response,
): Promise<Uint8Array<ArrayBuffer> | AttemptFault> {
  const body = await readResponseBody(response, replyBytesMax, () => patience.goOn(time.whileCollecting))
  return body === 'too-large' ? garbled(`an answer of over ${replyBytesMax} bytes`, patience) : body
}

async function openStream(running: Running, response: Response): Promise<Answered | AttemptFault> {
  const { candidate, lane, time, patience, ticker } = running
  const reader = await streamReader(running, response)
  if ('class' in reader) return reader
  const relay = lane.relayStream()
  const first = new ByteBuffer()
  let readBytes = 0
  while (!relay.meaningful) {
    const { done, value } = await reader.read()
    // A reply that is collected here goes on past its first event; it is watched like one that is passed on.
    if (relay.outputBytes > 0) patience.goOn(time.whileCollecting)
    const bytes = done ? relay.end() : relay.push(value ?? new Uint8Array(0))
    first.append(bytes)
    readBytes += value?.length ?? 0
    if (relay.fault) {
      patience.abort()
      return classifyFault(relay.fault, lane.body)
    }
    // An end without anything before it is an answer in form only.
    if ((done || relay.finished) && !relay.meaningful) return garbled('an empty answer', patience)
    // Comments and blank lines cost a provider nothing, and would fill our memory for as long as we wait.
    const isTooMuch = first.length > preludeBytesMax || readBytes > replyBytesMax
    if (isTooMuch && !relay.meaningful) return garbled('an answer without a beginning or an end', patience)
  }
  const { name, warnings } = lane
  const { abort } = patience
  if (relay.isWhole) {
    if (relay.isCut) abort()
    else readOut({ reader, abort }, ticker)
    assert(relay.usage, 'a whole reply has been metered')
    return { kind: 'whole', candidate, lane: name, warnings, body: relay.terminal, usage: relay.usage }
  }
  const { timeouts } = time
  return { kind: 'stream', candidate, lane: name, warnings, reader, relay, first: first.take(), timeouts, abort }
}

/** The provider's stream; made of its whole reply where it was asked for a stream and sent that. */
async function streamReader(running: Running, response: Response): Promise<OpenStream['reader'] | AttemptFault> {
  const { candidate, lane, patience } = running
  const type = response.headers.get('content-type') ?? ''
  if (isEventStream(response) && response.body) return response.body.getReader()
  if (!type.includes('json')) return garbled('an answer that is no event stream', patience)
  const body = await readWhole(running, response)
  if ('class' in body) return body
  const stream = candidate.dialect.replyAsStream(body)
  if ('fault' in stream) return classifyFault(stream.fault, lane.body)
  const pieces = [stream]
  return {
    read() {
      const value = pieces.pop()
      return Promise.resolve({ done: value === undefined, value })
    },
  }
}

function garbled(what: string, patience: Patience): AttemptFault {
  patience.abort()
  return patience.fault('garbled', replyFault(what))
}
