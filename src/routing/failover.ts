// Tries candidates in the order of the plan until one answers. Nothing of an attempt has reached the client before it
// counts as answered, so moving on is invisible. Every outcome is told to health; at most three attempts, within a budget
// of retries that the whole process shares.

import type { Clock } from '../kernel/clock.ts'
import type { Candidate } from './candidate.ts'
import { Exhausted, type FailedAttempt } from './exhausted.ts'
import { type AttemptFault, attemptFault, faultTable } from './fault.ts'
import type { Health } from './health/health.ts'
import type { HealthPlan } from './health/plan-with-health.ts'
import type { RetryBudget } from './health/retry-budget.ts'
import type { Standing } from './health/standing.ts'

/** However many routes a model has: a request is not a load test. */
const attemptsMax = 3

/** What a try needs to know of the routes, and to tell of them. */
export interface TryDependencies {
  readonly clock: Clock
  readonly health: Pick<Health, 'begin' | 'noteOk' | 'noteFault'>
  readonly budget: Pick<RetryBudget, 'earn' | 'spend'>
  /** A number in [0, 1). */
  random(): number
}

export interface Tries<Answer extends object> {
  readonly plan: HealthPlan<Candidate>
  /** Whether the first event of an answer is worth timing. */
  readonly streams: boolean
  /** `isFresh`: over a connection of its own. */
  attempt(candidate: Candidate, isFresh: boolean): Promise<Answer | AttemptFault>
  isAnswer(outcome: Answer | AttemptFault): outcome is Answer
  /** Whether the client is still there to wait. */
  isWanted(): boolean
}

export async function tryCandidates<Answer extends object>(
  deps: TryDependencies,
  tries: Tries<Answer>,
): Promise<Answer | Exhausted> {
  const { plan } = tries
  deps.budget.earn()
  const failed: FailedAttempt[] = []
  let attempts = 0
  for (const candidate of plan.ordered) {
    // A gateway that tries everything three times while everything fails makes it worse.
    if (attempts > 0 && (attempts >= attemptsMax || !deps.budget.spend())) break
    const begunMs = deps.health.begin(candidate.key, plan.mode)
    if (typeof begunMs !== 'number') {
      failed.push(heldBack(candidate, begunMs))
      continue
    }
    const isLast = candidate === plan.ordered.at(-1)
    const outcome = await tryOne(deps, tries, candidate, begunMs, isLast)
    if (tries.isAnswer(outcome)) return outcome
    failed.push({ candidate, fault: outcome })
    // A route that could not be asked cost nothing and does not count.
    if (!outcome.failure) attempts++
    if (!faultTable[outcome.class].tryNext) return new Exhausted(failed)
  }
  for (const { candidate, standing } of plan.excluded) failed.push(heldBack(candidate, standing))
  return new Exhausted(failed)
}

/** One candidate, twice where that is no second load on it: over a stale socket, or after a wait it asked for. */
async function tryOne<Answer extends object>(
  { clock, health, random }: TryDependencies,
  { attempt, isAnswer, isWanted, streams }: Tries<Answer>,
  candidate: Candidate,
  begunMs: number,
  isLast: boolean,
): Promise<Answer | AttemptFault> {
  let startedMs = begunMs
  let outcome = await attempt(candidate, false)
  if (!isAnswer(outcome) && outcome.isStale && isWanted()) {
    startedMs = clock.monotonicMs()
    outcome = await attempt(candidate, true)
  } else if (!isAnswer(outcome) && isLast && isShortThrottle(outcome)) {
    await Bun.sleep((outcome.provider?.retryAfterMs ?? 0) + random() * jitterMs)
    if (!isWanted()) return outcome
    startedMs = clock.monotonicMs()
    outcome = await attempt(candidate, false)
  }
  if (candidate.provider.isRehearsal) return outcome
  const tookMs = clock.monotonicMs() - startedMs
  if (isAnswer(outcome)) health.noteOk(candidate.key, begunMs, streams ? tookMs : undefined)
  else health.noteFault(candidate.key, begunMs, outcome, streams ? tookMs : undefined)
  return outcome
}

/** Waiting this long is shorter than sending the client away. */
const waitMaxMs = 2_000
const jitterMs = 250

function isShortThrottle(fault: AttemptFault): boolean {
  const waitMs = fault.provider?.retryAfterMs
  return fault.class === 'throttled' && waitMs !== undefined && waitMs <= waitMaxMs
}

/** Counts in the final answer with the reason it was left out for. */
function heldBack(candidate: Candidate, { state, why = 'failing', waitMs }: Standing): FailedAttempt {
  const fault = attemptFault(why)
  const isParked = state === 'parked'
  if (!isParked || waitMs === undefined) return { candidate, fault, isParked }
  return { candidate, fault: { ...fault, provider: { ...silentProvider, retryAfterMs: waitMs } }, isParked }
}

const silentProvider = {
  status: undefined,
  type: undefined,
  code: undefined,
  message: '',
  param: undefined,
  details: undefined,
}
