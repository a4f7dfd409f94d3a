// A clock that stands still until it is pushed, so that minutes of waiting pass in an instant. The gateway looks at its
// clocks ten times a second: what is due then happens soon after, and a test waits for that and not for the time.

import { type Clock, systemClock } from '../../src/kernel/clock.ts'

export interface JumpClock extends Clock {
  jump(seconds: number): void
}

/** Pushes it in small steps until the promise is over: whatever else waits for a time of its own is done long before. */
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
