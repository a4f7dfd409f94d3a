// What the record of a request says of its attempts. One stands there from its beginning, so that a request that ends in
// the middle of it still tells who was being asked.

import type { Clock } from '../kernel/clock.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { FaultClass } from '../routing/fault.ts'
import type { AttemptRecord, RequestRecord } from '../telemetry/request-record.ts'

/** In place of an outcome. */
const underWay = ''

export class AttemptNote {
  readonly #attempt: AttemptRecord
  readonly #startedMs: number

  /** `requestStartedMs`: by the same clock. */
  constructor(
    private readonly record: RequestRecord,
    private readonly clock: Clock,
    requestStartedMs: number,
    { provider, route }: Candidate,
  ) {
    this.#startedMs = clock.monotonicMs()
    const startMs = Math.round(this.#startedMs - requestStartedMs)
    this.#attempt = { provider: provider.id, upstreamModel: route.upstreamModel, outcome: underWay, ms: 0, startMs }
    record.attempts.push(this.#attempt)
  }

  /** After the end of its request it changes nothing. */
  end(outcome: string): void {
    if (this.#attempt.outcome === underWay)
      close(this.record, this.#attempt, outcome, this.clock.monotonicMs() - this.#startedMs)
  }

  /** A route that could not be asked was not tried. */
  remove(): void {
    const { attempts } = this.record
    attempts.splice(attempts.indexOf(this.#attempt), 1)
  }
}

function close(record: RequestRecord, attempt: AttemptRecord, outcome: string, tookMs: number): void {
  record.waitedMs += tookMs
  attempt.outcome = outcome
  attempt.ms = Math.round(tookMs)
}

/** The request is over, `nowMs` after it began, and nobody waits for them any more. */
export function endAttemptsUnderWay(record: RequestRecord, outcome: string, nowMs: number): void {
  for (const attempt of record.attempts) {
    if (attempt.outcome === underWay) close(record, attempt, outcome, nowMs - (attempt.startMs ?? 0))
  }
}

/** The one that answered, which is the last, broke off in the middle. */
export function noteInterrupted({ attempts }: RequestRecord, why: FaultClass): void {
  const last = attempts.at(-1)
  if (last?.outcome === 'ok') last.outcome = `interrupted: ${why}`
}

/** The last is the one that answered; of two that were asked at once it may have begun first. */
export function putLast({ attempts }: RequestRecord, { provider, route }: Candidate): void {
  const at = attempts.findLastIndex(
    ({ outcome, ...asked }) =>
      outcome === 'ok' && asked.provider === provider.id && asked.upstreamModel === route.upstreamModel,
  )
  if (at !== -1 && at < attempts.length - 1) attempts.push(...attempts.splice(at, 1))
}
