// A clock that stands still until it is pushed, so that minutes pass in an instant. The gateway checks its timers ten times
// a second: a test pushes the clock and waits for the effect.

import { type Clock, systemClock } from '../../src/kernel/clock.ts'

export interface JumpClock extends Clock {
  jump(seconds: number): void
}

/** Pushes the clock in small steps until the promise settles, so that other timers fire in order on the way. */
export async function passTimeUntil<Value>(clock: JumpClock, awaited: Promise<Value>): Promise<Value> {
  let isOver = false
  const over = awaited.finally(() => {
    isOver = true
  })
  while (!isOver) {
    clock.jump(2)
    await Bun.sleep(50)
  }
  return await over
}

export function createJumpClock(): JumpClock {
  const startedAt = systemClock.now()
  let elapsedMs = 0
  return {
    now: () => startedAt + elapsedMs,
    monotonicMs: () => elapsedMs,
    jump(seconds) {
      elapsedMs += seconds * 1000
    },
  }
}
