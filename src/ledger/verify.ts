// Recomputes the books from the transfers and names every row that differs. It only reads, in one snapshot, so it may run
// beside a serving gateway; it changes nothing and repairs nothing.

import type { Nano } from '../kernel/money.ts'
import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { checks, type Finding, type VerifyContext } from './verify-checks.ts'

export interface VerifyOptions {
  /** Turns a stored usage into what it costs under a stored price version; undefined = it cannot. Without it, not checked. */
  readonly price?: (priceVersion: string, usage: string) => Nano | undefined
}

export interface Verification {
  /** Empty = the books are right. The first rows of every check that failed. */
  readonly findings: readonly Finding[]
  readonly wallets: bigint
  readonly transfers: bigint
}

export function verify(database: Database, { price }: VerifyOptions = {}): Promise<Verification> {
  return database.snapshot(async (sql) => {
    const context: VerifyContext = { sql, price }
    const findings: Finding[] = []
    for (const check of checks) findings.push(...(await check(context)))
    return { findings, ...(await countRows(sql)) }
  })
}

async function countRows(sql: Sql): Promise<{ wallets: bigint; transfers: bigint }> {
  const [row] = await sql<{ wallets: bigint; transfers: bigint }>`SELECT
    (SELECT COUNT(*) FROM balances) AS wallets, (SELECT COUNT(*) FROM transfers) AS transfers`
  return row ?? { wallets: 0n, transfers: 0n }
}
