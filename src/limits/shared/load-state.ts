// What one scope has taken of its limits, as plain data: the counterpart of ScopeLoad for several processes. Who runs how
// many requests is kept per process, with an end: the places of one that died become free by themselves.

import { unitsPerWhole } from '../bucket.ts'
import type { Limits } from '../limit.ts'
import { advanceBucket, type BucketState, bucketOf, fits, newBucket } from './bucket-state.ts'
import { type Correction, correct, type Past, reserve } from './past.ts'

export interface LoadState {
  requests?: BucketState
  tokens?: BucketState
  /** Of the next reservation. Begins with the time, so that numbers from before a loss of the state name nothing. */
  sequence: number
  readonly pasts: Past[]
  readonly places: Record<string, Place>
}

/** What one process has running in a scope. */
export interface Place {
  readonly running: number
  readonly untilMs: number
}

/** What was in use elsewhere that the store may not know of, after it could not be asked for a while. */
export interface Seed {
  readonly limits: Limits
  readonly requests: SeedUnits
  readonly tokens: SeedUnits
}

export interface SeedUnits {
  /** Where the store knows nothing of the scope: what it knew when it last answered, drained since. */
  readonly lostUnits: number
  /** What was let through without it. */
  readonly addedUnits: number
}

const sequencesPerMs = 1000

export function newLoad(nowMs: number): LoadState {
  return { sequence: nowMs * sequencesPerMs, pasts: [], places: {} }
}

/** Comes before every other call. A limit that is gone leaves its bucket behind: it may come back. */
export function advanceLoad(load: LoadState, nowMs: number, limits: Limits): void {
  const { requestsPerMinute, tokensPerMinute } = limits
  if (requestsPerMinute !== undefined) load.requests ??= newBucket(requestsPerMinute, nowMs)
  if (tokensPerMinute !== undefined) load.tokens ??= newBucket(tokensPerMinute, nowMs)
  if (load.requests) advanceBucket(load.requests, nowMs, requestsPerMinute)
  if (load.tokens) advanceBucket(load.tokens, nowMs, tokensPerMinute)
}

export function hasRoom(load: LoadState, limits: Limits, tokens: number, nowMs: number): boolean {
  const { requestsPerMinute, tokensPerMinute, concurrentRequests } = limits
  if (requestsPerMinute !== undefined && load.requests && !fits(load.requests, 1)) return false
  if (tokensPerMinute !== undefined && load.tokens && !fits(load.tokens, tokens)) return false
  return concurrentRequests === undefined || runningIn(load, nowMs) < concurrentRequests
}

/** Counts a request; the number of its reservation, if tokens are limited. */
export function beginRequest(load: LoadState, limits: Limits, tokens: number): number | undefined {
  if (limits.requestsPerMinute !== undefined && load.requests) load.requests.usedUnits += unitsPerWhole
  if (limits.tokensPerMinute === undefined || !load.tokens) return undefined
  const sequence = load.sequence++
  reserve(load.tokens, load.pasts, sequence, tokens)
  return sequence
}

export interface Ended extends Correction {
  /** As it was when the request began; counts only if the store has forgotten the scope. */
  readonly tokensPerMinute: number
}

export function endReservation(load: LoadState, nowMs: number, ended: Ended): void {
  load.tokens ??= newBucket(ended.tokensPerMinute, nowMs)
  advanceBucket(load.tokens, nowMs)
  correct(load.tokens, load.pasts, ended)
}

export function seedLoad(load: LoadState, nowMs: number, { limits, requests, tokens }: Seed): void {
  const lost = { requests: load.requests === undefined, tokens: load.tokens === undefined }
  advanceLoad(load, nowMs, limits)
  if (load.requests) seedBucket(load.requests, requests, lost.requests)
  if (load.tokens) seedBucket(load.tokens, tokens, lost.tokens)
}

/** Up to the limit only: nobody shall wait longer for what was let through than if it had been refused. */
function seedBucket(bucket: BucketState, { lostUnits, addedUnits }: SeedUnits, isLost: boolean): void {
  const units = bucket.usedUnits + (isLost ? lostUnits : 0) + addedUnits
  bucket.usedUnits = Math.max(bucket.usedUnits, Math.min(units, bucket.limit * unitsPerWhole))
}

/** Over all processes whose time is not up. */
export function runningIn(load: LoadState, nowMs: number): number {
  let running = 0
  for (const place of Object.values(load.places)) if (place.untilMs > nowMs) running += place.running
  return running
}

export function setPlace(load: LoadState, replica: string, place: Place): void {
  if (place.running > 0) load.places[replica] = place
  else delete load.places[replica]
}

/** How long the state says anything that a new one would not. */
export function lifetimeMs(load: LoadState, nowMs: number): number {
  let lifetime = 0
  for (const bucket of [load.requests, load.tokens]) {
    if (bucket) lifetime = Math.max(lifetime, bucket.atMs - nowMs + bucketOf(bucket).state.resetMs)
  }
  for (const { untilMs } of Object.values(load.places)) lifetime = Math.max(lifetime, untilMs - nowMs)
  return lifetime
}
