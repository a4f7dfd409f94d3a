// The algorithm: what one scope has taken of its limits, as plain data, and what that means for the next request.
// limit-script.lua is the same algorithm for Redis, under the same names; a property test compares the two.
//
// Rates use the generic cell rate algorithm, kept as an amount and not as a time, so that a changed limit finds what was
// used. A bucket drains evenly, and a request fits if the bucket has room for it.
//
// Tokens are reserved by an estimate and corrected when the real count is known. If more was used, the difference is
// taken then. If less was used, the rest cannot simply be given back, because some of it may have drained already. Of
// 1,000 tokens per minute:
//
//   0 s   A reserves 1,000: 1,000 in use
//   59 s  983 of them have drained; B reserves 983: 1,000 in use
//   60 s  A used nothing. Giving back 1,000 would let a third request take 1,000 at once, 2,000 within a second.
//
// The least that was in use since A's reservation (17, just before B) is what A can still account for, so at most that
// is given back. This low-water mark is kept for each running reservation.

import type { LimitState, LimitStates, Obstacle, RateLimits, RateScope, Refused } from './limiter.ts'

export interface Load {
  requests?: Bucket | undefined
  tokens?: Bucket | undefined
  /** Number of the next reservation. Starts with the time, so that numbers from before a loss of state match nothing. */
  sequence: number
  /** Oldest first, and so the lowest first: a later reservation has seen a part of what an earlier one has. */
  readonly lowMarks: LowMark[]
  /** Running requests per process, with an expiry: the slots of a dead process become free. */
  readonly slots: Record<string, Slots>
}

export interface Bucket {
  limit: number
  usedUnits: number
  /** By the store's clock, or that of this process for what is kept here. */
  atMs: number
  /**
   * Requests admitted under a higher limit drain at that limit's pace, down to where the new bucket is full. At the new
   * pace, 600 used and a limit lowered to 6 would lock the scope out for 99 minutes; if the 594 were forgiven, a limit
   * lowered and raised again would admit them twice.
   */
  pace: number
}

/** Consecutive reservations since which the least in use is the same. */
interface LowMark {
  /** The number of its oldest reservation. */
  first: number
  leastUnits: number
  /** Reservations that still run; too many if a process died with some of them. */
  running: number
}

interface Slots {
  readonly running: number
  readonly untilMs: number
}

/** The known load when a request is decided. */
export type LoadReading = Pick<Load, 'requests' | 'tokens'> & { readonly running: number }

/**
 * Units of one request or one token in a bucket. A limit of N per minute then drains exactly N in each whole
 * millisecond, and nothing is ever rounded: 10^11 × 60,000 is below 2^53.
 */
export const unitsPerWhole = 60_000
/** For a limit of 0, where no wait helps: long enough that clients stop retrying. */
const neverMs = 3_600_000
/** The end of a running request is unknown; a second is the least that the official clients wait. */
const concurrentRetryMs = 1000
const sequencesPerMs = 1000
/**
 * Beyond this the two nearest become one. That gives back a little less, never more, and needs as many concurrent
 * requests in one scope while nothing drains.
 */
const lowMarksMax = 256

export function newLoad(nowMs: number): Load {
  return { sequence: nowMs * sequencesPerMs, lowMarks: [], slots: {} }
}

/** Call before any other function, with whole milliseconds. A removed limit leaves its bucket behind: it may come back. */
export function advanceLoad(load: Load, nowMs: number, limits: RateLimits): void {
  const { requestsPerMinute, tokensPerMinute } = limits
  if (requestsPerMinute !== undefined) load.requests ??= newBucket(requestsPerMinute, nowMs)
  if (tokensPerMinute !== undefined) load.tokens ??= newBucket(tokensPerMinute, nowMs)
  if (load.requests) advanceBucket(load.requests, nowMs, requestsPerMinute)
  if (load.tokens) advanceBucket(load.tokens, nowMs, tokensPerMinute)
}

/** The scope that makes a request wait longest; undefined = all have room. `readings` are in the order of `scopes`. */
export function findRefusal(
  scopes: readonly RateScope[],
  readings: readonly LoadReading[],
  tokens: number,
): Refused | undefined {
  let refusing: { readonly scope: RateScope; readonly obstacle: Obstacle } | undefined
  for (const [at, scope] of scopes.entries()) {
    const reading = readings[at]
    const obstacle = reading && findObstacle(scope.limits, reading, tokens)
    if (obstacle && obstacle.retryAfterMs > (refusing?.obstacle.retryAfterMs ?? 0)) refusing = { scope, obstacle }
  }
  return refusing && { kind: 'refused', scope: refusing.scope, ...refusing.obstacle, state: statesOf(scopes, readings) }
}

/** The longest wait; where two are as long, requests come before tokens and tokens before concurrency. */
export function findObstacle(limits: RateLimits, load: LoadReading, tokens: number): Obstacle | undefined {
  const { requestsPerMinute, tokensPerMinute, concurrentRequests } = limits
  const { requests, running } = load
  const requestMs = requestsPerMinute === undefined || !requests ? 0 : waitMs(requests, 1)
  const tokenMs = tokensPerMinute === undefined || !load.tokens ? 0 : waitMs(load.tokens, tokens)
  const concurrentMs = concurrentRequests === undefined || running < concurrentRequests ? 0 : concurrentRetryMs
  const retryAfterMs = Math.max(requestMs, tokenMs, concurrentMs)
  if (retryAfterMs === 0) return undefined
  if (retryAfterMs === requestMs) {
    return { limit: 'requests', max: requestsPerMinute ?? 0, used: usedWholes(requests), asked: 1, retryAfterMs }
  }
  if (retryAfterMs === tokenMs) {
    return { limit: 'tokens', max: tokensPerMinute ?? 0, used: usedWholes(load.tokens), asked: tokens, retryAfterMs }
  }
  return { limit: 'concurrent', max: concurrentRequests ?? 0, used: running, asked: 1, retryAfterMs }
}

export function statesOf(scopes: readonly RateScope[], readings: readonly LoadReading[]): LimitStates {
  let requests: LimitState | undefined
  let tokens: LimitState | undefined
  for (const [at, { limits }] of scopes.entries()) {
    const reading = readings[at]
    if (limits.requestsPerMinute !== undefined) requests = tighter(requests, reading?.requests)
    if (limits.tokensPerMinute !== undefined) tokens = tighter(tokens, reading?.tokens)
  }
  return { ...(requests && { requests }), ...(tokens && { tokens }) }
}

/** The one with less left; where both have as much left, the one that takes longer to reset. */
function tighter(one: LimitState | undefined, bucket: Bucket | undefined): LimitState | undefined {
  if (!bucket) return one
  const other = bucketState(bucket)
  if (!one) return other
  if (one.remaining !== other.remaining) return one.remaining < other.remaining ? one : other
  return one.resetMs >= other.resetMs ? one : other
}

/** Counts a request; returns the number of its token reservation, if tokens are limited. */
export function beginRequest(load: Load, limits: RateLimits, tokens: number): number | undefined {
  if (limits.requestsPerMinute !== undefined && load.requests) load.requests.usedUnits += unitsPerWhole
  if (limits.tokensPerMinute === undefined || !load.tokens) return undefined
  return reserve(load, load.tokens, tokens)
}

export interface Correction {
  readonly sequence: number
  readonly reservedTokens: number
  readonly actualTokens: number
  /** The limit when the request began; only used if the store has lost the scope. */
  readonly tokensPerMinute: number
}

/** Ends a reservation. The current limits do not matter: the request may have begun under others. */
export function correct(load: Load, nowMs: number, correction: Correction): void {
  const { lowMarks } = load
  load.tokens ??= newBucket(correction.tokensPerMinute, nowMs)
  const bucket = load.tokens
  advanceBucket(bucket, nowMs)
  lowerMarks(lowMarks, lowMarks.length, bucket.usedUnits)
  const at = lowMarks.findLastIndex(({ first }) => first <= correction.sequence)
  const mark = lowMarks[at]
  const restUnits = (correction.reservedTokens - correction.actualTokens) * unitsPerWhole
  if (restUnits < 0) bucket.usedUnits -= restUnits
  // Without a mark nothing was in use at some moment since, or the store has lost it: nothing is given back.
  if (mark) {
    mark.running--
    if (restUnits > 0) {
      const units = Math.min(restUnits, mark.leastUnits)
      bucket.usedUnits -= units
      for (const later of lowMarks.slice(at)) later.leastUnits -= units
      lowerMarks(lowMarks, at + 1, mark.leastUnits)
    }
    const still = lowMarks.indexOf(mark)
    if (mark.running === 0 && still >= 0) lowMarks.splice(still, 1)
  }
  dropEmptyMarks(lowMarks)
}

function reserve(load: Load, bucket: Bucket, tokens: number): number {
  const { lowMarks } = load
  const sequence = load.sequence++
  lowerMarks(lowMarks, lowMarks.length, bucket.usedUnits)
  bucket.usedUnits += tokens * unitsPerWhole
  lowMarks.push({ first: sequence, leastUnits: bucket.usedUnits, running: 1 })
  if (lowMarks.length > lowMarksMax) joinNearestMarks(lowMarks)
  dropEmptyMarks(lowMarks)
  return sequence
}

/** Merges the marks before `end` that are not lower into one with this minimum. */
function lowerMarks(lowMarks: LowMark[], end: number, leastUnits: number): void {
  let start = end
  while (start > 0 && (lowMarks[start - 1]?.leastUnits ?? 0) >= leastUnits) start--
  const oldest = lowMarks[start]
  if (start === end || !oldest) return
  oldest.leastUnits = leastUnits
  if (end - start === 1) return
  for (const mark of lowMarks.splice(start + 1, end - start - 1)) oldest.running += mark.running
}

/** A mark at nothing allows nothing to be given back, and so does a missing one. */
function dropEmptyMarks(lowMarks: LowMark[]): void {
  while (lowMarks[0]?.leastUnits === 0) lowMarks.shift()
}

function joinNearestMarks(lowMarks: LowMark[]): void {
  let nearest = 1
  let min = Number.POSITIVE_INFINITY
  for (let at = 1; at < lowMarks.length; at++) {
    const difference = (lowMarks[at]?.leastUnits ?? 0) - (lowMarks[at - 1]?.leastUnits ?? 0)
    if (difference < min) [nearest, min] = [at, difference]
  }
  const [joined] = lowMarks.splice(nearest, 1)
  const older = lowMarks[nearest - 1]
  if (joined && older) older.running += joined.running
}

export function newBucket(limit: number, atMs: number): Bucket {
  return { limit, usedUnits: 0, atMs, pace: limit }
}

/** Drains until now under the old limit, then sets the new one. */
export function advanceBucket(bucket: Bucket, nowMs: number, limit = bucket.limit): void {
  // After a clock that stepped back, the same milliseconds must not drain twice.
  const elapsedMs = Math.max(0, nowMs - bucket.atMs)
  bucket.atMs += elapsedMs
  const fastMs = Math.min(elapsedMs, excessMs(bucket))
  if (fastMs > 0) bucket.usedUnits = Math.max(capacity(bucket), bucket.usedUnits - fastMs * bucket.pace)
  bucket.usedUnits = Math.max(0, bucket.usedUnits - (elapsedMs - fastMs) * bucket.limit)
  // Once for what has drained and once for the new limit, so that advancing in between changes nothing.
  setLimit(bucket, bucket.limit)
  setLimit(bucket, limit)
}

export function usedUnitsAt(bucket: Bucket | undefined, nowMs: number): number {
  if (!bucket) return 0
  advanceBucket(bucket, nowMs)
  return bucket.usedUnits
}

function setLimit(bucket: Bucket, limit: number): void {
  bucket.pace = Math.max(bucket.pace, bucket.limit)
  bucket.limit = limit
  if (bucket.usedUnits <= capacity(bucket)) bucket.pace = limit
}

/** 0 = there is room for so much now; else the whole milliseconds until there is, if nothing else comes. */
export function waitMs(bucket: Bucket, wholes: number): number {
  if (wholes === 0) return 0
  if (bucket.limit === 0) return neverMs
  // A request larger than the bucket is admitted when the bucket is empty.
  return untilMs(bucket, Math.max(0, capacity(bucket) - wholes * unitsPerWhole))
}

export function bucketState(bucket: Bucket): LimitState {
  const remaining = Math.max(0, Math.floor((capacity(bucket) - bucket.usedUnits) / unitsPerWhole))
  return { limit: bucket.limit, remaining, resetMs: untilMs(bucket, 0) }
}

/** Until no more than this is used. */
function untilMs(bucket: Bucket, units: number): number {
  if (bucket.usedUnits <= units) return 0
  if (bucket.limit === 0) return neverMs
  const fastMs = excessMs(bucket)
  const slowUnits = fastMs > 0 ? capacity(bucket) : bucket.usedUnits
  return fastMs + Math.ceil((slowUnits - units) / bucket.limit)
}

/** How long it still drains at the pace of an earlier, higher limit. */
function excessMs(bucket: Bucket): number {
  const excessUnits = bucket.usedUnits - capacity(bucket)
  return bucket.pace > bucket.limit && excessUnits > 0 ? Math.ceil(excessUnits / bucket.pace) : 0
}

function capacity(bucket: Bucket): number {
  return bucket.limit * unitsPerWhole
}

function usedWholes(bucket: Bucket | undefined): number {
  return Math.ceil((bucket?.usedUnits ?? 0) / unitsPerWhole)
}
