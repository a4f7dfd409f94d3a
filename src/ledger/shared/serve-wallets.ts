// Turns the operations of a batch into one move per wallet, has the moves carried out, and knows afterwards which
// operation was granted what it needs.

import type { RequestId } from '../../kernel/ids.ts'
import { zeroNano } from '../../kernel/money.ts'
import type { Sql } from '../../store/sql.ts'
import { type WalletId, walletOf } from '../account.ts'
import type { HoldOutcome } from '../ledger.ts'
import { type Demand, type MoveOutcome, moveBalances, type WalletMove } from './move-balance.ts'
import type { SharedOperation } from './operation.ts'

export interface Served {
  /** True also for what demanded nothing beyond its own hold. */
  granted(operation: SharedOperation): boolean
  outcome(operation: SharedOperation): HoldOutcome
}

/** `live`: without those whose hold is gone. `ended`: what the holds amounted to that end in this batch. */
export async function serveWallets(
  sql: Sql,
  live: readonly SharedOperation[],
  ended: ReadonlyMap<RequestId, bigint>,
): Promise<Served> {
  const demands = new Map<SharedOperation, Demand>()
  const moves = new Map<WalletId, WalletMove>()
  for (const operation of [...live].sort((a, b) => ranks[a.kind] - ranks[b.kind])) {
    const move = moveOf(moves, walletOf(operation.workspaceId))
    const amount = ended.get(operation.requestId) ?? 0n
    const demand = demandOf(operation, amount)
    move.freed += amount
    if (operation.kind === 'settle') move.charged += smaller(operation.settlement.charge, amount)
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
  const fresh = { wallet, charged: 0n, freed: 0n, demands: [] }
  moves.set(wallet, fresh)
  return fresh
}

function demandOf(operation: SharedOperation, amount: bigint): Demand | undefined {
  switch (operation.kind) {
    case 'hold':
      return { amount: operation.request.amount, takes: 'held' }
    case 'extend':
      return { amount: operation.more, takes: 'held' }
    case 'settle': {
      const rest = operation.settlement.charge - amount
      return rest > 0n ? { amount: rest, takes: 'posted' } : undefined
    }
    default:
      return undefined
  }
}

function movesSomething({ charged, freed, demands }: WalletMove): boolean {
  return charged > 0n || freed > 0n || demands.some(({ amount }) => amount > 0n)
}

function untouched({ demands }: WalletMove): MoveOutcome {
  return { granted: new Set(demands), posted: zeroNano, held: zeroNano }
}

function servedFrom(
  demands: ReadonlyMap<SharedOperation, Demand>,
  outcomes: ReadonlyMap<WalletId, MoveOutcome>,
): Served {
  const granted = (operation: SharedOperation): boolean => {
    const demand = demands.get(operation)
    return demand === undefined || outcomes.get(walletOf(operation.workspaceId))?.granted.has(demand) === true
  }
  return {
    granted,
    outcome(operation) {
      if (granted(operation)) return { kind: 'held' }
      const { posted = zeroNano, held = zeroNano } = outcomes.get(walletOf(operation.workspaceId)) ?? {}
      return { kind: 'insufficient', posted, held }
    },
  }
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
