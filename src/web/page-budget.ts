// How much of the gateway's time strangers may spend on pages. Rendering a long list takes milliseconds in which no
// generation moves, so a flood of page views is refused before it can slow those down.

import type { Clock } from '../kernel/clock.ts'

export interface PageBudget {
  /** False while too much was spent just now. */
  admits(): boolean
  /** Runs it and counts how long it took. */
  spend<Result>(run: () => Result): Result
}

/** Of every second. */
const shareMs = 250
/** What may be spent at once after a quiet time: 100 to 200 views of a list of 200 models. */
const burstMs = 2_000

export function createPageBudget(clock: Clock): PageBudget {
  let spentMs = 0
  let countedAt = clock.monotonicMs()
  const settle = (): number => {
    const now = clock.monotonicMs()
    spentMs = Math.max(0, spentMs - ((now - countedAt) * shareMs) / 1000)
    countedAt = now
    return now
  }
  return {
    admits() {
      settle()
      return spentMs < burstMs
    },
    spend(run) {
      const from = settle()
      try {
        return run()
      } finally {
        spentMs += clock.monotonicMs() - from
      }
    },
  }
}
