// Budgets for extra calls, and hedging: a second route for a request whose first one is slower than usual. Off unless a
// model enables it, limited by its own budget, and paid for by the operator: the loser is aborted at once and costs the
// caller nothing.

import type { Clock } from '../kernel/clock.ts'
import type { Candidate } from './plan.ts'
import type { HealthPlan } from './rank.ts'

/** Limits the extra calls of the whole process to a share of its requests. */
export interface CallBudget {
  /** A request arrived. */
  earn(): void
  /** Takes one call from the budget; false = it is empty. */
  spend(): boolean
  /** In calls, for the gauge. */
  level(): number
  /** How often `spend` returned false. */
  refused(): number
}

interface BudgetRules {
  /** One call for this many requests. Counted in these shares, which add up exactly. */
  readonly requestsPerCall: number
  readonly callsMax: number
  /** The budget of a quiet gateway: it begins with this and is refilled up to it by time, a share every 100 ms. */
  readonly callsFloor: number
}

const refillMs = 100

function createBudget(clock: Clock, { requestsPerCall, callsMax, callsFloor }: BudgetRules): CallBudget {
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
    earn() {
      if (level < max) level++
    },
    spend() {
      refill()
      if (level < requestsPerCall) {
        refused++
        return false
      }
      level -= requestsPerCall
      return true
    },
    level() {
      refill()
      return level / requestsPerCall
    },
    refused: () => refused,
  }
}

/**
 * A fifth of the requests: when everything fails, trying every request three times would make it worse. The floor: ten
 * agents whose only route fails twice spend it at once; one agent cannot, because two retries take a second or more. While
 * everything fails it adds two calls a second to the fifth, however many requests there are.
 */
export function createRetryBudget({ clock }: { readonly clock: Clock }): CallBudget {
  return createBudget(clock, { requestsPerCall: 5, callsMax: 100, callsFloor: 20 })
}

/** One of twenty requests that could be hedged. */
export function createHedgeBudget({ clock }: { readonly clock: Clock }): CallBudget {
  return createBudget(clock, { requestsPerCall: 20, callsMax: 5, callsFloor: 0 })
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
  if (!first || mode === 'panic') return undefined
  const figures = first.health.latency.firstEventMs.reliable(clock.monotonicMs())
  const second = others.find((other) => isElsewhere(first, other))
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
