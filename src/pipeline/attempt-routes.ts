// Calls the planned routes in turn until one replies (routing/failover), and takes its reply over into the record.

import type { Warning } from '../dialects/canonical/translation.ts'
import { Exhausted, exhaustedFailure, type OutageCode } from '../routing/exhausted.ts'
import { attemptGeneration, type FailoverDependencies } from '../routing/failover.ts'
import type { AttemptFault } from '../routing/faults.ts'
import { type AttemptDependencies, attempt, type Reply } from './attempt.ts'
import { clientTimeoutMs, pauseBetweenAttempts } from './deadline.ts'
import type { Exchange } from './exchange.ts'
import type { Admitted, Held } from './stages.ts'
import type { NoReply } from './stream.ts'

export interface AttemptRoutesDependencies extends AttemptDependencies, FailoverDependencies {
  readonly settings: AttemptDependencies['settings'] &
    FailoverDependencies['settings'] & {
      readonly current: { readonly retries: { readonly unavailableStatus: 404 | 503 } }
    }
  readonly health: AttemptDependencies['health'] & FailoverDependencies['health']
}

export async function attemptRoutes(deps: AttemptRoutesDependencies, held: Held): Promise<Reply | NoReply> {
  const { exchange, admitted } = held
  const { plan, envelope, model } = admitted
  const { stream } = envelope
  const outcome = await attemptGeneration<Reply>(deps, {
    plan,
    streams: stream,
    mayHedge: model.hedge && mayBeSentTwice(admitted),
    clientTimeoutMs: clientTimeoutMs(exchange.http.headers, held.waitedMs),
    attempt: (candidate, options) => attempt(deps, held, candidate, options),
    pause: (milliseconds) => pause(deps, exchange, milliseconds),
    discard: abortReply,
    clientGone: exchange.clientGone,
  })
  if (!(outcome instanceof Exhausted)) return acceptReply(held, outcome)
  if (outcome.clientLeft) return 'client left'
  return exhaustedFailure(model.id, outcome, outageCode(deps, held), () => held.admitted.content.inputTokens())
}

/**
 * A model none of whose routes answers now is a 404 by the specification, on its two endpoints. Clients of other APIs, where
 * a 404 always means an unknown model, give up on it; they retry a 503.
 */
function outageCode({ settings }: AttemptRoutesDependencies, { exchange, admitted }: Held): OutageCode {
  const isSpecified = exchange.surface.isSpecified === true && !admitted.envelope.embeddings
  return isSpecified && settings.current.retries.unavailableStatus === 404 ? 'NOT_FOUND' : 'UNAVAILABLE'
}

function abortReply(reply: Reply): void {
  if (reply.kind === 'stream') reply.abort()
}

/**
 * Providers may run tools themselves, so a request with tools is never sent twice. Nor is one whose routes differ in who
 * pays: parallel attempts could be priced wrongly.
 */
function mayBeSentTwice({ plan: { ordered }, envelope }: Admitted): boolean {
  const mixesCredentials = ordered.some(({ isOwn }) => isOwn !== ordered[0]?.isOwn)
  return envelope.stream && !envelope.offersTools && !mixesCredentials
}

async function pause(
  { clock, ticker }: AttemptDependencies,
  exchange: Exchange,
  milliseconds: number,
): Promise<AttemptFault | undefined> {
  const startedMs = clock.monotonicMs()
  const ended = await pauseBetweenAttempts(milliseconds, exchange, ticker)
  // Waiting for a provider to recover does not count as the gateway's own time.
  exchange.record.waitedMs += clock.monotonicMs() - startedMs
  return ended
}

export function acceptReply(held: Held, reply: Reply): Reply {
  const { exchange, hold } = held
  const { record, attempts } = exchange
  const { candidate, meter, lane } = reply
  hold.growFor(candidate.model)
  record.lane = lane
  record.model = candidate.model.id
  if (candidate.model !== held.admitted.model) record.requestedModel = held.admitted.model.id
  record.firstEventMs = reply.repliedMs - exchange.startedMs
  attempts.replied(candidate)
  if (reply.kind === 'stream') meter.releaseBody(reply.relay, lane)
  const warnings = warningsOf(held, reply)
  if (warnings.length > 0) record.warnings = warnings.map(({ code, field }) => `${code} ${field}`)
  return reply
}

/** Everything that the caller's request lost on its way to the provider, and whether another model answered. */
export function warningsOf({ admitted, hold }: Held, { warnings, candidate: { model } }: Reply): readonly Warning[] {
  const own = admitted.warnings
  const { loweredCap } = hold
  if (own.length === 0 && loweredCap === undefined && model === admitted.model) return warnings
  const code = `max_tokens_lowered_by_${hold.initial.within ?? 'balance'}=${loweredCap}`
  return [
    ...(model === admitted.model ? [] : [{ code: `fallback_model=${model.id}`, field: '/model' }]),
    ...(loweredCap === undefined ? [] : [{ code, field: '/max_tokens' }]),
    ...own,
    ...warnings,
  ]
}
