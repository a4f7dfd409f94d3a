// The steps of a settlement that both engines share: the amount due, the row that is written with the charge, and the
// result of a request that was settled before. Two calls that settle one request at the same time are one settlement.

import { assert } from '../kernel/assert.ts'
import type { RequestId, WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import type { RequestRow } from '../store/request-rows.ts'
import type { Sql } from '../store/sql.ts'
import { type BudgetName, renderBudgetNames } from './budget.ts'
import type { SettleEnd, Settlement, SettleOutcome } from './ledger.ts'

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

/** The result of an earlier settlement of the request. */
export async function readSettled(sql: Sql, requestId: RequestId): Promise<SettleEnd> {
  const [row] = await sql<{ charge: Nano; written_off: Nano | null }>`SELECT charge, written_off FROM charges
    WHERE request_id = ${requestId}`
  if (!row) return { kind: 'gone' }
  return { kind: 'settled', charge: row.charge, writtenOff: row.written_off ?? (0n as Nano), repeated: true }
}

type Settle = (settlement: Settlement) => Promise<SettleOutcome>

export function settleOnce(settle: Settle): Settle {
  const running = new Map<RequestId, Promise<SettleOutcome>>()
  return (settlement) => {
    const { requestId } = settlement
    const first = running.get(requestId)
    if (first) return first.then(repeatedOutcome)
    const forget = () => void running.delete(requestId)
    const outcome = settle(settlement)
    running.set(requestId, outcome)
    // Until an unknown outcome is certain, the database does not say yet what it will be.
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
