// Whether money can be committed at the moment, judged by the commits themselves: closed after one that failed and while
// one takes too long, open again after the next that succeeds. A closed gate refuses holds, never settlements.

import type { Clock } from '../kernel/clock.ts'
import { isRowLocked, isStoreUnavailable } from '../store/sql-error.ts'
import type { CommitStats } from './stats.ts'

const outstandingMaxMs = 2000

/** `undecided`: it says nothing about the store. */
export type CommitEnd = 'committed' | 'failed' | 'undecided'

/** A locked row, or two transactions that met, say nothing about the store: others may commit at the same moment. */
export function commitEndOf(thrown: unknown): CommitEnd {
  return isStoreUnavailable(thrown) && !isRowLocked(thrown) ? 'failed' : 'undecided'
}

export interface Gate {
  admits(): boolean
  /** Admits nothing from now on, whatever is committed. */
  close(): void
  /** Whether the last commit failed, so that someone should try whether the next one works. */
  failed(): boolean
  /** Marks the begin of a commit; to be called with its end, once. */
  begin(): (end: CommitEnd) => void
  stats(): CommitStats
}

export function createGate(clock: Clock): Gate {
  const startsMs = new Set<{ readonly at: number }>()
  let lastFailed = false
  let isClosed = false
  const stats = { commits: 0, commitsFailed: 0, commitMsLast: 0, commitMsTotal: 0 }
  const count = (end: CommitEnd, milliseconds: number) => {
    if (end !== 'committed') {
      stats.commitsFailed++
      return
    }
    stats.commits++
    stats.commitMsLast = milliseconds
    stats.commitMsTotal += milliseconds
  }

  return {
    admits() {
      if (isClosed || lastFailed) return false
      for (const start of startsMs) if (clock.monotonicMs() - start.at > outstandingMaxMs) return false
      return true
    },
    close() {
      isClosed = true
    },
    failed: () => lastFailed,
    begin() {
      const start = { at: clock.monotonicMs() }
      startsMs.add(start)
      return (end) => {
        startsMs.delete(start)
        if (end === 'committed' || end === 'failed') lastFailed = end === 'failed'
        count(end, clock.monotonicMs() - start.at)
      }
    },
    stats: () => ({ ...stats }),
  }
}
