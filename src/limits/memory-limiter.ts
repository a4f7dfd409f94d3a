// The limiter of one process. Asking and taking happen in one turn of the event loop, with nothing awaited between, and
// that is what makes it exact: a limit of N admits N however many ask at once.

import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import { tokensMax } from '../kernel/usage.ts'
import { isLimited, type LimitScope } from './limit.ts'
import type { Admission, Arrival, Limiter, LimitState, LimitStates, Refused } from './limiter.ts'
import { LoadTable } from './load-table.ts'
import type { Reservation } from './reservations.ts'
import type { Obstacle, ScopeLoad } from './scope-load.ts'

export interface MemoryLimiter extends Limiter {
  admit(scopes: readonly LimitScope[], estimatedTokens: number): Admission | Refused
  /** How many scopes are remembered; for a gauge. */
  readonly scopeCount: number
}

/** Shared by all requests without limits, so that they cost nothing. */
const unlimited: Admission = Object.freeze({ kind: 'admitted', state: Object.freeze({}), end() {} })
const unlimitedArrival: Arrival = Object.freeze({ kind: 'arrived', admit: () => unlimited, end() {} })

export function createMemoryLimiter(clock: Clock): MemoryLimiter {
  const table = new LoadTable()
  // Buckets are exact in whole milliseconds. Monotonic, because wall time steps.
  const readMs = () => Math.floor(clock.monotonicMs())

  const loadsOf = (scopes: readonly LimitScope[], nowMs: number): Loaded[] => {
    table.forgetIdle(nowMs, scopes.length)
    return scopes.filter(isLimited).map((scope) => ({ scope, load: table.load(scope, nowMs) }))
  }
  const admit = (scopes: readonly LimitScope[], estimatedTokens: number): Admission | Refused => {
    const tokens = wholeTokens(estimatedTokens)
    const loads = loadsOf(scopes, readMs())
    return (
      refusal(loads, tokens) ??
      begin(
        loads.map(({ load }) => load),
        tokens,
        readMs,
      )
    )
  }

  return {
    arrive(scopes) {
      if (!scopes.some(isLimited)) return unlimitedArrival
      const loads = loadsOf(scopes, readMs())
      return refusal(loads, 0) ?? arrive(loads, { readMs, admit: (tokens) => admit(scopes, tokens) })
    },
    admit: (scopes, estimatedTokens) => (scopes.some(isLimited) ? admit(scopes, estimatedTokens) : unlimited),
    get scopeCount() {
      return table.size
    },
  }
}

interface Loaded {
  readonly scope: LimitScope
  readonly load: ScopeLoad
}

/** Of the scope that makes a request with so many tokens wait longest; undefined = all have room. */
function refusal(loads: readonly Loaded[], tokens: number): Refused | undefined {
  let refusing: { readonly scope: LimitScope; readonly obstacle: Obstacle } | undefined
  for (const { scope, load } of loads) {
    const obstacle = load.obstacle(tokens)
    if (obstacle && obstacle.retryAfterMs > (refusing?.obstacle.retryAfterMs ?? 0)) refusing = { scope, obstacle }
  }
  if (!refusing) return undefined
  return {
    kind: 'refused',
    scope: refusing.scope,
    ...refusing.obstacle,
    state: statesOf(loads.map(({ load }) => load)),
  }
}

interface Door {
  readMs(): number
  admit(tokens: number): Admission | Refused
}

function arrive(loads: readonly Loaded[], { readMs, admit }: Door): Arrival {
  for (const { load } of loads) load.arrive()
  let ended = false
  const leave = (): void => {
    assert(!ended, 'an arrival ends once')
    ended = true
    for (const { load } of loads) load.leave()
  }
  return {
    kind: 'arrived',
    admit(estimatedTokens) {
      leave()
      return admit(estimatedTokens)
    },
    end() {
      leave()
      const nowMs = readMs()
      for (const { scope, load } of loads) {
        load.advance(nowMs, scope.limits)
        load.end(nowMs, load.begin(0), 0)
      }
    },
  }
}

/** All loads have room; only from here on something is taken. */
function begin(loads: readonly ScopeLoad[], tokens: number, readMs: () => number): Admission {
  const reservations: (Reservation | undefined)[] = loads.map((load) => load.begin(tokens))
  let ended = false
  return {
    kind: 'admitted',
    state: statesOf(loads),
    end(actualTokens = 0) {
      assert(!ended, 'an admission ends once')
      ended = true
      const tokens = wholeTokens(actualTokens)
      const nowMs = readMs()
      for (const [at, load] of loads.entries()) load.end(nowMs, reservations[at], tokens)
    },
  }
}

function wholeTokens(tokens: number): number {
  // A number that is none would stay in a bucket for ever.
  assert(tokens >= 0, 'tokens are counted from 0')
  return Math.min(tokensMax, Math.ceil(tokens))
}

function statesOf(loads: readonly ScopeLoad[]): LimitStates {
  let requests: LimitState | undefined
  let tokens: LimitState | undefined
  for (const load of loads) {
    requests = tighter(requests, load.requests)
    tokens = tighter(tokens, load.tokens)
  }
  return { ...(requests && { requests }), ...(tokens && { tokens }) }
}

/** The one with less left; where both have as much, the one that takes longer to be whole again. */
function tighter(one: LimitState | undefined, other: LimitState | undefined): LimitState | undefined {
  if (!one || !other) return one ?? other
  if (one.remaining !== other.remaining) return one.remaining < other.remaining ? one : other
  return one.resetMs >= other.resetMs ? one : other
}
