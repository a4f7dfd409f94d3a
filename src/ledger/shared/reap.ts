// Ends the holds of processes that died, and those past their lifetime. The dead are fenced first, so that one which
// only slept cannot charge afterwards. Any replica may do this at any time, several at once too.

import type { Failpoint } from '../../kernel/failpoint.ts'
import type { RequestId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import { isContention, isRowLocked } from '../../store/sql-error.ts'
import { databaseNow } from '../../store/store-now.ts'
import type { WalletId } from '../account.ts'
import { parseBudgetNames } from '../budget.ts'
import { type CleanOptions, portionMax as cleanMax, cleanPortions } from '../clean.ts'
import type { ReapReport } from '../ledger.ts'
import { lockBudgets, writeBudgets } from './budget-rows.ts'
import { readSilentWallets, takeBack } from './lease-rows.ts'
import { silenceOfDeathMs } from './replica.ts'

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
  const reap = async (scope: ReapScope) => {
    const portion = await insist(() => database.transaction((sql) => reapPortion(sql, scope, reach)))
    reports.push(...portion.rows.map(reportOf))
    return portion
  }
  const busy = new Set<WalletId>()
  for (;;) {
    const { found, locked } = await reap({ except: busy })
    for (const wallet of locked) busy.add(wallet)
    if (found < Number(portionMax)) break
  }
  // Waited for one by one: most are only busy, and one that stays locked keeps no other from what it gets back.
  for (const wallet of busy) {
    await unlessLocked(async () => {
      while ((await reap({ only: wallet })).found === Number(portionMax));
    })
  }
  await reapLeases(database)
  return reports
}

async function reapLeases(database: Database): Promise<void> {
  const deadSince = (await databaseNow(database.sql)) - silenceOfDeathMs
  for (const wallet of await readSilentWallets(database.sql, deadSince)) {
    await unlessLocked(() => insist(() => database.transaction((sql) => takeBack(sql, wallet, deadSince))))
  }
}

/** What is locked now is looked at in the next round. */
async function unlessLocked(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (thrown) {
    if (!isRowLocked(thrown)) throw thrown
  }
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

/** `except`: wallets that were locked; a wallet that is named alone is waited for. */
type ReapScope = { readonly except: ReadonlySet<WalletId> } | { readonly only: WalletId }

interface ReapedPortion {
  readonly rows: readonly ReapedRow[]
  readonly locked: readonly WalletId[]
  /** With those of wallets that were locked. */
  readonly found: number
}

async function reapPortion(sql: Sql, scope: ReapScope, reach: Failpoint): Promise<ReapedPortion> {
  const now = await databaseNow(sql)
  const deadSince = now - silenceOfDeathMs
  await fence(sql, deadSince)
  await reach('in_reap')
  const found = await lockDead(sql, scope, { now, deadSince })
  if (found.length === 0) return { rows: [], locked: [], found: 0 }
  const wallets = [...new Set(found.map((row) => row.wallet_id))].sort()
  const free = 'only' in scope ? new Set(wallets) : await lockFree(sql, wallets)
  const rows = found.filter((row) => free.has(row.wallet_id))
  await sql`UPDATE holds SET state = 'reaped'
    WHERE request_id = ANY(string_to_array(${rows.map((row) => row.request_id).join(',')}, ','))`
  const freed = Map.groupBy(rows, (row) => row.wallet_id)
  for (const wallet of [...freed.keys()].sort()) {
    const amount = (freed.get(wallet) ?? []).reduce((sum, row) => sum + row.amount, 0n)
    await sql`UPDATE balances SET held = held - ${amount} WHERE account_id = ${wallet}`
  }
  await freeBudgets(sql, rows)
  await reach('in_reap')
  return { rows, locked: wallets.filter((wallet) => !free.has(wallet)), found: found.length }
}

async function fence(sql: Sql, deadSince: bigint): Promise<void> {
  await sql`UPDATE replicas SET epoch = epoch + 1 WHERE id IN (SELECT id FROM replicas
      WHERE heartbeat_at < ${deadSince} AND EXISTS (
        SELECT 1 FROM holds WHERE state = 'open' AND owner = replicas.id AND epoch = replicas.epoch)
      ORDER BY id FOR UPDATE SKIP LOCKED) AND heartbeat_at < ${deadSince}`
}

/** Also those of an epoch that is over: a hold may have been written while its owner was being fenced. */
function lockDead(
  sql: Sql,
  scope: ReapScope,
  { now, deadSince }: { readonly now: bigint; readonly deadSince: bigint },
): Promise<ReapedRow[]> {
  const only = 'only' in scope ? scope.only : ''
  const except = 'except' in scope ? [...scope.except].join(',') : ''
  return sql<ReapedRow>`SELECT request_id, wallet_id, amount, sent_at, budgets FROM holds
    WHERE state = 'open' AND (expires_at < ${now} OR NOT EXISTS (
        SELECT 1 FROM replicas WHERE id = holds.owner AND epoch = holds.epoch AND heartbeat_at >= ${deadSince}))
      AND (${only} = '' OR wallet_id = ${only}) AND wallet_id <> ALL(string_to_array(${except}, ','))
    ORDER BY request_id LIMIT ${portionMax} FOR UPDATE OF holds SKIP LOCKED`
}

/** Those of the wallets that nobody else holds on to; one that was never funded has no row to be locked. */
async function lockFree(sql: Sql, wallets: readonly WalletId[]): Promise<ReadonlySet<WalletId>> {
  const ids = wallets.join(',')
  const rows = await sql<{ id: WalletId }>`WITH locked AS MATERIALIZED (SELECT account_id FROM balances
      WHERE account_id = ANY(string_to_array(${ids}, ',')) ORDER BY account_id FOR UPDATE SKIP LOCKED)
    SELECT id FROM unnest(string_to_array(${ids}, ',')) AS id
    WHERE id IN (SELECT account_id FROM locked) OR NOT EXISTS (SELECT 1 FROM balances WHERE account_id = id)`
  return new Set(rows.map(({ id }) => id))
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
