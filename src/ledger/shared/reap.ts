// Ends the holds of processes that died, and those past their lifetime. The dead are fenced first, so that one which
// only slept cannot charge afterwards. Any replica may do this at any time, several at once too.

import type { Failpoint } from '../../kernel/failpoint.ts'
import type { RequestId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import { isContention } from '../../store/sql-error.ts'
import type { WalletId } from '../account.ts'
import type { ReapReport } from '../ledger.ts'
import { databaseNow } from './hold-rows.ts'

/** Four heartbeats. */
const silenceOfDeathMs = 20_000n
const portionMax = 500n
const contentionRetriesMax = 3
const dayMs = 86_400_000n

interface ReapedRow {
  readonly request_id: RequestId
  readonly wallet_id: WalletId
  readonly amount: bigint
  readonly sent_at: bigint | null
}

export async function reapHolds(database: Database, reach: Failpoint): Promise<readonly ReapReport[]> {
  const reports: ReapReport[] = []
  for (;;) {
    const rows = await insist(() => database.transaction((sql) => reapPortion(sql, reach)))
    reports.push(...rows.map(reportOf))
    if (rows.length < Number(portionMax)) break
  }
  await clearAway(database)
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
    RETURNING request_id, wallet_id, amount, sent_at`
  const freed = Map.groupBy(rows, (row) => row.wallet_id)
  for (const wallet of [...freed.keys()].sort()) {
    const amount = (freed.get(wallet) ?? []).reduce((sum, row) => sum + row.amount, 0n)
    await sql`UPDATE balances SET held = held - ${amount} WHERE account_id = ${wallet}`
  }
  await reach('in_reap')
  return rows
}

/** What ended long ago has its transfer; the row of the hold says nothing more. */
async function clearAway(database: Database): Promise<void> {
  await database.transaction(async (sql) => {
    const yesterday = (await databaseNow(sql)) - dayMs
    await sql`DELETE FROM replicas WHERE heartbeat_at < ${yesterday}`
    await sql`DELETE FROM holds WHERE request_id IN (
      SELECT request_id FROM holds WHERE state <> 'open' AND expires_at < ${yesterday} ORDER BY expires_at LIMIT 5000)`
  })
}
