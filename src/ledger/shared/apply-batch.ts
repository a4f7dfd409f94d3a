// One transaction over a batch of operations. The order is the lock order of the whole ledger: rows of holds, then
// balances by ascending id, then what is only inserted. Answers are handed back, to be given after the commit.

import type { RequestId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import { insertNewRows, insertRows } from '../../store/insert-rows.ts'
import type { Sql } from '../../store/sql.ts'
import { ensureWallet, type WalletId, walletOf } from '../account.ts'
import type { HoldOutcome, SettleOutcome } from '../ledger.ts'
import { settledTransfers, storedOutcome } from '../settlement-transfers.ts'
import { readTransfersOf, transferColumns } from '../transfer.ts'
import { endHolds, insertHolds, lowerHold, markHoldsSent, type Owner, raiseHolds } from './hold-rows.ts'
import { type Demand, type MoveOutcome, moveBalance, type WalletMove } from './move-balance.ts'
import { type HoldOperation, ofKind, type SettleOperation, type SharedOperation } from './operation.ts'

/** Gives one answer. */
export type Answer = () => void

interface Moves {
  readonly byWallet: ReadonlyMap<WalletId, WalletMove>
  readonly demands: ReadonlyMap<SharedOperation, Demand>
}

/** No request may be in the batch twice. */
export async function applyBatch(
  sql: Sql,
  owner: Owner,
  batch: readonly SharedOperation[],
  now: number,
): Promise<readonly Answer[]> {
  const idsOf = (operations: readonly SharedOperation[]) => operations.map(({ requestId }) => requestId)
  await markHoldsSent(sql, idsOf(ofKind(batch, 'sent')))
  const settled = await endHolds(sql, owner, 'settled', idsOf(ofKind(batch, 'settle')))
  const released = await endHolds(sql, owner, 'released', idsOf(ofKind(batch, 'release')))
  const raised = await raiseHolds(sql, owner, ofKind(batch, 'extend'))

  const live = batch.filter(
    (operation) =>
      operation.kind === 'hold' ||
      (operation.kind === 'extend' && raised.has(operation)) ||
      settled.has(operation.requestId) ||
      released.has(operation.requestId),
  )
  const moves = planMoves(live, new Map([...settled, ...released]))
  const outcomes = new Map<WalletId, MoveOutcome>()
  for (const wallet of [...moves.byWallet.keys()].sort()) {
    const move = moves.byWallet.get(wallet)
    if (move) outcomes.set(wallet, await moveBalance(sql, move))
  }

  const granted = (operation: SharedOperation): boolean => {
    const demand = moves.demands.get(operation)
    const outcome = outcomes.get(walletOf(operation.workspaceId))
    return demand === undefined || outcome?.granted.has(demand) === true
  }
  const held = (operation: SharedOperation): HoldOutcome => {
    if (granted(operation)) return { kind: 'held' }
    const { posted, held: reserved } = outcomes.get(walletOf(operation.workspaceId)) ?? nothing
    return { kind: 'insufficient', posted, held: reserved }
  }
  await insertHolds(sql, owner, ofKind(batch, 'hold').filter(granted))
  for (const extension of raised) if (!granted(extension)) await lowerHold(sql, extension)
  const charged = (operation: SettleOperation): Nano => {
    const { charge } = operation.settlement
    const amount = settled.get(operation.requestId) ?? 0n
    return (charge <= amount || granted(operation) ? charge : amount) as Nano
  }
  const settlements = ofKind(live, 'settle').map((operation) => ({ operation, charged: charged(operation) }))
  const settleOutcomes = await writeSettlements(sql, settlements, now)
  for (const operation of ofKind(batch, 'settle')) {
    if (settled.has(operation.requestId)) continue
    // Ended before: by an earlier settlement, whose answer may have been lost, or without a charge.
    settleOutcomes.set(operation.requestId, storedOutcome(await readTransfersOf(sql, operation.requestId)))
  }

  return batch.map((operation) => (): void => {
    switch (operation.kind) {
      case 'hold':
        return operation.answer(held(operation))
      case 'extend':
        return operation.answer(raised.has(operation) ? held(operation) : { kind: 'gone' })
      case 'settle':
        return operation.answer(settleOutcomes.get(operation.requestId) ?? { kind: 'gone' })
      case 'release':
        return operation.answer({ kind: released.has(operation.requestId) ? 'released' : 'gone' })
      case 'sent':
        return operation.answer(undefined)
    }
  })
}
