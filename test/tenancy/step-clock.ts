// A clock that stands at a moment that is known beforehand and moves by whole milliseconds, so that what is left of a
// minute, a day or a month can be worked out by hand.

import type { Clock } from '../../src/kernel/clock.ts'

export interface StepClock extends Clock {
  pass(milliseconds: number): void
  /** Only what the clock on the wall shows: a gateway on PostgreSQL is not silent for a day because of it. */
  turn(milliseconds: number): void
}

export function createStepClock(start: string): StepClock {
  const startedAt = Date.parse(start)
  let elapsedMs = 0
  let turnedMs = 0
  return {
    now: () => startedAt + elapsedMs + turnedMs,
    monotonicMs: () => elapsedMs,
    pass(milliseconds) {
      elapsedMs += milliseconds
    },
    turn(milliseconds) {
      turnedMs += milliseconds
    },
  }
}
