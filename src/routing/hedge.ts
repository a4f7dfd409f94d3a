// A second route for a request whose first one is slower than it usually is. Off unless a model asks for it, rare by a
// budget of its own, and paid for by the operator: whoever loses is ended at once and costs the caller nothing.

import type { Clock } from '../kernel/clock.ts'
import type { Candidate } from './candidate.ts'
import type { HealthPlan } from './health/plan-with-health.ts'

/** Counted in twentieths of a hedge, which add up exactly: one request in twenty. */
const perRequest = 1
const hedge = 20
const max = 5 * hedge

export interface HedgeBudget {
  /** A request came in that could be hedged. */
  earn(): void
  /** Whether one may be hedged now, which it then pays for. */
  spend(): boolean
}

export function createHedgeBudget(): HedgeBudget {
  let level = 0
  return {
    earn() {
      if (level < max) level += perRequest
    },
    spend() {
      if (level < hedge) return false
      level -= hedge
      return true
    },
  }
}

export interface HedgePair {
  readonly first: Candidate
  readonly second: Candidate
  /** When the second is asked: by then nineteen of twenty answers of the first had begun. */
  readonly afterMs: number
}

/** undefined = there is nobody to ask, or no telling yet what slow means. */
export function hedgePair({ ordered, mode }: HealthPlan<Candidate>, clock: Clock): HedgePair | undefined {
  const [first, ...others] = ordered.filter(({ refusal }) => !refusal)
  if (!first || mode === 'panic' || !stopsOnCancel(first)) return undefined
  const figures = first.key.latency.firstEventMs.reliable(clock.monotonicMs())
  const second = others.find((other) => isElsewhere(first, other) && stopsOnCancel(other))
  return figures && second && { first, second, afterMs: figures.p95 }
}

/** What one host is slow in, another name at the same host would be too. */
function isElsewhere(first: Candidate, other: Candidate): boolean {
  return first.provider.id !== other.provider.id && originOf(first) !== originOf(other)
}

function originOf({ key }: Candidate): string {
  return URL.parse(key.baseUrl)?.origin ?? key.baseUrl
}

function stopsOnCancel({ provider }: Candidate): boolean {
  return !provider.billsOnCancel
}

/** Both sides of a race that may have a second runner. */
export interface Race<Outcome> {
  readonly afterMs: number
  /** The signal tells a runner that the other has won. */
  runFirst(lost: AbortSignal): Promise<Outcome>
  /** undefined = it is not started after all. */
  runSecond(lost: AbortSignal): Promise<Outcome> | undefined
  readonly hasWon: (outcome: Outcome) => boolean
  /** For an answer that came in the moment in which the other one had won. */
  readonly discard: (outcome: Outcome) => void
  /** In place of real time. `cancelled` aborts once nobody waits any more. */
  readonly wait?: (milliseconds: number, cancelled: AbortSignal) => Promise<void>
}

/** The outcome of the winner, or those of all runners where none has won, in the order they began. */
export async function race<Outcome>(runners: Race<Outcome>): Promise<readonly Outcome[]> {
  const firstLost = new AbortController()
  const first = runners.runFirst(firstLost.signal)
  const { afterMs, wait = sleep } = runners
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
    void runner.then((outcome) => endLoser(runners, outcome), ignore)
  }
  const { hasWon } = runners
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
    // A defect of ours in one of them: nobody is left to take what the other brings.
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

/** Nobody waits for it; where it answers all the same, that is ended too. */
function endLoser<Outcome>({ hasWon, discard }: Race<Outcome>, outcome: Outcome): void {
  if (hasWon(outcome)) discard(outcome)
}

/** A defect in the loser's attempt changes nothing for the caller, who has an answer. */
function ignore(): void {}
