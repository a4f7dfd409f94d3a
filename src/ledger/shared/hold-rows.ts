// The statements on the rows of holds. Each takes its rows only if they are open and this replica's own in its present
// epoch, so that a hold is ended once, by whoever comes first, and never by a process that was taken for dead.

import type { ReplicaId, RequestId } from '../../kernel/ids.ts'
import { insertList } from '../../store/insert-list.ts'
import { type Sql, timeToSql } from '../../store/sql.ts'
import { walletOf } from '../account.ts'
import { type BudgetName, budgetNames, noBudgets, parseBudgetNames, renderBudgetNames } from '../budget.ts'
import type { ExtendOperation, HoldOperation } from './operation.ts'

/** Who holds. */
export interface Owner {
  readonly id: ReplicaId
  readonly epoch: bigint
  /** The time by the database's clock, as of the last heartbeat. */
  readonly now: bigint
}

/** Ids contain no comma; one text parameter keeps the statement the same for any number of them. */
function listOf(ids: readonly RequestId[]): string {
  return ids.join(',')
}

export interface EndedHold {
  readonly amount: bigint
  readonly budgets: readonly BudgetName[]
}

/** Ends the holds that are still open, and answers with what they held. */
export async function endHolds(
  sql: Sql,
  owner: Owner,
  state: 'settled' | 'released',
  ids: readonly RequestId[],
): Promise<Map<RequestId, EndedHold>> {
  if (ids.length === 0) return new Map()
  // Locked in the order of their ids, as the reaper does.
  const rows = await sql<{
    request_id: RequestId
    amount: bigint
    budgets: string | null
  }>`UPDATE holds SET state = ${state}
    WHERE state = 'open' AND request_id IN (SELECT request_id FROM holds
      WHERE request_id = ANY(string_to_array(${listOf(ids)}, ',')) AND state = 'open'
        AND owner = ${owner.id} AND epoch = ${owner.epoch} ORDER BY request_id FOR UPDATE)
    RETURNING request_id, amount, budgets`
  return new Map(rows.map((row) => [row.request_id, { amount: row.amount, budgets: parseBudgetNames(row.budgets) }]))
}

/** Raises the holds before the wallet is asked (a hold's row is locked before its balance); answers with those raised. */
export async function raiseHolds(
  sql: Sql,
  owner: Owner,
  operations: readonly ExtendOperation[],
): Promise<ReadonlySet<ExtendOperation>> {
  const raised = new Set<ExtendOperation>()
  for (const operation of [...operations].sort((a, b) => (a.requestId < b.requestId ? -1 : 1))) {
    const rows =
      await sql`UPDATE holds SET amount = amount + ${operation.more} WHERE request_id = ${operation.requestId}
      AND state = 'open' AND owner = ${owner.id} AND epoch = ${owner.epoch} RETURNING request_id`
    if (rows.length === 1) raised.add(operation)
  }
  return raised
}

export async function lowerHold(sql: Sql, { requestId, more }: ExtendOperation): Promise<void> {
  await sql`UPDATE holds SET amount = amount - ${more} WHERE request_id = ${requestId}`
}

export async function insertHolds(sql: Sql, owner: Owner, operations: readonly HoldOperation[]): Promise<void> {
  if (operations.length === 0) return
  const rows = operations.map(({ request, lifetimeMs }) => ({
    request_id: request.requestId,
    wallet_id: walletOf(request.workspaceId),
    key_id: request.keyId,
    project_id: request.projectId,
    amount: request.amount,
    state: 'open',
    owner: owner.id,
    epoch: owner.epoch,
    expires_at: owner.now + timeToSql(lifetimeMs),
    sent_at: null,
    budgets: renderBudgetNames(budgetNames(request.budgets ?? noBudgets)),
  }))
  await insertList(sql, 'holds', rows)
}

export async function markHoldsSent(sql: Sql, owner: Owner, ids: readonly RequestId[]): Promise<void> {
  if (ids.length === 0) return
  await sql`UPDATE holds SET sent_at = ${owner.now}
    WHERE request_id = ANY(string_to_array(${listOf(ids)}, ',')) AND state = 'open'`
}
