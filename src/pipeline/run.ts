// The life of a request, for every surface, streamed or not. Each stage takes the value of the one before and may end the
// request with a failure in the caller's dialect. Whatever happens, it is recorded once.
//
//   stage            takes                        gives
//   admit            Exchange                     Admitted      whose it is, its Content, the routes that may serve it
//   claimKey         Admitted                     the stored answer, if the request has run before and its answer was kept;
//                                                 otherwise sets the key of the Exchange
//   checkPolicies    Admitted                     Admitted      with a warning for each policy that could not judge it
//   holdWithinLimits Admitted                     Held          kept reasoning is in the Content, and the cost is reserved by a
//                                                               Hold: perhaps after a wait for others, or of another model
//                                                               that a spend limit names (its own Admitted)
//   confirmKey       Held                         nothing, or a Refusal if another replica took the key over
//   captureRequest   Held                         nothing; the content is in the record, if its project exports it
//   attemptRoutes    Held                         Reply         of a provider, in the caller's dialect, whole or an open
//   or replyTo                                                  stream, with its Meter
//                                                 NoReply       why none replied
//   checkWhole, HeldAnswer                         nothing, or a refusal in place of the Reply, if policies judge answers
//   streamAnswer     Held, open or pending Reply  AnswerStream  the server runs it, and tells it when the client leaves
//   settleReply      Held, End, ReadReply         Settled       what was charged, or the error if nothing was or if that is
//                                                               not certain
//
// An answer states its cost: the Meter quotes it when a usage is relayed, in a whole reply within attemptRoutes, in a stream at
// its end. A quote above the hold makes the hold grow, and settleReply charges what was quoted.
//
// Exchange: the client's request and connection, the record, and what must be given back however the request ends.
// Refusal: why a request is not sent. End: how an answer ended. ReadReply: the reply as far as it was read.
// Only Content and Hold change after they are made. Content: reasoning is recalled or forgotten, and the body released. Hold:
// grows with a stream, and by a quote above it.

import type { Warning } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import type { ContentExportSettings } from '../kernel/content-export.ts'
import { assert, Failure } from '../kernel/failure.ts'
import type { CallBudget } from '../routing/failover.ts'
import type { Health } from '../routing/health.ts'
import type { OfferedModel } from '../routing/plan.ts'
import type { StickyRoutes } from '../routing/sticky.ts'
import type { TraceContext } from '../telemetry/request-record.ts'
import type { RequestKeys } from '../tenancy/idempotency.ts'
import { type AdmitDependencies, admit } from './admit.ts'
import { Answer, type AnswerHeaders, answerHeaders, failureAnswer, streamHeaders, warningsHeader } from './answer.ts'
import { holdWithinLimits } from './at-limits.ts'
import type { OpenStream, Reply } from './attempt.ts'
import { type AttemptRoutesDependencies, attemptRoutes, warningsOf } from './attempt-routes.ts'
import { captureRequest } from './capture-content.ts'
import { answerPolicies, type CheckedAnswer, checkWhole, HeldAnswer } from './check-answer.ts'
import { type CheckPoliciesDependencies, checkPolicies } from './check-policies.ts'
import { claimKey, confirmKey, replayHeaders } from './claim-key.ts'
import type { ClientRequest } from './client-request.ts'
import { earlyHeadersMs, untilDeadline } from './deadline.ts'
import { type Connection, Exchange } from './exchange.ts'
import { estimateAllTokens, type PlaceHoldDependencies } from './place-hold.ts'
import { createSettleReply, type SettleReplyDependencies } from './settle-reply.ts'
import {
  type End,
  endClientLeft,
  endFailed,
  endRefused,
  endUncharged,
  endWithError,
  type ReadReply,
  type Settled,
} from './settlement.ts'
import { type Admitted, type Held, Refusal } from './stages.ts'
import {
  type NoReply,
  type PendingSettlements,
  type StreamDependencies,
  type StreamSource,
  streamAnswer,
} from './stream.ts'
import { nothingMeasured } from './usage.ts'

/** What the stages need, and a little more. */
export interface RunDependencies
  extends AdmitDependencies,
    PlaceHoldDependencies,
    AttemptRoutesDependencies,
    StreamDependencies,
    SettleReplyDependencies {
  readonly settings: AdmitDependencies['settings'] &
    CheckPoliciesDependencies['settings'] &
    AttemptRoutesDependencies['settings'] & { readonly current: { readonly contentExport: ContentExportSettings } }
  readonly health: Health
  readonly retryBudget: CallBudget
  readonly sticky: StickyRoutes
  /** Closed before the ledger. */
  readonly pendingSettlements: PendingSettlements
  readonly idempotencyKeys: RequestKeys
  /** Who replies; absent = the planned routes, called in turn. */
  readonly replyTo?: ((held: Held) => Promise<Reply | NoReply>) | undefined
  /** Counts open streams. */
  readonly streams: { opened(): void; closed(): void }
  /** Starts the trace of a request by its `traceparent`; absent = traces are off. */
  readonly beginTrace?: ((traceparent: string | null) => TraceContext) | undefined
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
  const { clock, ticker, idempotencyKeys } = deps
  const settleReply = createSettleReply(deps)
  const estimateTokens = (asked: Pick<Admitted, 'envelope' | 'content'>, model: OfferedModel) =>
    estimateAllTokens(asked, model, deps.ratios)

  return async (http, surface, path, connection) => {
    const exchange = new Exchange(clock, http, surface, path, connection)
    if (deps.beginTrace) exchange.record.trace = deps.beginTrace(http.headers.get('traceparent'))
    try {
      const admitted: Admitted | Refusal = await admit(deps, exchange, readerOf(surface), estimateTokens)
      if (admitted instanceof Refusal) return endRefused(deps, exchange, admitted)

      const sentKey = http.headers.get('idempotency-key')
      const stored = sentKey === null ? undefined : await claimKey(idempotencyKeys, admitted, sentKey)
      if (stored instanceof Refusal) return endRefused(deps, exchange, stored)
      if (stored) return answerStored(exchange, stored)

      const hasPolicies = deps.settings.current.policies.length > 0
      const checked: Admitted | Refusal = hasPolicies ? await checkPolicies(deps, admitted) : admitted
      if (checked instanceof Refusal) return endRefused(deps, exchange, checked)
      const held: Held | Refusal = await holdWithinLimits(deps, checked)
      if (held instanceof Refusal) return endRefused(deps, exchange, held)
      const overtaken = exchange.key && (await confirmKey(idempotencyKeys, exchange.key, held))
      if (overtaken) return endRefused(deps, exchange, overtaken)
      // Nothing has been sent yet, so a client that left during the hold costs nothing.
      if (exchange.clientGone.aborted) return endClientLeft(deps, exchange)

      if (held.admitted.caller.exportsContent) capture(held)
      const replying: Promise<Reply | NoReply> = deps.replyTo ? deps.replyTo(held) : attemptRoutes(deps, held)
      return checked.envelope.stream ? await answerStreamed(held, replying) : await answerWhole(held, replying)
    } catch (error) {
      return endWithError(deps, exchange, deps.onDefect(error, exchange.record.id))
    }
  }

  /** A defect of ours in it must not end the request. */
  function capture(held: Held): void {
    try {
      captureRequest(deps.settings.current.contentExport, held)
    } catch (error) {
      deps.onDefect(error, held.exchange.record.id)
    }
  }

  async function answerWhole(held: Held, replying: Promise<Reply | NoReply>): Promise<Answer> {
    const reply = await replying
    if (isNoReply(reply)) return endWithoutReply(held, reply)
    assert(reply.kind === 'whole', 'a whole answer needs a whole reply')
    // A client that leaves from here on pays: its reply was read.
    const { exchange, limits } = held
    const { usage } = reply
    const policies = answerPolicies(deps, held)
    const { blocked, warnings } = policies.length > 0 ? await checkWhole(deps, held, policies, reply) : unjudged
    const body = blocked?.body ?? reply.body
    const { key } = exchange
    if (key && idempotencyKeys.keep && !(await idempotencyKeys.keep(key, body)))
      return endWithError(deps, exchange, answeredBefore())
    const headers = withWarnings(
      answerHeaders(exchange, limits),
      warnings.length === 0 ? warningsOf(held, reply) : [...warningsOf(held, reply), ...warnings],
    )
    // In place of a compaction, words would take the place of the conversation, so that is refused by an error.
    const refused = held.admitted.envelope.upstreamPath === undefined ? undefined : blocked?.failure
    // A complete reply is billed by its usage; nothing else needs to be measured.
    const bodyToKeep = refused ? undefined : body
    const read: ReadReply = { reply, measured: { ...nothingMeasured, usage }, bodyToKeep, lastBytes: body }
    const end: End = blocked ? { ...complete, failure: blocked.failure } : complete
    const { unsettled, chargeUsd }: Settled = await settleReply(held, end, read)
    const failure = unsettled ?? refused
    if (failure) return failureAnswer(exchange.surface, failure, headers, exchange.record.id)
    headers['content-type'] = 'application/json'
    if (chargeUsd !== undefined) headers['x-tollgate-cost'] = chargeUsd
    if (usage.source === 'estimated') headers['x-tollgate-usage'] = 'estimated'
    return new Answer(200, headers, body)
  }

  /**
   * If no provider has begun to reply in time, the client gets its headers early and keep-alives until one does. While
   * routes fail that is later, so that a failure has a status.
   */
  async function answerStreamed(held: Held, replying: Promise<Reply | NoReply>): Promise<Answer> {
    const { exchange, limits } = held
    const { headers: sent } = exchange.http
    const startedMs = clock.monotonicMs() - held.waitedMs
    let reply = await untilDeadline(startedMs + earlyHeadersMs(sent), replying, ticker)
    const laterMs = startedMs + earlyHeadersMs(sent, { areRoutesFailing: true })
    if (reply === 'not yet' && exchange.attempts.hasFailed && clock.monotonicMs() < laterMs)
      reply = await untilDeadline(laterMs, replying, ticker)
    if (reply === 'not yet') {
      const early = streamHeaders(answerHeaders(exchange, limits))
      return openAnswer(held, { kind: 'pending', reply: replying }, withWarnings(early, held.admitted.warnings))
    }
    if (isNoReply(reply)) return endWithoutReply(held, reply)
    assert(reply.kind === 'stream', 'a streamed answer needs a stream')
    const headers = withWarnings(streamHeaders(answerHeaders(exchange, limits)), warningsOf(held, reply))
    return openAnswer(held, { kind: 'open', stream: reply }, headers)
  }

  function openAnswer(held: Held, source: StreamSource, headers: AnswerHeaders): Answer {
    const { exchange } = held
    deps.streams.opened()
    const policies = answerPolicies(deps, held)
    const body = streamAnswer(deps, {
      held,
      source,
      heldAnswer: policies.length > 0 ? new HeldAnswer(deps, held, policies) : undefined,
      async settle(end, stream, lastBytes) {
        deps.streams.closed()
        try {
          return await settleReply(held, end, stream && readReplyOf(stream, lastBytes))
        } catch (error) {
          // A stream has no caller that would handle this, and its client must see an end.
          return { unsettled: endFailed(deps, exchange, deps.onDefect(error, exchange.record.id)) }
        }
      },
    })
    return new Answer(200, headers, body)
  }

  /** The stored answer of the first request under the same idempotency key; it costs nothing. */
  function answerStored(exchange: Exchange, body: Buffer): Answer {
    exchange.record.notes.push('replayed by its idempotency key')
    endUncharged(deps, exchange)
    return new Answer(200, replayHeaders(exchange), body)
  }

  /** Ends a request that no provider replied to. A stream whose headers were sent early ends in `Pump` instead. */
  function endWithoutReply(held: Held, why: NoReply): Answer {
    return why instanceof Failure
      ? endWithError(deps, held.exchange, why, held.limits)
      : endClientLeft(deps, held.exchange)
  }
}

const complete: End = { ending: 'complete' }
const unjudged: CheckedAnswer = { blocked: undefined, warnings: [] }

function answeredBefore(): Failure {
  return new Failure(
    'LIMIT_EXCEEDED',
    'Another request has been answered under this idempotency key. Nothing was charged.',
  )
}

function isNoReply(reply: Reply | NoReply): reply is NoReply {
  return reply instanceof Failure || reply === 'client left'
}

function readReplyOf(stream: OpenStream, lastBytes = stream.relay.terminal): ReadReply {
  const { relay: measured, capture } = stream
  return { reply: stream, measured, bodyToKeep: undefined, lastBytes, capture }
}

function withWarnings(headers: AnswerHeaders, warnings: readonly Warning[]): AnswerHeaders {
  if (warnings.length > 0) headers['x-tollgate-warnings'] = warningsHeader(warnings)
  return headers
}
