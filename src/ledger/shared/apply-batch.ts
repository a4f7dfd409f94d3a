// One transaction over a batch of operations. The order is the lock order of the whole ledger: rows of holds, then
// balances by ascending id, then budgets, then what is only inserted. Answers are handed back, to be given after the commit.

import type { RequestId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import { insertList, insertNewLists } from '../../store/insert-list.ts'
import type { Sql, SqlValue } from '../../store/sql.ts'
import { ensureWallet, type WalletId } from '../account.ts'
import type { SettleOutcome } from '../ledger.ts'
import { dueOf, settledTransfers, storedOutcome } from '../settlement-transfers.ts'
import { readTransfersOf, transferColumns } from '../transfer.ts'
import { endHolds, insertHolds, lowerHold, markHoldsSent, type Owner, raiseHolds } from './hold-rows.ts'
import {
  type ExtendOperation,
  ofKind,
  type ReleaseOperation,
  type SettleOperation,
  type SharedOperation,
} from './operation.ts'
import { type Ended, type Served, serveWallets } from './serve-wallets.ts'
import { takeLeased } from './take-leased.ts'

/** Gives one answer. */
export type Answer = () => void

/** No request may be in the batch twice. */
export async function applyBatch(
  sql: Sql,
  owner: Owner,
  batch: readonly SharedOperation[],
  { now, tried, isFinal }: BatchTerms,
): Promise<readonly Answer[]> {
  const taken = await takeHolds(sql, owner, batch, tried)
  const live = batch.filter((operation) => isLive(operation, taken))
  const served = await serveWallets(sql, live, taken, isFinal)

  const holds = ofKind(batch, 'hold').filter((operation) => served.granted(operation))
  await insertHolds(sql, owner, holds)
  for (const extension of taken.raised) if (!served.granted(extension)) await lowerHold(sql, extension)
  const settled = new Map([
    ...(await writeSettlements(sql, ofKind(live, 'settle'), { taken, served, now })),
    ...(await readSettlements(sql, ofKind(batch, 'settle'), taken)),
  ])
  return [taken.leased.learn, ...batch.map((operation) => () => answer(operation, { taken, served, settled }))]
}

export interface BatchTerms {
  readonly now: number
  /** Requests whose operation may have been committed before, by a commit whose answer was lost. */
  readonly tried: ReadonlySet<RequestId>
  /** Whether the wallet may be told that it cannot pay: the slices of it have been asked for. */
  isFinal(wallet: WalletId): boolean
}

/** The rows of holds, and the parts of leases, that this batch has got hold of. */
interface Taken extends Ended {
  readonly raised: ReadonlySet<ExtendOperation>
}

async function takeHolds(
  sql: Sql,
  owner: Owner,
  batch: readonly SharedOperation[],
  tried: ReadonlySet<RequestId>,
): Promise<Taken> {
  const ids = (kind: 'settle' | 'release') =>
    ofKind(batch, kind).flatMap(({ requestId, hasRow }) => (hasRow ? [requestId] : []))
  const sent = ofKind(batch, 'sent').map(({ requestId }) => requestId)
  await markHoldsSent(sql, owner, sent)
  const settled = await endHolds(sql, owner, 'settled', ids('settle'))
  const released = await endHolds(sql, owner, 'released', ids('release'))
  const raised = await raiseHolds(sql, owner, ofKind(batch, 'extend'))
  const leased = await takeLeased(sql, owner.id, batch, tried)
  return { ended: new Map([...settled, ...released]), raised, leased }
}

function isLive(operation: SharedOperation, { ended, raised, leased }: Taken): boolean {
  if (operation.kind === 'extend') return raised.has(operation)
  if (operation.kind === 'hold' || ended.has(operation.requestId)) return true
  // What was admitted from a lease is paid even if the lease is gone meanwhile.
  return operation.kind === 'settle' && operation.leased !== undefined && !leased.charged.has(operation.requestId)
}

async function writeSettlements(
  sql: Sql,
  operations: readonly SettleOperation[],
  { taken, served, now }: { readonly taken: Taken; readonly served: Served; readonly now: number },
): Promise<Map<RequestId, SettleOutcome>> {
  const outcomes = new Map<RequestId, SettleOutcome>()
  const transfers: Record<string, SqlValue>[] = []
  const paid = new Map<RequestId, Nano>()
  for (const operation of operations) {
    const { settlement, workspaceId, requestId } = operation
    const { amount = 0n, budgets } = taken.ended.get(requestId) ?? {}
    const held = amount + (taken.leased.covered.get(requestId) ?? 0n)
    const due = dueOf(settlement)
    const charged = (due <= held || served.granted(operation) ? due : held + served.inPart(operation)) as Nano
    paid.set(requestId, charged)
    const { charge, writeoff } = settledTransfers(settlement, workspaceId, { charged, now })
    transfers.push(transferColumns(charge, budgets))
    if (writeoff) transfers.push(transferColumns(writeoff))
    // A wallet that was never funded can still make calls that cost nothing.
    if (charged === 0n) await ensureWallet(sql, workspaceId, now)
    const writtenOff = (settlement.charge - charged) as Nano
    outcomes.set(requestId, { kind: 'settled', transfer: charge, writtenOff, repeated: false })
  }
  await insertList(sql, 'transfers', transfers)
  await insertNewLists(
    sql,
    operations.flatMap(({ settlement, requestId }) => settlement.rows?.(paid.get(requestId) ?? (0n as Nano)) ?? []),
  )
  return outcomes
}

/** Of those whose hold had ended before: by a settlement whose answer was lost, or without a charge. */
async function readSettlements(
  sql: Sql,
  operations: readonly SettleOperation[],
  taken: Taken,
): Promise<Map<RequestId, SettleOutcome>> {
  const outcomes = new Map<RequestId, SettleOutcome>()
  for (const operation of operations) {
    if (isLive(operation, taken)) continue
    const { requestId } = operation
    outcomes.set(requestId, storedOutcome(await readTransfersOf(sql, requestId)))
  }
  return outcomes
}

interface Results {
  readonly taken: Taken
  readonly served: Served
  readonly settled: ReadonlyMap<RequestId, SettleOutcome>
}

function answer(operation: SharedOperation, { taken, served, settled }: Results): void {
  switch (operation.kind) {
    case 'hold':
      return operation.answer(served.outcome(operation))
    case 'extend':
      return operation.answer(taken.raised.has(operation) ? served.outcome(operation) : { kind: 'gone' })
    case 'settle':
      return operation.answer(settled.get(operation.requestId) ?? { kind: 'gone' })
    case 'release':
      return operation.answer({ kind: isEnded(operation, taken) ? 'released' : 'gone' })
    case 'sent':
      return operation.answer(undefined)
  }
}

function isEnded({ requestId, leased }: ReleaseOperation, { ended }: Taken): boolean {
  return leased !== undefined || ended.has(requestId)
}
