// How long an attempt may take. The clocks of a route begin with its own attempt; what is left of the request's deadline,
// which all of its attempts share, may be less, and is then nothing that the route can be blamed for.

import type { RouteTimeouts } from '../catalog/model.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { AttemptOptions } from '../routing/failover.ts'
import { type AttemptFault, attemptFault } from '../routing/fault.ts'
import type { Health } from '../routing/health/health.ts'
import type { AttemptRecord } from '../telemetry/request-record.ts'
import type { Call } from './call.ts'
import type { Lane } from './lane.ts'
import { usualTotalMs } from './total-ms.ts'

/**
 * For the first event of the last route. A local model may take minutes for a long prompt, and nobody else would answer
 * sooner. Together with a silence in mid-answer it fits into the 15 minutes of a stream.
 */
const firstEventMaxMs = 600_000
/**
 * For silence in mid-answer, of the connection and of the answer itself. Hosts that buffer tool arguments pause for
 * minutes, and after content no other route can take over.
 */
const silenceMaxMs = 300_000

export class AttemptTime {
  /** The route's own. */
  readonly timeouts: RouteTimeouts
  readonly #leftMs: number

  constructor(
    call: Call,
    { route, key }: Candidate,
    health: Pick<Health, 'firstEventLimitMs'>,
    { isLast }: Pick<AttemptOptions, 'isLast'>,
  ) {
    const { envelope, model, story } = call
    // A model that reasons may be silent for minutes before it says anything.
    const kind = model.tags.includes('reasoning') ? 'reasoning' : 'ordinary'
    const usualMs = usualTotalMs(envelope)
    const { connectMs, firstEventMs, idleMs, contentIdleMs, totalMs } = route.timeouts
    this.timeouts = {
      connectMs: connectMs ?? 3_000,
      firstEventMs: firstEventMs ?? (isLast ? firstEventMaxMs : health.firstEventLimitMs(key, kind)),
      idleMs: idleMs ?? silenceMaxMs,
      contentIdleMs: contentIdleMs ?? silenceMaxMs,
      totalMs: totalMs ?? usualMs,
    }
    // A route that is given more than is usual has that for the request as well.
    this.#leftMs = Math.max(usualMs, this.timeouts.totalMs) - spentMs(story.record.attempts)
  }

  /**
   * Until the first of an answer. A provider that was not asked for a stream has no first event to wait for: some hold
   * back even the headers until the end.
   */
  firstAnswerMs({ streamsUpstream }: Pick<Lane, 'streamsUpstream'>): number {
    const { firstEventMs } = this.timeouts
    return streamsUpstream ? Math.min(firstEventMs, this.#totalMs) : this.#totalMs
  }

  /** For an answer that is collected here and goes on past its first event. */
  get whileCollecting(): Pick<RouteTimeouts, 'idleMs' | 'totalMs'> {
    return { idleMs: this.timeouts.idleMs, totalMs: this.#totalMs }
  }

  /** The fault as the request's deadline explains it, where that ended the attempt. */
  explain(fault: AttemptFault, tookMs: number): AttemptFault {
    const isCutShort = this.#leftMs < this.timeouts.totalMs && tookMs >= this.#leftMs
    return fault.class === 'timed out' && isCutShort ? attemptFault('had too little time') : fault
  }

  get #totalMs(): number {
    return Math.min(this.timeouts.totalMs, this.#leftMs)
  }
}

/** From the beginning of the first to the end of the last: two that were asked side by side took no longer than one. */
function spentMs(attempts: readonly AttemptRecord[]): number {
  if (attempts.length === 0) return 0
  let firstMs = Number.POSITIVE_INFINITY
  let lastMs = 0
  for (const { startMs = 0, ms } of attempts) {
    firstMs = Math.min(firstMs, startMs)
    lastMs = Math.max(lastMs, startMs + ms)
  }
  return lastMs - firstMs
}
