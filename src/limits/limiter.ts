// The limits, their scopes, and the promises of a limiter, whether it counts in this process or in a store shared by
// several. A limiter says who may go on now and how long the others should wait. It never makes a request wait.

import { assert, Failure } from '../kernel/failure.ts'
import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import { tokensMax } from '../kernel/usage.ts'

/** Whole numbers, below 10^11 so that sums stay exact. Absent = unlimited, 0 = nothing is admitted. */
export interface RateLimits {
  /** N admits a burst of N and refills evenly. */
  readonly requestsPerMinute?: number | undefined
  /** Input and output together; refills like requests. */
  readonly tokensPerMinute?: number | undefined
  readonly concurrentRequests?: number | undefined
}

/** A key, project or workspace whose requests are counted together. A request counts in all of its scopes. */
export interface RateScope {
  readonly kind: 'key' | 'project' | 'workspace'
  /** Its own, or that of one of its spend limits: `ws_…/person:per_… 5h`. */
  readonly id: KeyId | ProjectId | WorkspaceId | `${string} ${string}`
  /** For messages. */
  readonly name: string
  /** The current ones: they may differ from call to call and take effect at once. */
  readonly limits: RateLimits
}

export function isLimited({ limits }: RateScope): boolean {
  return (
    limits.requestsPerMinute !== undefined ||
    limits.tokensPerMinute !== undefined ||
    limits.concurrentRequests !== undefined
  )
}

export interface Limiter {
  /**
   * Takes a concurrent slot in every scope for a request whose body has not been read, or in none. Also refused if the
   * requests per minute are used up: either way the body is not worth reading.
   */
  arrive(scopes: readonly RateScope[]): Arrival | Refused

  /**
   * Takes one request and the estimated tokens in every scope, or in none. An estimate of 0 tokens (a request that
   * generates nothing) is never refused for tokens.
   *
   * A request larger than a whole minute's tokens is admitted when nothing is used, and leaves a debt that later
   * requests wait for. It could never fit, so a refusal with a time to retry would be wrong, and over any longer time
   * the average holds.
   */
  admit(scopes: readonly RateScope[], estimatedTokens: number): Verdict | Promise<Verdict>
}

export type Verdict = Admission | Refused

/** Ended exactly once: by `admit`, whatever the verdict, or by `end`. */
export interface Arrival {
  readonly kind: 'arrived'
  /** Like `admit` of the limiter, for the request that took this slot. */
  admit(estimatedTokens: number): Verdict | Promise<Verdict>
  /** The request cannot be served: frees the slot and counts the request, because it was made. */
  end(): void
}

export interface Admission {
  readonly kind: 'admitted'
  readonly state: LimitStates
  /**
   * Call exactly once, when the request is over: frees its concurrent slot and replaces the estimate by the tokens
   * really used, 0 if there was no reply. More than estimated may leave a debt. The request itself stays counted.
   */
  end(actualTokens: number): void
}

export interface Refused extends Obstacle {
  readonly kind: 'refused'
  /** The one with the longest wait. */
  readonly scope: RateScope
  readonly state: LimitStates
}

export interface Obstacle {
  readonly limit: 'requests' | 'tokens' | 'concurrent'
  /** Per minute, or concurrent. */
  readonly max: number
  /** The used part of `max`, rounded up; above it while there is a debt. */
  readonly used: number
  /** The amount that this request would use. */
  readonly asked: number
  /**
   * Whole, at least 1. A request that waits this long is admitted unless others come first. For `concurrent` it is a
   * guess, because the end of a running request is unknown.
   */
  readonly retryAfterMs: number
}

/** For headers: the scope with the least left of each limit, this request included. Absent = unlimited. */
export interface LimitStates {
  readonly requests?: LimitState
  readonly tokens?: LimitState
}

export interface LimitState {
  readonly limit: number
  /** Whole, at least 0. */
  readonly remaining: number
  /** Until the limit is completely unused again, if no other request comes. */
  readonly resetMs: number
}

/** Shared by all requests without limits, so that they cost nothing. */
export const unlimited: Admission = Object.freeze({ kind: 'admitted', state: Object.freeze({}), end() {} })
export const unlimitedArrival: Arrival = Object.freeze({ kind: 'arrived', admit: () => unlimited, end() {} })

export function createAdmission(state: LimitStates, end: (actualTokens: number) => void): Admission {
  let ended = false
  return {
    kind: 'admitted',
    state,
    end(actualTokens) {
      assert(!ended, 'an admission ends once')
      ended = true
      end(wholeTokens(actualTokens))
    },
  }
}

export function wholeTokens(tokens: number): number {
  // NaN would never leave a bucket.
  assert(tokens >= 0, 'tokens are counted from 0')
  return Math.min(tokensMax, Math.ceil(tokens))
}

/** How errors begin: a limit of a project is reached by all its keys together, so they name the project. */
export const scopeTitles = { key: 'Key', project: 'Project', workspace: 'Workspace' } as const

/** The official clients disagree on longer waits: one ignores them, one gives up, one really sleeps. */
const retryWaitMaxMs = 60_000

export function limitFailure(refused: Refused): Failure {
  const { scope, retryAfterMs } = refused
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000))
  const message = `${scopeTitles[scope.kind]} "${scope.name}" ${describeObstacle(refused)}. Retry in ${seconds} s.`
  const noRetry = retryAfterMs > retryWaitMaxMs ? { shouldRetry: false } : {}
  return new Failure('LIMIT_EXCEEDED', message, { retryAfterMs, ...noRetry })
}

function describeObstacle({ limit, max, used, asked }: Obstacle): string {
  switch (limit) {
    case 'requests':
      return `used ${used} of ${max} requests per minute`
    case 'tokens':
      return `used ${used} of ${max} tokens per minute, and this request needs up to ${asked}`
    case 'concurrent':
      return `has ${used} of ${max} concurrent requests running`
  }
}
