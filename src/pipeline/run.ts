// The life of a request, for every surface, streamed or not: admit, hold, attempt, answer, settle. Each step may end it with
// a failure in the caller's dialect; whatever happens, the request is recorded exactly once.

import type { Warning } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import type { Failpoint } from '../kernel/failpoint.ts'
import { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import type { Usage } from '../kernel/usage.ts'
import { Exhausted, exhaustedFailure } from '../routing/exhausted.ts'
import { type AttemptOptions, type Tries, type TryDependencies, tryCandidates } from '../routing/failover.ts'
import type { AttemptFault } from '../routing/faults.ts'
import type { Health } from '../routing/health.ts'
import type { CallBudget } from '../routing/hedge.ts'
import type { Candidate } from '../routing/plan.ts'
import type { StickyRoutes } from '../routing/sticky.ts'
import type { TraceContext } from '../telemetry/request-record.ts'
import type { GenerationKeys } from '../tenancy/idempotency.ts'
import { type AdmitDependencies, admit } from './admit.ts'
import { type Answered, attempt, isAnswered, type OpenStream, type WholeReply } from './attempt.ts'
import { clientTimeoutMs, earlyHeadersMs, pauseBetweenAttempts, type Ticker, untilDeadline } from './deadline.ts'
import { type AnswerHeaders, failureResponse, streamHeaders, warningsHeader } from './headers.ts'
import { claimKey, confirmKey, replayHeaders } from './idempotency.ts'
import { type Connection, GatewayRequest } from './request.ts'
import { estimateAllTokens, type ReserveDependencies, reserve } from './reserve.ts'
import {
  answerHeaders,
  type End,
  endFailed,
  endFree,
  endLeft,
  endRefused,
  goneResponse,
  type Settled,
  type SettlementDependencies,
  settle,
} from './settlement.ts'
import { type Opened, type PendingSettlements, streamAnswer } from './stream.ts'
import { createImplausibleWarnings, type MeasuredReply, nothingMeasured } from './usage.ts'

export interface RunDependencies
  extends AdmitDependencies,
    SettlementDependencies,
    ReserveDependencies,
    TryDependencies {
  readonly health: Health
  readonly retryBudget: CallBudget
  readonly sticky: StickyRoutes
  readonly ticker: Ticker
  readonly reach: Failpoint
  /** Closed before the ledger. */
  readonly pendingSettlements: PendingSettlements
  readonly idempotencyKeys: GenerationKeys
  /** Counts open streams. */
  readonly streams: { opened(): void; closed(): void }
  /** Starts the trace of a request by its `traceparent`; absent = traces are off. */
  readonly beginTrace?: ((traceparent: string | null) => TraceContext) | undefined
  /** Logs a defect of ours under the request's id; returns the error for the caller. */
  onDefect(error: unknown, id: RequestId): Failure
}

export type RunRequest = (http: Request, surface: Dialect, path: string, connection: Connection) => Promise<Response>

/** `readerOf`: how the surface's bodies are read, for paths that take another kind. */
export function createRunRequest(
  deps: RunDependencies,
  readerOf: (surface: Dialect) => Dialect['readEnvelope'] = (surface) => surface.readEnvelope,
): RunRequest {
  const { clock, ticker } = deps
  const warnImplausible = createImplausibleWarnings(deps)
  const estimateTokens = (request: GatewayRequest) => estimateAllTokens(request, deps.ratios)

  return async (http, surface, path, connection) => {
    const request = new GatewayRequest(clock, http, surface, path, connection)
    if (deps.beginTrace) request.record.trace = deps.beginTrace(http.headers.get('traceparent'))
    try {
      const notAdmitted = await admit(deps, request, readerOf(surface), estimateTokens)
      if (notAdmitted) return refuseUnsent(request, notAdmitted)

      const key = http.headers.get('idempotency-key')
      const replay = key === null ? undefined : await claimKey(deps.idempotencyKeys, request, key)
      if (replay) return replay instanceof Failure ? endRefused(deps, request, replay) : answerStored(replay, request)

      const recalling = request.recallReasoning()
      if (recalling) await recalling
      const reserving = reserve(deps, request)
      const notHeld = reserving instanceof Promise ? await reserving : reserving
      if (notHeld) return refuseUnsent(request, notHeld)
      const overtaken = request.claimedKey && (await confirmKey(deps.idempotencyKeys, request))
      if (overtaken) return refuseUnsent(request, overtaken)
      // Nothing has been sent yet, so a client that left during the hold costs nothing.
      if (request.clientGone.aborted) return endLeft(deps, request)

      if (!request.envelope.stream) {
        const opened = commitTo(request, await tryRoutes(request))
        if (isUnanswered(opened)) return await endUnanswered(opened, request)
        const reply = opened as WholeReply
        const headers = wholeHeaders(reply, request)
        request.storedAnswer = reply.body
        request.lastBytes = reply.body
        const settled = await settleAndLearn(request, complete, { ...nothingMeasured, usage: reply.usage })
        return answerWhole(reply, request, headers, settled)
      }
      const trying = tryRoutes(request).then((outcome) => commitTo(request, outcome))
      const opened = await untilDeadline(clock.monotonicMs() + earlyHeadersMs(http.headers), trying, ticker)
      return await answerStreamed(opened === 'not yet' ? trying : opened, request)
    } catch (error) {
      return endRefused(deps, request, deps.onDefect(error, request.record.id))
    }
  }

  function refuseUnsent(request: GatewayRequest, failure: Failure): Response {
    return request.clientGone.aborted ? endLeft(deps, request) : endRefused(deps, request, failure)
  }

  /** The stored answer of the first request under the same idempotency key; it costs nothing. */
  function answerStored(body: Buffer, request: GatewayRequest): Response {
    request.record.notes.push('replayed by its idempotency key')
    endFree(deps, request)
    return new Response(body, { headers: replayHeaders(request) })
  }

  /** Tries candidates in turn until one answers. */
  function tryRoutes(request: GatewayRequest): Promise<Answered | Exhausted> {
    return tryCandidates(deps, new RouteTries(deps, request))
  }

  /** The provider that answered, or why none did. */
  function commitTo(request: GatewayRequest, outcome: Answered | Exhausted): Opened {
    const { model, record } = request
    if (outcome instanceof Exhausted)
      return outcome.clientLeft ? 'client left' : exhaustedFailure(record.model ?? model.id, outcome)
    record.lane = outcome.lane
    if (outcome.kind === 'stream') request.releaseBody(outcome.relay)
    request.recordAnswered(outcome.candidate)
    const warnings = warningsOf(outcome, request)
    if (warnings.length > 0) record.warnings = warnings.map(({ code, field }) => `${code} ${field}`)
    return outcome
  }

  function wholeHeaders(reply: WholeReply, request: GatewayRequest): AnswerHeaders {
    const headers = answerHeaders(request, clock)
    const warnings = warningsOf(reply, request)
    if (warnings.length > 0) headers['x-tollgate-warnings'] = warningsHeader(warnings)
    return headers
  }

  function answerWhole(
    reply: WholeReply,
    { surface, record }: GatewayRequest,
    headers: AnswerHeaders,
    { unsettled }: Settled,
  ): Response {
    if (unsettled) return failureResponse(surface, unsettled, headers, record.id)
    headers['content-type'] = 'application/json'
    if (record.costUsd !== undefined) headers['x-tollgate-cost'] = record.costUsd
    if (reply.usage.source === 'estimated') headers['x-tollgate-usage'] = 'estimated'
    return new Response(reply.body, { headers })
  }

  async function answerStreamed(opening: Opened | Promise<Opened>, request: GatewayRequest): Promise<Response> {
    const headers = streamHeaders(answerHeaders(request, clock))
    if (!(opening instanceof Promise)) {
      if (isUnanswered(opening)) return await endUnanswered(opening, request)
      const warnings = warningsOf(opening, request)
      if (warnings.length > 0) headers['x-tollgate-warnings'] = warningsHeader(warnings)
    }
    deps.streams.opened()
    const body = streamAnswer(deps, {
      request,
      opening: opening as OpenStream | Promise<Opened>,
      async settle(end, relay) {
        deps.streams.closed()
        request.lastBytes = relay?.terminal
        try {
          return await settleAndLearn(request, end, relay)
        } catch (error) {
          // A stream has no caller that would handle this, and its client must see an end.
          return { unsettled: endFailed(deps, request, deps.onDefect(error, request.record.id)) }
        }
      },
    })
    return new Response(body, { headers })
  }

  /** Ends a request that no provider answered. */
  async function endUnanswered(opened: Unanswered, request: GatewayRequest): Promise<Response> {
    if (opened instanceof Failure) return endRefused(deps, request, opened)
    await settle(deps, request, { ending: 'client left before content' })
    return goneResponse()
  }

  /** Settles a request that a provider was called for, and learns from it. */
  function settleAndLearn(request: GatewayRequest, end: End, measured: MeasuredReply | undefined): Promise<Settled> {
    if (end.why !== undefined) request.recordInterrupted(end.why)
    if (measured) learnTokens(request, measured)
    learnRoute(request, end.why, measured?.usage)
    const settled = settle(deps, request, end, measured)
    if (request.candidate) warnImplausible(request.record, request.candidate)
    return settled
  }

  function learnRoute(request: GatewayRequest, why: End['why'], usage: Usage | undefined): void {
    const { candidate, answeredMs, envelope, conversationKey } = request
    if (!candidate || answeredMs === undefined) return
    // A sandbox that fails on purpose breaks off every time.
    if (why !== undefined && !candidate.provider.ignoresHealth) {
      deps.health.recordInterrupted(candidate.health, answeredMs, why)
    } else if (usage && envelope.stream) {
      deps.health.recordSpeed(candidate.health, usage.outputTokens, clock.monotonicMs() - answeredMs)
    }
    if (usage && conversationKey !== undefined) {
      deps.sticky.remember(conversationKey, candidate.health, usage.cacheWriteLongTokens > 0 ? 'long' : 'short')
    }
  }

  function learnTokens(request: GatewayRequest, measured: MeasuredReply): void {
    const counted = request.reportedInput(measured)
    // The counts of a workspace's own endpoint must not affect the holds of others.
    if (!counted || request.candidate?.isOwn) return
    deps.ratios.learn(request.model.id, request.promptBytes, counted, request.mayHaveMoreThanText)
  }
}

/** How the candidates of a request are tried. A class: an object with closures costs five times as much. */
class RouteTries implements Tries<Answered> {
  readonly plan: Tries<Answered>['plan']
  readonly streams: boolean
  readonly mayHedge: boolean

  constructor(
    private readonly deps: RunDependencies,
    private readonly request: GatewayRequest,
  ) {
    const { plan, envelope, model, models } = request
    this.plan = plan
    this.streams = envelope.stream
    // Providers may run tools themselves, so a request with tools is never sent twice.
    this.mayHedge = model.hedge && !models && envelope.stream && !envelope.offersTools && !mixesCredentials(request)
  }

  /** A stream gets keep-alives for as long as it takes; a whole answer must arrive while the client waits. */
  get clientTimeoutMs(): number | undefined {
    return this.streams ? undefined : clientTimeoutMs(this.request.http.headers)
  }

  attempt(candidate: Candidate, options: AttemptOptions): Promise<Answered | AttemptFault> {
    return attempt(this.deps, this.request, candidate, options)
  }

  async pause(milliseconds: number): Promise<AttemptFault | undefined> {
    const { clock, ticker } = this.deps
    const startedMs = clock.monotonicMs()
    const ended = await pauseBetweenAttempts(milliseconds, this.request, ticker)
    // Waiting for a provider to recover does not count as the gateway's own time.
    this.request.record.waitedMs += clock.monotonicMs() - startedMs
    return ended
  }

  discard(answer: Answered): void {
    if (answer.kind === 'stream') answer.abort()
  }

  isAnswer(outcome: Answered | AttemptFault): outcome is Answered {
    return isAnswered(outcome)
  }

  isWanted(): boolean {
    return !this.request.clientGone.aborted
  }
}

const complete: End = { ending: 'complete' }

type Unanswered = Exclude<Opened, Answered>

function isUnanswered(opened: Opened): opened is Unanswered {
  return opened instanceof Failure || opened === 'client left'
}

/** Whether the plan mixes own and shared routes, which differ in who pays: parallel attempts could be priced wrongly. */
function mixesCredentials({ plan }: GatewayRequest): boolean {
  return plan.ordered.some(({ isOwn }) => isOwn !== plan.ordered[0]?.isOwn)
}

function warningsOf(answered: Answered, { hold: held, warnings: own }: GatewayRequest): readonly Warning[] {
  const warnings = own.length === 0 ? answered.warnings : [...own, ...answered.warnings]
  if (held?.loweredCap === undefined) return warnings
  const code = `max_tokens_lowered_by_${held.initial.within ?? 'balance'}=${held.loweredCap}`
  return [{ code, field: '/max_tokens' }, ...warnings]
}
