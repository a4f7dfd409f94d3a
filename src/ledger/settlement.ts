// Settling, the parts that both engines share: the amount due, the row that is written with the charge, the result of a request
// that was settled before, whether commits work at the moment, and counts for the metrics.

import type { Clock } from '../kernel/clock.ts'
import { assert } from '../kernel/failure.ts'
import type { RequestId, WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import type { RequestRow } from '../store/request-rows.ts'
import type { Sql } from '../store/sql.ts'
import { isRowLocked, isStoreUnavailable } from '../store/sql-error.ts'
import { type BudgetName, renderBudgetNames } from './budget.ts'
import type { CommitStats, EndStats, ReapReport, SettleEnd, Settlement, SettleOutcome } from './ledger.ts'

/** The amount that the wallet pays if it can: at most what the caller was quoted. */
export function dueOf({ cost, quoted = cost }: Settlement): Nano {
  return quoted < cost ? quoted : cost
}

/** The row of the request once it is known what the wallet pays; the rest of the cost is the operator's loss. */
export function chargedRow(
  settlement: Settlement,
  workspaceId: WorkspaceId,
  charge: Nano,
  budgets: readonly BudgetName[],
): RequestRow {
  const writtenOff = (settlement.cost - charge) as Nano
  const row = settlement.row({ workspaceId, charge, writtenOff, budgets: renderBudgetNames(budgets) })
  assert(row.id === settlement.requestId && row.workspace_id === workspaceId, 'a request is charged in its own row')
  return row
}

/** The result of an earlier settlement of the request. `charges` is a view of the log's rows. */
export async function readSettled(sql: Sql, requestId: RequestId): Promise<SettleEnd> {
  const [row] = await sql<{ charge: Nano; written_off: Nano | null }>`SELECT charge, written_off FROM charges
    WHERE request_id = ${requestId}`
  if (!row) return { kind: 'gone' }
  return { kind: 'settled', charge: row.charge, writtenOff: row.written_off ?? (0n as Nano), repeated: true }
}

type Settle = (settlement: Settlement) => Promise<SettleOutcome>

/** Two calls that settle one request at the same time are one settlement. */
export function settleOnce(settle: Settle): Settle {
  const running = new Map<RequestId, Promise<SettleOutcome>>()
  return (settlement) => {
    const { requestId } = settlement
    const first = running.get(requestId)
    if (first) return first.then(repeatedOutcome)
    const forget = () => void running.delete(requestId)
    const outcome = settle(settlement)
    running.set(requestId, outcome)
    // While a commit's outcome is unknown, the database may not show it yet.
    outcome.then((known) => (known.kind === 'unknown' ? known.end.then(forget) : forget()), forget)
    return outcome
  }
}

/** The result of a second call for the same request. */
export function repeatedOutcome(outcome: SettleOutcome): SettleOutcome {
  if (outcome.kind !== 'unknown') return repeatedEnd(outcome)
  return { ...outcome, end: outcome.end.then((end) => end && repeatedEnd(end)) }
}

function repeatedEnd(end: SettleEnd): SettleEnd {
  return end.kind === 'settled' ? { ...end, repeated: true } : end
}

// ── Whether commits work ──

// Judged by the commits themselves. A failed commit, or one that takes too long, stops new holds until the next commit
// succeeds; it never stops settlements.

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
  /** Marks the start of a commit; to be called with its end, once. */
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

// ── Counts of how holds end ──

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
