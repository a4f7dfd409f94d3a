// What one scope has taken of its limits at the moment. It answers what stands in the way of a request and counts one
// that was admitted; deciding over several scopes is the limiter's.

import { Bucket, unitsPerWhole } from './bucket.ts'
import type { LimitKind, Limits } from './limit.ts'
import type { LimitState } from './limiter.ts'
import { type Reservation, Reservations } from './reservations.ts'

/** Nobody knows when a running request ends; a second is what the official clients wait for at least. */
const concurrentRetryMs = 1000

export interface Obstacle {
  readonly limit: LimitKind
  readonly max: number
  readonly used: number
  readonly asked: number
  readonly retryAfterMs: number
}

interface TokenLoad {
  readonly bucket: Bucket
  readonly reservations: Reservations
}

export class ScopeLoad {
  #limits: Limits = {}
  #requests: Bucket | undefined
  #tokens: TokenLoad | undefined
  #running = 0
  /** Beside them, those whose body is still to come. */
  #arriving = 0

  /** Comes before every other call. A limit that is gone leaves its bucket behind: it may come back. */
  advance(nowMs: number, limits: Limits): void {
    this.#limits = limits
    const { requestsPerMinute, tokensPerMinute } = limits
    if (requestsPerMinute !== undefined) this.#requests ??= new Bucket(requestsPerMinute, nowMs)
    if (tokensPerMinute !== undefined) this.#tokens ??= createTokenLoad(tokensPerMinute, nowMs)
    this.#requests?.advance(nowMs, requestsPerMinute)
    this.#tokens?.bucket.advance(nowMs, tokensPerMinute)
  }

  /** What makes a request with so many tokens wait longest; undefined = nothing does. */
  obstacle(tokens: number): Obstacle | undefined {
    const { requestsPerMinute, tokensPerMinute, concurrentRequests } = this.#limits
    const requestMs = requestsPerMinute === undefined ? 0 : waitMs(this.#requests, 1)
    const tokenMs = tokensPerMinute === undefined ? 0 : waitMs(this.#tokens?.bucket, tokens)
    const places = this.#running + this.#arriving
    const concurrentMs = places < (concurrentRequests ?? Number.POSITIVE_INFINITY) ? 0 : concurrentRetryMs
    const retryAfterMs = Math.max(requestMs, tokenMs, concurrentMs)
    if (retryAfterMs === 0) return undefined
    if (retryAfterMs === requestMs) {
      return { limit: 'requests', max: requestsPerMinute ?? 0, used: used(this.#requests), asked: 1, retryAfterMs }
    }
    if (retryAfterMs === tokenMs) {
      const facts = { max: tokensPerMinute ?? 0, used: used(this.#tokens?.bucket), asked: tokens }
      return { limit: 'tokens', ...facts, retryAfterMs }
    }
    return { limit: 'concurrent', max: concurrentRequests ?? 0, used: places, asked: 1, retryAfterMs }
  }

  /** Takes a place for a request whose body is still to come. */
  arrive(): void {
    this.#arriving++
  }

  /** Gives the place back: the body has come, or will not. */
  leave(): void {
    this.#arriving--
  }

  /** Counts a request; `end` takes what this returns. */
  begin(tokens: number): Reservation | undefined {
    this.#running++
    if (this.#limits.requestsPerMinute !== undefined) this.#requests?.take(unitsPerWhole)
    if (this.#limits.tokensPerMinute === undefined) return undefined
    return this.#tokens?.reservations.reserve(tokens)
  }

  /** The limits of now play no part: the request may have begun under others. */
  end(nowMs: number, reservation: Reservation | undefined, tokens: number): void {
    this.#running--
    if (!reservation || !this.#tokens) return
    this.#tokens.bucket.advance(nowMs)
    this.#tokens.reservations.correct(reservation, tokens)
  }

  get requests(): LimitState | undefined {
    return this.#limits.requestsPerMinute === undefined ? undefined : this.#requests?.state
  }

  get tokens(): LimitState | undefined {
    return this.#limits.tokensPerMinute === undefined ? undefined : this.#tokens?.bucket.state
  }

  /** Whether a new one would be the same. */
  isIdle(nowMs: number): boolean {
    if (this.#running + this.#arriving > 0) return false
    this.#requests?.advance(nowMs)
    this.#tokens?.bucket.advance(nowMs)
    return !this.#requests?.usedUnits && !this.#tokens?.bucket.usedUnits
  }
}

function createTokenLoad(limit: number, nowMs: number): TokenLoad {
  const bucket = new Bucket(limit, nowMs)
  return { bucket, reservations: new Reservations(bucket) }
}

function waitMs(bucket: Bucket | undefined, wholes: number): number {
  return bucket?.waitMs(wholes * unitsPerWhole) ?? 0
}

function used(bucket: Bucket | undefined): number {
  return Math.ceil((bucket?.usedUnits ?? 0) / unitsPerWhole)
}
