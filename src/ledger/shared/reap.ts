// Ends the holds of processes that died, and those past their lifetime. The dead are fenced first, so that one which
// only slept cannot charge afterwards. Any replica may do this at any time, several at once too.

import type { Failpoint } from '../../kernel/failpoint.ts'
import type { RequestId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import { isContention } from '../../store/sql-error.ts'
import type { WalletId } from '../account.ts'
import { parseBudgetNames } from '../budget.ts'
import { type CleanOptions, portionMax as cleanMax, cleanPortions } from '../clean.ts'
import type { ReapReport } from '../ledger.ts'
import { lockBudgets, writeBudgets } from './budget-rows.ts'
import { databaseNow } from './hold-rows.ts'
import { takeBackDead } from './lease-rows.ts'

/** Four heartbeats. */
const silenceOfDeathMs = 20_000n
const portionMax = 500n
const contentionRetriesMax = 3
const hourMs = 3_600_000n

interface ReapedRow {
  readonly request_id: RequestId
  readonly wallet_id: WalletId
  readonly amount: bigint
  readonly sent_at: bigint | null
  readonly budgets: string | null
}

export async function reapHolds(database: Database, reach: Failpoint): Promise<readonly ReapReport[]> {
  const reports: ReapReport[] = []
  for (;;) {
    const rows = await insist(() => database.transaction((sql) => reapPortion(sql, reach)))
    reports.push(...rows.map(reportOf))
    if (rows.length < Number(portionMax)) break
  }
  await insist(() =>
    database.transaction(async (sql) => takeBackDead(sql, (await databaseNow(sql)) - silenceOfDeathMs)),
  )
  return reports
}

/** Other replicas reap and settle at the same time; a deadlock undoes one of them, and leaves nothing of it. */
async function insist<T>(work: () => Promise<T>): Promise<T> {
  for (let retries = 0; ; retries++) {
    try {
      return await work()
    } catch (thrown) {
      if (!isContention(thrown) || retries === contentionRetriesMax) throw thrown
    }
  }
}

function reportOf(row: ReapedRow): ReapReport {
  return { requestId: row.request_id, amount: row.amount as Nano, sent: row.sent_at !== null }
}

async function reapPortion(sql: Sql, reach: Failpoint): Promise<readonly ReapedRow[]> {
  const now = await databaseNow(sql)
  const deadSince = now - silenceOfDeathMs
  await sql`UPDATE replicas SET epoch = epoch + 1 WHERE heartbeat_at < ${deadSince} AND EXISTS (
    SELECT 1 FROM holds WHERE state = 'open' AND owner = replicas.id AND epoch = replicas.epoch)`
  await reach('in_reap')
  // Also those of an epoch that is over: a hold may have been written while its owner was being fenced.
  const rows = await sql<ReapedRow>`UPDATE holds SET state = 'reaped' WHERE state = 'open' AND request_id IN (
      SELECT request_id FROM holds WHERE state = 'open' AND (expires_at < ${now} OR NOT EXISTS (
        SELECT 1 FROM replicas WHERE id = holds.owner AND epoch = holds.epoch AND heartbeat_at >= ${deadSince}))
      ORDER BY request_id LIMIT ${portionMax} FOR UPDATE)
    RETURNING request_id, wallet_id, amount, sent_at, budgets`
  const freed = Map.groupBy(rows, (row) => row.wallet_id)
  for (const wallet of [...freed.keys()].sort()) {
    const amount = (freed.get(wallet) ?? []).reduce((sum, row) => sum + row.amount, 0n)
    await sql`UPDATE balances SET held = held - ${amount} WHERE account_id = ${wallet}`
  }
  await freeBudgets(sql, rows)
  await reach('in_reap')
  return rows
}

async function freeBudgets(sql: Sql, rows: readonly ReapedRow[]): Promise<void> {
  const counted = rows.map(({ amount, budgets }) => ({ amount, names: parseBudgetNames(budgets) }))
  const counters = await lockBudgets(
    sql,
    counted.flatMap(({ names }) => names),
  )
  for (const { amount, names } of counted) counters.free(names, amount)
  await writeBudgets(sql, counters)
}

/** What ended an hour ago has its transfer; the row of the hold says nothing more. */
export async function clearEnded(options: CleanOptions): Promise<void> {
  await cleanPortions(options, async (sql) => {
    const hourAgo = (await databaseNow(sql)) - hourMs
    const rows = await sql`DELETE FROM holds WHERE request_id IN (SELECT request_id FROM holds
      WHERE state <> 'open' AND expires_at < ${hourAgo} ORDER BY expires_at LIMIT ${BigInt(cleanMax)})
      RETURNING 1 AS removed`
    return rows.length
  })
  await options.database.transaction(async (sql) => {
    const yesterday = (await databaseNow(sql)) - 24n * hourMs
    await sql`DELETE FROM replicas WHERE heartbeat_at < ${yesterday}`
  })
}
