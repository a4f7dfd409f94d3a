// Tries candidates in the order of the plan until one answers, and tries a route again where its fault may pass. Nothing
// reaches the client before an attempt counts as answered, so all of this is invisible. Every outcome is reported to
// health. A healthy route is always tried; other routes and repeats are bounded per request, and by a budget of retries
// that the whole process shares.

import type { Clock } from '../kernel/clock.ts'
import type { Candidate } from './candidate.ts'
import { Exhausted, type FailedAttempt } from './exhausted.ts'
import { type AttemptFault, attemptFault, cannotCarry, faultTable, isTransient } from './fault.ts'
import { effects } from './health/effect.ts'
import type { Health } from './health/health.ts'
import type { HealthPlan } from './health/plan-with-health.ts'
import type { RetryBudget } from './health/retry-budget.ts'
import type { Standing } from './health/standing.ts'
import { type HedgeBudget, type HedgePair, hedgePair, race } from './hedge.ts'

/** On routes that are not known to work, immediate repeats included: a request is not a load test. */
const attemptsMax = 3
/** Where the next route is not known to fail: a model is only unavailable when nobody can serve it. */
const attemptsMaxHealthy = 6

/** All attempts of a request share one deadline; after it no new one is begun. */
const deadlineMs = { streamed: 900_000, whole: 600_000 }
/** Nor shortly before: in less time than this hardly any route answers, and the call would be paid for in vain. */
const timeLeastMs = 1_000

/** A provider may ask for a wait of this much; a client is told of longer ones and comes back by itself. */
const retryAfterMaxMs = 5_000
/** Added to a wait that the provider asked for, so that not all requests come back at the same moment. */
const retryAfterJitterMs = 250

/** How a request is tried again when no other route is left. */
export interface RetryRules {
  /** Attempts of one request in all, the first one included. */
  readonly attempts: number
  /** Upper bound of the first wait, which is drawn at random below it; doubles with each further wait. */
  readonly backoffMs: number
  /** No retry starts later than this after all routes have failed for the first time. */
  readonly totalMs: number
}

/** What a try needs to know of the routes, and to tell of them. */
export interface TryDependencies {
  readonly clock: Clock
  readonly health: Pick<Health, 'begin' | 'standing' | 'noteOk' | 'noteFault' | 'noteNothing'>
  readonly budget: Pick<RetryBudget, 'earn' | 'spend' | 'level'>
  readonly retries: RetryRules
  /** In place of real time, for hedges. */
  readonly wait?: (milliseconds: number) => Promise<void>
  /** Absent = no request is hedged. */
  readonly hedges?: HedgeBudget
  /** A number in [0, 1). */
  random(): number
}

/** One call to a route. */
export interface AttemptOptions {
  /** Over a connection of its own, because a pooled one may be dead. */
  readonly isFresh: boolean
  /** No other route would be tried after it: nothing is gained by giving up on it early. */
  readonly isLast: boolean
  /** Aborted when another route has answered. */
  readonly lost: AbortSignal | undefined
}

export interface Tries<Answer extends object> {
  readonly plan: HealthPlan<Candidate>
  /** Whether the first event of an answer is worth timing. */
  readonly streams: boolean
  /** Whether a second route may be asked while the first is slow; absent = not. */
  readonly mayHedge?: boolean
  /** How long the client waits for its answer, where it says so; no retry starts later. */
  readonly patienceMs?: number | undefined
  attempt(candidate: Candidate, options: AttemptOptions): Promise<Answer | AttemptFault>
  /**
   * Waits before a retry; answers with a fault where the request ended meanwhile. Absent = a request is not tried again
   * after a wait.
   */
  pause?(milliseconds: number): Promise<AttemptFault | undefined>
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
  const pair = tries.mayHedge && deps.hedges ? hedgePair(plan, deps.clock) : undefined
  const progress = new Progress(deps, tries)
  for (let next = progress.next(); next; next = progress.next()) {
    const { candidate, waitMs, isFresh, isRepeat, isLast } = next
    const ended = waitMs > 0 ? await tries.pause?.(waitMs) : undefined
    if (ended) {
      progress.fail(candidate, ended, isLast)
      continue
    }
    // The only route left is tried again although its own failures may just have ejected it.
    const begunMs = deps.health.begin(candidate.key, isRepeat ? 'panic' : plan.mode)
    if (typeof begunMs !== 'number') {
      progress.holdBack(candidate, begunMs)
      continue
    }
    const turn = { candidate, begunMs, isFresh, isLast }
    const isHedged = pair?.first === candidate && !isRepeat
    const all = isHedged ? await tryPair(deps, tries, turn, pair) : [await tryOne(deps, tries, turn)]
    for (const { candidate: tried, outcome } of all) {
      if (tries.isAnswer(outcome)) return outcome
      progress.fail(tried, outcome, isLast)
      if (progress.isFinal) break
    }
  }
  return progress.exhausted()
}

/** What to call next. */
interface Next {
  readonly candidate: Candidate
  readonly waitMs: number
  readonly isFresh: boolean
  /** It has been called for this request before. */
  readonly isRepeat: boolean
  readonly isLast: boolean
}

/** A candidate that was called and failed. */
interface Tried {
  readonly candidate: Candidate
  readonly fault: AttemptFault
  readonly calls: number
  /** It had all the time there is, since no other route was left. */
  readonly wasLast: boolean
}

/** What has been tried for one request, and what is tried next. */
class Progress<Answer extends object> {
  readonly #deps: TryDependencies
  readonly #tries: Tries<Answer>
  readonly #startedMs: number
  /** The latest time at which an attempt may begin. */
  readonly #lastBeginMs: number
  #failed: FailedAttempt[] = []
  /** By candidate, in the order of their first calls. */
  readonly #tried = new Map<Candidate, Tried>()
  #last: Tried | undefined
  #plannedNext = 0
  #attempts = 0
  /** Calls after which the request may still be running upstream. */
  #ambiguousCalls = 0
  /** A fault came that counts against no route, so that all of them look healthy however often it comes. */
  #isBlameless = false
  #retries = 0
  #lastRetryMs: number | undefined

  constructor(deps: TryDependencies, tries: Tries<Answer>) {
    this.#deps = deps
    this.#tries = tries
    this.#startedMs = deps.clock.monotonicMs()
    this.#lastBeginMs = this.#startedMs + (tries.streams ? deadlineMs.streamed : deadlineMs.whole) - timeLeastMs
  }

  next(): Next | undefined {
    // Each of these may be generating, and billing, for nobody: one more is tried and not a third.
    const isAmbiguousAgain = this.#last?.fault.isAmbiguous === true && this.#ambiguousCalls > 1
    const hadAllTime = this.#last?.fault.class === 'timed out' && this.#last.wasLast
    if (isAmbiguousAgain || hadAllTime) return undefined
    return this.#replay() ?? (this.isFinal ? undefined : (this.#nextRoute() ?? this.#retry()))
  }

  /** No other route can help: the request itself was refused, or its client has gone. */
  get isFinal(): boolean {
    return this.#last !== undefined && !faultTable[this.#last.fault.class].tryNext
  }

  fail(candidate: Candidate, fault: AttemptFault, wasLast: boolean): void {
    // A route that could not be called cost nothing and does not count.
    const calls = (this.#tried.get(candidate)?.calls ?? 0) + (fault.failure ? 0 : 1)
    if (!fault.failure) this.#attempts++
    if (fault.isAmbiguous) this.#ambiguousCalls++
    if (countsAgainstNobody(fault)) this.#isBlameless = true
    this.#last = { candidate, fault, calls, wasLast }
    this.#tried.set(candidate, this.#last)
    const { state, waitMs } = this.#deps.health.standing(candidate.key)
    const isLeftAlone = state === 'parked' || state === 'ejected'
    this.#note({ candidate, fault, calls, waitMs: isLeftAlone ? waitMs : undefined })
  }

  /** Health does not let it be called now. */
  holdBack(candidate: Candidate, standing: Standing): void {
    this.#tried.delete(candidate)
    this.#last = undefined
    this.#note(heldBack(candidate, standing))
  }

  exhausted(): Exhausted {
    if (this.isFinal) return new Exhausted(this.#failed)
    const excluded = this.#tries.plan.excluded.map(({ candidate, standing }) => heldBack(candidate, standing))
    return new Exhausted([...this.#failed, ...excluded])
  }

  /** One entry for each candidate, with its last fault. */
  #note(failed: FailedAttempt): void {
    this.#failed = this.#failed.filter(({ candidate }) => candidate !== failed.candidate)
    this.#failed.push(failed)
  }

  /** The same route at once: over a fresh connection where a pooled one was stale, or where the same call may now work. */
  #replay(): Next | undefined {
    if (!this.#last || this.#last.calls > 1 || this.#attempts >= attemptsMax || this.#isLate()) return undefined
    const { candidate, fault } = this.#last
    if (!fault.isStale && !fault.isRepeatable) return undefined
    const isFree = isInGoodHealth(this.#deps, candidate) && !countsAgainstNobody(fault)
    if (!isFree && !this.#spend(candidate)) return undefined
    return { candidate, waitMs: 0, isFresh: fault.isStale ?? false, isRepeat: true, isLast: !this.#hasAnother() }
  }

  /** The next candidate of the plan that may be called. */
  #nextRoute(): Next | undefined {
    const { ordered } = this.#tries.plan
    while (this.#plannedNext < ordered.length && !this.#hasEnough()) {
      const candidate = ordered[this.#plannedNext++]
      if (!candidate || this.#tried.has(candidate)) continue
      if (candidate.refusal) this.#note({ candidate, fault: cannotCarry(candidate.refusal) })
      else if (this.#attempts === 0 || this.#mayMoveOn(candidate))
        return { candidate, waitMs: 0, isFresh: false, isRepeat: false, isLast: !this.#hasAnother() }
      else {
        const standing = this.#deps.health.standing(candidate.key)
        // A healthy route that was spared is no reason for a failure.
        if (standing.state !== 'healthy') this.#note(heldBack(candidate, standing))
      }
    }
    return undefined
  }

  /** No other route is left: the one with the fewest calls whose fault may pass, after a wait. */
  #retry(): Next | undefined {
    const { retries, clock, random } = this.#deps
    if (!this.#tries.pause || this.#attempts >= retries.attempts) return undefined
    let best: Tried | undefined
    for (const each of this.#tried.values()) {
      if (mayPassSoon(each) && (!best || each.calls < best.calls)) best = each
    }
    if (!best) return undefined
    const { candidate, fault } = best
    const nowMs = clock.monotonicMs()
    const patienceEndMs = this.#startedMs + (this.#tries.patienceMs ?? Number.POSITIVE_INFINITY)
    this.#lastRetryMs ??= Math.min(nowMs + retries.totalMs, patienceEndMs, this.#lastBeginMs)
    const leftMs = this.#lastRetryMs - nowMs
    // Of a throttled route, others may have learned meanwhile that the wait is longer.
    const { state, waitMs: parkedMs = 0 } = this.#deps.health.standing(candidate.key)
    const askedMs = Math.max(fault.provider?.retryAfterMs ?? 0, state === 'parked' ? parkedMs : 0)
    if (leftMs < 0 || askedMs > leftMs || !this.#spend(candidate)) return undefined
    const backoffMs = Math.min(random() * retries.backoffMs * 2 ** this.#retries++, leftMs)
    const waitMs = askedMs > 0 ? askedMs + random() * retryAfterJitterMs : backoffMs
    const isFresh = fault.class === 'broken'
    // A rehearsed failure does not pass, and a demonstration should not have to wait for it.
    return { candidate, waitMs: candidate.provider.isRehearsal ? 0 : waitMs, isFresh, isRepeat: true, isLast: true }
  }

  /** Whether a further route of the plan could be tried after the call that is about to be made. */
  #hasAnother(): boolean {
    const { plan } = this.#tries
    const attempts = this.#attempts + 1
    for (let at = this.#plannedNext; at < plan.ordered.length; at++) {
      const candidate = plan.ordered[at]
      if (!candidate || candidate.refusal || this.#tried.has(candidate)) continue
      if (!this.#isBlameless && isInGoodHealth(this.#deps, candidate)) return attempts < attemptsMaxHealthy
      if (attempts < attemptsMax && (candidate.provider.isRehearsal || this.#deps.budget.level() >= 1)) return true
    }
    return false
  }

  #hasEnough(): boolean {
    return (
      this.#attempts > 0 && (this.#attempts >= (this.#isBlameless ? attemptsMax : attemptsMaxHealthy) || this.#isLate())
    )
  }

  /** Trying every request three times while everything fails would make it worse; one more call to a healthy route does not. */
  #mayMoveOn(candidate: Candidate): boolean {
    if (!this.#isBlameless && isInGoodHealth(this.#deps, candidate)) return true
    return this.#attempts < attemptsMax && this.#spend(candidate)
  }

  /** Rehearsals neither earn nor spend. */
  #spend({ provider }: Candidate): boolean {
    return provider.isRehearsal || this.#deps.budget.spend()
  }

  #isLate(): boolean {
    return this.#deps.clock.monotonicMs() > this.#lastBeginMs
  }
}

/** Whether the same route is worth a retry within seconds. */
function mayPassSoon({ fault, wasLast }: Tried): boolean {
  const askedMs = fault.provider?.retryAfterMs
  if ((askedMs ?? 0) > retryAfterMaxMs) return false
  // One that was given up early, for the sake of another route, may only have been slow.
  if (fault.class === 'timed out') return !wasLast
  return isTransient(fault) || (fault.class === 'throttled' && askedMs !== undefined)
}

/** A rehearsed failure is on purpose and says nothing about the route. */
function isInGoodHealth({ health }: TryDependencies, { key, provider }: Candidate): boolean {
  return provider.isRehearsal || health.standing(key).state === 'healthy'
}

/** Depends on the request, and a caller may cause it on purpose. */
function countsAgainstNobody({ class: faultClass, provider, failure }: AttemptFault): boolean {
  return !failure && (effects[faultClass] === 'none' || provider?.isChance === true)
}

/** A candidate whose turn it is. */
interface Turn {
  readonly candidate: Candidate
  readonly begunMs: number
  readonly isFresh: boolean
  readonly isLast: boolean
}

interface Called<Answer> {
  readonly candidate: Candidate
  readonly outcome: Answer | AttemptFault
}

/** One call, reported to health. */
async function tryOne<Answer extends object>(
  { clock, health }: TryDependencies,
  tries: Tries<Answer>,
  { candidate, begunMs, isFresh, isLast }: Turn,
  lost?: AbortSignal,
): Promise<Called<Answer>> {
  let outcome: Answer | AttemptFault
  try {
    outcome = await tries.attempt(candidate, { isFresh, isLast, lost })
  } catch (error) {
    // Ends the probe of a route in cooldown: a defect of ours must not keep the route out.
    health.noteNothing(candidate.key, begunMs)
    throw error
  }
  if (candidate.provider.isRehearsal) return { candidate, outcome }
  const tookMs = tries.streams ? clock.monotonicMs() - begunMs : undefined
  if (tries.isAnswer(outcome)) health.noteOk(candidate.key, begunMs, tookMs)
  else health.noteFault(candidate.key, begunMs, outcome, tookMs)
  return { candidate, outcome }
}

/** The first candidate and, when it is slower than usual, a second beside it. */
function tryPair<Answer extends object>(
  deps: TryDependencies,
  tries: Tries<Answer>,
  turn: Turn,
  { second, afterMs }: HedgePair,
): Promise<readonly Called<Answer>[]> {
  deps.hedges?.earn()
  return race<Called<Answer>>({
    afterMs,
    runFirst: (lost) => tryOne(deps, tries, turn, lost),
    runSecond(lost) {
      if (!tries.isWanted() || !deps.hedges?.spend() || !deps.budget.spend()) return undefined
      const begunMs = deps.health.begin(second.key, tries.plan.mode)
      if (typeof begunMs !== 'number') return undefined
      return tryOne(deps, tries, { ...turn, candidate: second, begunMs }, lost)
    },
    hasWon: ({ outcome }) => tries.isAnswer(outcome),
    discard: ({ outcome }) => (tries.isAnswer(outcome) ? tries.discard?.(outcome) : undefined),
    ...(deps.wait && { wait: deps.wait }),
  })
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
