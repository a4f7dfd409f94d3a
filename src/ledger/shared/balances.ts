// Applies a batch to balances and budgets. One wallet without budgets is moved by a single guarded UPDATE: the guard is
// part of the statement, so a replica that waited for the row checks its current value, without a read before.
// Several wallets are locked in the order of their ids, decided in memory and written back at once, because a statement
// for each would cost more than everything else. Budgets are locked after the balances, by name.

import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import type { WalletId } from '../account.ts'
import {
  type Budget,
  BudgetCounters,
  type BudgetName,
  type BudgetState,
  type BudgetUse,
  budgetName,
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
}

interface BalanceRow {
  readonly posted: bigint
  readonly held: bigint
}

export async function moveBalances(sql: Sql, moves: readonly WalletMove[]): Promise<Map<WalletId, MoveOutcome>> {
  const [only] = moves
  if (only === undefined) return new Map()
  if (moves.length === 1 && budgetsOf(only).length === 0) return new Map([[only.wallet, await moveGuarded(sql, only)]])
  return await moveLocked(sql, moves)
}

function budgetsOf({ demands, budgetEnds }: WalletMove): readonly BudgetName[] {
  return [...demands, ...budgetEnds].flatMap(({ budgets }) => budgets)
}

async function moveGuarded(sql: Sql, move: WalletMove): Promise<MoveOutcome> {
  const { wallet, charged, freed, demands } = move
  const taken = charged + sumOf(demands, 'posted')
  const wanted = sumOf(demands, 'held')
  // Enough for any order of the demands: all of them are taken, and each still finds its own margin free.
  const requiredFree =
    wanted + demands.reduce((max, demand) => larger(max, demand.requiredFree + demand.kept - demand.amount), 0n)
  const [row] = await sql<BalanceRow>`UPDATE balances SET posted = posted - ${taken}, held = held - ${freed} + ${wanted}
    WHERE account_id = ${wallet} AND posted - ${taken} - (held - ${freed}) >= ${requiredFree} RETURNING posted, held`
  if (row) return grantAll(demands, row)
  const outcomes = await moveLocked(sql, [move])
  return outcomes.get(wallet) ?? decideMove(move, nothing, new BudgetCounters())
}

/** Ids and amounts are sent as lists in text, so the statements are the same for any number of wallets. */
async function moveLocked(sql: Sql, moves: readonly WalletMove[]): Promise<Map<WalletId, MoveOutcome>> {
  const ids = moves.map(({ wallet }) => wallet).join(',')
  const rows = await sql<BalanceRow & { id: WalletId }>`SELECT account_id AS id, posted, held FROM balances
    WHERE account_id = ANY(string_to_array(${ids}, ',')) ORDER BY account_id FOR UPDATE`
  const found = new Map(rows.map((row) => [row.id, row]))
  const counters = await lockBudgets(sql, moves.flatMap(budgetsOf))
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
  await writeBudgets(sql, counters)
  return outcomes
}

const nothing: BalanceRow = { posted: 0n, held: 0n }

export function grantAll(demands: readonly Demand[], { posted, held }: BalanceRow): MoveOutcome {
  const none = new Map<Demand, never>()
  return {
    granted: new Set(demands),
    uses: none,
    inPart: none,
    overBudget: none,
    posted: posted as Nano,
    held: held as Nano,
  }
}

/** Ends the holds that end here, then serves the demands one by one from what is left. */
function decideMove({ charged, freed, demands, budgetEnds }: WalletMove, row: BalanceRow, counters: BudgetCounters) {
  let posted = row.posted - charged
  let held = row.held - freed
  for (const end of budgetEnds) {
    counters.free(end.budgets, end.freed)
    counters.spend(end.budgets, end.charged)
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
  return { granted, uses, inPart, overBudget, posted: posted as Nano, held: held as Nano }
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
}

/** Locks the rows until the transaction ends, and inserts those that do not exist yet. */
export async function lockBudgets(sql: Sql, wanted: Iterable<BudgetName>): Promise<BudgetCounters> {
  const names = [...new Set(wanted)].sort()
  if (names.length === 0) return new BudgetCounters()
  let rows = await lockRows(sql, names)
  if (rows.length < names.length) {
    const { scopes, windows } = listsOf(names)
    await sql`INSERT INTO budgets (scope_id, time_window, spent, held) SELECT
        unnest(string_to_array(${scopes}, ',')), unnest(string_to_array(${windows}, ',')), 0, 0 ON CONFLICT DO NOTHING`
    rows = await lockRows(sql, names)
  }
  return new BudgetCounters(rows.map((row) => [budgetName(row.scope_id, row.time_window), row]))
}

export async function writeBudgets(sql: Sql, counters: BudgetCounters): Promise<void> {
  const names = counters.names()
  if (names.length === 0) return
  const { scopes, windows } = listsOf(names)
  const states = names.map((name) => counters.state(name))
  await sql`UPDATE budgets SET spent = moved.spent, held = moved.held FROM (SELECT
      unnest(string_to_array(${scopes}, ',')) AS scope_id, unnest(string_to_array(${windows}, ',')) AS time_window,
      CAST(unnest(string_to_array(${states.map(({ spent }) => spent).join(',')}, ',')) AS BIGINT) AS spent,
      CAST(unnest(string_to_array(${states.map(({ held }) => held).join(',')}, ',')) AS BIGINT) AS held) AS moved
    WHERE budgets.scope_id = moved.scope_id AND budgets.time_window = moved.time_window`
}

export async function readBudget(database: Database, scopeId: string, window: string): Promise<BudgetState> {
  const [row] = await database.sql<BudgetState>`SELECT spent, held FROM budgets
    WHERE scope_id = ${scopeId} AND time_window = ${window}`
  return row ?? new BudgetCounters().state(budgetName(scopeId, window))
}

function lockRows(sql: Sql, names: readonly BudgetName[]): Promise<BudgetRow[]> {
  const { scopes, windows } = listsOf(names)
  return sql<BudgetRow>`SELECT budgets.scope_id, budgets.time_window, spent, held FROM budgets JOIN (SELECT
      unnest(string_to_array(${scopes}, ',')) AS scope_id, unnest(string_to_array(${windows}, ',')) AS time_window) AS wanted
    ON budgets.scope_id = wanted.scope_id AND budgets.time_window = wanted.time_window
    ORDER BY budgets.scope_id, budgets.time_window FOR UPDATE OF budgets`
}

function listsOf(names: readonly BudgetName[]): { readonly scopes: string; readonly windows: string } {
  const pairs = names.map(splitBudgetName)
  return { scopes: pairs.map(([scopeId]) => scopeId).join(','), windows: pairs.map(([, window]) => window).join(',') }
}
