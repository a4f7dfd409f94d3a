// The statement of a workspace for one month (UTC), added up from the ledger's own rows: what came in, what was charged, and the
// balance before and after. A charge belongs to the month in which its request ended. For a month that is over it never changes.

import { firstIdAt, type WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeFromSql } from '../store/sql.ts'
import { walletOf } from './account.ts'
import { windowEnd, windowStart } from './budget.ts'
import { listWalletFundings, type Transfer } from './transfer.ts'

export interface Statement {
  readonly from: number
  readonly until: number
  readonly opening: Nano
  readonly closing: Nano
  /** Top-ups, grants and corrections, oldest first. */
  readonly fundings: readonly Transfer[]
  /** By model, most expensive first. */
  readonly charges: readonly ChargeSum[]
}

export interface ChargeSum {
  readonly model: string
  readonly requests: number
  readonly amount: Nano
  /** How much of it was paid from the credit of plans. */
  readonly planCredit: Nano
}

/** Of a transfer into or out of the wallet: less than 0 = it left it. */
export function signedAmount({ amount, creditAccount }: Transfer, workspaceId: WorkspaceId): bigint {
  return creditAccount === walletOf(workspaceId) ? amount : -amount
}

/** A request may run this long; charges by their end are found by ids, which are made at the start. */
const marginMs = 86_400_000

/**
 * `month`: `2026-11`; undefined for text that is none. Goes back from today's balance, so that it reads the month itself and
 * only sums of what came later.
 */
export async function readStatement(
  database: Pick<Database, 'snapshot'>,
  workspaceId: WorkspaceId,
  month: string,
): Promise<Statement | undefined> {
  const [from, until] = [windowStart(`month:${month}`), windowEnd(`month:${month}`)]
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(month) || from === undefined || until === undefined) return undefined
  return await database.snapshot(async (sql) => {
    const [balance] = await sql<{
      posted: bigint
    }>`SELECT posted FROM balances WHERE account_id = ${walletOf(workspaceId)}`
    const all = await listWalletFundings(sql, workspaceId, from)
    const fundings = all.filter(({ createdAt }) => createdAt < until)
    const sums = new Map<string, { requests: number; amount: bigint; planCredit: bigint }>()
    const end = firstIdAt(until)
    let chargedLater = await sumCharges(sql, workspaceId, end)
    for await (const { createdAt, amount, planCredit, model } of readCharges(sql, workspaceId, [
      firstIdAt(Math.max(0, from - marginMs)),
      end,
    ])) {
      if (createdAt >= until) chargedLater += amount
      if (createdAt < from || createdAt >= until) continue
      const sum = sums.get(model) ?? { requests: 0, amount: 0n, planCredit: 0n }
      sums.set(model, {
        requests: sum.requests + 1,
        amount: sum.amount + amount,
        planCredit: sum.planCredit + planCredit,
      })
    }
    const charges = [...sums].map(([model, { requests, amount, planCredit }]) => ({
      ...{ model, requests, amount: amount as Nano, planCredit: planCredit as Nano },
    }))
    charges.sort((a, b) => (a.amount === b.amount ? (a.model < b.model ? -1 : 1) : a.amount < b.amount ? 1 : -1))
    const total = (transfers: readonly Transfer[]) =>
      transfers.reduce((sum, transfer) => sum + signedAmount(transfer, workspaceId), 0n)
    const left = charges.reduce((sum, { amount }) => sum + amount, 0n)
    const closing = (balance?.posted ?? 0n) + chargedLater - (total(all) - total(fundings))
    const opening = closing + left - total(fundings)
    return { from, until, opening: opening as Nano, closing: closing as Nano, fundings, charges }
  })
}

interface ChargeRow {
  readonly id: string
  readonly created_at: bigint
  readonly charge: bigint
  readonly plan_credit: bigint
  readonly price_version: string | null
}

/** On the embedded engine, reads hold up running requests. */
const pageMax = 1000

/** Of requests whose ids are in the range, in pages, each by the index of its table. The model is in the name of the price version: `acme/large#3`. */
async function* readCharges(sql: Sql, workspaceId: WorkspaceId, [first, end]: readonly [first: string, end: string]) {
  const pages = [
    (after: string) => sql<ChargeRow>`SELECT id, started_at + total_ms AS created_at, charge, price_version,
        COALESCE((SELECT CAST(SUM(u.amount) AS BIGINT) FROM credit_uses u
          WHERE u.transfer_id = 'tr_' || substr(c.id, 5)), 0) AS plan_credit
      FROM requests c
      WHERE workspace_id = ${workspaceId} AND id > ${after} AND id < ${end} AND charge IS NOT NULL
      ORDER BY id LIMIT ${BigInt(pageMax)}`,
    (after: string) => sql<ChargeRow>`SELECT id, created_at, charge, price_version,
        COALESCE((SELECT CAST(SUM(u.amount) AS BIGINT) FROM credit_uses u
          WHERE u.transfer_id = 'tr_' || substr(c.id, 5)), 0) AS plan_credit
      FROM archived_charges c
      WHERE workspace_id = ${workspaceId} AND id > ${after} AND id < ${end} ORDER BY id LIMIT ${BigInt(pageMax)}`,
  ]
  for (const read of pages) {
    for (let after = first; ; ) {
      const rows = await read(after)
      for (const row of rows) {
        const model = row.price_version?.replace(/#.*/, '') ?? 'own provider keys'
        yield { createdAt: timeFromSql(row.created_at), amount: row.charge, planCredit: row.plan_credit, model }
      }
      const last = rows.at(-1)
      if (!last || rows.length < pageMax) break
      after = last.id
      await yieldToEventLoop()
    }
  }
}

/** Of requests whose ids come after `first`. */
async function sumCharges(sql: Sql, workspaceId: WorkspaceId, first: string): Promise<bigint> {
  let sum = 0n
  for (const table of ['requests', 'archived_charges']) {
    for (let after = first; ; ) {
      const [page] = await sql<{ count: bigint; last: string | null; total: bigint | null }>`
        SELECT COUNT(*) AS count, MAX(id) AS last, CAST(SUM(charge) AS BIGINT) AS total FROM (SELECT id, charge
          FROM ${sql(table)} WHERE workspace_id = ${workspaceId} AND id > ${after} AND charge IS NOT NULL
          ORDER BY id LIMIT ${BigInt(pageMax)}) AS page`
      sum += page?.total ?? 0n
      if (!page?.last || page.count < BigInt(pageMax)) break
      after = page.last
      await yieldToEventLoop()
    }
  }
  return sum
}
