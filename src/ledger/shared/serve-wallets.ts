// Turns the operations of a batch into one move per wallet, has the moves carried out, and knows afterwards which
// operation was granted what it needs.

import type { RequestId } from '../../kernel/ids.ts'
import { zeroNano } from '../../kernel/money.ts'
import type { Sql } from '../../store/sql.ts'
import { type WalletId, walletOf } from '../account.ts'
import { type Budget, budgetNames, noBudgets } from '../budget.ts'
import type { HoldOutcome } from '../ledger.ts'
import { dueOf } from '../settlement-transfers.ts'
import type { EndedHold } from './hold-rows.ts'
import { judgeRefusals } from './judge-refusals.ts'
import { type Demand, grantAll, type MoveOutcome, moveBalances, type WalletMove } from './move-balance.ts'
import type { SharedOperation } from './operation.ts'
import type { LeasedEnds } from './take-leased.ts'

export interface Served {
  /** True also for what demanded nothing beyond its own hold. */
  granted(operation: SharedOperation): boolean
  /** What the wallet paid of a demand that it could not pay in full. */
  inPart(operation: SharedOperation): bigint
  outcome(operation: SharedOperation): HoldOutcome
}

/** What ends in a batch. */
export interface Ended {
  /** Settled and released holds. */
  readonly ended: ReadonlyMap<RequestId, EndedHold>
  readonly leased: LeasedEnds
}

/** `live`: without those whose hold is gone. Throws a SlicesOut where a wallet must not be told yet that it cannot pay. */
export async function serveWallets(
  sql: Sql,
  live: readonly SharedOperation[],
  { ended, leased }: Ended,
  isFinal: (wallet: WalletId) => boolean,
): Promise<Served> {
  const demands = new Map<SharedOperation, Demand>()
  const moves = new Map<WalletId, WalletMove>()
  for (const [wallet, { charged, freed }] of leased.moves) {
    const move = moveOf(moves, wallet)
    move.charged += charged
    move.freed += freed
  }
  for (const operation of [...live].sort((a, b) => ranks[a.kind] - ranks[b.kind])) {
    const move = moveOf(moves, walletOf(operation.workspaceId))
    const hold = ended.get(operation.requestId)
    const fromLease = leased.covered.get(operation.requestId) ?? 0n
    if (hold) addEnd(move, operation, { hold, fromLease })
    const demand = demandOf(operation, fromLease, hold)
    if (demand === undefined) continue
    move.demands.push(demand)
    demands.set(operation, demand)
  }
  const all = [...moves.values()]
  const outcomes = await moveBalances(sql, all.filter(movesSomething))
  for (const move of all) if (!movesSomething(move)) outcomes.set(move.wallet, untouched(move))
  await judgeRefusals(sql, { moves: all, outcomes, isFinal })
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

interface PaidEnd {
  readonly hold: EndedHold
  /** What the request's lease pays of its charge. */
  readonly fromLease: bigint
}

function addEnd(move: WalletMove, operation: SharedOperation, { hold, fromLease }: PaidEnd): void {
  const { amount, budgets } = hold
  const charged = operation.kind === 'settle' ? smaller(dueOf(operation.settlement) - fromLease, amount) : 0n
  move.freed += amount
  move.charged += charged
  if (budgets.length > 0) move.budgetEnds.push({ budgets, freed: amount, charged })
}

function demandOf(operation: SharedOperation, fromLease: bigint, hold: EndedHold | undefined): Demand | undefined {
  switch (operation.kind) {
    case 'hold':
      return reservation(operation.request.amount, operation.request.budgets, operation.request.roomLeast)
    case 'extend':
      return reservation(operation.more, operation.budgets)
    case 'settle': {
      const amount = dueOf(operation.settlement) - fromLease - (hold?.amount ?? 0n)
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
    inPart(operation) {
      const demand = demands.get(operation)
      return (demand && outcomeOf(operation)?.inPart.get(demand)) ?? 0n
    },
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
