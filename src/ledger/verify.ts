// Recomputes the books from the transfers and names every row that differs. It only reads, in one snapshot, so it may run
// beside a serving gateway; it changes nothing and repairs nothing.

import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { checkCharges } from './verify-charges.ts'
import { checks, type Finding, type PriceOf, type VerifyContext, warningChecks } from './verify-checks.ts'

export interface VerifyOptions {
  /** Counters of limits are thrown away some time after their window; without it, the time of the last transfer counts. */
  readonly now?: number
  /** Without this or `readPrice`, the amounts of charges are not recomputed. */
  readonly price?: PriceOf
  /** Makes the same from the snapshot itself, so that no price is missing that was added a moment ago. */
  readonly readPrice?: (sql: Sql) => Promise<PriceOf>
  /** How many charges have been looked at, of how many; comes now and then. */
  readonly onProgress?: (done: number, total: number) => void
}

export interface Verification {
  /** Empty = the books are right. The first rows of every check that failed. */
  readonly findings: readonly Finding[]
  /** Odd rows that make no amount wrong. */
  readonly warnings: readonly Finding[]
  readonly wallets: bigint
  readonly transfers: bigint
}

export function verify(database: Database, options: VerifyOptions = {}): Promise<Verification> {
  return database.snapshot(async (sql) => {
    const price = options.readPrice ? await options.readPrice(sql) : options.price
    const context: VerifyContext = { sql, price, now: options.now, onProgress: options.onProgress }
    const findings: Finding[] = []
    for (const check of [...checks, checkCharges]) findings.push(...(await check(context)))
    const warnings: Finding[] = []
    for (const check of warningChecks) warnings.push(...(await check(context)))
    return { findings, warnings, ...(await countRows(sql)) }
  })
}

async function countRows(sql: Sql): Promise<{ wallets: bigint; transfers: bigint }> {
  const [row] = await sql<{ wallets: bigint; transfers: bigint }>`SELECT
    (SELECT COUNT(*) FROM balances) AS wallets, (SELECT COUNT(*) FROM transfers) AS transfers`
  return row ?? { wallets: 0n, transfers: 0n }
}
