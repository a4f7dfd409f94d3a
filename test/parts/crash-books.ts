// Checks the ledger's guarantees from outside: what clients received, what was paid in, and what the database contains.
// Returns a sentence for each violation.

import { readRecomputeCharge } from '../../src/catalog/price-versions.ts'
import { verify } from '../../src/ledger/verify.ts'
import type { Database } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import type { Sql } from '../../src/store/sql.ts'
import type { Receipt } from './crash-client.ts'
import type { CrashData } from './crash-gateway.ts'

/** The wallets as the outside world knows them. */
export interface Outside {
  /** Everything paid into all wallets, the opening credit included, in nano-dollars. */
  readonly paidIn: bigint
  readonly receipts: readonly Receipt[]
  /** Calls that were made, answered or not. */
  readonly asked: number
  /** How many wallets there are; absent = one. */
  readonly wallets?: number
}

/** The output of the first start. */
export const openingCredit = 5_000_000_000n
const shownMax = 5

export async function withBooks<T>(data: CrashData, work: (database: Database) => Promise<T>): Promise<T> {
  const database = await openDatabase({
    url: data.databaseUrl,
    dataFolder: data.dataFolder,
    timeoutFactor: 30,
    poolSize: 2,
  })
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

export async function checkBooks(database: Database, outside: Outside): Promise<readonly string[]> {
  const { findings } = await verify(database, { readPrice: readRecomputeCharge })
  const charges = await readCharges(database.sql)
  return [
    ...findings.map(({ check, id, detail }) => `verify: ${check}: ${id}, ${detail}`),
    ...(await checkBalance(database.sql, outside)),
    ...checkReceipts(outside.receipts, charges),
    ...checkCount(outside, charges),
  ]
}

/** Amounts by request; a request with two charges has their sum, which no receipt can equal. */
async function readCharges(sql: Sql): Promise<ReadonlyMap<string, bigint>> {
  const charges = new Map<string, bigint>()
  const rows = await sql<{ request_id: string; amount: bigint }>`SELECT request_id, amount FROM transfers
    WHERE kind = 'charge'`
  for (const { request_id, amount } of rows) charges.set(request_id, (charges.get(request_id) ?? 0n) + amount)
  return charges
}

/** How many charges there are. */
export async function countCharges(sql: Sql): Promise<number> {
  const [row] = await sql<{ n: bigint }>`SELECT COUNT(*) AS n FROM transfers WHERE kind = 'charge'`
  return Number(row?.n ?? 0n)
}

export async function countOpenHolds(sql: Sql): Promise<number> {
  const [row] = await sql<{ n: bigint }>`SELECT COUNT(*) AS n FROM holds WHERE state = 'open'`
  return Number(row?.n ?? 0n)
}

interface Sums {
  readonly wallets: bigint
  readonly posted: bigint
  readonly charged: bigint
}

/** M1 and M4, without a look at what `verify` does. */
async function checkBalance(sql: Sql, { paidIn, wallets: expected = 1 }: Outside): Promise<string[]> {
  // One statement, because a running gateway may charge at any time.
  const [sums] = await sql<Sums>`SELECT (SELECT COUNT(*) FROM balances) AS wallets,
    (SELECT CAST(COALESCE(SUM(posted), 0) AS BIGINT) FROM balances) AS posted,
    (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM transfers WHERE kind = 'charge') AS charged`
  const { wallets = 0n, posted = 0n, charged = 0n } = sums ?? {}
  if (wallets !== BigInt(expected)) return [`expected ${expected} wallet(s), found ${wallets}`]
  const overdrawn = await sql<{ posted: bigint; held: bigint }>`SELECT posted, held FROM balances
    WHERE posted < 0 OR posted < held`
  const faults = overdrawn.map((wallet) => `overdrawn: ${wallet.posted}, held ${wallet.held}`)
  if (posted !== paidIn - charged) faults.push(`balance ${posted}, but ${paidIn} was paid in and ${charged} charged`)
  return faults
}

/** M2 and M3: every complete answer was charged once, at the quoted cost; no rejected request was charged. */
function checkReceipts(receipts: readonly Receipt[], charges: ReadonlyMap<string, bigint>): string[] {
  const faults: string[] = []
  for (const { requestId = 'without an id', end, quoted, expected, status, text } of receipts) {
    const charge = charges.get(requestId)
    if (end === 'complete' && charge === undefined) faults.push(`${requestId} was complete and is not in the ledger`)
    else if (end === 'complete' && (charge !== quoted || quoted !== expected))
      faults.push(`${requestId}: quoted ${quoted}, charged ${charge}, the price is ${expected}`)
    else if (errorSays(text, 'Nothing was charged') && charge !== undefined)
      faults.push(`${requestId}: the error says that nothing was charged, but ${charge} was charged`)
    else if (
      end === 'refused' &&
      charge !== undefined &&
      !errorSays(text, 'it is not known yet whether it was charged')
    )
      faults.push(`${requestId} was refused with ${status} and charged ${charge}`)
  }
  return shortened(faults)
}

/** Whether an error of the answer says so; the words of a prompt or of a model are not an error. */
function errorSays(text: string, words: string): boolean {
  return text.includes('"error"') && text.includes(words)
}

/** A request that were charged under two ids would show here. */
function checkCount({ asked }: Outside, charges: ReadonlyMap<string, bigint>): string[] {
  return charges.size <= asked ? [] : [`${charges.size} charges for ${asked} calls`]
}

function shortened(faults: readonly string[]): string[] {
  if (faults.length <= shownMax) return [...faults]
  return [...faults.slice(0, shownMax), `and ${faults.length - shownMax} more like these`]
}
