// A clock that stands still until it is pushed, so that minutes of waiting pass in an instant. The gateway looks at its
// clocks ten times a second: what is due then happens soon after, and a test waits for that and not for the time.

import { type Clock, systemClock } from '../../src/kernel/clock.ts'

export interface JumpClock extends Clock {
  jump(seconds: number): void
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
