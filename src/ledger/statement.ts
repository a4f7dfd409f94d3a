// The statement of a workspace for one month (UTC), added up from the ledger's own rows: what came in, what was charged, and the
// balance before and after. A charge belongs to the month in which its request ended. For a month that is over it never changes.

import type { WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeFromSql } from '../store/sql.ts'
import { walletOf } from './account.ts'
import { windowEnd, windowStart } from './budget.ts'
import { listFundings, type Transfer } from './transfer.ts'

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
}

/** As seen from the wallet: less than 0 = it left it. */
export function signedAmount({ amount, creditAccount }: Transfer, workspaceId: WorkspaceId): bigint {
  return creditAccount === walletOf(workspaceId) ? amount : -amount
}

/** `month`: `2026-11`; undefined for text that is none. */
export async function readStatement(
  { sql }: Pick<Database, 'sql'>,
  workspaceId: WorkspaceId,
  month: string,
): Promise<Statement | undefined> {
  const [from, until] = [windowStart(`month:${month}`), windowEnd(`month:${month}`)]
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(month) || from === undefined || until === undefined) return undefined
  let opening = 0n
  const fundings: Transfer[] = []
  for (const funding of await listFundings(sql, workspaceId)) {
    if (funding.createdAt < from) opening += signedAmount(funding, workspaceId)
    else if (funding.createdAt < until) fundings.push(funding)
  }
  const sums = new Map<string, { requests: number; amount: bigint }>()
  for await (const { createdAt, amount, model } of readCharges(sql, workspaceId)) {
    if (createdAt < from) opening -= amount
    if (createdAt < from || createdAt >= until) continue
    const sum = sums.get(model) ?? { requests: 0, amount: 0n }
    sums.set(model, { requests: sum.requests + 1, amount: sum.amount + amount })
  }
  const charges = [...sums].map(([model, { requests, amount }]) => ({ model, requests, amount: amount as Nano }))
  charges.sort((a, b) => (a.amount === b.amount ? (a.model < b.model ? -1 : 1) : a.amount < b.amount ? 1 : -1))
  const came = fundings.reduce((sum, funding) => sum + signedAmount(funding, workspaceId), 0n)
  const left = charges.reduce((sum, { amount }) => sum + amount, 0n)
  return { from, until, opening: opening as Nano, closing: (opening + came - left) as Nano, fundings, charges }
}

interface ChargeRow {
  readonly id: string
  readonly created_at: bigint
  readonly charge: bigint
  readonly price_version: string | null
}

/** On the embedded engine, reads hold up running requests. */
const pageMax = 1000

/** In pages, each by the index of its table. The model is in the name of the price version: `acme/large#3`. */
async function* readCharges(sql: Sql, workspaceId: WorkspaceId) {
  const pages = [
    (
      after: string,
    ) => sql<ChargeRow>`SELECT id, started_at + total_ms AS created_at, charge, price_version FROM requests
      WHERE workspace_id = ${workspaceId} AND id > ${after} AND charge IS NOT NULL ORDER BY id LIMIT ${BigInt(pageMax)}`,
    (after: string) => sql<ChargeRow>`SELECT id, created_at, charge, price_version FROM archived_charges
      WHERE workspace_id = ${workspaceId} AND id > ${after} ORDER BY id LIMIT ${BigInt(pageMax)}`,
  ]
  for (const read of pages) {
    for (let after = ''; ; ) {
      const rows = await read(after)
      for (const row of rows) {
        const model = row.price_version?.replace(/#.*/, '') ?? 'without a price'
        yield { createdAt: timeFromSql(row.created_at), amount: row.charge, model }
      }
      const last = rows.at(-1)
      if (!last || rows.length < pageMax) break
      after = last.id
      await yieldToEventLoop()
    }
  }
}
