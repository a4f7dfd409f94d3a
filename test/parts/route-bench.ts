// Routes that fail as a test says, behind the real failover, health and retry budget, on a clock that only they move.

import { faultFromError } from '../../src/dialects/canonical/faults.ts'
import { Exhausted, exhaustedFailure } from '../../src/routing/exhausted.ts'
import { attemptGeneration, createRetryBudget } from '../../src/routing/failover.ts'
import { type AttemptFault, attemptFault, classifyFault } from '../../src/routing/faults.ts'
import { createHealth } from '../../src/routing/health.ts'
import type { Candidate } from '../../src/routing/plan.ts'

export interface Answer {
  readonly text: string
}

/** `ok` is answered with the name of the route; `defect` throws. */
export type Fate = AttemptFault | Answer | 'ok' | 'defect'

/** A provider's answer of this status. */
export const status = (code: number, retryAfterMs?: number): AttemptFault =>
  classifyFault(faultFromError(code, retryAfterMs, { message: 'rate_limit_exceeded' }))

export const broken = attemptFault('broken')
export const stale: AttemptFault = { ...broken, isStale: true }
export const ambiguous: AttemptFault = { ...broken, isAmbiguous: true }

export interface RouteBenchOptions {
  readonly random?: () => number
  readonly clientTimeoutMs?: number
  readonly attempts?: number
  /** How long each call takes. */
  readonly tookMs?: number
  readonly streams?: boolean
  /** The client goes during the first wait. */
  readonly leaves?: boolean
  readonly ignoresHealth?: boolean
  /** false = nothing is retried after a wait. */
  readonly pauses?: boolean
}

/** Routes that meet these fates, one for each call; the last one repeats. */
export function startRoutes(fates: Readonly<Record<string, readonly Fate[]>>, options: RouteBenchOptions = {}) {
  const {
    random = () => 0.5,
    clientTimeoutMs,
    attempts = 10,
    streams = true,
    ignoresHealth = false,
    pauses = true,
  } = options
  let nowMs = 0
  const clock = { now: () => nowMs, monotonicMs: () => nowMs }
  const health = createHealth({ clock, random })
  const budget = createRetryBudget({ clock })
  const candidates = Object.keys(fates).map((id, priority) => {
    const key = health.route({ providerId: id, baseUrl: 'https://x', upstreamModel: 'm', credentialId: 'platform' })
    const route = { providerId: id, upstreamModel: 'm', priority, weight: 1, timeouts: {} }
    return { route, provider: { id, ignoresHealth }, health: key, isOwn: false } as unknown as Candidate
  })
  const calls: string[] = []
  const lasts: string[] = []
  const waits: { milliseconds: number; state: string }[] = []
  const settings = { current: { retries: { attempts: pauses ? attempts : 0, backoffMs: 2000, totalMs: 20_000 } } }
  const deps = { clock, health, retryBudget: budget, random, settings }
  const state = () => candidates.map(({ health: key }) => health.state(key).state).join(' ')
  const pause = async (milliseconds: number) => {
    waits.push({ milliseconds, state: state() })
    nowMs += milliseconds
    return options.leaves ? attemptFault('client left') : undefined
  }
  const run = (tookMs = options.tookMs ?? 0) =>
    attemptGeneration<Answer>(deps, {
      plan: health.plan(candidates),
      streams,
      clientTimeoutMs,
      async attempt({ provider }, { isFresh, isLast }) {
        const list = fates[provider.id] ?? []
        const before = calls.filter((call) => call.startsWith(provider.id)).length
        calls.push(isFresh ? `${provider.id} fresh` : provider.id)
        lasts.push(isLast ? `${provider.id} last` : provider.id)
        nowMs += tookMs
        const fate = list[Math.min(before, list.length - 1)] ?? 'ok'
        if (fate === 'defect') throw new TypeError('a defect')
        return fate === 'ok' ? { text: provider.id } : fate
      },
      pause,
      mayHedge: false,
      discard() {},
      clientGone: { aborted: false },
    })
  const exhausted = async () => {
    const outcome = await run()
    if (!(outcome instanceof Exhausted)) throw new Error('was answered')
    return outcome
  }
  const failure = async () => exhaustedFailure('acme/large', await exhausted(), 'NOT_FOUND')
  const jump = (milliseconds: number): void => {
    nowMs += milliseconds
  }
  return { calls, lasts, waits, health, budget, candidates, state, run, exhausted, failure, jump }
}
