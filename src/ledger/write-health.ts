// Whether money can be committed at the moment, judged by the commits themselves, and how holds end, for the metrics. A failed
// commit, or one that takes too long, stops new holds until the next commit succeeds; it never stops settlements.

import type { Clock } from '../kernel/clock.ts'
import type { Nano } from '../kernel/money.ts'
import { isRowLocked, isStoreUnavailable } from '../store/sql-error.ts'
import type { CommitStats, EndStats, ReapReport, SettleEnd, Settlement } from './ledger.ts'

const outstandingMaxMs = 2000

/** `undecided`: it says nothing about the store. */
export type CommitEnd = 'committed' | 'failed' | 'undecided'

/** A locked row, or two transactions that met, say nothing about the store: others may commit at the same moment. */
export function commitEndOf(thrown: unknown): CommitEnd {
  return isStoreUnavailable(thrown) && !isRowLocked(thrown) ? 'failed' : 'undecided'
}

export interface WriteHealth {
  admits(): boolean
  /** Admits nothing from now on, whatever is committed. */
  close(): void
  /** Whether the last commit failed, so that someone should try whether the next one works. */
  failed(): boolean
  /** Marks the begin of a commit; to be called with its end, once. */
  begin(): (end: CommitEnd, thrown?: unknown) => void
  stats(): CommitStats
}

/** `onFailing`: called with the first failure after a commit that did not fail. */
export function createWriteHealth(clock: Clock, onFailing: (thrown: unknown) => void = () => {}): WriteHealth {
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
      return (end, thrown) => {
        startsMs.delete(start)
        if (end === 'failed' && !lastFailed) onFailing(thrown)
        if (end === 'committed' || end === 'failed') lastFailed = end === 'failed'
        count(end, clock.monotonicMs() - start.at)
      }
    },
    stats: () => ({ ...stats }),
  }
}

export interface EndCounters {
  readonly stats: EndStats
  settled(settlement: Settlement, end: SettleEnd, held: bigint): void
  reaped(reports: readonly ReapReport[]): void
}

export function createEndCounters(): EndCounters {
  const stats = { charges: 0, estimated: 0, overruns: 0, writtenOff: 0n as Nano, reaped: 0, reapedSent: 0 }
  return {
    stats,
    settled({ cost, estimated }, end, held) {
      if (end.kind !== 'settled') return
      stats.charges++
      if (estimated) stats.estimated++
      if (cost > held) stats.overruns++
      stats.writtenOff = (stats.writtenOff + end.writtenOff) as Nano
    },
    reaped(reports) {
      stats.reaped += reports.length
      stats.reapedSent += reports.filter(({ sent }) => sent).length
    },
  }
}
