// Calls the planned routes in turn until one replies (routing/failover), and takes its reply over into the record.

import type { Warning } from '../dialects/canonical/translation.ts'
import { Exhausted, exhaustedFailure } from '../routing/exhausted.ts'
import {
  type AttemptOptions,
  type Attempts,
  attemptCandidates,
  type FailoverDependencies,
} from '../routing/failover.ts'
import type { AttemptFault } from '../routing/faults.ts'
import type { Candidate } from '../routing/plan.ts'
import { type AttemptDependencies, attempt, isReply, type Reply } from './attempt.ts'
import { clientTimeoutMs, pauseBetweenAttempts } from './deadline.ts'
import type { Held } from './stages.ts'
import type { NoReply } from './stream.ts'

export type AttemptRoutesDependencies = AttemptDependencies & FailoverDependencies

export async function attemptRoutes(deps: AttemptRoutesDependencies, held: Held): Promise<Reply | NoReply> {
  const outcome = await attemptCandidates(deps, new RequestAttempts(deps, held))
  if (!(outcome instanceof Exhausted)) return acceptReply(held, outcome)
  return outcome.clientLeft ? 'client left' : exhaustedFailure(held.admitted.model.id, outcome)
}

function acceptReply(held: Held, reply: Reply): Reply {
  const { exchange, hold } = held
  const { record, attempts } = exchange
  const { candidate, meter, lane } = reply
  hold.serveBy(candidate)
  record.lane = lane
  record.model = candidate.model.id
  record.firstEventMs = reply.answeredMs - exchange.startedMs
  attempts.answered(candidate)
  if (reply.kind === 'stream') meter.releaseBody(reply.relay, lane)
  const warnings = warningsOf(held, reply)
  if (warnings.length > 0) record.warnings = warnings.map(({ code, field }) => `${code} ${field}`)
  return reply
}

/** Everything that the caller's request lost on its way to the provider. */
export function warningsOf({ admitted, hold }: Held, reply: Reply): readonly Warning[] {
  const own = admitted.warnings
  const warnings = own.length === 0 ? reply.warnings : [...own, ...reply.warnings]
  if (hold.loweredCap === undefined) return warnings
  const code = `max_tokens_lowered_by_${hold.initial.within ?? 'balance'}=${hold.loweredCap}`
  return [{ code, field: '/max_tokens' }, ...warnings]
}

/** The calls that may be made for a request. A class: an object with closures costs five times as much. */
class RequestAttempts implements Attempts<Reply> {
  readonly plan: Attempts<Reply>['plan']
  readonly streams: boolean
  readonly mayHedge: boolean

  constructor(
    private readonly deps: AttemptRoutesDependencies,
    private readonly held: Held,
  ) {
    const { plan, content, model, models } = held.admitted
    const { stream, offersTools } = content.envelope
    this.plan = plan
    this.streams = stream
    // Providers may run tools themselves, so a request with tools is never sent twice.
    this.mayHedge = model.hedge && models.length === 1 && stream && !offersTools && !mixesCredentials(plan)
  }

  /** A stream gets keep-alives for as long as it takes; a whole answer must arrive while the client waits. */
  get clientTimeoutMs(): number | undefined {
    return this.streams ? undefined : clientTimeoutMs(this.held.exchange.http.headers)
  }

  attempt(candidate: Candidate, options: AttemptOptions): Promise<Reply | AttemptFault> {
    return attempt(this.deps, this.held, candidate, options)
  }

  async pause(milliseconds: number): Promise<AttemptFault | undefined> {
    const { clock, ticker } = this.deps
    const startedMs = clock.monotonicMs()
    const ended = await pauseBetweenAttempts(milliseconds, this.held.exchange, ticker)
    // Waiting for a provider to recover does not count as the gateway's own time.
    this.held.exchange.record.waitedMs += clock.monotonicMs() - startedMs
    return ended
  }

  discard(reply: Reply): void {
    if (reply.kind === 'stream') reply.abort()
  }

  isAnswer(outcome: Reply | AttemptFault): outcome is Reply {
    return isReply(outcome)
  }

  isWanted(): boolean {
    return !this.held.exchange.clientGone.aborted
  }
}

/** Whether the plan mixes own and shared routes, which differ in who pays: parallel attempts could be priced wrongly. */
function mixesCredentials({ ordered }: Attempts<Reply>['plan']): boolean {
  return ordered.some(({ isOwn }) => isOwn !== ordered[0]?.isOwn)
}
