// What Reservations remembers, as plain data: since which reservation the least in use is how much. A reservation is
// named by its number; it belongs to the last past that begins at or before it.

import { unitsPerWhole } from '../bucket.ts'
import type { BucketState } from './bucket-state.ts'

/** Neighbouring reservations since which the least in use is the same. */
export interface Past {
  /** The number of its oldest reservation. */
  first: number
  leastUnits: number
  /** Reservations that still run; too many where a process died with some of them. */
  running: number
}

/**
 * Beyond this the two nearest become one. That forgets a little of what could be given back, never the reverse, and
 * needs as many requests at once in one scope while nothing drains.
 */
export const pastsMax = 256

export function reserve(bucket: BucketState, pasts: Past[], sequence: number, tokens: number): void {
  lower(pasts, pasts.length, bucket.usedUnits)
  bucket.usedUnits += tokens * unitsPerWhole
  pasts.push({ first: sequence, leastUnits: bucket.usedUnits, running: 1 })
  if (pasts.length > pastsMax) joinNearest(pasts)
  dropEmpty(pasts)
}

export interface Correction {
  readonly sequence: number
  readonly reservedTokens: number
  readonly actualTokens: number
}

/** Ends a reservation, once, with what was really used. */
export function correct(bucket: BucketState, pasts: Past[], correction: Correction): void {
  lower(pasts, pasts.length, bucket.usedUnits)
  const at = pasts.findLastIndex(({ first }) => first <= correction.sequence)
  const past = pasts[at]
  const restUnits = (correction.reservedTokens - correction.actualTokens) * unitsPerWhole
  if (restUnits < 0) bucket.usedUnits -= restUnits
  // Without a past nothing was in use for a moment since then, or the store has lost it: nothing is given back.
  if (past) {
    past.running--
    if (restUnits > 0) giveBack(bucket, pasts, at, Math.min(restUnits, past.leastUnits))
    const still = pasts.indexOf(past)
    if (past.running === 0 && still >= 0) pasts.splice(still, 1)
  }
  dropEmpty(pasts)
}

/** The past is told anew without these units, to everyone whose past it is. */
function giveBack(bucket: BucketState, pasts: Past[], at: number, units: number): void {
  bucket.usedUnits -= units
  for (const past of pasts.slice(at)) past.leastUnits -= units
  lower(pasts, at + 1, pasts[at]?.leastUnits ?? 0)
}

/** Of the pasts before `end`, those with a larger least become one with this least. */
function lower(pasts: Past[], end: number, leastUnits: number): void {
  let start = end
  while (start > 0 && (pasts[start - 1]?.leastUnits ?? 0) >= leastUnits) start--
  const oldest = pasts[start]
  if (start === end || !oldest) return
  oldest.leastUnits = leastUnits
  for (const past of pasts.splice(start + 1, end - start - 1)) oldest.running += past.running
}

/** Where the least is nothing, nothing can be given back, and no past says the same. */
function dropEmpty(pasts: Past[]): void {
  while (pasts[0]?.leastUnits === 0) pasts.shift()
}

function joinNearest(pasts: Past[]): void {
  let nearest = 1
  let least = Number.POSITIVE_INFINITY
  for (let at = 1; at < pasts.length; at++) {
    const difference = (pasts[at]?.leastUnits ?? 0) - (pasts[at - 1]?.leastUnits ?? 0)
    if (difference < least) [nearest, least] = [at, difference]
  }
  const [joined] = pasts.splice(nearest, 1)
  const older = pasts[nearest - 1]
  if (joined && older) older.running += joined.running
}
