// The transfers that a settlement consists of, the same on both engines: one charge, and one write-off if the wallet
// could not pay it all.

import { createId, type WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { walletOf } from './account.ts'
import type { SettleEnd, Settlement } from './ledger.ts'
import type { Transfer } from './transfer.ts'

export interface SettledTransfers {
  readonly charge: Transfer
  readonly writeoff: Transfer | undefined
}

/** What the wallet pays if it can: no more than was told. */
export function dueOf({ charge, told = charge }: Settlement): Nano {
  return told < charge ? told : charge
}

/** `charged` leaves the wallet; the rest of the settlement's charge is the operator's loss. */
export function settledTransfers(
  settlement: Settlement,
  workspaceId: WorkspaceId,
  { charged, now }: { readonly charged: Nano; readonly now: number },
): SettledTransfers {
  const { requestId, priceVersion, usage, estimated } = settlement
  const base = { requestId, estimated, reference: undefined, paymentId: undefined, createdAt: now } as const
  const charge: Transfer = {
    ...base,
    id: createId('tr'),
    kind: 'charge',
    debitAccount: walletOf(workspaceId),
    creditAccount: 'revenue',
    amount: charged,
    priceVersion,
    usage,
  }
  const lost = (settlement.charge - charged) as Nano
  if (lost === 0n) return { charge, writeoff: undefined }
  const writeoff: Transfer = {
    ...base,
    id: createId('tr'),
    kind: 'writeoff',
    debitAccount: 'writeoff',
    creditAccount: 'revenue',
    amount: lost,
    priceVersion: undefined,
    usage: undefined,
  }
  return { charge, writeoff }
}

/** What the stored transfers of a request say about its settlement. */
export function storedOutcome(transfers: readonly Transfer[]): SettleEnd {
  const transfer = transfers.find(({ kind }) => kind === 'charge')
  if (!transfer) return { kind: 'gone' }
  const writeoff = transfers.find(({ kind }) => kind === 'writeoff')
  return { kind: 'settled', transfer, writtenOff: (writeoff?.amount ?? 0n) as Nano, repeated: true }
}
