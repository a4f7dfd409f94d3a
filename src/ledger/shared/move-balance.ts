// What a batch does to wallets. One wallet is moved by a guarded statement: the guard stands in the UPDATE, so that a
// waiter judges the row as it is when its turn comes, and nothing is read before. Several are locked in the order of
// their ids, decided here and written back at once, because a statement for each would cost more than all the rest.

import type { Nano } from '../../kernel/money.ts'
import type { Sql } from '../../store/sql.ts'
import type { WalletId } from '../account.ts'

/** An amount that is taken only if the wallet's free part covers it. */
export interface Demand {
  readonly amount: bigint
  /** Whether it leaves the wallet at once (the rest of a charge) or is reserved. */
  readonly takes: 'posted' | 'held'
}

export interface WalletMove {
  readonly wallet: WalletId
  /** Covered by the holds that end here, so never refused. */
  charged: bigint
  /** The amounts of the holds that end here. */
  freed: bigint
  /** In the order in which they are served. */
  readonly demands: Demand[]
}

export interface MoveOutcome {
  readonly granted: ReadonlySet<Demand>
  /** As they stand afterwards. */
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
  if (moves.length === 1) return new Map([[only.wallet, await moveGuarded(sql, only)]])
  return await moveLocked(sql, moves)
}

async function moveGuarded(sql: Sql, move: WalletMove): Promise<MoveOutcome> {
  const { wallet, charged, freed, demands } = move
  const taken = charged + sumOf(demands, 'posted')
  const wanted = sumOf(demands, 'held')
  const [row] = await sql<BalanceRow>`UPDATE balances SET posted = posted - ${taken}, held = held - ${freed} + ${wanted}
    WHERE account_id = ${wallet} AND posted - ${taken} - (held - ${freed}) >= ${wanted} RETURNING posted, held`
  if (row) return { granted: new Set(demands), posted: row.posted as Nano, held: row.held as Nano }
  const outcomes = await moveLocked(sql, [move])
  return outcomes.get(wallet) ?? share(move, nothing)
}

/** Ids and amounts travel as lists in text, so that the statements are the same for any number of wallets. */
async function moveLocked(sql: Sql, moves: readonly WalletMove[]): Promise<Map<WalletId, MoveOutcome>> {
  const ids = moves.map(({ wallet }) => wallet).join(',')
  const rows = await sql<BalanceRow & { id: WalletId }>`SELECT account_id AS id, posted, held FROM balances
    WHERE account_id = ANY(string_to_array(${ids}, ',')) ORDER BY account_id FOR UPDATE`
  const found = new Map(rows.map((row) => [row.id, row]))
  // No row: a wallet that was never funded. It covers what costs nothing.
  const outcomes = new Map(moves.map((move) => [move.wallet, share(move, found.get(move.wallet) ?? nothing)] as const))
  const known = [...outcomes].filter(([wallet]) => found.has(wallet))
  const listOf = (pick: (outcome: MoveOutcome) => bigint) => known.map(([, outcome]) => pick(outcome)).join(',')
  if (known.length > 0) {
    await sql`UPDATE balances SET posted = moved.posted, held = moved.held FROM (SELECT
        unnest(string_to_array(${known.map(([wallet]) => wallet).join(',')}, ',')) AS id,
        CAST(unnest(string_to_array(${listOf(({ posted }) => posted)}, ',')) AS BIGINT) AS posted,
        CAST(unnest(string_to_array(${listOf(({ held }) => held)}, ',')) AS BIGINT) AS held) AS moved
      WHERE account_id = moved.id`
  }
  return outcomes
}

const nothing: BalanceRow = { posted: 0n, held: 0n }

/** Serves the demands one by one from what is left once the holds that end are taken off. */
function share({ charged, freed, demands }: WalletMove, row: BalanceRow): MoveOutcome {
  let posted = row.posted - charged
  let held = row.held - freed
  const granted = new Set<Demand>()
  for (const demand of demands) {
    if (posted - held < demand.amount) continue
    granted.add(demand)
    if (demand.takes === 'posted') posted -= demand.amount
    else held += demand.amount
  }
  return { granted, posted: posted as Nano, held: held as Nano }
}

function sumOf(demands: readonly Demand[], takes: Demand['takes']): bigint {
  return demands.reduce((sum, demand) => (demand.takes === takes ? sum + demand.amount : sum), 0n)
}
