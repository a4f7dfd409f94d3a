// What a batch does to one wallet, in one guarded statement if everything fits. The guard stands in the UPDATE, so that
// a waiter judges the row as it is when its turn comes; nothing is read before.

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

export async function moveBalance(sql: Sql, move: WalletMove): Promise<MoveOutcome> {
  const { wallet, charged, freed, demands } = move
  const taken = charged + sumOf(demands, 'posted')
  const wanted = sumOf(demands, 'held')
  const [row] = await sql<BalanceRow>`UPDATE balances SET posted = posted - ${taken}, held = held - ${freed} + ${wanted}
    WHERE account_id = ${wallet} AND posted - ${taken} - (held - ${freed}) >= ${wanted} RETURNING posted, held`
  if (row) return outcomeOf(new Set(demands), row)
  return await serveOneByOne(sql, move)
}

/** The first statement locks the row, so what it returns is what there is to share out. */
async function serveOneByOne(sql: Sql, { wallet, charged, freed, demands }: WalletMove): Promise<MoveOutcome> {
  const [row] = await sql<BalanceRow>`UPDATE balances SET posted = posted - ${charged}, held = held - ${freed}
    WHERE account_id = ${wallet} RETURNING posted, held`
  // No row: a wallet that was never funded. It covers what costs nothing.
  let { posted, held } = row ?? { posted: 0n, held: 0n }
  const granted = new Set<Demand>()
  for (const demand of demands) {
    if (posted - held < demand.amount) continue
    granted.add(demand)
    if (demand.takes === 'posted') posted -= demand.amount
    else held += demand.amount
  }
  if (row && granted.size > 0) {
    await sql`UPDATE balances SET posted = ${posted}, held = ${held} WHERE account_id = ${wallet}`
  }
  return outcomeOf(granted, { posted, held })
}

function outcomeOf(granted: ReadonlySet<Demand>, { posted, held }: BalanceRow): MoveOutcome {
  return { granted, posted: posted as Nano, held: held as Nano }
}

function sumOf(demands: readonly Demand[], takes: Demand['takes']): bigint {
  return demands.reduce((sum, demand) => (demand.takes === takes ? sum + demand.amount : sum), 0n)
}
