// Tries candidates in the order of the plan until one answers. Nothing of an attempt has reached the client before it
// counts as answered, so moving on is invisible. Every outcome is told to health. A route in good health is asked whatever
// happened before it; of the others at most three, within a budget of retries that the whole process shares.

import type { Clock } from '../kernel/clock.ts'
import type { Candidate } from './candidate.ts'
import { Exhausted, type FailedAttempt } from './exhausted.ts'
import { type AttemptFault, attemptFault, cannotCarry, faultTable } from './fault.ts'
import { effects } from './health/effect.ts'
import type { Health } from './health/health.ts'
import type { HealthPlan } from './health/plan-with-health.ts'
import type { RetryBudget } from './health/retry-budget.ts'
import type { Standing } from './health/standing.ts'
import { type HedgeBudget, type HedgePair, hedgePair, race } from './hedge.ts'

/** Replays included: a request is not a load test. */
const attemptsMax = 3
/** Where the next route is not known to fail: a model is only unavailable when nobody can serve it. */
const attemptsMaxHealthy = 6

/** All attempts of a request share one deadline; after it no new one is begun. */
const deadlineMs = { streamed: 900_000, whole: 600_000 }
/** Nor shortly before: in less time than this hardly any route answers, and the call would be paid for in vain. */
const timeLeastMs = 1_000

/** What a try needs to know of the routes, and to tell of them. */
export interface TryDependencies {
  readonly clock: Clock
  readonly health: Pick<Health, 'begin' | 'standing' | 'noteOk' | 'noteFault' | 'noteNothing'>
  readonly budget: Pick<RetryBudget, 'earn' | 'spend'>
  /** In place of real time. */
  readonly wait?: (milliseconds: number) => Promise<void>
  /** Absent = no request is hedged. */
  readonly hedges?: HedgeBudget
  /** A number in [0, 1). */
  random(): number
}

export interface Tries<Answer extends object> {
  readonly plan: HealthPlan<Candidate>
  /** Whether the first event of an answer is worth timing. */
  readonly streams: boolean
  /** Whether a second route may be asked while the first is slow; absent = not. */
  readonly mayHedge?: boolean
  /** `isFresh`: over a connection of its own. `lost`: another route has answered. */
  attempt(candidate: Candidate, isFresh: boolean, lost?: AbortSignal): Promise<Answer | AttemptFault>
  /** Ends an answer that nobody needs any more; only where requests are hedged. */
  discard?(answer: Answer): void
  isAnswer(outcome: Answer | AttemptFault): outcome is Answer
  /** Whether the client is still there to wait. */
  isWanted(): boolean
}

export async function tryCandidates<Answer extends object>(
  deps: TryDependencies,
  tries: Tries<Answer>,
): Promise<Answer | Exhausted> {
  const { plan } = tries
  // Failures on purpose are no traffic to be measured by.
  if (!plan.ordered[0]?.provider.isRehearsal) deps.budget.earn()
  const failed: FailedAttempt[] = []
  let attempts = 0
  let isBlameless = false
  let ambiguousCalls = 0
  const totalMs = tries.streams ? deadlineMs.streamed : deadlineMs.whole
  const lastBeginMs = deps.clock.monotonicMs() + totalMs - timeLeastMs
  const pair = tries.mayHedge && deps.hedges ? hedgePair(plan, deps.clock) : undefined
  const done = new Set<Candidate>()
  for (const candidate of plan.ordered) {
    if (done.has(candidate)) continue
    if (candidate.refusal) {
      failed.push({ candidate, fault: cannotCarry(candidate.refusal) })
      continue
    }
    if (attempts >= (isBlameless ? attemptsMax : attemptsMaxHealthy)) break
    if (attempts > 0 && deps.clock.monotonicMs() > lastBeginMs) break
    if (attempts > 0 && !mayMoveOn(deps, candidate, { attempts, isBlameless })) {
      const standing = deps.health.standing(candidate.key)
      // Of one that is well there is nothing to tell: it was spared.
      if (standing.state !== 'healthy') failed.push(heldBack(candidate, standing))
      continue
    }
    const begunMs = deps.health.begin(candidate.key, plan.mode)
    if (typeof begunMs !== 'number') {
      failed.push(heldBack(candidate, begunMs))
      continue
    }
    const mayRepeat = attempts + 1 < attemptsMax
    const turn = { candidate, begunMs, lastBeginMs, mayRepeat }
    const all = pair?.first === candidate ? await tryPair(deps, tries, turn, pair) : [await tryOne(deps, tries, turn)]
    let ambiguous = 0
    for (const { candidate: tried, outcome, calls } of all) {
      if (tries.isAnswer(outcome)) return outcome
      done.add(tried)
      failed.push({ candidate: tried, fault: outcome, waitMs: deps.health.standing(tried.key).waitMs })
      // A route that could not be asked cost nothing and does not count.
      if (!outcome.failure) attempts += calls
      if (outcome.isAmbiguous) ambiguous++
      if (countsAgainstNobody(outcome)) isBlameless = true
      if (!faultTable[outcome.class].tryNext) return new Exhausted(failed)
    }
    // Each of these may be generating, and billing, for nobody: one more is tried and not a third.
    ambiguousCalls += ambiguous
    if (ambiguous > 0 && ambiguousCalls > 1) break
  }
  for (const { candidate, standing } of plan.excluded) failed.push(heldBack(candidate, standing))
  return new Exhausted(failed)
}

interface SoFar {
  readonly attempts: number
  /** Something went wrong that counts against no route: however often it comes, all of them look well. */
  readonly isBlameless: boolean
}

/** A gateway that tries everything three times while everything fails makes it worse; one more for a route that works does not. */
function mayMoveOn(deps: TryDependencies, candidate: Candidate, { attempts, isBlameless }: SoFar): boolean {
  if (!isBlameless && isInGoodHealth(deps, candidate)) return true
  return attempts < attemptsMax && (candidate.provider.isRehearsal || deps.budget.spend())
}

/** One that rehearses fails on purpose, and is as well as ever. */
function isInGoodHealth({ health }: TryDependencies, { key, provider }: Candidate): boolean {
  return provider.isRehearsal || health.standing(key).state === 'healthy'
}

/** A matter of the request, which may be anybody's on purpose. */
function countsAgainstNobody({ class: faultClass, provider, failure }: AttemptFault): boolean {
  return !failure && (effects[faultClass] === 'none' || provider?.isChance === true)
}

/** A candidate whose turn it is. */
interface Turn {
  readonly candidate: Candidate
  readonly begunMs: number
  /** When an attempt of the request may begin at the latest. */
  readonly lastBeginMs: number
  /** Whether the request has more than one attempt left. */
  readonly mayRepeat: boolean
}

interface Tried<Answer> {
  readonly candidate: Candidate
  readonly outcome: Answer | AttemptFault
  readonly calls: 1 | 2
}

/** A defect in an attempt must not keep its route out as a probe that never ends. */
async function tryOne<Answer extends object>(
  deps: TryDependencies,
  tries: Tries<Answer>,
  turn: Turn,
  lost?: AbortSignal,
): Promise<Tried<Answer>> {
  try {
    return await tryAndNote(deps, tries, turn, lost)
  } catch (error) {
    deps.health.noteNothing(turn.candidate.key, turn.begunMs)
    throw error
  }
}

/** One candidate, twice where that may help: over a stale socket, after a wait it asked for, after a slip of its model. */
async function tryAndNote<Answer extends object>(
  deps: TryDependencies,
  tries: Tries<Answer>,
  turn: Turn,
  lost?: AbortSignal,
): Promise<Tried<Answer>> {
  const { candidate } = turn
  const { clock, health } = deps
  let { begunMs } = turn
  let startedMs = begunMs
  let calls: 1 | 2 = 1
  let outcome = await tries.attempt(candidate, false, lost)
  if (!tries.isAnswer(outcome) && turn.mayRepeat && (await isWorthRepeating(deps, tries, turn, outcome))) {
    startedMs = clock.monotonicMs()
    // What a throttle has to say was told before the wait.
    if (isShortThrottle(outcome)) begunMs = startedMs
    calls = 2
    outcome = await tries.attempt(candidate, outcome.isStale ?? false, lost)
  }
  if (candidate.provider.isRehearsal) return { candidate, outcome, calls }
  const tookMs = tries.streams ? clock.monotonicMs() - startedMs : undefined
  if (tries.isAnswer(outcome)) health.noteOk(candidate.key, begunMs, tookMs)
  else health.noteFault(candidate.key, begunMs, outcome, tookMs)
  return { candidate, outcome, calls }
}

/** The first candidate and, when it is slower than usual, a second beside it. */
function tryPair<Answer extends object>(
  deps: TryDependencies,
  tries: Tries<Answer>,
  turn: Turn,
  { second, afterMs }: HedgePair,
): Promise<readonly Tried<Answer>[]> {
  deps.hedges?.earn()
  return race<Tried<Answer>>({
    afterMs,
    runFirst: (lost) => tryOne(deps, tries, turn, lost),
    runSecond(lost) {
      if (!tries.isWanted() || !deps.hedges?.spend() || !deps.budget.spend()) return undefined
      const begunMs = deps.health.begin(second.key, tries.plan.mode)
      if (typeof begunMs !== 'number') return undefined
      return tryOne(deps, tries, { ...turn, candidate: second, begunMs, mayRepeat: false }, lost)
    },
    hasWon: ({ outcome }) => tries.isAnswer(outcome),
    discard: ({ outcome }) => (tries.isAnswer(outcome) ? tries.discard?.(outcome) : undefined),
    ...(deps.wait && { wait: deps.wait }),
  })
}

/** A replay is one more call to a route, and is paid for like any other. */
async function isWorthRepeating<Answer extends object>(
  deps: TryDependencies,
  { plan, isWanted }: Tries<Answer>,
  { candidate, begunMs, lastBeginMs }: Turn,
  fault: AttemptFault,
): Promise<boolean> {
  const { clock, health, budget, random, wait = Bun.sleep } = deps
  if (clock.monotonicMs() > lastBeginMs) return false
  if (fault.isStale || fault.isRepeatable) {
    const isFree = isInGoodHealth(deps, candidate) && !countsAgainstNobody(fault)
    return isWanted() && (isFree || budget.spend())
  }
  const isLast = candidate === plan.ordered.findLast(({ refusal }) => !refusal)
  if (!isLast || !isShortThrottle(fault)) return false
  // Now, and not after the wait: meanwhile others would run into the same throttle.
  if (!candidate.provider.isRehearsal) {
    health.noteFault(candidate.key, begunMs, fault)
    if (!budget.spend()) return false
  }
  await wait((fault.provider?.retryAfterMs ?? 0) + random() * jitterMs)
  return isWanted()
}

/** Waiting this long is shorter than sending the client away. */
const waitMaxMs = 2_000
const jitterMs = 250

function isShortThrottle(fault: AttemptFault): boolean {
  const waitMs = fault.provider?.retryAfterMs
  return fault.class === 'throttled' && waitMs !== undefined && waitMs <= waitMaxMs
}

/** Stands in the final answer with the reason it was left out for. */
function heldBack(candidate: Candidate, { state, why = 'failing', waitMs }: Standing): FailedAttempt {
  const fault = attemptFault(why)
  const heldBackFor = state === 'parked' ? 'parked' : 'ejected'
  if (waitMs === undefined) return { candidate, fault, heldBackFor }
  return { candidate, fault: { ...fault, provider: { ...silentProvider, retryAfterMs: waitMs } }, heldBackFor }
}

const silentProvider = {
  status: undefined,
  type: undefined,
  code: undefined,
  message: '',
  param: undefined,
  details: undefined,
}
