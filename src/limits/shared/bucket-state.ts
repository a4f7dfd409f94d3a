// A bucket as plain data, so that it can be kept where several processes reach it. The arithmetic is that of Bucket;
// `advance` in limit-script.lua says the same in the language of Redis, and a test compares them.

import { Bucket, unitsPerWhole } from '../bucket.ts'

export interface BucketState {
  limit: number
  usedUnits: number
  /** Of the store's clock, or of this process for what is kept here. */
  atMs: number
  /** How fast it drains what is above the limit: see Bucket. */
  pace: number
}

export function newBucket(limit: number, atMs: number): BucketState {
  return { limit, usedUnits: 0, atMs, pace: limit }
}

/** For questions; what is done to it does not come back into the state. */
export function bucketOf({ limit, usedUnits, atMs, pace }: BucketState): Bucket {
  const bucket = new Bucket(pace, atMs)
  bucket.take(usedUnits)
  bucket.advance(atMs, limit)
  return bucket
}

/** What drained until now did so under the old limit; only then the new one comes, so that looking on changes nothing. */
export function advanceBucket(state: BucketState, nowMs: number, limit = state.limit): void {
  const bucket = bucketOf(state)
  bucket.advance(nowMs)
  state.usedUnits = bucket.usedUnits
  state.atMs = Math.max(state.atMs, nowMs)
  setLimit(state, state.limit)
  setLimit(state, limit)
}

/** As Bucket keeps its pace. */
function setLimit(state: BucketState, limit: number): void {
  state.pace = Math.max(state.pace, state.limit)
  state.limit = limit
  if (state.usedUnits <= limit * unitsPerWhole) state.pace = limit
}

/** Whether there is room for so much now. */
export function fits(state: BucketState, wholes: number): boolean {
  return bucketOf(state).waitMs(wholes * unitsPerWhole) === 0
}

/** What is still in use a while later, by the clock the state was read with. */
export function usedAt(state: BucketState, nowMs: number): number {
  const bucket = bucketOf(state)
  bucket.advance(nowMs)
  return bucket.usedUnits
}
