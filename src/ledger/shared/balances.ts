// Applies a batch to balances and budgets. One wallet without budgets is moved by a single guarded UPDATE: the guard is
// part of the statement, so a replica that waited for the row checks its current value, without a read before.
// Several wallets are locked in the order of their ids, decided in memory and written back at once, because a statement
// for each would cost more than everything else. Budgets are locked after the balances, by name.

import type { Nano } from '../../kernel/money.ts'
import { keptUntil, rollingMinutes } from '../../kernel/spend-limit.ts'
import type { Database } from '../../store/database.ts'
import { insertList } from '../../store/insert-rows.ts'
import type { Sql } from '../../store/sql.ts'
import type { WalletId } from '../account.ts'
import {
  type Budget,
  BudgetCounters,
  type BudgetName,
  type BudgetState,
  type BudgetUse,
  budgetName,
  budgetOfCharge,
  type OverBudget,
  type Promised,
  splitBudgetName,
} from '../budget.ts'

/** An amount that is taken if the free part of the wallet covers it. One that leaves at once may be taken in part. */
export interface Demand {
  readonly amount: bigint
  /** How much must be free in the wallet and below each cap: at least the amount. */
  readonly requiredFree: bigint
  /** What must stay free in the wallet beside that, and in each budget. */
  readonly kept: bigint
  readonly promised?: Promised | undefined
  /** `posted`: it leaves the wallet at once (the rest of a charge). `held`: it is reserved. */
  readonly takes: 'posted' | 'held'
  /** Spend limits that must have room too. */
  readonly caps: readonly Budget[]
  /** The budgets it counts in. */
  readonly budgets: readonly BudgetName[]
}

/** The end of a hold, for the budgets it counted in. */
export interface BudgetEnd {
  readonly budgets: readonly BudgetName[]
  readonly freed: bigint
  /** Those in which the charge counts. */
  readonly chargedIn: readonly BudgetName[]
  readonly charged: bigint
}

export interface WalletMove {
  readonly wallet: WalletId
  /** Covered by the holds that end here, so it is never refused. */
  charged: bigint
  /** The amounts of the holds that end here. */
  freed: bigint
  /** In the order in which they are served. */
  readonly demands: Demand[]
  readonly budgetEnds: BudgetEnd[]
}

export interface MoveOutcome {
  readonly granted: ReadonlySet<Demand>
  /** The spend limits of granted demands, as they were before. */
  readonly uses: ReadonlyMap<Demand, readonly BudgetUse[]>
  /** Amounts taken for demands that were granted in part. */
  readonly inPart: ReadonlyMap<Demand, bigint>
  /** Refused by a spend limit although the wallet would have covered them. */
  readonly overBudget: ReadonlyMap<Demand, OverBudget>
  /** The balance afterwards. */
  readonly posted: Nano
  readonly held: Nano
  /** The credit of plans, before the charges were taken from it. */
  readonly credit: Nano
}

interface BalanceRow {
  readonly posted: bigint
  readonly held: bigint
  readonly credit: bigint
}

/** `minute`: the current one, by the database's clock. */
export async function moveBalances(
  sql: Sql,
  moves: readonly WalletMove[],
  minute: number,
): Promise<Map<WalletId, MoveOutcome>> {
  const [only] = moves
  if (only === undefined) return new Map()
  if (moves.length === 1 && budgetsOf(only).length === 0)
    return new Map([[only.wallet, await moveGuarded(sql, only, minute)]])
  return await moveLocked(sql, moves, minute)
}

function budgetsOf({ demands, budgetEnds }: WalletMove): readonly BudgetName[] {
  return [...demands, ...budgetEnds].flatMap(({ budgets }) => budgets)
}

async function moveGuarded(sql: Sql, move: WalletMove, minute: number): Promise<MoveOutcome> {
  const { wallet, charged, freed, demands } = move
  const taken = charged + sumOf(demands, 'posted')
  const wanted = sumOf(demands, 'held')
  // Enough for any order of the demands: all of them are taken, and each still finds its own margin free.
  const requiredFree =
    wanted + demands.reduce((max, demand) => larger(max, demand.requiredFree + demand.kept - demand.amount), 0n)
  const [row] = await sql<BalanceRow>`UPDATE balances SET posted = posted - ${taken}, held = held - ${freed} + ${wanted}
    WHERE account_id = ${wallet} AND posted - ${taken} - (held - ${freed}) >= ${requiredFree} RETURNING posted, held, credit`
  if (row) return grantAll(demands, row)
  const outcomes = await moveLocked(sql, [move], minute)
  return outcomes.get(wallet) ?? decideMove(move, nothing, new BudgetCounters())
}

/** Ids and amounts are sent as lists in text, so the statements are the same for any number of wallets. */
async function moveLocked(sql: Sql, moves: readonly WalletMove[], minute: number): Promise<Map<WalletId, MoveOutcome>> {
  const ids = moves.map(({ wallet }) => wallet).join(',')
  const rows = await sql<BalanceRow & { id: WalletId }>`SELECT account_id AS id, posted, held, credit FROM balances
    WHERE account_id = ANY(string_to_array(${ids}, ',')) ORDER BY account_id FOR UPDATE`
  const found = new Map(rows.map((row) => [row.id, row]))
  const counters = await lockBudgets(sql, moves.flatMap(budgetsOf), minute)
  const outcomes = new Map<WalletId, MoveOutcome>()
  // A wallet that was never funded has no row. It covers what costs nothing.
  for (const move of moves) outcomes.set(move.wallet, decideMove(move, found.get(move.wallet) ?? nothing, counters))
  const known = [...outcomes].filter(([wallet]) => found.has(wallet))
  const listOf = (pick: (outcome: MoveOutcome) => bigint) => known.map(([, outcome]) => pick(outcome)).join(',')
  if (known.length > 0) {
    await sql`UPDATE balances SET posted = moved.posted, held = moved.held FROM (SELECT
        unnest(string_to_array(${known.map(([wallet]) => wallet).join(',')}, ',')) AS id,
        CAST(unnest(string_to_array(${listOf(({ posted }) => posted)}, ',')) AS BIGINT) AS posted,
        CAST(unnest(string_to_array(${listOf(({ held }) => held)}, ',')) AS BIGINT) AS held) AS moved
      WHERE account_id = moved.id`
  }
  await writeBudgets(sql, counters, minute)
  return outcomes
}

const nothing: BalanceRow = { posted: 0n, held: 0n, credit: 0n }

export function grantAll(demands: readonly Demand[], { posted, held, credit }: BalanceRow): MoveOutcome {
  const none = new Map<Demand, never>()
  return {
    granted: new Set(demands),
    uses: none,
    inPart: none,
    overBudget: none,
    posted: posted as Nano,
    held: held as Nano,
    credit: credit as Nano,
  }
}

/** Ends the holds that end here, then serves the demands one by one from what is left. */
function decideMove({ charged, freed, demands, budgetEnds }: WalletMove, row: BalanceRow, counters: BudgetCounters) {
  let posted = row.posted - charged
  let held = row.held - freed
  for (const end of budgetEnds) {
    counters.free(end.budgets, end.freed)
    counters.spend(end.chargedIn, end.charged)
  }
  const granted = new Set<Demand>()
  const uses = new Map<Demand, readonly BudgetUse[]>()
  const inPart = new Map<Demand, bigint>()
  const overBudget = new Map<Demand, OverBudget>()
  for (const demand of demands) {
    const { amount, requiredFree, kept, promised, budgets } = demand
    if (demand.takes === 'posted') {
      const free = larger(posted - held, 0n)
      const paid = counters.within(demand.caps, free < amount ? free : amount)
      if (paid === amount) granted.add(demand)
      else inPart.set(demand, paid)
      posted -= paid
      counters.spend(budgets, paid)
      continue
    }
    if (posted - held < requiredFree + kept) continue
    const over = counters.refusal(demand.caps, requiredFree, promised)
    if (over) {
      overBudget.set(demand, over)
      continue
    }
    granted.add(demand)
    if (demand.caps.length > 0) uses.set(demand, counters.uses(demand.caps))
    held += amount
    counters.hold(budgets, amount)
  }
  return { granted, uses, inPart, overBudget, posted: posted as Nano, held: held as Nano, credit: row.credit as Nano }
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

function sumOf(demands: readonly Demand[], takes: Demand['takes']): bigint {
  return demands.reduce((sum, demand) => (demand.takes === takes ? sum + demand.amount : sum), 0n)
}

interface BudgetRow {
  readonly scope_id: string
  readonly time_window: string
  readonly spent: Nano
  readonly held: Nano
  readonly counted_from: bigint | null
}

/** Locks the rows until the transaction ends, and inserts those that do not exist yet. `wanted`: also by the names of charges. */
export async function lockBudgets(sql: Sql, wanted: Iterable<BudgetName>, minute: number): Promise<BudgetCounters> {
  const names = [...new Set([...wanted].map((name) => budgetOfCharge(name).budget))].sort()
  if (names.length === 0) return new BudgetCounters()
  let rows = await lockRows(sql, names)
  if (rows.length < names.length) {
    const { scopes, windows } = listsOf(names)
    await sql`INSERT INTO budgets (scope_id, time_window, spent, held) SELECT
        unnest(string_to_array(${scopes}, ',')), unnest(string_to_array(${windows}, ',')), 0, 0 ON CONFLICT DO NOTHING`
    rows = await lockRows(sql, names)
  }
  const moved = await rollOn(sql, rows, minute)
  return new BudgetCounters(
    rows.map((row) => {
      const name = budgetName(row.scope_id, row.time_window)
      return [name, { spent: (row.spent + (moved.get(name) ?? 0n)) as Nano, held: row.held }]
    }),
  )
}

/** Beyond every minute. */
const never = 9_000_000_000_000n

/**
 * By how much the sums of rolling windows have changed since they were added up: what has left, or has come back because the
 * clock was set back. Once a minute for each counter; the rows are locked, so nobody else adds to their minutes.
 */
async function rollOn(sql: Sql, rows: readonly BudgetRow[], minute: number): Promise<ReadonlyMap<BudgetName, bigint>> {
  const late = rows.flatMap(({ scope_id, time_window, counted_from }) => {
    const start = startOf(time_window, minute)
    if (start === undefined || start === counted_from) return []
    const from = counted_from ?? never
    return [
      {
        name: budgetName(scope_id, time_window),
        from: from < start ? from : start,
        until: from < start ? start : from,
        hasLeft: from < start,
      },
    ]
  })
  if (late.length === 0) return new Map()
  const { scopes, windows } = listsOf(late.map(({ name }) => name))
  const sums = await sql<{ scope_id: string; time_window: string; spent: bigint }>`
    SELECT m.scope_id, m.time_window, CAST(SUM(m.spent) AS BIGINT) AS spent FROM (SELECT
        unnest(string_to_array(${scopes}, ',')) AS scope_id, unnest(string_to_array(${windows}, ',')) AS time_window,
        CAST(unnest(string_to_array(${late.map(({ from }) => from).join(',')}, ',')) AS BIGINT) AS first,
        CAST(unnest(string_to_array(${late.map(({ until }) => until).join(',')}, ',')) AS BIGINT) AS until) AS late
      JOIN budget_minutes m ON m.scope_id = late.scope_id AND m.time_window = late.time_window
        AND m.minute >= late.first AND m.minute < late.until
    GROUP BY m.scope_id, m.time_window`
  const left = new Set(late.flatMap(({ name, hasLeft }) => (hasLeft ? name : [])))
  return new Map(
    sums.map((row) => {
      const name = budgetName(row.scope_id, row.time_window)
      return [name, left.has(name) ? -row.spent : row.spent]
    }),
  )
}

/** The first minute that counts in a rolling window; undefined for windows of the calendar. */
function startOf(window: string, minute: number): bigint | undefined {
  const span = rollingMinutes(window)
  return span === undefined ? undefined : BigInt(minute - span)
}

export async function writeBudgets(sql: Sql, counters: BudgetCounters, minute: number): Promise<void> {
  const names = counters.names()
  if (names.length === 0) return
  const { scopes, windows } = listsOf(names)
  const states = names.map((name) => counters.state(name))
  const starts = names.map((name) => startOf(splitBudgetName(name)[1], minute) ?? '')
  await sql`UPDATE budgets SET spent = moved.spent, held = moved.held, counted_from = moved.counted_from FROM (SELECT
      unnest(string_to_array(${scopes}, ',')) AS scope_id, unnest(string_to_array(${windows}, ',')) AS time_window,
      CAST(unnest(string_to_array(${states.map(({ spent }) => spent).join(',')}, ',')) AS BIGINT) AS spent,
      CAST(unnest(string_to_array(${states.map(({ held }) => held).join(',')}, ',')) AS BIGINT) AS held,
      CAST(NULLIF(unnest(string_to_array(${starts.join(',')}, ',')), '') AS BIGINT) AS counted_from) AS moved
    WHERE budgets.scope_id = moved.scope_id AND budgets.time_window = moved.time_window`
  await addToMinutes(sql, counters.inMinutes())
}

/** The counters of these minutes are locked. */
async function addToMinutes(sql: Sql, charged: ReadonlyMap<BudgetName, bigint>): Promise<void> {
  if (charged.size === 0) return
  const rows = [...charged].map(([name, spent]) => {
    const { budget, minute = 0 } = budgetOfCharge(name)
    const [scopeId, window] = splitBudgetName(budget)
    const until = BigInt(keptUntil(window, minute))
    return { scope_id: scopeId, time_window: window, minute: BigInt(minute), spent, seeded: 0n, kept_until: until }
  })
  const onConflict = ` ON CONFLICT (scope_id, time_window, minute)
    DO UPDATE SET spent = budget_minutes.spent + excluded.spent`
  await insertList(sql, 'budget_minutes', rows, onConflict)
}

export async function readBudget(
  { sql }: Pick<Database, 'sql'>,
  scopeId: string,
  window: string,
  minute: number,
): Promise<BudgetState> {
  const [row] = await sql<BudgetState>`SELECT spent, held FROM budgets
    WHERE scope_id = ${scopeId} AND time_window = ${window}`
  const state = row ?? new BudgetCounters().state(budgetName(scopeId, window))
  const start = startOf(window, minute)
  if (start === undefined) return state
  const [sum] = await sql<{ spent: Nano }>`SELECT COALESCE(CAST(SUM(spent) AS BIGINT), 0) AS spent FROM budget_minutes
    WHERE scope_id = ${scopeId} AND time_window = ${window} AND minute >= ${start}`
  return { spent: sum?.spent ?? state.spent, held: state.held }
}

/** As `MinuteSums.leavesBy`. */
export async function readLeavesBy(
  { sql }: Pick<Database, 'sql'>,
  scopeId: string,
  window: string,
  { amount, minute }: { readonly amount: bigint; readonly minute: number },
): Promise<number> {
  const [row] = await sql<{
    minute: bigint | null
  }>`SELECT COALESCE(MIN(CASE WHEN total >= ${amount} THEN minute END), MAX(minute))
      AS minute FROM (SELECT minute, CAST(SUM(spent) OVER (ORDER BY minute) AS BIGINT) AS total FROM budget_minutes
        WHERE scope_id = ${scopeId} AND time_window = ${window} AND minute >= ${startOf(window, minute) ?? 0n}) AS sums`
  return row?.minute == null ? minute : Number(row.minute) + (rollingMinutes(window) ?? 0) + 1
}

function lockRows(sql: Sql, names: readonly BudgetName[]): Promise<BudgetRow[]> {
  const { scopes, windows } = listsOf(names)
  return sql<BudgetRow>`SELECT budgets.scope_id, budgets.time_window, spent, held, counted_from FROM budgets JOIN (SELECT
      unnest(string_to_array(${scopes}, ',')) AS scope_id, unnest(string_to_array(${windows}, ',')) AS time_window) AS wanted
    ON budgets.scope_id = wanted.scope_id AND budgets.time_window = wanted.time_window
    ORDER BY budgets.scope_id, budgets.time_window FOR UPDATE OF budgets`
}

function listsOf(names: readonly BudgetName[]): { readonly scopes: string; readonly windows: string } {
  const pairs = names.map(splitBudgetName)
  return { scopes: pairs.map(([scopeId]) => scopeId).join(','), windows: pairs.map(([, window]) => window).join(',') }
}
