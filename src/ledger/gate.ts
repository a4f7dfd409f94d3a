// Whether money can be committed at the moment, judged by the commits themselves: closed after one that failed and while
// one takes too long, open again after the next that succeeds. A closed gate refuses holds, never settlements.

import type { Clock } from '../kernel/clock.ts'

const outstandingMaxMs = 2000

export interface Gate {
  admits(): boolean
  /** Whether the last commit failed, so that someone should try whether the next one works. */
  failed(): boolean
  /** Marks the begin of a commit; to be called with its end, once. `undecided`: it says nothing about the store. */
  begin(): (end: 'committed' | 'failed' | 'undecided') => void
}

export function createGate(clock: Clock): Gate {
  const startsMs = new Set<{ readonly at: number }>()
  let lastFailed = false

  return {
    admits() {
      if (lastFailed) return false
      for (const start of startsMs) if (clock.monotonicMs() - start.at > outstandingMaxMs) return false
      return true
    },
    failed: () => lastFailed,
    begin() {
      const start = { at: clock.monotonicMs() }
      startsMs.add(start)
      return (end) => {
        startsMs.delete(start)
        if (end !== 'undecided') lastFailed = end === 'failed'
      }
    },
  }
}
