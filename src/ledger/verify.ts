// Recomputes the books from the transfers and names every row that differs. It only reads, in one snapshot, so it may run
// beside a serving gateway; it changes nothing and repairs nothing.

import { isoTime } from '../kernel/clock.ts'
import type { RequestId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { isRolling, minuteAt, minuteWindow, rollingMinutes, splitMinute } from '../kernel/spend-limit.ts'
import { type Database, snapshotNow } from '../store/database.ts'
import { templateOf } from '../store/insert-rows.ts'
import type { Sql } from '../store/sql.ts'
import {
  type BudgetName,
  budgetName,
  budgetOfCharge,
  isWindowPast,
  parseBudgetNames,
  splitBudgetName,
} from './budget.ts'

/** The cost of a stored usage under a stored price version; undefined = it cannot be computed. */
type PriceOf = (priceVersion: string, usage: string) => Nano | undefined

interface VerifyOptions {
  /** Counters of limits are thrown away some time after their window; without it, the time of the last transfer counts. */
  readonly now?: number
  /** Without this or `readPrice`, the amounts of charges are not recomputed. */
  readonly price?: PriceOf
  /** Makes the same from the snapshot itself, so that no price is missing that was added a moment ago. */
  readonly readPrice?: (sql: Sql) => Promise<PriceOf>
  /** How many charges have been checked, of how many; called now and then. */
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

export interface Finding {
  /** Which rule is broken. */
  readonly check: string
  /** The row: an account, transfer, request or hold. */
  readonly id: string
  readonly detail: string
}

export function verify(database: Database, options: VerifyOptions = {}): Promise<Verification> {
  return database.snapshot(async (sql) => {
    const findings = [
      ...(await runChecks(sql)),
      ...(await findForgottenHolds(sql)),
      ...(await checkCharges(sql, options)),
    ]
    const [counts] = await sql<{ wallets: bigint; transfers: bigint }>`SELECT
      (SELECT COUNT(*) FROM balances) AS wallets, (SELECT COUNT(*) FROM transfers) AS transfers`
    const { wallets = 0n, transfers = 0n } = counts ?? {}
    return { findings, warnings: await findTimesGoingBack(sql), wallets, transfers }
  })
}

const findingsMax = 20

const sumsBy = (account: string) =>
  `(SELECT ${account} AS id, CAST(SUM(amount) AS BIGINT) AS total FROM transfers GROUP BY ${account})`

/** A rule, and a query for the `id` and `detail` of each row that breaks it. No text that a caller has written is shown. */
const checks: Readonly<Record<string, string>> = {
  'balance = Σ transfers': `SELECT id, 'posted ' || posted || ', transfers say ' || expected AS detail
    FROM (SELECT b.account_id AS id, b.posted, COALESCE(c.total, 0) - COALESCE(d.total, 0) AS expected FROM balances b
      LEFT JOIN ${sumsBy('credit_account')} c ON c.id = b.account_id
      LEFT JOIN ${sumsBy('debit_account')} d ON d.id = b.account_id) AS sums
    WHERE posted <> expected`,
  'held = Σ open holds': `SELECT id, 'held ' || held || ', open holds say ' || expected AS detail
    FROM (SELECT b.account_id AS id, b.held, COALESCE(h.total, 0) AS expected FROM balances b
      LEFT JOIN (SELECT wallet_id, CAST(SUM(amount) AS BIGINT) AS total FROM holds WHERE state = 'open' GROUP BY wallet_id) h
        ON h.wallet_id = b.account_id) AS sums
    WHERE held <> expected`,
  'posted ≥ held ≥ 0': `SELECT account_id AS id, 'posted ' || posted || ', held ' || held AS detail FROM balances
    WHERE posted < 0 OR held < 0 OR posted < held`,
  // Also finds impossible legs, where the kind of account does not fit the kind of transfer. A workspace that was never
  // funded has no wallet, and can still make calls that cost nothing.
  'accounts fit the transfer': `SELECT t.id,
      t.kind || ' from ' || COALESCE(d.kind, 'no account') || ' to ' || COALESCE(c.kind, 'no account') AS detail
    FROM transfers t LEFT JOIN accounts d ON d.id = t.debit_account LEFT JOIN accounts c ON c.id = t.credit_account
    WHERE ((d.id IS NULL OR c.id IS NULL) AND NOT (t.kind = 'charge' AND t.amount = 0))
      OR (t.kind = 'charge' AND NOT (d.kind = 'wallet' AND c.kind = 'revenue'))
      OR (t.kind = 'writeoff' AND NOT ((d.kind = 'writeoff' AND c.kind IN ('revenue', 'funding'))
        OR (d.kind = 'funding' AND c.kind = 'writeoff')))
      OR (t.kind = 'topup' AND NOT (d.kind = 'funding' AND c.kind = 'wallet'))
      OR (t.kind = 'grant' AND NOT (d.kind = 'grants' AND c.kind = 'wallet'))
      OR (t.kind = 'plan_credit' AND NOT (d.kind = 'plans' AND c.kind = 'wallet'))
      OR (t.kind = 'expiry' AND NOT (d.kind = 'wallet' AND c.kind = 'plans'))
      OR (t.kind = 'correction' AND NOT ((d.kind = 'funding' AND c.kind = 'wallet')
        OR (d.kind = 'wallet' AND c.kind = 'funding')))`,
  'credit of a plan = its grant - its uses': `SELECT id, 'remaining ' || remaining || ', transfers say ' || expected AS detail
    FROM (SELECT c.id, c.remaining, COALESCE(f.amount, 0) - COALESCE(u.total, 0) AS expected FROM credits c
      LEFT JOIN fundings f ON f.id = c.id AND f.kind = 'plan_credit'
      LEFT JOIN (SELECT credit_id, CAST(SUM(amount) AS BIGINT) AS total FROM credit_uses GROUP BY credit_id) u
        ON u.credit_id = c.id) AS sums
    WHERE remaining <> expected`,
  "a wallet's credit = Σ remaining ≤ posted": `SELECT id,
      'credit ' || credit || ' of ' || posted || ', grants say ' || expected AS detail
    FROM (SELECT b.account_id AS id, b.posted, b.credit, COALESCE(c.total, 0) AS expected FROM balances b
      LEFT JOIN (SELECT workspace_id, CAST(SUM(remaining) AS BIGINT) AS total FROM credits GROUP BY workspace_id) c
        ON 'wallet:' || c.workspace_id = b.account_id) AS sums
    WHERE credit <> expected OR credit > posted`,
  'credit is used by a transfer that moves as much': `SELECT u.transfer_id AS id,
      'uses ' || u.total || ' of credit, and moves ' || COALESCE(t.amount, 0) AS detail
    FROM (SELECT transfer_id, CAST(SUM(amount) AS BIGINT) AS total FROM credit_uses GROUP BY transfer_id) u
    LEFT JOIN transfers t ON t.id = u.transfer_id
    WHERE u.total > COALESCE(t.amount, 0) OR (t.kind = 'expiry' AND u.total <> t.amount)`,
  'every grant and expiry of a plan names its credit': `SELECT f.id, f.kind AS detail FROM fundings f
    WHERE (f.kind = 'plan_credit' AND NOT EXISTS (SELECT 1 FROM credits c WHERE c.id = f.id))
      OR (f.kind = 'expiry' AND NOT EXISTS (SELECT 1 FROM credit_uses u WHERE u.transfer_id = f.id))`,
  'credit of a payment = what was paid for': `SELECT c.id, c.time_window || ' grants ' || COALESCE(f.amount, 0) || ', paid for '
      || COALESCE(p.credit, 0) AS detail FROM credits c LEFT JOIN fundings f ON f.id = c.id
    LEFT JOIN plan_payments p ON c.time_window = 'invoice:' || p.id AND p.workspace_id = c.workspace_id
    WHERE SUBSTR(c.time_window, 1, 8) = 'invoice:' AND (p.id IS NULL OR p.is_granted = 0 OR p.credit <> COALESCE(f.amount, 0))`,
  'every wallet has a balance': `SELECT a.id, 'no row in balances' AS detail
    FROM accounts a LEFT JOIN balances b ON b.account_id = a.id WHERE a.kind = 'wallet' AND b.account_id IS NULL`,
  // The embedded engine finds that out after the charge is durable.
  'the database accepted every charge': `SELECT CAST(sequence AS TEXT) AS id, refusal AS detail FROM journal
    WHERE refusal IS NOT NULL`,
  // The primary keys allow one row of a request in each table.
  'one charge per request': `SELECT r.id, 'charged in the log and in the archive' AS detail
    FROM requests r JOIN archived_charges a ON a.id = r.id WHERE r.charge IS NOT NULL`,
  'a hold is settled if and only if it was charged': `SELECT h.request_id AS id,
      'the hold is ' || h.state || ', ' || COALESCE('the charge is ' || t.id, 'there is no charge') AS detail
    FROM holds h LEFT JOIN transfers t ON t.request_id = h.request_id AND t.kind = 'charge'
    WHERE (h.state = 'settled' AND t.id IS NULL) OR (h.state <> 'settled' AND t.id IS NOT NULL)`,
  'every price version exists': `SELECT t.id, t.price_version AS detail
    FROM transfers t LEFT JOIN prices p ON p.version = t.price_version
    WHERE t.price_version IS NOT NULL AND p.version IS NULL`,
}

async function runChecks(sql: Sql): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const [check, query] of Object.entries(checks)) {
    const text = `SELECT id, detail FROM (${query}) AS found ORDER BY id LIMIT ${findingsMax}`
    const rows = await sql<Omit<Finding, 'check'>>(templateOf([text]))
    findings.push(...rows.map(({ id, detail }) => ({ check, id, detail })))
  }
  return findings
}

/** An open hold may be this late before it counts as forgotten: the reaper's promise. */
const reapDelayMs = 60_000n

/** Only replicas write holds, and by the clock of their database. */
async function findForgottenHolds(sql: Sql): Promise<readonly Finding[]> {
  const [any] = await sql`SELECT 1 FROM holds WHERE state = 'open' LIMIT 1`
  if (any === undefined) return []
  const now = await snapshotNow(sql)
  const rows = await sql<{ id: string; late: bigint }>`SELECT request_id AS id, ${now} - expires_at AS late FROM holds
    WHERE state = 'open' AND expires_at < ${now - reapDelayMs} ORDER BY request_id LIMIT ${BigInt(findingsMax)}`
  return rows.map(({ id, late }) => ({ check: 'no open hold past its lifetime', id, detail: `${late} ms late` }))
}

/** How far clocks of replicas may differ, or be set back, without a warning. */
const clockSkewMs = 300_000n

/**
 * A clock that was set back leaves this permanently, and no amount depends on it. Ids of both tables are compared
 * without their prefixes; the rest ascends with time.
 */
async function findTimesGoingBack(sql: Sql): Promise<readonly Finding[]> {
  const rows = await sql<{ id: string; at: bigint; previous: string; back: bigint }>`
    SELECT id, at, previous, before - at AS back FROM (
      SELECT id, place, at, LAG(at) OVER (ORDER BY place) AS before, LAG(id) OVER (ORDER BY place) AS previous
      FROM (SELECT id, SUBSTR(id, 4) AS place, created_at AS at FROM fundings
        UNION ALL SELECT id, SUBSTR(id, 5), started_at FROM requests) AS timed) AS ordered
    WHERE before - at > ${clockSkewMs} ORDER BY place LIMIT ${BigInt(findingsMax)}`
  return rows.map(({ id, at, previous, back }) => ({
    check: 'ids and times ascend',
    id,
    detail: `written at ${isoTime(Number(at))}, ${back / 1000n} s earlier than ${previous} before it: a clock was set back, or clocks of replicas differ`,
  }))
}

// Checks each charge, in pages, so that memory does not grow with the ledger: its amount must follow from its usage, and
// the charges of a window must add up to its budget.

const pageMax = 2000

interface ChargeRow {
  /** Id of the request. */
  readonly id: RequestId
  readonly charge: bigint
  readonly written_off: bigint | null
  readonly price_version: string | null
  readonly usage: string | null
  readonly estimated: bigint
  readonly budgets: string | null
}

async function checkCharges(sql: Sql, options: VerifyOptions): Promise<readonly Finding[]> {
  const { readPrice, onProgress = () => {} } = options
  const price = readPrice ? await readPrice(sql) : options.price
  const [counts] = await sql<{ charges: bigint; last: bigint | null }>`SELECT (SELECT COUNT(*) FROM charges) AS charges,
    (SELECT MAX(created_at) FROM transfers) AS last`
  // A clock that was set back must not keep a window open permanently.
  const now = Math.max(options.now ?? 0, Number(counts?.last ?? 0n))
  const spent = new Map<BudgetName, bigint>()
  const findings: Finding[] = []
  let done = 0
  for await (const page of readCharges(sql)) {
    for (const row of page) {
      const finding = price && findings.length < findingsMax ? wrongPrice(price, row) : undefined
      if (finding) findings.push(finding)
      for (const name of parseBudgetNames(row.budgets)) spent.set(name, (spent.get(name) ?? 0n) + row.charge)
    }
    done += page.length
    onProgress(done, Number(counts?.charges))
  }
  return [...findings, ...(await wrongBudgets(sql, spent, now))]
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

/** The charge and the write-off together are the price of the usage; an estimate is capped by its hold. */
function wrongPrice(price: PriceOf, row: ChargeRow): Finding | undefined {
  if (row.price_version === null) return undefined
  const cost = price(row.price_version, row.usage ?? '')
  const charged = row.charge + (row.written_off ?? 0n)
  if (cost !== undefined && (row.estimated === 1n ? charged <= cost : charged === cost)) return undefined
  const detail = `charged ${charged}, ${row.price_version} says ${cost ?? 'nothing'}`
  return { check: 'charge = price of the usage', id: row.id, detail }
}

interface BudgetRow {
  readonly scope_id: string
  readonly time_window: string
  readonly spent: bigint
  readonly held: bigint
  /** The part of `spent` that was charged before there was a limit. */
  readonly seeded: bigint
}

/** Counters of windows that are long past were thrown away. */
async function wrongBudgets(
  sql: Sql,
  spentSums: ReadonlyMap<BudgetName, bigint>,
  now: number,
): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  const heldSums = await sumOpenHolds(sql)
  const rows = await sql<BudgetRow>`SELECT scope_id, time_window, spent, held, seeded FROM budgets
    ORDER BY scope_id, time_window`
  const stored = new Map(rows.map((row) => [budgetName(row.scope_id, row.time_window), row]))
  const [minuteSums, otherSums] = [new Map<BudgetName, bigint>(), new Map<BudgetName, bigint>()]
  for (const [name, sum] of spentSums)
    (budgetOfCharge(name).minute === undefined ? otherSums : minuteSums).set(name, sum)
  findings.push(...(await wrongMinutes(sql, minuteSums, now)), ...(await wrongRollingSums(sql)))
  for (const name of new Set([...stored.keys(), ...otherSums.keys(), ...heldSums.keys()])) {
    const { spent, held, seeded } = stored.get(name) ?? { spent: 0n, held: 0n, seeded: 0n }
    const [spentSum, heldSum] = [otherSums.get(name) ?? 0n, heldSums.get(name) ?? 0n]
    if (
      !isRolling(splitBudgetName(name)[1]) &&
      spent - seeded !== spentSum &&
      !isWindowPast(splitBudgetName(name)[1], now)
    ) {
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

/** Minutes that have left their window are thrown away some time later. */
async function wrongMinutes(sql: Sql, sums: ReadonlyMap<BudgetName, bigint>, now: number): Promise<readonly Finding[]> {
  const left = new Map(sums)
  const findings: Finding[] = []
  const report = (id: BudgetName, spent: bigint, sum: bigint) =>
    findings.push({ check: "a minute's spent = Σ charges of it", id, detail: `spent ${spent}, charges say ${sum}` })
  for await (const { scope_id, time_window, minute, spent, seeded } of readMinutes(sql)) {
    const name = budgetName(scope_id, minuteWindow(time_window, Number(minute)))
    const sum = left.get(name) ?? 0n
    if (spent - seeded !== sum) report(name, spent - seeded, sum)
    left.delete(name)
  }
  for (const [name, sum] of left) {
    const { word = '', minute = 0 } = splitMinute(splitBudgetName(name)[1]) ?? {}
    if (sum > 0n && minute + (rollingMinutes(word) ?? 0) >= minuteAt(now)) report(name, 0n, sum)
  }
  return findings.slice(0, findingsMax)
}

interface MinuteRow {
  readonly scope_id: string
  readonly time_window: string
  readonly minute: bigint
  readonly spent: bigint
  readonly seeded: bigint
}

async function* readMinutes(sql: Sql): AsyncGenerator<MinuteRow> {
  let [scope, window, minute] = ['', '', -1n]
  for (;;) {
    const page = await sql<MinuteRow>`SELECT scope_id, time_window, minute, spent, seeded FROM budget_minutes
      WHERE (scope_id, time_window, minute) > (${scope}, ${window}, ${minute})
      ORDER BY scope_id, time_window, minute LIMIT ${BigInt(pageMax)}`
    yield* page
    const last = page.at(-1)
    if (!last || page.length < pageMax) return
    ;[scope, window, minute] = [last.scope_id, last.time_window, last.minute]
  }
}

/** The sums that replicas keep of rolling windows. */
async function wrongRollingSums(sql: Sql): Promise<readonly Finding[]> {
  const rows = await sql<{ scope_id: string; time_window: string; spent: bigint; expected: bigint }>`
    SELECT * FROM (SELECT b.scope_id, b.time_window, b.spent, COALESCE((SELECT CAST(SUM(m.spent) AS BIGINT) FROM budget_minutes m
        WHERE m.scope_id = b.scope_id AND m.time_window = b.time_window AND m.minute >= b.counted_from), 0) AS expected
      FROM budgets b WHERE b.counted_from IS NOT NULL) AS sums
    WHERE spent <> expected ORDER BY scope_id, time_window LIMIT ${BigInt(findingsMax)}`
  return rows.map(({ scope_id, time_window, spent, expected }) => ({
    check: "a rolling window's spent = Σ its minutes",
    id: budgetName(scope_id, time_window),
    detail: `spent ${spent}, minutes say ${expected}`,
  }))
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
