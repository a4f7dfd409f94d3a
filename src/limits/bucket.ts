// One limit per minute of one scope: what is used of it, draining evenly. The generic cell rate algorithm, kept as an
// amount and not as a time, so that a changed limit finds what was used. It counts; whether to admit is for others.

import { assert } from '../kernel/assert.ts'
import type { LimitState } from './limiter.ts'

/**
 * What one request or one token counts here. A limit of N per minute then drains exactly N in each whole millisecond,
 * and nothing is ever rounded: 10^11 × 60,000 is below 2^53.
 */
export const unitsPerWhole = 60_000

/** For a limit of 0, against which no wait helps: so long that nobody keeps trying. */
const neverMs = 3_600_000

export class Bucket {
  #limit: number
  #usedUnits = 0
  #nowMs: number
  /**
   * What was admitted under a higher limit drains at that limit's pace, down to where the new bucket is full. At the new
   * pace, 600 used and a limit lowered to 6 would lock the scope out for 99 minutes; if the 594 were forgiven, a limit
   * lowered and raised again would admit them twice.
   */
  #pace: number

  constructor(limit: number, nowMs: number) {
    this.#limit = limit
    this.#pace = limit
    this.#nowMs = nowMs
  }

  /** Comes before every other call, with whole milliseconds. The limit may have changed since the last time. */
  advance(nowMs: number, limit = this.#limit): void {
    // After a clock that stepped back, the same milliseconds must not drain twice.
    const elapsedMs = Math.max(0, nowMs - this.#nowMs)
    this.#nowMs += elapsedMs
    const fastMs = Math.min(elapsedMs, this.#excessMs)
    if (fastMs > 0) this.#usedUnits = Math.max(this.#capacity, this.#usedUnits - fastMs * this.#pace)
    this.#usedUnits = Math.max(0, this.#usedUnits - (elapsedMs - fastMs) * this.#limit)
    this.#pace = Math.max(this.#pace, this.#limit)
    this.#limit = limit
    if (this.#usedUnits <= this.#capacity) this.#pace = limit
  }

  /** 0 = there is room for so much now; else the whole milliseconds until there is, if nothing else comes. */
  waitMs(units: number): number {
    if (units === 0) return 0
    if (this.#limit === 0) return neverMs
    // What is larger than the bucket goes in when nothing else is in it.
    return this.#untilMs(Math.max(0, this.#capacity - units))
  }

  /** May go beyond the limit: the rest is a debt. */
  take(units: number): void {
    this.#usedUnits += units
  }

  giveBack(units: number): void {
    assert(units <= this.#usedUnits, 'a bucket gets back at most what is used')
    this.#usedUnits -= units
  }

  get usedUnits(): number {
    return this.#usedUnits
  }

  get state(): LimitState {
    const remaining = Math.max(0, Math.floor((this.#capacity - this.#usedUnits) / unitsPerWhole))
    return { limit: this.#limit, remaining, resetMs: this.#untilMs(0) }
  }

  /** Until no more than this is used. */
  #untilMs(units: number): number {
    if (this.#usedUnits <= units) return 0
    if (this.#limit === 0) return neverMs
    const excessMs = this.#excessMs
    const slowUnits = excessMs > 0 ? this.#capacity : this.#usedUnits
    return excessMs + Math.ceil((slowUnits - units) / this.#limit)
  }

  /** How long it still drains at the pace of an earlier, higher limit. */
  get #excessMs(): number {
    const excessUnits = this.#usedUnits - this.#capacity
    return this.#pace > this.#limit && excessUnits > 0 ? Math.ceil(excessUnits / this.#pace) : 0
  }

  get #capacity(): number {
    return this.#limit * unitsPerWhole
  }
}
