// Tries candidates in the order of the plan until one answers, and retries a route if its fault may pass. Nothing reaches
// the client before an attempt counts as answered, so all of this is invisible. Every outcome is recorded in health. A
// healthy route is always tried; other routes and repeats are limited per request and by a retry budget of the process.

import type { Clock } from '../kernel/clock.ts'
import { Exhausted, type FailedAttempt } from './exhausted.ts'
import { type AttemptFault, attemptFault, cannotCarry, faultTable, isTransient } from './faults.ts'
import { effects, type Health } from './health.ts'
import type { Candidate } from './plan.ts'
import type { HealthPlan } from './rank.ts'
import type { RouteState } from './route.ts'

/** On routes that are not known to work, immediate repeats included. */
const attemptsMax = 3
/** While the next route is healthy: a model is unavailable only if no route can serve it. */
const attemptsMaxHealthy = 6

/** All attempts of a request share one deadline; none begins after it. */
const deadlineMs = { streamed: 900_000, whole: 600_000 }
/** Nor shortly before: hardly any route answers in less time, and the call would be paid for in vain. */
const minTimeLeftMs = 1_000

/** A longer wait is passed on to the client, which retries by itself. */
const retryAfterMaxMs = 5_000
/** Added to a provider's wait, so that requests do not all return at the same moment. */
const retryAfterJitterMs = 250

/** How a request is retried when no other route is left. */
export interface RetryRules {
  /** Attempts of one request in total, including the first. */
  readonly attempts: number
  /** Upper bound of the first wait, which is random below it; doubles with each further wait. */
  readonly backoffMs: number
  /** No retry starts later than this after all routes have failed once. */
  readonly totalMs: number
}

export interface TryDependencies {
  readonly clock: Clock
  readonly health: Pick<Health, 'begin' | 'state' | 'recordOk' | 'recordFault' | 'recordNothing'>
  readonly budget: Pick<RetryBudget, 'earn' | 'spend' | 'level'>
  readonly retries: RetryRules
  /** Replaces real time in tests of hedges. */
  readonly wait?: (milliseconds: number) => Promise<void>
  /** Absent = hedging is off. */
  readonly hedges?: HedgeBudget
  /** A number in [0, 1). */
  random(): number
}

/** One call to a route. */
export interface AttemptOptions {
  /** Use a new connection, because a pooled one may be closed. */
  readonly isFresh: boolean
  /** No other route would be tried after it, so there is no point in giving up early. */
  readonly isLast: boolean
  /** Aborted when another route has answered. */
  readonly lost: AbortSignal | undefined
}

export interface Tries<Answer extends object> {
  readonly plan: HealthPlan<Candidate>
  /** Whether to measure the time to the first event. */
  readonly streams: boolean
  /** Whether a second route may be called while the first is slow; absent = no. */
  readonly mayHedge?: boolean
  /** How long the client waits, if it says so; no retry starts later. */
  readonly patienceMs?: number | undefined
  attempt(candidate: Candidate, options: AttemptOptions): Promise<Answer | AttemptFault>
  /**
   * Waits before a retry; returns a fault if the request ended meanwhile. Absent = requests are not retried after a
   * wait.
   */
  pause?(milliseconds: number): Promise<AttemptFault | undefined>
  /** Ends an answer that is no longer needed; only for hedged requests. */
  discard?(answer: Answer): void
  isAnswer(outcome: Answer | AttemptFault): outcome is Answer
  /** Whether the client is still connected. */
  isWanted(): boolean
}

export async function tryCandidates<Answer extends object>(
  deps: TryDependencies,
  tries: Tries<Answer>,
): Promise<Answer | Exhausted> {
  const { plan } = tries
  // Requests to a sandbox that fails on purpose do not count as traffic.
  if (!plan.ordered[0]?.provider.ignoresHealth) deps.budget.earn()
  const pair = tries.mayHedge && deps.hedges ? hedgePair(plan, deps.clock) : undefined
  const progress = new Progress(deps, tries)
  for (let next = progress.next(); next; next = progress.next()) {
    const { candidate, waitMs, isFresh, isRepeat, isLast } = next
    const ended = waitMs > 0 ? await tries.pause?.(waitMs) : undefined
    if (ended) {
      progress.fail(candidate, ended, isLast)
      continue
    }
    // The only route left is retried although its own failures may just have ejected it.
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

interface Next {
  readonly candidate: Candidate
  readonly waitMs: number
  readonly isFresh: boolean
  /** It was called for this request before. */
  readonly isRepeat: boolean
  readonly isLast: boolean
}

/** A candidate that was called and failed. */
interface Tried {
  readonly candidate: Candidate
  readonly fault: AttemptFault
  readonly calls: number
  /** It had the full time, because no other route was left. */
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
  /** Calls whose request may still be running upstream. */
  #ambiguousCalls = 0
  /** A fault counted against no route, so all of them look healthy however often it occurs. */
  #hadNeutralFault = false
  #retries = 0
  #lastRetryMs: number | undefined

  constructor(deps: TryDependencies, tries: Tries<Answer>) {
    this.#deps = deps
    this.#tries = tries
    this.#startedMs = deps.clock.monotonicMs()
    this.#lastBeginMs = this.#startedMs + (tries.streams ? deadlineMs.streamed : deadlineMs.whole) - minTimeLeftMs
  }

  next(): Next | undefined {
    // Each of these may be generating and billing in vain: one more is tried, but not a third.
    const isAmbiguousAgain = this.#last?.fault.isAmbiguous === true && this.#ambiguousCalls > 1
    const hadAllTime = this.#last?.fault.class === 'timed out' && this.#last.wasLast
    if (isAmbiguousAgain || hadAllTime) return undefined
    return this.#replay() ?? (this.isFinal ? undefined : (this.#nextRoute() ?? this.#retry()))
  }

  /** No other route can help: the request itself was refused, or its client has left. */
  get isFinal(): boolean {
    return this.#last !== undefined && !faultTable[this.#last.fault.class].tryNext
  }

  fail(candidate: Candidate, fault: AttemptFault, wasLast: boolean): void {
    // A route that could not be called does not count.
    const calls = (this.#tried.get(candidate)?.calls ?? 0) + (fault.failure ? 0 : 1)
    if (!fault.failure) this.#attempts++
    if (fault.isAmbiguous) this.#ambiguousCalls++
    if (isRouteNeutral(fault)) this.#hadNeutralFault = true
    this.#last = { candidate, fault, calls, wasLast }
    this.#tried.set(candidate, this.#last)
    const { state, waitMs } = this.#deps.health.state(candidate.key)
    const isLeftOut = state === 'parked' || state === 'ejected'
    this.#record({ candidate, fault, calls, waitMs: isLeftOut ? waitMs : undefined })
  }

  /** Health does not allow a call now. */
  holdBack(candidate: Candidate, state: RouteState): void {
    this.#tried.delete(candidate)
    this.#last = undefined
    this.#record(heldBack(candidate, state))
  }

  exhausted(): Exhausted {
    if (this.isFinal) return new Exhausted(this.#failed)
    const excluded = this.#tries.plan.excluded.map(({ candidate, state }) => heldBack(candidate, state))
    return new Exhausted([...this.#failed, ...excluded])
  }

  /** One entry for each candidate, with its last fault. */
  #record(failed: FailedAttempt): void {
    this.#failed = this.#failed.filter(({ candidate }) => candidate !== failed.candidate)
    this.#failed.push(failed)
  }

  /** The same route at once: over a new connection if a pooled one was stale, or if the same call may now work. */
  #replay(): Next | undefined {
    if (!this.#last || this.#last.calls > 1 || this.#attempts >= attemptsMax || this.#isLate()) return undefined
    const { candidate, fault } = this.#last
    if (!fault.isStale && !fault.isRepeatable) return undefined
    const isFree = isInGoodHealth(this.#deps, candidate) && !isRouteNeutral(fault)
    if (!isFree && !this.#spend(candidate)) return undefined
    return { candidate, waitMs: 0, isFresh: fault.isStale ?? false, isRepeat: true, isLast: !this.#hasAnother() }
  }

  /** The next candidate of the plan that may be called. */
  #nextRoute(): Next | undefined {
    const { ordered } = this.#tries.plan
    while (this.#plannedNext < ordered.length && !this.#hasEnough()) {
      const candidate = ordered[this.#plannedNext++]
      if (!candidate || this.#tried.has(candidate)) continue
      if (candidate.refusal) this.#record({ candidate, fault: cannotCarry(candidate.refusal) })
      else if (this.#attempts === 0 || this.#mayMoveOn(candidate))
        return { candidate, waitMs: 0, isFresh: false, isRepeat: false, isLast: !this.#hasAnother() }
      else {
        const state = this.#deps.health.state(candidate.key)
        // A healthy route that was not tried is not a cause of the failure.
        if (state.state !== 'healthy') this.#record(heldBack(candidate, state))
      }
    }
    return undefined
  }

  /** When no other route is left: the one with the fewest calls whose fault may pass, after a wait. */
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
    // Other requests may have learned meanwhile that a throttled route must wait longer.
    const { state, waitMs: parkedMs = 0 } = this.#deps.health.state(candidate.key)
    const askedMs = Math.max(fault.provider?.retryAfterMs ?? 0, state === 'parked' ? parkedMs : 0)
    if (leftMs < 0 || askedMs > leftMs || !this.#spend(candidate)) return undefined
    const backoffMs = Math.min(random() * retries.backoffMs * 2 ** this.#retries++, leftMs)
    const waitMs = askedMs > 0 ? askedMs + random() * retryAfterJitterMs : backoffMs
    const isFresh = fault.class === 'broken'
    // A sandbox that fails on purpose keeps failing, and a demonstration should not wait for it.
    return { candidate, waitMs: candidate.provider.ignoresHealth ? 0 : waitMs, isFresh, isRepeat: true, isLast: true }
  }

  /** Whether a further route of the plan could be tried after the call that is about to be made. */
  #hasAnother(): boolean {
    const { plan } = this.#tries
    const attempts = this.#attempts + 1
    for (let at = this.#plannedNext; at < plan.ordered.length; at++) {
      const candidate = plan.ordered[at]
      if (!candidate || candidate.refusal || this.#tried.has(candidate)) continue
      if (!this.#hadNeutralFault && isInGoodHealth(this.#deps, candidate)) return attempts < attemptsMaxHealthy
      if (attempts < attemptsMax && (candidate.provider.ignoresHealth || this.#deps.budget.level() >= 1)) return true
    }
    return false
  }

  #hasEnough(): boolean {
    return (
      this.#attempts > 0 &&
      (this.#attempts >= (this.#hadNeutralFault ? attemptsMax : attemptsMaxHealthy) || this.#isLate())
    )
  }

  /** Retrying everything while everything fails would make it worse; one more call to a healthy route does not. */
  #mayMoveOn(candidate: Candidate): boolean {
    if (!this.#hadNeutralFault && isInGoodHealth(this.#deps, candidate)) return true
    return this.#attempts < attemptsMax && this.#spend(candidate)
  }

  /** Calls to a provider that ignores health are free. */
  #spend({ provider }: Candidate): boolean {
    return provider.ignoresHealth || this.#deps.budget.spend()
  }

  #isLate(): boolean {
    return this.#deps.clock.monotonicMs() > this.#lastBeginMs
  }
}

/** Whether the same route is worth a retry within seconds. */
function mayPassSoon({ fault, wasLast }: Tried): boolean {
  const askedMs = fault.provider?.retryAfterMs
  if ((askedMs ?? 0) > retryAfterMaxMs) return false
  // A route that was given up early in favour of another may only have been slow.
  if (fault.class === 'timed out') return !wasLast
  return isTransient(fault) || (fault.class === 'throttled' && askedMs !== undefined)
}

/** A provider that fails on purpose always counts as healthy. */
function isInGoodHealth({ health }: TryDependencies, { key, provider }: Candidate): boolean {
  return provider.ignoresHealth || health.state(key).state === 'healthy'
}

/** Whether the fault depends on the request, so that a caller may cause it on purpose. */
function isRouteNeutral({ class: faultClass, provider, failure }: AttemptFault): boolean {
  return !failure && (effects[faultClass] === 'none' || provider?.isChance === true)
}

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

/** One call, recorded in health. */
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
    // Ends a probe: a defect of ours must not keep the route out.
    health.recordNothing(candidate.key, begunMs)
    throw error
  }
  if (candidate.provider.ignoresHealth) return { candidate, outcome }
  const tookMs = tries.streams ? clock.monotonicMs() - begunMs : undefined
  if (tries.isAnswer(outcome)) health.recordOk(candidate.key, begunMs, tookMs)
  else health.recordFault(candidate.key, begunMs, outcome, tookMs)
  return { candidate, outcome }
}

/** The first candidate and, if it is slower than usual, a second in parallel. */
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

/** A candidate that was not called, with the reason, for the final error. */
function heldBack(candidate: Candidate, { state, why = 'failing', waitMs }: RouteState): FailedAttempt {
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

// ── The retry budget ──

/** Counted in fifths of a retry, which add up exactly: one retry for five requests. */
const retryCost = 5
const retryMax = 100 * retryCost
/**
 * What a gateway with little traffic can spend; refilled by time, because its few requests would not. Ten agents whose only
 * route fails twice spend it at once; one agent cannot, because two retries take a second or more. While everything fails
 * it adds two calls a second to the fifth, however many requests there are.
 */
const retryFloor = 20 * retryCost
const refillMs = 100

/**
 * Limits the extra attempts of the whole process to a fifth of its requests, with a floor for quiet gateways. When everything
 * fails, trying every request three times would make it worse.
 */
export interface RetryBudget {
  /** A request arrived. */
  earn(): void
  /** Takes one retry from the budget; false = it is empty. */
  spend(): boolean
  /** In retries, for the gauge. */
  level(): number
  /** How often `spend` returned false. */
  refused(): number
}

export function createRetryBudget({ clock }: { clock: Clock }): RetryBudget {
  let level = retryFloor
  let refilledMs = clock.monotonicMs()
  let refused = 0

  function refill(): void {
    const fifths = Math.floor((clock.monotonicMs() - refilledMs) / refillMs)
    refilledMs += fifths * refillMs
    if (level < retryFloor) level = Math.min(retryFloor, level + fifths)
  }

  return {
    earn() {
      if (level < retryMax) level++
    },
    spend() {
      refill()
      if (level < retryCost) {
        refused++
        return false
      }
      level -= retryCost
      return true
    },
    level() {
      refill()
      return level / retryCost
    },
    refused: () => refused,
  }
}

// ── Hedging ──

// A second route for a request whose first one is slower than usual. Off unless a model enables it, limited by its own
// budget, and paid for by the operator: the loser is aborted at once and costs the caller nothing.

/** Counted in twentieths of a hedge, which add up exactly: one request in twenty. */
const hedgeCost = 20
const hedgeMax = 5 * hedgeCost

export interface HedgeBudget {
  /** A request arrived that could be hedged. */
  earn(): void
  /** Takes one hedge from the budget; false = it is empty. */
  spend(): boolean
}

export function createHedgeBudget(): HedgeBudget {
  let level = 0
  return {
    earn() {
      if (level < hedgeMax) level++
    },
    spend() {
      if (level < hedgeCost) return false
      level -= hedgeCost
      return true
    },
  }
}

export interface HedgePair {
  readonly first: Candidate
  readonly second: Candidate
  /** When the second is called: the first route's p95. */
  readonly afterMs: number
}

/** undefined = there is no second route, or too few samples to know what slow means. */
export function hedgePair({ ordered, mode }: HealthPlan<Candidate>, clock: Clock): HedgePair | undefined {
  const [first, ...others] = ordered.filter(({ refusal }) => !refusal)
  if (!first || mode === 'panic' || !stopsOnCancel(first)) return undefined
  const figures = first.key.latency.firstEventMs.reliable(clock.monotonicMs())
  const second = others.find((other) => isElsewhere(first, other) && stopsOnCancel(other))
  return figures && second && { first, second, afterMs: figures.p95 }
}

/** Another name at the same host would be just as slow. */
function isElsewhere(first: Candidate, other: Candidate): boolean {
  return first.provider.id !== other.provider.id && originOf(first) !== originOf(other)
}

function originOf({ key }: Candidate): string {
  return URL.parse(key.baseUrl)?.origin ?? key.baseUrl
}

function stopsOnCancel({ provider }: Candidate): boolean {
  return !provider.billsOnCancel
}

/** A race that may have a second runner. */
export interface Race<Outcome> {
  readonly afterMs: number
  /** The signal aborts when the other has won. */
  runFirst(lost: AbortSignal): Promise<Outcome>
  /** undefined = it is not started. */
  runSecond(lost: AbortSignal): Promise<Outcome> | undefined
  readonly hasWon: (outcome: Outcome) => boolean
  /** Ends an answer that arrived just after the other had won. */
  readonly discard: (outcome: Outcome) => void
  /** Replaces real time in tests. `cancelled` aborts when the wait is no longer needed. */
  readonly wait?: (milliseconds: number, cancelled: AbortSignal) => Promise<void>
}

/** The winner's outcome, or the outcomes of all runners if none has won, in the order they began. */
export async function race<Outcome>(runners: Race<Outcome>): Promise<readonly Outcome[]> {
  const firstLost = new AbortController()
  const first = runners.runFirst(firstLost.signal)
  const { afterMs, wait = sleep, hasWon, discard } = runners
  const waiting = new AbortController()
  const early = await Promise.race([first.then((outcome) => [outcome]), wait(afterMs, waiting.signal)]).finally(() =>
    waiting.abort(),
  )
  if (early) return early
  const secondLost = new AbortController()
  const second = runners.runSecond(secondLost.signal)
  if (!second) return [await first]
  const end = (runner: Promise<Outcome>, lost: AbortController) => {
    lost.abort()
    // A defect in the loser's attempt changes nothing: the caller has an answer.
    void runner.then(
      (outcome) => hasWon(outcome) && discard(outcome),
      () => {},
    )
  }
  try {
    const lead = await Promise.race([
      first.then((outcome) => ({ outcome, endOther: () => end(second, secondLost) })),
      second.then((outcome) => ({ outcome, endOther: () => end(first, firstLost) })),
    ])
    if (hasWon(lead.outcome)) {
      lead.endOther()
      return [lead.outcome]
    }
    const both = await Promise.all([first, second])
    const winner = both.find(hasWon)
    return winner === undefined ? both : [winner]
  } catch (error) {
    // A defect of ours in one of them: the other's outcome is no longer needed.
    end(first, firstLost)
    end(second, secondLost)
    throw error
  }
}

/** Unlike Bun.sleep it leaves no timer behind when it is cancelled; it then never resolves. */
function sleep(milliseconds: number, cancelled: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, milliseconds)
  cancelled.addEventListener('abort', () => clearTimeout(timer), { once: true })
  return promise
}
