// Calls the routes of a request in the order of its plan until one replies. Nothing reaches the client before that, so all of
// this is invisible. A request that generates may also be retried, and hedged by a second route; its outcomes are recorded in
// health. A healthy route is always tried; other routes and repeats are limited per request and by a retry budget of the process.

import { replyFault } from '../dialects/canonical/faults.ts'
import type { Clock } from '../kernel/clock.ts'
import { Exhausted, type FailedAttempt } from './exhausted.ts'
import { type AttemptFault, attemptFault, cannotCarry, faultTable, isTransient } from './faults.ts'
import { effects, type Health } from './health.ts'
import type { Candidate, HealthPlan } from './plan.ts'
import type { RouteState } from './route.ts'

/**
 * The most attempts on routes that are not known to work, immediate repeats included. The faults of further ones do not count
 * against a route, which five in a row eject: one request that always fails must not do that.
 */
const attemptsMax = 3
/** While the next route is healthy: a model is unavailable only if no route can serve it. */
const attemptsMaxHealthy = 6

/** The time for all attempts of a request whose routes set none; no attempt begins after it. */
export function requestTotalMs(isStreamed: boolean): number {
  return isStreamed ? 900_000 : 600_000
}
/** No attempt begins with less time left: hardly any route answers so fast, and the call would be paid for in vain. */
const minTimeLeftMs = 1_000

/** A longer wait is passed on to the client, which retries by itself. */
const retryAfterMaxMs = 5_000
/** Added to a provider's wait, so that requests do not all return at the same moment. */
const retryAfterJitterMs = 250

/** How a request is retried when no other route is left. */
export interface RetryRules {
  /** No retry starts once a request has made this many attempts. */
  readonly attempts: number
  /** Upper bound of the first wait, which is random below it; doubles with each further wait. */
  readonly backoffMs: number
  /** No retry starts later than this after all routes have failed once. */
  readonly totalMs: number
}

export interface FailoverDependencies {
  readonly clock: Clock
  readonly health: Pick<Health, 'begin' | 'state' | 'recordOk' | 'recordFault' | 'recordNothing'>
  readonly retryBudget: Pick<CallBudget, 'earn' | 'spend' | 'level'>
  readonly settings: { readonly current: { readonly retries: RetryRules } }
  /** Absent = hedging is off. */
  readonly hedges?: Pick<CallBudget, 'earn' | 'spend'>
  /** A number in [0, 1). */
  random(): number
}

/** One call to a route. */
export interface AttemptOptions {
  /** Use a new connection, because a pooled one may be closed. */
  readonly isFresh: boolean
  /** No other route would be tried after it, so there is no point in giving up early. */
  readonly isLast: boolean
  /** Aborted when another route has replied. */
  readonly superseded?: AbortSignal | undefined
}

/** What failover needs to know of a request that generates. */
export interface Generation<Reply extends object> {
  readonly plan: HealthPlan<Candidate>
  /** Whether to measure the time to the first event. */
  readonly streams: boolean
  /** Whether a second route may be called while the first is slow. */
  readonly mayHedge: boolean
  /** How long the client waits for headers, if it says so. No retry starts later, unless a stream's were sent by then. */
  readonly clientTimeoutMs: number | undefined
  attempt(candidate: Candidate, options: AttemptOptions): Promise<Reply | AttemptFault>
  /** Waits before a retry; returns a fault if the request ended meanwhile. */
  pause(milliseconds: number): Promise<AttemptFault | undefined>
  /** Ends the reply of a hedged request that came second. */
  discard(reply: Reply): void
  /** Aborted when the client has left. */
  readonly clientGone: { readonly aborted: boolean }
}

/**
 * Calls the routes of a request that generates until one replies:
 *
 *   the next call   1 the same route again at once, if only its connection was stale or the call was repaired
 *                   2 the next route of the plan that may be called
 *                   3 the route that failed least, after a wait, if its fault may pass
 *   the last call   a fault that no other route can help with, too many calls, or no time left
 */
export async function attemptGeneration<Reply extends object>(
  deps: FailoverDependencies,
  request: Generation<Reply>,
): Promise<Reply | Exhausted> {
  const { plan } = request
  // Requests to a sandbox that fails on purpose do not count as traffic.
  if (!plan.ordered[0]?.provider.ignoresHealth) deps.retryBudget.earn()
  const pair = request.mayHedge && deps.hedges ? hedgePair(plan, deps.clock) : undefined
  const progress = new Progress(deps, request)
  for (let next = progress.next(); next; next = progress.next()) {
    const { candidate, waitMs, isRepeat, isLast } = next
    const ended = waitMs > 0 ? await request.pause(waitMs) : undefined
    if (ended) {
      progress.fail(candidate, ended, isLast)
      continue
    }
    // Its start, or the state that forbids the call. The only route left is retried although its own failures may just have
    // ejected it.
    const begun = deps.health.begin(candidate.health, isRepeat ? 'panic' : plan.mode)
    if (typeof begun !== 'number') {
      progress.skip(candidate, begun)
      continue
    }
    const begunMs: number = begun
    if (pair?.first === candidate && !isRepeat) {
      for (const { candidate: tried, outcome } of await attemptPair(deps, request, next, begunMs, pair)) {
        if (!isFault(outcome)) return outcome
        progress.fail(tried, outcome, isLast)
        if (progress.isFinal) break
      }
      continue
    }
    const outcome = await attemptOne(deps, request, next, begunMs)
    if (!isFault(outcome)) return outcome
    progress.fail(candidate, outcome, isLast)
  }
  return progress.exhausted()
}

/**
 * Calls the routes of a request that generates nothing until one replies, each once. Health is read but not changed: a
 * provider that fails here may still generate.
 */
export async function attemptEachOnce<Reply extends object>(
  deps: Pick<FailoverDependencies, 'health' | 'retryBudget'>,
  { ordered, excluded }: HealthPlan<Candidate>,
  attempt: (candidate: Candidate) => Promise<Reply | AttemptFault>,
): Promise<Reply | Exhausted> {
  const failed: FailedAttempt[] = []
  let calls = 0
  for (const candidate of ordered) {
    if (candidate.refusal) {
      failed.push({ candidate, fault: cannotCarry(candidate.refusal) })
      continue
    }
    if (calls === attemptsMax) break
    if (calls > 0 && !isInGoodHealth(deps, candidate) && !deps.retryBudget.spend()) continue
    calls++
    const outcome = await attempt(candidate)
    if (!isFault(outcome)) return outcome
    failed.push({ candidate, fault: outcome, calls: 1 })
    if (!faultTable[outcome.class].tryNext) return new Exhausted(failed)
  }
  for (const { candidate, state } of excluded) failed.push(skippedAttempt(candidate, state))
  return new Exhausted(failed)
}

function isFault<Reply extends object>(outcome: Reply | AttemptFault): outcome is AttemptFault {
  return 'class' in outcome
}

/** The call that is to be made now. */
interface Next extends AttemptOptions {
  readonly candidate: Candidate
  readonly waitMs: number
  /** It was called for this request before. */
  readonly isRepeat: boolean
  /** How often. */
  readonly earlierCalls?: number | undefined
}

/** A candidate that did not reply. */
interface Failed extends FailedAttempt {
  /** It had the full time, because no other route was left. */
  readonly wasLast?: boolean
}

/** Shared by all requests of which no attempt has failed; nothing is put in. */
const noneFailed = new Map<Candidate, Failed>()

type ProgressOf = Pick<Generation<object>, 'plan' | 'streams' | 'clientTimeoutMs'>

/** The attempts of one request so far, and the choice of the next. */
class Progress {
  readonly #deps: FailoverDependencies
  readonly #request: ProgressOf
  readonly #startedMs: number
  /** The latest time at which an attempt may begin. */
  readonly #lastBeginMs: number
  /** One entry for each candidate, with its last fault; the latest is at the end. */
  #failed = noneFailed
  /** The last call that was made and failed. */
  #last: Failed | undefined
  #plannedNext = 0
  #attemptCount = 0
  /** Calls whose request may still be running upstream. */
  #ambiguousCalls = 0
  /** A fault counted against no route, so all of them look healthy however often it occurs. */
  #hadNeutralFault = false
  #retries = 0
  #lastRetryMs: number | undefined

  constructor(deps: FailoverDependencies, request: ProgressOf) {
    this.#deps = deps
    this.#request = request
    this.#startedMs = deps.clock.monotonicMs()
    this.#lastBeginMs = this.#startedMs + requestTotalMs(request.streams) - minTimeLeftMs
  }

  next(): Next | undefined {
    if (this.#last && this.#mustStop(this.#last)) return undefined
    // First a replay: if a provider refused reasoning that was removed since, the class of that fault would end the request.
    return this.#replay() ?? (this.isFinal ? undefined : (this.#nextRoute() ?? this.#retry()))
  }

  /** No other route can help: the request itself was refused, or its client has left. */
  get isFinal(): boolean {
    return this.#last !== undefined && !faultTable[this.#last.fault.class].tryNext
  }

  fail(candidate: Candidate, fault: AttemptFault, wasLast: boolean): void {
    // A route that could not be called does not count.
    const calls = (this.#failed.get(candidate)?.calls ?? 0) + (fault.refusal ? 0 : 1)
    if (!fault.refusal) this.#attemptCount++
    if (fault.isAmbiguous) this.#ambiguousCalls++
    if (isRouteNeutral(fault)) this.#hadNeutralFault = true
    const { state, waitMs } = this.#deps.health.state(candidate.health)
    const isLeftOut = state === 'parked' || state === 'ejected'
    this.#last = { candidate, fault, calls, wasLast, waitMs: isLeftOut ? waitMs : undefined }
    this.#record(this.#last)
  }

  /** Health does not allow a call now. */
  skip(candidate: Candidate, state: RouteState): void {
    this.#last = undefined
    this.#record(skippedAttempt(candidate, state))
  }

  exhausted(): Exhausted {
    const failed: FailedAttempt[] = [...this.#failed.values()]
    if (this.isFinal) return new Exhausted(failed)
    for (const { candidate, state } of this.#request.plan.excluded) failed.push(skippedAttempt(candidate, state))
    return new Exhausted(failed)
  }

  /** Each ambiguous call may be generating and billing for nothing: one more is tried, but not a third. */
  #mustStop({ fault, wasLast }: Failed): boolean {
    return (fault.isAmbiguous === true && this.#ambiguousCalls > 1) || (fault.class === 'timed out' && wasLast === true)
  }

  #record(failed: Failed): void {
    if (this.#failed === noneFailed) this.#failed = new Map()
    this.#failed.delete(failed.candidate)
    this.#failed.set(failed.candidate, failed)
  }

  /** The same route at once: over a new connection if a pooled one was stale, or if the same call may now work. */
  #replay(): Next | undefined {
    if (this.#last?.calls !== 1 || this.#attemptCount >= attemptsMax || this.#isLate()) return undefined
    const { candidate, fault } = this.#last
    if (!fault.isStale && !fault.isRepeatable) return undefined
    const isFree = isInGoodHealth(this.#deps, candidate) && !isRouteNeutral(fault)
    if (!isFree && !this.#spend(candidate)) return undefined
    return { candidate, waitMs: 0, isFresh: fault.isStale ?? false, isRepeat: true, isLast: !this.#hasAnother() }
  }

  /** The next candidate of the plan that may be called. */
  #nextRoute(): Next | undefined {
    const { ordered } = this.#request.plan
    while (this.#plannedNext < ordered.length && !this.#hasEnough()) {
      const candidate = ordered[this.#plannedNext++]
      if (!candidate || this.#failed.has(candidate)) continue
      if (candidate.refusal) this.#record({ candidate, fault: cannotCarry(candidate.refusal) })
      else if (this.#attemptCount === 0 || this.#mayMoveOn(candidate))
        return { candidate, waitMs: 0, isFresh: false, isRepeat: false, isLast: !this.#hasAnother() }
      else {
        const state = this.#deps.health.state(candidate.health)
        // A healthy route that was not tried is not a cause of the failure.
        if (state.state !== 'healthy') this.#record(skippedAttempt(candidate, state))
      }
    }
    return undefined
  }

  /** When no other route is left: the one with the fewest calls whose fault may pass, after a wait. */
  #retry(): Next | undefined {
    const { settings, clock, random } = this.#deps
    const { retries } = settings.current
    const [best] = [...this.#failed.values()].filter(mayPassSoon).sort((a, b) => (a.calls ?? 0) - (b.calls ?? 0))
    if (!best) return undefined
    const { candidate, fault, calls } = best
    // A sandbox that fails on purpose keeps failing, and a demonstration should not wait for it.
    const { ignoresHealth } = candidate.provider
    if (this.#attemptCount >= (ignoresHealth ? Math.min(retries.attempts, attemptsMax) : retries.attempts))
      return undefined
    const nowMs = clock.monotonicMs()
    this.#lastRetryMs ??= Math.min(nowMs + retries.totalMs, this.#clientTimeoutAtMs(nowMs), this.#lastBeginMs)
    const leftMs = this.#lastRetryMs - nowMs
    // Other requests may have learned meanwhile that a throttled route must wait longer.
    const { state, waitMs: parkedMs = 0 } = this.#deps.health.state(candidate.health)
    const askedMs = Math.max(fault.provider?.retryAfterMs ?? 0, state === 'parked' ? parkedMs : 0)
    if (leftMs <= 0 || askedMs > leftMs || !this.#spend(candidate)) return undefined
    const backoffMs = Math.min(random() * retries.backoffMs * 2 ** this.#retries++, leftMs)
    const waitMs = askedMs > 0 ? askedMs + random() * retryAfterJitterMs : backoffMs
    const isFresh = fault.class === 'broken'
    return { candidate, waitMs: ignoresHealth ? 0 : waitMs, isFresh, isRepeat: true, earlierCalls: calls, isLast: true }
  }

  #clientTimeoutAtMs(nowMs: number): number {
    const { clientTimeoutMs = Number.POSITIVE_INFINITY, streams } = this.#request
    const atMs = this.#startedMs + clientTimeoutMs
    return streams && atMs <= nowMs ? Number.POSITIVE_INFINITY : atMs
  }

  /**
   * Whether a further route of the plan could be tried after the call that is about to be made: what `#hasEnough` and
   * `#mayMoveOn` will say then.
   */
  #hasAnother(): boolean {
    const { ordered } = this.#request.plan
    const attempts = this.#attemptCount + 1
    for (let at = this.#plannedNext; at < ordered.length; at++) {
      const candidate = ordered[at]
      if (!candidate || candidate.refusal || this.#failed.has(candidate)) continue
      if (!this.#hadNeutralFault && isInGoodHealth(this.#deps, candidate)) return attempts < attemptsMaxHealthy
      if (attempts < attemptsMax && (candidate.provider.ignoresHealth || this.#deps.retryBudget.level() >= 1))
        return true
    }
    return false
  }

  #hasEnough(): boolean {
    if (this.#attemptCount === 0) return false
    return this.#attemptCount >= (this.#hadNeutralFault ? attemptsMax : attemptsMaxHealthy) || this.#isLate()
  }

  /** Retrying everything while everything fails would make it worse; one more call to a healthy route does not. */
  #mayMoveOn(candidate: Candidate): boolean {
    if (!this.#hadNeutralFault && isInGoodHealth(this.#deps, candidate)) return true
    return this.#attemptCount < attemptsMax && this.#spend(candidate)
  }

  /** Calls to a provider that ignores health are free. */
  #spend({ provider }: Candidate): boolean {
    return provider.ignoresHealth || this.#deps.retryBudget.spend()
  }

  #isLate(): boolean {
    return this.#deps.clock.monotonicMs() > this.#lastBeginMs
  }
}

/** Whether a route that was called is worth a retry within seconds. */
function mayPassSoon({ fault, calls, wasLast }: Failed): boolean {
  const askedMs = fault.provider?.retryAfterMs
  if (calls === undefined || (askedMs ?? 0) > retryAfterMaxMs) return false
  // A route that was given up early in favour of another may only have been slow.
  if (fault.class === 'timed out') return !wasLast
  return isTransient(fault) || (fault.class === 'throttled' && askedMs !== undefined)
}

/** A provider that fails on purpose always counts as healthy. */
function isInGoodHealth(deps: Pick<FailoverDependencies, 'health'>, { health, provider }: Candidate): boolean {
  return provider.ignoresHealth || deps.health.state(health).state === 'healthy'
}

/** Whether the fault depends on the request, so that a caller may cause it on purpose. */
function isRouteNeutral({ class: faultClass, provider, refusal }: AttemptFault): boolean {
  return !refusal && (effects[faultClass] === 'none' || provider?.isInvalidOutput === true)
}

/** One call, recorded in health. */
async function attemptOne<Reply extends object>(
  { clock, health }: FailoverDependencies,
  request: Generation<Reply>,
  next: Next,
  begunMs: number,
): Promise<Reply | AttemptFault> {
  const { candidate } = next
  let outcome: Reply | AttemptFault
  try {
    outcome = await request.attempt(candidate, next)
  } catch (error) {
    // Ends a probe: a defect of ours must not keep the route out.
    health.recordNothing(candidate.health, begunMs)
    throw error
  }
  if (candidate.provider.ignoresHealth) return outcome
  const tookMs = request.streams ? clock.monotonicMs() - begunMs : undefined
  if (!isFault(outcome)) health.recordOk(candidate.health, begunMs, tookMs)
  else if ((next.earlierCalls ?? 0) < attemptsMax || effects[outcome.class] !== 'fault')
    health.recordFault(candidate.health, begunMs, outcome, tookMs)
  else health.recordNothing(candidate.health, begunMs)
  return outcome
}

/** A candidate that was not called, with the reason, for the final error. */
function skippedAttempt(candidate: Candidate, { state, why = 'failing', waitMs }: RouteState): FailedAttempt {
  const fault = attemptFault(why)
  const skippedAs = state === 'parked' ? 'parked' : 'ejected'
  if (waitMs === undefined) return { candidate, fault, skippedAs }
  return { candidate, fault: { ...fault, provider: { ...replyFault(''), retryAfterMs: waitMs } }, skippedAs }
}

// ── Budgets for extra calls ──

export type CallBudget = ReturnType<typeof createBudget>

interface BudgetRules {
  /** One call for this many requests. Counted in these shares, which add up exactly. */
  readonly requestsPerCall: number
  readonly callsMax: number
  /** The budget of a quiet gateway: it begins with this and is refilled up to it by time, a share every 100 ms. */
  readonly callsFloor: number
}

const refillMs = 100

/** Limits the extra calls of the whole process to a share of its requests. */
function createBudget(clock: Clock, { requestsPerCall, callsMax, callsFloor }: BudgetRules) {
  const max = callsMax * requestsPerCall
  const floor = callsFloor * requestsPerCall
  let level = floor
  let refilledMs = clock.monotonicMs()
  let refused = 0
  const refill = (): void => {
    const shares = Math.floor((clock.monotonicMs() - refilledMs) / refillMs)
    refilledMs += shares * refillMs
    if (level < floor) level = Math.min(floor, level + shares)
  }
  return {
    /** A request arrived. */
    earn(): void {
      if (level < max) level++
    },
    /** Takes one call from the budget; false = it is empty. */
    spend(): boolean {
      refill()
      if (level < requestsPerCall) {
        refused++
        return false
      }
      level -= requestsPerCall
      return true
    },
    /** In calls, for the gauge. */
    level(): number {
      refill()
      return level / requestsPerCall
    },
    /** How often `spend` returned false. */
    refused: () => refused,
  }
}

/**
 * A fifth of the requests: when everything fails, trying every request six times would make it worse. The floor: ten agents
 * whose only route fails for twenty seconds spend it at once. While everything fails it adds two calls a second to the
 * fifth, however many requests there are.
 */
export function createRetryBudget({ clock }: { readonly clock: Clock }): CallBudget {
  return createBudget(clock, { requestsPerCall: 5, callsMax: 100, callsFloor: 50 })
}

/** One of twenty requests that could be hedged. */
export function createHedgeBudget({ clock }: { readonly clock: Clock }): CallBudget {
  return createBudget(clock, { requestsPerCall: 20, callsMax: 5, callsFloor: 0 })
}

// ── Hedging ──

// A second route for a request whose first one is slower than usual. Off unless a model enables it, limited by its own
// budget, and paid for by the operator: the loser is aborted at once and costs the caller nothing.

interface Called<Reply> {
  readonly candidate: Candidate
  readonly outcome: Reply | AttemptFault
}

/** The first candidate and, if it is slower than usual, a second in parallel. */
function attemptPair<Reply extends object>(
  deps: FailoverDependencies,
  request: Generation<Reply>,
  next: Next,
  begunMs: number,
  { second, afterMs }: HedgePair,
): Promise<readonly Called<Reply>[]> {
  deps.hedges?.earn()
  const call = async (turn: Next, startMs: number, superseded: AbortSignal): Promise<Called<Reply>> => {
    return { candidate: turn.candidate, outcome: await attemptOne(deps, request, { ...turn, superseded }, startMs) }
  }
  return race<Called<Reply>>({
    afterMs,
    runFirst: (superseded) => call(next, begunMs, superseded),
    runSecond(superseded) {
      if (request.clientGone.aborted || !deps.hedges?.spend() || !deps.retryBudget.spend()) return undefined
      const startMs = deps.health.begin(second.health, request.plan.mode)
      return typeof startMs === 'number' ? call({ ...next, candidate: second }, startMs, superseded) : undefined
    },
    hasWon: ({ outcome }) => !isFault(outcome),
    discard: ({ outcome }) => (isFault(outcome) ? undefined : request.discard(outcome)),
  })
}

interface HedgePair {
  readonly first: Candidate
  readonly second: Candidate
  /** When the second is called: the first route's p95. */
  readonly afterMs: number
}

/** undefined = there is no second route, or too few samples to know what slow means. */
export function hedgePair({ ordered, mode }: HealthPlan<Candidate>, clock: Clock): HedgePair | undefined {
  const [first, ...others] = ordered.filter(({ refusal }) => !refusal)
  if (!first || mode === 'panic') return undefined
  const figures = first.health.latency.firstEventMs.reliable(clock.monotonicMs())
  // Another model would be another answer at another price.
  const second = others.find((other) => other.model === first.model && isElsewhere(first, other))
  return figures && second && { first, second, afterMs: figures.p95 }
}

/** Another name at the same host would be just as slow. */
function isElsewhere(first: Candidate, other: Candidate): boolean {
  return first.provider.id !== other.provider.id && originOf(first) !== originOf(other)
}

function originOf({ health }: Candidate): string {
  return URL.parse(health.baseUrl)?.origin ?? health.baseUrl
}

/** A race that may have a second runner. */
export interface Race<Outcome> {
  readonly afterMs: number
  /** The signal aborts when the other has won. */
  runFirst(superseded: AbortSignal): Promise<Outcome>
  /** undefined = it is not started. */
  runSecond(superseded: AbortSignal): Promise<Outcome> | undefined
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
  const end = (runner: Promise<Outcome>, superseded: AbortController) => {
    superseded.abort()
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
