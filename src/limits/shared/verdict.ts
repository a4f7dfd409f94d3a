// What a caller is told, from the loads as the store read them. The order of reasons is that of ScopeLoad, the choice
// between scopes that of the limiter of one process: nobody shall see which of them counts.

import { assert } from '../../kernel/assert.ts'
import { unitsPerWhole } from '../bucket.ts'
import type { LimitKind, LimitScope } from '../limit.ts'
import type { LimitState, LimitStates, Refused } from '../limiter.ts'
import type { LoadReading } from './batch.ts'
import { type BucketState, bucketOf } from './bucket-state.ts'

/** Nobody knows when a running request ends; a second is what the official clients wait for at least. */
const concurrentRetryMs = 1000

interface Obstacle {
  readonly limit: LimitKind
  readonly max: number
  readonly used: number
  readonly asked: number
  readonly retryAfterMs: number
}

export function refusal(scopes: readonly LimitScope[], loads: readonly LoadReading[], tokens: number): Refused {
  const refused = obstacleOf(scopes, loads, tokens)
  assert(refused, 'what was refused meets an obstacle')
  return refused
}

/** undefined = by these loads there is room. */
export function obstacleOf(
  scopes: readonly LimitScope[],
  loads: readonly LoadReading[],
  tokens: number,
): Refused | undefined {
  let refusing: { readonly scope: LimitScope; readonly obstacle: Obstacle } | undefined
  for (const [at, scope] of scopes.entries()) {
    const load = loads[at]
    const obstacle = load && longestWait(scope, load, tokens)
    if (obstacle && obstacle.retryAfterMs > (refusing?.obstacle.retryAfterMs ?? 0)) refusing = { scope, obstacle }
  }
  return refusing && { kind: 'refused', scope: refusing.scope, ...refusing.obstacle, state: statesOf(scopes, loads) }
}

function longestWait({ limits }: LimitScope, load: LoadReading, tokens: number): Obstacle | undefined {
  const { requestsPerMinute, tokensPerMinute, concurrentRequests } = limits
  const obstacles: Obstacle[] = []
  if (requestsPerMinute !== undefined && load.requests) {
    obstacles.push({ limit: 'requests', max: requestsPerMinute, asked: 1, ...wait(load.requests, 1) })
  }
  if (tokensPerMinute !== undefined && load.tokens) {
    obstacles.push({ limit: 'tokens', max: tokensPerMinute, asked: tokens, ...wait(load.tokens, tokens) })
  }
  if (concurrentRequests !== undefined && load.running >= concurrentRequests) {
    const facts = { max: concurrentRequests, used: load.running, asked: 1 }
    obstacles.push({ limit: 'concurrent', ...facts, retryAfterMs: concurrentRetryMs })
  }
  const longestMs = Math.max(0, ...obstacles.map(({ retryAfterMs }) => retryAfterMs))
  return longestMs === 0 ? undefined : obstacles.find(({ retryAfterMs }) => retryAfterMs === longestMs)
}

function wait(state: BucketState, wholes: number): Pick<Obstacle, 'used' | 'retryAfterMs'> {
  return {
    used: Math.ceil(state.usedUnits / unitsPerWhole),
    retryAfterMs: bucketOf(state).waitMs(wholes * unitsPerWhole),
  }
}

export function statesOf(scopes: readonly LimitScope[], loads: readonly LoadReading[]): LimitStates {
  let requests: LimitState | undefined
  let tokens: LimitState | undefined
  for (const [at, { limits }] of scopes.entries()) {
    const load = loads[at]
    if (limits.requestsPerMinute !== undefined) requests = tighter(requests, stateOf(load?.requests))
    if (limits.tokensPerMinute !== undefined) tokens = tighter(tokens, stateOf(load?.tokens))
  }
  return { ...(requests && { requests }), ...(tokens && { tokens }) }
}

function stateOf(state: BucketState | undefined): LimitState | undefined {
  return state && bucketOf(state).state
}

/** The one with less left; where both have as much, the one that takes longer to be whole again. */
function tighter(one: LimitState | undefined, other: LimitState | undefined): LimitState | undefined {
  if (!one || !other) return one ?? other
  if (one.remaining !== other.remaining) return one.remaining < other.remaining ? one : other
  return one.resetMs >= other.resetMs ? one : other
}
