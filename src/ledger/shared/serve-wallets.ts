// Turns the operations of a batch into one move per wallet, has the moves carried out, and knows afterwards which
// operation was granted what it needs.

import type { RequestId } from '../../kernel/ids.ts'
import { zeroNano } from '../../kernel/money.ts'
import type { Sql } from '../../store/sql.ts'
import { type WalletId, walletOf } from '../account.ts'
import { type Budget, budgetNames, noBudgets } from '../budget.ts'
import type { HoldOutcome } from '../ledger.ts'
import type { EndedHold } from './hold-rows.ts'
import { type Demand, grantAll, type MoveOutcome, moveBalances, type WalletMove } from './move-balance.ts'
import type { SharedOperation } from './operation.ts'

export interface Served {
  /** True also for what demanded nothing beyond its own hold. */
  granted(operation: SharedOperation): boolean
  outcome(operation: SharedOperation): HoldOutcome
}

/** `live`: without those whose hold is gone. `ended`: the holds that end in this batch. */
export async function serveWallets(
  sql: Sql,
  live: readonly SharedOperation[],
  ended: ReadonlyMap<RequestId, EndedHold>,
): Promise<Served> {
  const demands = new Map<SharedOperation, Demand>()
  const moves = new Map<WalletId, WalletMove>()
  for (const operation of [...live].sort((a, b) => ranks[a.kind] - ranks[b.kind])) {
    const move = moveOf(moves, walletOf(operation.workspaceId))
    const hold = ended.get(operation.requestId)
    if (hold) addEnd(move, operation, hold)
    const demand = demandOf(operation, hold)
    if (demand === undefined) continue
    move.demands.push(demand)
    demands.set(operation, demand)
  }
  const all = [...moves.values()]
  const outcomes = await moveBalances(sql, all.filter(movesSomething))
  for (const move of all) if (!movesSomething(move)) outcomes.set(move.wallet, untouched(move))
  return servedFrom(demands, outcomes)
}

/** Delivered content before running requests before new ones; otherwise in the order of arrival. */
const ranks: Record<SharedOperation['kind'], number> = { settle: 0, extend: 1, hold: 2, release: 3, sent: 3 }

function moveOf(moves: Map<WalletId, WalletMove>, wallet: WalletId): WalletMove {
  const known = moves.get(wallet)
  if (known) return known
  const fresh = { wallet, charged: 0n, freed: 0n, demands: [], budgetEnds: [] }
  moves.set(wallet, fresh)
  return fresh
}

function addEnd(move: WalletMove, operation: SharedOperation, { amount, budgets }: EndedHold): void {
  const charged = operation.kind === 'settle' ? smaller(operation.settlement.charge, amount) : 0n
  move.freed += amount
  move.charged += charged
  if (budgets.length > 0) move.budgetEnds.push({ budgets, freed: amount, charged })
}

function demandOf(operation: SharedOperation, hold: EndedHold | undefined): Demand | undefined {
  switch (operation.kind) {
    case 'hold':
      return reservation(operation.request.amount, operation.request.budgets, operation.request.roomLeast)
    case 'extend':
      return reservation(operation.more, operation.budgets)
    case 'settle': {
      const amount = operation.settlement.charge - (hold?.amount ?? 0n)
      if (amount <= 0n) return undefined
      return { amount, room: amount, takes: 'posted', caps: noBudgets, budgets: hold?.budgets ?? [] }
    }
    default:
      return undefined
  }
}

function reservation(amount: bigint, caps: readonly Budget[] = noBudgets, roomLeast = amount): Demand {
  return { amount, room: roomLeast > amount ? roomLeast : amount, takes: 'held', caps, budgets: budgetNames(caps) }
}

function movesSomething({ charged, freed, demands }: WalletMove): boolean {
  return charged > 0n || freed > 0n || demands.some(({ amount }) => amount > 0n)
}

function untouched({ demands }: WalletMove): MoveOutcome {
  return grantAll(demands, { posted: zeroNano, held: zeroNano })
}

function servedFrom(
  demands: ReadonlyMap<SharedOperation, Demand>,
  outcomes: ReadonlyMap<WalletId, MoveOutcome>,
): Served {
  const outcomeOf = (operation: SharedOperation) => outcomes.get(walletOf(operation.workspaceId))
  const granted = (operation: SharedOperation): boolean => {
    const demand = demands.get(operation)
    return demand === undefined || outcomeOf(operation)?.granted.has(demand) === true
  }
  return {
    granted,
    outcome(operation) {
      if (granted(operation)) return { kind: 'held' }
      const { posted = zeroNano, held = zeroNano, overBudget } = outcomeOf(operation) ?? {}
      const demand = demands.get(operation)
      return (demand && overBudget?.get(demand)) ?? { kind: 'insufficient', posted, held }
    },
  }
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
