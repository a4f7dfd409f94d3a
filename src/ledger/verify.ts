// Recomputes the books from the transfers and names every row that differs. It only reads, in one snapshot, so it may run
// beside a serving gateway; it changes nothing and repairs nothing.

import { isoTime } from '../kernel/clock.ts'
import type { RequestId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { type Database, snapshotNow } from '../store/database.ts'
import { type Sql, timeFromSql } from '../store/sql.ts'
import { type BudgetName, budgetName, isWindowPast, parseBudgetNames, splitBudgetName } from './budget.ts'

interface VerifyOptions {
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

// The checks that are one query each. A new one is a function in the list. It returns the first rows that are wrong, by id,
// and no text that a caller has written.

export interface Finding {
  /** Which rule is broken. */
  readonly check: string
  /** The row: an account, transfer, request or hold. */
  readonly id: string
  readonly detail: string
}

/** What a stored usage costs under a stored price version; undefined = it cannot be said. */
type PriceOf = (priceVersion: string, usage: string) => Nano | undefined

interface VerifyContext {
  readonly sql: Sql
  readonly price: PriceOf | undefined
  readonly now?: number | undefined
  readonly onProgress?: ((done: number, total: number) => void) | undefined
}

type Check = (context: VerifyContext) => Promise<readonly Finding[]>

const rowsMax = 20n
/** An open hold may be this late before it counts as forgotten: the reaper's promise. */
const reapDelayMs = 60_000n
/** How far clocks of replicas may differ, or be set back, without a warning. */
const clockSkewMs = 300_000n

async function balancesDiffer({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string; posted: bigint; expected: bigint }>`SELECT * FROM (
      SELECT b.account_id AS id, b.posted, COALESCE(c.total, 0) - COALESCE(d.total, 0) AS expected FROM balances b
      LEFT JOIN (SELECT credit_account, CAST(SUM(amount) AS BIGINT) AS total FROM transfers GROUP BY credit_account) c
        ON c.credit_account = b.account_id
      LEFT JOIN (SELECT debit_account, CAST(SUM(amount) AS BIGINT) AS total FROM transfers GROUP BY debit_account) d
        ON d.debit_account = b.account_id) AS sums
    WHERE posted <> expected ORDER BY id LIMIT ${rowsMax}`
  return rows.map(({ id, posted, expected }) => ({
    check: 'balance = Σ transfers',
    id,
    detail: `posted ${posted}, transfers say ${expected}`,
  }))
}

async function heldDiffers({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string; held: bigint; expected: bigint }>`SELECT * FROM (
      SELECT b.account_id AS id, b.held, COALESCE(h.total, 0) AS expected FROM balances b
      LEFT JOIN (SELECT wallet_id, CAST(SUM(amount) AS BIGINT) AS total FROM holds WHERE state = 'open' GROUP BY wallet_id) h
        ON h.wallet_id = b.account_id) AS sums
    WHERE held <> expected ORDER BY id LIMIT ${rowsMax}`
  return rows.map(({ id, held, expected }) => ({
    check: 'held = Σ open holds',
    id,
    detail: `held ${held}, open holds say ${expected}`,
  }))
}

async function overdrawn({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string; posted: bigint; held: bigint }>`SELECT account_id AS id, posted, held
    FROM balances WHERE posted < 0 OR held < 0 OR posted < held ORDER BY account_id LIMIT ${rowsMax}`
  return rows.map(({ id, posted, held }) => ({
    check: 'posted ≥ held ≥ 0',
    id,
    detail: `posted ${posted}, held ${held}`,
  }))
}

/**
 * Also finds a leg that cannot be: whose kind of account does not fit the kind of transfer. A workspace that was never
 * funded has no wallet, and can still make calls that cost nothing.
 */
async function wrongLegs({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string; kind: string; debit: string | null; credit: string | null }>`
    SELECT t.id, t.kind, d.kind AS debit, c.kind AS credit FROM transfers t
    LEFT JOIN accounts d ON d.id = t.debit_account LEFT JOIN accounts c ON c.id = t.credit_account
    WHERE ((d.id IS NULL OR c.id IS NULL) AND NOT (t.kind = 'charge' AND t.amount = 0))
      OR (t.kind = 'charge' AND NOT (d.kind = 'wallet' AND c.kind = 'revenue'))
      OR (t.kind = 'writeoff' AND NOT (d.kind = 'writeoff' AND c.kind = 'revenue'))
      OR (t.kind = 'topup' AND NOT (d.kind = 'funding' AND c.kind = 'wallet'))
      OR (t.kind = 'grant' AND NOT (d.kind = 'grants' AND c.kind = 'wallet'))
      OR (t.kind = 'correction' AND NOT ((d.kind = 'funding' AND c.kind = 'wallet')
        OR (d.kind = 'wallet' AND c.kind = 'funding')))
    ORDER BY t.id LIMIT ${rowsMax}`
  return rows.map(({ id, kind, debit, credit }) => ({
    check: 'accounts fit the transfer',
    id,
    detail: `${kind} from ${debit ?? 'no account'} to ${credit ?? 'no account'}`,
  }))
}

async function walletsWithoutBalance({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string }>`SELECT a.id FROM accounts a LEFT JOIN balances b ON b.account_id = a.id
    WHERE a.kind = 'wallet' AND b.account_id IS NULL ORDER BY a.id LIMIT ${rowsMax}`
  return rows.map(({ id }) => ({ check: 'every wallet has a balance', id, detail: 'no row in balances' }))
}

/** The primary keys allow one row of a request in each table. */
async function settledTwice({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string }>`SELECT r.id FROM requests r JOIN archived_charges a ON a.id = r.id
    WHERE r.charge IS NOT NULL ORDER BY r.id LIMIT ${rowsMax}`
  return rows.map(({ id }) => ({
    check: 'one charge per request',
    id,
    detail: 'charged in the log and in the archive',
  }))
}

/** A hold that says settled has its charge, and a charge has no hold that says otherwise. */
async function holdsAgainstCharges({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string; state: string; charge: string | null }>`
    SELECT h.request_id AS id, h.state, t.id AS charge FROM holds h
    LEFT JOIN transfers t ON t.request_id = h.request_id AND t.kind = 'charge'
    WHERE (h.state = 'settled' AND t.id IS NULL) OR (h.state <> 'settled' AND t.id IS NOT NULL)
    ORDER BY h.request_id LIMIT ${rowsMax}`
  return rows.map(({ id, state, charge }) => ({
    check: 'a hold is settled if and only if it was charged',
    id,
    detail: `the hold is ${state}, ${charge ? `the charge is ${charge}` : 'there is no charge'}`,
  }))
}

/** Only replicas write holds, and by the clock of their database. */
async function forgottenHolds({ sql }: VerifyContext): Promise<Finding[]> {
  const [any] = await sql`SELECT 1 FROM holds WHERE state = 'open' LIMIT 1`
  if (any === undefined) return []
  const now = await snapshotNow(sql)
  const rows = await sql<{ id: string; late: bigint }>`SELECT request_id AS id, ${now} - expires_at AS late FROM holds
    WHERE state = 'open' AND expires_at < ${now - reapDelayMs} ORDER BY request_id LIMIT ${rowsMax}`
  return rows.map(({ id, late }) => ({ check: 'no open hold past its lifetime', id, detail: `${late} ms late` }))
}

async function unknownPrices({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string; version: string }>`SELECT t.id, t.price_version AS version FROM transfers t
    LEFT JOIN prices p ON p.version = t.price_version
    WHERE t.price_version IS NOT NULL AND p.version IS NULL ORDER BY t.id LIMIT ${rowsMax}`
  return rows.map(({ id, version }) => ({ check: 'every price version exists', id, detail: version }))
}

/** A clock that was set back leaves this behind for ever, and no amount depends on it. */
async function timesGoBack({ sql }: VerifyContext): Promise<Finding[]> {
  const rows = await sql<{ id: string; at: bigint; previous: string; back: bigint }>`
    SELECT id, created_at AS at, previous, before - created_at AS back FROM (
      SELECT id, created_at, LAG(created_at) OVER (ORDER BY id) AS before, LAG(id) OVER (ORDER BY id) AS previous
      FROM (SELECT id, created_at FROM fundings UNION ALL SELECT id, started_at FROM requests) AS timed) AS ordered
    WHERE before - created_at > ${clockSkewMs} ORDER BY id LIMIT ${rowsMax}`
  return rows.map(({ id, at, previous, back }) => ({
    check: 'ids and times ascend',
    id,
    detail: `written at ${isoTime(timeFromSql(at))}, ${back / 1000n} s earlier than ${previous} before it: a clock was set back, or clocks of replicas differ`,
  }))
}

export const checks: readonly Check[] = [
  balancesDiffer,
  heldDiffers,
  overdrawn,
  wrongLegs,
  walletsWithoutBalance,
  settledTwice,
  holdsAgainstCharges,
  forgottenHolds,
  unknownPrices,
]

/** What an operator should know although every amount is right. */
const warningChecks: readonly Check[] = [timesGoBack]

const pageMax = 2000
const findingsMax = 20

// Checks every charge by itself, in pages, so that memory does not grow with the ledger: whether its usage gives its amount,
// and whether the charges of a window are what its budget says.

interface ChargeRow {
  /** Of the request. */
  readonly id: RequestId
  readonly charge: bigint
  readonly written_off: bigint | null
  readonly price_version: string | null
  readonly usage: string | null
  readonly estimated: bigint
  readonly budgets: string | null
}

export async function checkCharges(context: VerifyContext): Promise<readonly Finding[]> {
  const { sql, onProgress = () => {} } = context
  const total = await countCharges(sql)
  const budgets = await openWindows(context)
  const findings: Finding[] = []
  let done = 0
  for await (const page of readCharges(sql)) {
    for (const row of page) {
      const finding = findings.length < findingsMax ? wrongPrice(context, row) : undefined
      if (finding) findings.push(finding)
      for (const name of parseBudgetNames(row.budgets)) budgets.add(name, row.charge)
    }
    done += page.length
    onProgress(done, total)
  }
  return [...findings, ...(await wrongBudgets(sql, budgets))]
}

async function countCharges(sql: Sql): Promise<number> {
  const [row] = await sql<{ n: bigint }>`SELECT COUNT(*) AS n FROM charges`
  return Number(row?.n ?? 0n)
}

/** Not through the view `charges`, which SQLite would sort for every page. */
async function* readCharges(sql: Sql): AsyncGenerator<readonly ChargeRow[]> {
  for (const table of ['requests', 'archived_charges']) {
    let after = ''
    for (;;) {
      const page = await sql<ChargeRow>`SELECT id, charge, written_off, price_version, usage, estimated, budgets
        FROM ${sql(table)} WHERE id > ${after} AND charge IS NOT NULL ORDER BY id LIMIT ${BigInt(pageMax)}`
      if (page.length > 0) yield page
      if (page.length < pageMax) break
      after = page.at(-1)?.id ?? after
    }
  }
}

/** What was charged and what was written off together are the price of the usage; an estimate is capped by its hold. */
function wrongPrice({ price }: VerifyContext, row: ChargeRow): Finding | undefined {
  if (price === undefined || row.price_version === null) return undefined
  const cost = price(row.price_version, row.usage ?? '')
  const charged = row.charge + (row.written_off ?? 0n)
  if (cost !== undefined && (row.estimated === 1n ? charged <= cost : charged === cost)) return undefined
  const detail = `charged ${charged}, ${row.price_version} says ${cost ?? 'nothing'}`
  return { check: 'charge = price of the usage', id: row.id, detail }
}

/** Sums by budget, of windows whose counters were not thrown away yet. */
interface BudgetSums {
  readonly sums: ReadonlyMap<BudgetName, bigint>
  isOpen(name: BudgetName): boolean
  add(name: BudgetName, amount: bigint): void
}

async function openWindows({ sql, now: clockNow = 0 }: VerifyContext): Promise<BudgetSums> {
  // A clock that was set back must not make a window of the books look open for ever.
  const [last] = await sql<{ at: bigint | null }>`SELECT MAX(created_at) AS at FROM transfers`
  const now = Math.max(clockNow, Number(last?.at ?? 0n))
  const sums = new Map<BudgetName, bigint>()
  const isOpen = (name: BudgetName) => !isWindowPast(splitBudgetName(name)[1], now)
  return {
    sums,
    isOpen,
    add(name, amount) {
      if (isOpen(name)) sums.set(name, (sums.get(name) ?? 0n) + amount)
    },
  }
}

interface BudgetRow {
  readonly scope_id: string
  readonly time_window: string
  readonly spent: bigint
  readonly held: bigint
  /** The part of `spent` that was charged before there was a limit. */
  readonly seeded: bigint
}

async function wrongBudgets(sql: Sql, { sums, isOpen }: BudgetSums): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  const heldSums = await sumOpenHolds(sql)
  const rows = await sql<BudgetRow>`SELECT scope_id, time_window, spent, held, seeded FROM budgets
    ORDER BY scope_id, time_window`
  const stored = new Map(rows.map((row) => [budgetName(row.scope_id, row.time_window), row]))
  for (const name of new Set([...stored.keys(), ...sums.keys(), ...heldSums.keys()])) {
    const { spent, held, seeded } = stored.get(name) ?? { spent: 0n, held: 0n, seeded: 0n }
    const [spentSum, heldSum] = [sums.get(name) ?? 0n, heldSums.get(name) ?? 0n]
    if (isOpen(name) && spent - seeded !== spentSum) {
      const before = seeded === 0n ? '' : `, of it ${seeded} before there was a limit`
      const detail = `spent ${spent}${before}, charges say ${spentSum}`
      findings.push({ check: "a budget's spent = Σ charges of its window", id: name, detail })
    }
    if (held !== heldSum) {
      const detail = `held ${held}, open holds say ${heldSum}`
      findings.push({ check: "a budget's held = Σ open holds", id: name, detail })
    }
  }
  return findings.slice(0, findingsMax)
}

async function sumOpenHolds(sql: Sql): Promise<ReadonlyMap<BudgetName, bigint>> {
  const rows = await sql<{ budgets: string; total: bigint }>`SELECT budgets, CAST(SUM(amount) AS BIGINT) AS total
    FROM holds WHERE state = 'open' AND budgets IS NOT NULL GROUP BY budgets`
  const sums = new Map<BudgetName, bigint>()
  for (const { budgets, total } of rows) {
    for (const name of parseBudgetNames(budgets)) sums.set(name, (sums.get(name) ?? 0n) + total)
  }
  return sums
}
