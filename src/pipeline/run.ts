// The life of a request, for every surface, streamed or not: admit, hold, attempt, answer, settle. Each step may end it with
// a failure in the caller's dialect; whatever happens, the request is recorded exactly once.

import type { Warning } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import type { Failpoint } from '../kernel/failpoint.ts'
import { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import type { Usage } from '../kernel/usage.ts'
import { Exhausted, exhaustedFailure } from '../routing/exhausted.ts'
import {
  type AttemptOptions,
  type Attempts,
  attemptCandidates,
  type CallBudget,
  type FailoverDependencies,
} from '../routing/failover.ts'
import type { AttemptFault } from '../routing/faults.ts'
import type { Health } from '../routing/health.ts'
import type { Candidate } from '../routing/plan.ts'
import type { StickyRoutes } from '../routing/sticky.ts'
import type { TraceContext } from '../telemetry/request-record.ts'
import type { GenerationKeys } from '../tenancy/idempotency.ts'
import { type AdmitDependencies, admit } from './admit.ts'
import {
  type Answer,
  type AnswerHeaders,
  answerHeaders,
  failureResponse,
  PlainAnswer,
  streamHeaders,
  warningsHeader,
} from './answer.ts'
import { type Answered, attempt, isAnswered, type OpenStream, type WholeReply } from './attempt.ts'
import { claimKey, confirmKey, replayHeaders } from './claim-key.ts'
import { clientTimeoutMs, earlyHeadersMs, pauseBetweenAttempts, type Ticker, untilDeadline } from './deadline.ts'
import { estimateAllTokens, type PlaceHoldDependencies, placeHold } from './place-hold.ts'
import { type ClientRequest, type Connection, GatewayRequest } from './request.ts'
import {
  type End,
  endClientLeft,
  endFailed,
  endUncharged,
  endWithError,
  goneResponse,
  type Settled,
  type SettlementDependencies,
  settle,
} from './settlement.ts'
import { type AnswerOutcome, type PendingSettlements, streamAnswer } from './stream.ts'
import { createImplausibleWarnings, type MeasuredReply, nothingMeasured } from './usage.ts'

export interface RunDependencies
  extends AdmitDependencies,
    SettlementDependencies,
    PlaceHoldDependencies,
    FailoverDependencies {
  readonly settings: AdmitDependencies['settings'] & FailoverDependencies['settings']
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

export type RunRequest = (
  http: ClientRequest,
  surface: Dialect,
  path: string,
  connection: Connection,
) => Promise<Answer>

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
      if (replay) return replay instanceof Failure ? endWithError(deps, request, replay) : answerStored(replay, request)

      const recalling = request.recallReasoning()
      if (recalling) await recalling
      const holding = placeHold(deps, request)
      const notHeld = holding instanceof Promise ? await holding : holding
      if (notHeld) return refuseUnsent(request, notHeld)
      const overtaken = request.claimedKey && (await confirmKey(deps.idempotencyKeys, request))
      if (overtaken) return refuseUnsent(request, overtaken)
      // Nothing has been sent yet, so a client that left during the hold costs nothing.
      if (request.clientGone.aborted) return endClientLeft(deps, request)

      if (!request.envelope.stream) {
        const answer = acceptAnswer(request, await attemptRoutes(request))
        if (isUnanswered(answer)) return await endUnanswered(answer, request)
        const reply = answer as WholeReply
        const headers = wholeHeaders(reply, request)
        request.storedAnswer = reply.body
        request.lastBytes = reply.body
        const settled = await settleAndLearn(request, complete, { ...nothingMeasured, usage: reply.usage })
        return answerWhole(reply, request, headers, settled)
      }
      const trying = attemptRoutes(request).then((outcome) => acceptAnswer(request, outcome))
      const answer = await untilDeadline(clock.monotonicMs() + earlyHeadersMs(http.headers), trying, ticker)
      return await answerStreamed(answer === 'not yet' ? trying : answer, request)
    } catch (error) {
      return endWithError(deps, request, deps.onDefect(error, request.record.id))
    }
  }

  function refuseUnsent(request: GatewayRequest, failure: Failure): Response {
    return request.clientGone.aborted ? endClientLeft(deps, request) : endWithError(deps, request, failure)
  }

  /** The stored answer of the first request under the same idempotency key; it costs nothing. */
  function answerStored(body: Buffer, request: GatewayRequest): Response {
    request.record.notes.push('replayed by its idempotency key')
    endUncharged(deps, request)
    return new Response(body, { headers: replayHeaders(request) })
  }

  /** Calls the candidates in turn until one answers. */
  function attemptRoutes(request: GatewayRequest): Promise<Answered | Exhausted> {
    return attemptCandidates(deps, new RequestAttempts(deps, request))
  }

  /** The provider that answered, or why none did. */
  function acceptAnswer(request: GatewayRequest, outcome: Answered | Exhausted): AnswerOutcome {
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
  ): Answer {
    if (unsettled) return failureResponse(surface, unsettled, headers, record.id)
    headers['content-type'] = 'application/json'
    if (record.chargeUsd !== undefined) headers['x-tollgate-cost'] = record.chargeUsd
    if (reply.usage.source === 'estimated') headers['x-tollgate-usage'] = 'estimated'
    return new PlainAnswer(reply.body, headers)
  }

  async function answerStreamed(
    answer: AnswerOutcome | Promise<AnswerOutcome>,
    request: GatewayRequest,
  ): Promise<Answer> {
    const headers = streamHeaders(answerHeaders(request, clock))
    if (!(answer instanceof Promise)) {
      if (isUnanswered(answer)) return await endUnanswered(answer, request)
      const warnings = warningsOf(answer, request)
      if (warnings.length > 0) headers['x-tollgate-warnings'] = warningsHeader(warnings)
    }
    deps.streams.opened()
    const body = streamAnswer(deps, {
      request,
      pending: answer as OpenStream | Promise<AnswerOutcome>,
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
    return new PlainAnswer(body, headers)
  }

  /** Ends a request that no provider answered. A stream whose headers were sent early ends in `Pump` instead. */
  async function endUnanswered(answer: Unanswered, request: GatewayRequest): Promise<Response> {
    if (answer instanceof Failure) return endWithError(deps, request, answer)
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

/** The calls that may be made for a request. A class: an object with closures costs five times as much. */
class RequestAttempts implements Attempts<Answered> {
  readonly plan: Attempts<Answered>['plan']
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

type Unanswered = Exclude<AnswerOutcome, Answered>

function isUnanswered(answer: AnswerOutcome): answer is Unanswered {
  return answer instanceof Failure || answer === 'client left'
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
