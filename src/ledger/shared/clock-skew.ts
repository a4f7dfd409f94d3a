// How far this machine's clock is from the database's. Money does not depend on it; the ids and times of requests do, and
// with them which requests charts and lists find.

import type { Clock } from '../../kernel/clock.ts'

/** Counting waits for late requests with 40 s to spare; somebody should know well before. */
const toldFromMs = 10_000

export interface SkewWatch {
  /** The database said its time between `begunAt`, by this machine's clock, and now. */
  note(begunAt: number, databaseMs: bigint): void
  /** More than 0 = this machine is ahead. What a slow answer may explain is none. */
  skewMs(): number
}

/** Told once when the difference becomes too large, and again only after it was not. */
export function createSkewWatch(clock: Clock, onSkew: (skewMs: number) => void): SkewWatch {
  let skewMs = 0
  let isTold = false
  return {
    note(begunAt, databaseMs) {
      const told = Number(databaseMs)
      skewMs = told < begunAt ? begunAt - told : Math.min(0, clock.now() - told)
      const isLarge = Math.abs(skewMs) > toldFromMs
      if (isLarge && !isTold) onSkew(skewMs)
      isTold = isLarge
    },
    skewMs: () => skewMs,
  }
}

export function describeSkew(skewMs: number): Error {
  const seconds = Math.round(Math.abs(skewMs) / 1000)
  const where = skewMs > 0 ? 'ahead of' : 'behind'
  return new Error(`it is ${seconds} s ${where} the database's; set it right, or charts and lists miss requests`)
}
