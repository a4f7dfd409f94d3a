// The system's clock with a push: minutes of waiting pass in an instant. The gateway looks at its clocks ten times a
// second, so that what is due then happens soon after, and a test waits for that and not for the time.

import { type Clock, systemClock } from '../../src/kernel/clock.ts'

export interface JumpClock extends Clock {
  jump(seconds: number): void
}

export function createJumpClock(): JumpClock {
  let aheadMs = 0
  return {
    now: () => systemClock.now() + aheadMs,
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    jump(seconds) {
      aheadMs += seconds * 1000
    },
  }
}
