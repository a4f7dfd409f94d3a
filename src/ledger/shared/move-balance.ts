// What a batch does to wallets. One wallet is moved by a guarded statement: the guard stands in the UPDATE, so that a
// waiter judges the row as it is when its turn comes, and nothing is read before. Several are locked in the order of
// their ids, decided here and written back at once, because a statement for each would cost more than all the rest.

import type { Nano } from '../../kernel/money.ts'
import type { Sql } from '../../store/sql.ts'
import type { WalletId } from '../account.ts'
import type { Budget, BudgetName, OverBudget } from '../budget.ts'
import { BudgetCounters } from '../budget-counters.ts'
import { lockBudgets, writeBudgets } from './budget-rows.ts'

/** An amount that is taken if the wallet's free part covers it; what leaves at once is taken as far as it does. */
export interface Demand {
  readonly amount: bigint
  /** What the free part, and each cap, must leave for it: at least the amount. */
  readonly room: bigint
  /** Whether it leaves the wallet at once (the rest of a charge) or is reserved. */
  readonly takes: 'posted' | 'held'
  /** What must have room besides the wallet; for what leaves the wallet at once, nothing. */
  readonly caps: readonly Budget[]
  /** Where it is counted. */
  readonly budgets: readonly BudgetName[]
}

/** What the end of a hold means for the budgets it was counted in. */
export interface BudgetEnd {
  readonly budgets: readonly BudgetName[]
  readonly freed: bigint
  readonly charged: bigint
}

export interface WalletMove {
  readonly wallet: WalletId
  /** Covered by the holds that end here, so never refused. */
  charged: bigint
  /** The amounts of the holds that end here. */
  freed: bigint
  /** In the order in which they are served. */
  readonly demands: Demand[]
  readonly budgetEnds: BudgetEnd[]
}

export interface MoveOutcome {
  readonly granted: ReadonlySet<Demand>
  /** What was taken for those that were granted in part. */
  readonly inPart: ReadonlyMap<Demand, bigint>
  /** Those that the wallet would have covered. */
  readonly overBudget: ReadonlyMap<Demand, OverBudget>
  /** As they stand afterwards. */
  readonly posted: Nano
  readonly held: Nano
}

export interface BalanceRow {
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
  const room = wanted + demands.reduce((most, demand) => larger(most, demand.room - demand.amount), 0n)
  const [row] = await sql<BalanceRow>`UPDATE balances SET posted = posted - ${taken}, held = held - ${freed} + ${wanted}
    WHERE account_id = ${wallet} AND posted - ${taken} - (held - ${freed}) >= ${room} RETURNING posted, held`
  if (row) return grantAll(demands, row)
  const outcomes = await moveLocked(sql, [move])
  return outcomes.get(wallet) ?? share(move, nothing, new BudgetCounters())
}

/** Ids and amounts travel as lists in text, so that the statements are the same for any number of wallets. */
async function moveLocked(sql: Sql, moves: readonly WalletMove[]): Promise<Map<WalletId, MoveOutcome>> {
  const ids = moves.map(({ wallet }) => wallet).join(',')
  const rows = await sql<BalanceRow & { id: WalletId }>`SELECT account_id AS id, posted, held FROM balances
    WHERE account_id = ANY(string_to_array(${ids}, ',')) ORDER BY account_id FOR UPDATE`
  const found = new Map(rows.map((row) => [row.id, row]))
  const counters = await lockBudgets(sql, moves.flatMap(budgetsOf))
  const outcomes = new Map<WalletId, MoveOutcome>()
  // No row: a wallet that was never funded. It covers what costs nothing.
  for (const move of moves) outcomes.set(move.wallet, share(move, found.get(move.wallet) ?? nothing, counters))
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
  return { granted: new Set(demands), inPart: none, overBudget: none, posted: posted as Nano, held: held as Nano }
}

/** Serves the demands one by one from what is left once the holds that end are taken off. */
function share({ charged, freed, demands, budgetEnds }: WalletMove, row: BalanceRow, counters: BudgetCounters) {
  let posted = row.posted - charged
  let held = row.held - freed
  for (const end of budgetEnds) {
    counters.free(end.budgets, end.freed)
    counters.spend(end.budgets, end.charged)
  }
  const granted = new Set<Demand>()
  const inPart = new Map<Demand, bigint>()
  const overBudget = new Map<Demand, OverBudget>()
  for (const demand of demands) {
    const { amount, room, budgets } = demand
    if (posted - held < room) {
      const rest = demand.takes === 'posted' ? larger(posted - held, 0n) : 0n
      inPart.set(demand, rest)
      posted -= rest
      counters.spend(budgets, rest)
      continue
    }
    const over = counters.refusal(demand.caps, room)
    if (over) {
      overBudget.set(demand, over)
      continue
    }
    granted.add(demand)
    if (demand.takes === 'posted') {
      posted -= amount
      counters.spend(budgets, amount)
    } else {
      held += amount
      counters.hold(budgets, amount)
    }
  }
  return { granted, inPart, overBudget, posted: posted as Nano, held: held as Nano }
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

function sumOf(demands: readonly Demand[], takes: Demand['takes']): bigint {
  return demands.reduce((sum, demand) => (demand.takes === takes ? sum + demand.amount : sum), 0n)
}
