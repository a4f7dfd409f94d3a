// What a wallet that cannot pay is told. As long as replicas have slices of it that may be idle, nothing: the batch is
// undone, the slices are asked for, and then it is tried again.

import type { Nano } from '../../kernel/money.ts'
import type { Sql } from '../../store/sql.ts'
import type { WalletId } from '../account.ts'
import { type SliceSums, sumSlices } from './lease-rows.ts'
import type { Demand, MoveOutcome, WalletMove } from './move-balance.ts'

/** Thrown, because everything else in the transaction has to be undone with it. */
export class SlicesOut extends Error {
  constructor(readonly wallets: readonly WalletId[]) {
    super('money that is asked for may be idle in leases')
  }
}

export interface Refusals {
  readonly moves: readonly WalletMove[]
  /** Changed where a wallet is told what it has: without what leases have spent, and what is idle in them. */
  readonly outcomes: Map<WalletId, MoveOutcome>
  isFinal(wallet: WalletId): boolean
}

export async function judgeRefusals(sql: Sql, { moves, outcomes, isFinal }: Refusals): Promise<void> {
  const refused = new Map<WalletId, readonly Demand[]>()
  for (const { wallet, demands } of moves) {
    const outcome = outcomes.get(wallet)
    const short = demands.filter((demand) => outcome && !outcome.granted.has(demand) && !outcome.overBudget.has(demand))
    if (short.length > 0) refused.set(wallet, short)
  }
  if (refused.size === 0) return
  const slices = await sumSlices(sql, [...refused.keys()])
  const asked: WalletId[] = []
  for (const [wallet, demands] of refused) {
    const [outcome, sums] = [outcomes.get(wallet), slices.get(wallet)]
    if (!outcome || !sums) continue
    const most = outcome.posted - outcome.held + sums.idleMost
    // What was delivered is paid as far as the money goes, so that whatever comes back helps.
    const isHelped = ({ takes, room }: Demand) => (takes === 'posted' ? sums.idleMost > 0n : room <= most)
    if (!isFinal(wallet) && demands.some(isHelped)) asked.push(wallet)
    else outcomes.set(wallet, withoutSlices(outcome, sums))
  }
  if (asked.length > 0) throw new SlicesOut(asked)
}

function withoutSlices(outcome: MoveOutcome, { amount, spent, inUse }: SliceSums): MoveOutcome {
  const posted = (outcome.posted - spent) as Nano
  return { ...outcome, posted, held: (outcome.held - amount + inUse) as Nano }
}
