// The part of `verify` that looks at every charge by itself, in pages, so that its memory does not grow with the ledger:
// whether its usage gives its amount, and whether the charges of a window are what its budget says.

import type { Sql } from '../store/sql.ts'
import { type BudgetName, budgetName, isWindowPast, parseBudgetNames, splitBudgetName } from './budget.ts'
import type { Finding, VerifyContext } from './verify-checks.ts'

const pageMax = 2000
const findingsMax = 20

interface ChargeRow {
  readonly id: string
  readonly amount: bigint
  readonly lost: bigint
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
  let after = ''
  for (;;) {
    const page = await readPage(sql, after)
    for (const row of page) {
      const finding = findings.length < findingsMax ? wrongPrice(context, row) : undefined
      if (finding) findings.push(finding)
      for (const name of parseBudgetNames(row.budgets)) budgets.add(name, row.amount)
    }
    done += page.length
    if (page.length > 0) onProgress(done, total)
    after = page.at(-1)?.id ?? after
    if (page.length < pageMax) break
  }
  return [...findings, ...(await wrongBudgets(sql, budgets))]
}

async function countCharges(sql: Sql): Promise<number> {
  const [row] = await sql<{ n: bigint }>`SELECT COUNT(*) AS n FROM transfers WHERE kind = 'charge'`
  return Number(row?.n ?? 0n)
}

function readPage(sql: Sql, after: string): Promise<ChargeRow[]> {
  return sql<ChargeRow>`SELECT t.id, t.amount, COALESCE(w.amount, 0) AS lost, t.price_version, t.usage, t.estimated,
      t.budgets FROM transfers t LEFT JOIN transfers w ON w.request_id = t.request_id AND w.kind = 'writeoff'
    WHERE t.kind = 'charge' AND t.id > ${after} ORDER BY t.id LIMIT ${BigInt(pageMax)}`
}

/** What was charged and what was written off together are the price of the usage; an estimate is capped by its hold. */
function wrongPrice({ price }: VerifyContext, row: ChargeRow): Finding | undefined {
  if (price === undefined || row.price_version === null) return undefined
  const cost = price(row.price_version, row.usage ?? '')
  const charged = row.amount + row.lost
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
  const [last] = await sql<{ at: bigint }>`SELECT created_at AS at FROM transfers ORDER BY id DESC LIMIT 1`
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
