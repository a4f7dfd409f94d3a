// The transfers that a settlement consists of, the same on both engines: one charge, and one write-off if the wallet could
// not pay it all. Two calls that settle one request at the same time are one settlement.

import { createId, type RequestId, type WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { walletOf } from './account.ts'
import type { SettleEnd, Settlement, SettleOutcome } from './ledger.ts'
import type { Transfer } from './transfer.ts'

export interface SettledTransfers {
  readonly charge: Transfer
  readonly writeoff: Transfer | undefined
}

/** What the wallet pays if it can: at most what the caller was quoted. */
export function dueOf({ charge, quoted = charge }: Settlement): Nano {
  return quoted < charge ? quoted : charge
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

type Settle = (settlement: Settlement) => Promise<SettleOutcome>

export function settleOnce(settle: Settle): Settle {
  const running = new Map<RequestId, Promise<SettleOutcome>>()
  return (settlement) => {
    const { requestId } = settlement
    const first = running.get(requestId)
    if (first) return first.then(repeated)
    const forget = () => void running.delete(requestId)
    const outcome = settle(settlement)
    running.set(requestId, outcome)
    // Until an unknown outcome is certain, the database does not say yet what it will be.
    outcome.then((heard) => (heard.kind === 'unknown' ? heard.end.then(forget) : forget()), forget)
    return outcome
  }
}

function repeated(outcome: SettleOutcome): SettleOutcome {
  if (outcome.kind !== 'unknown') return repeatedEnd(outcome)
  return { ...outcome, end: outcome.end.then((end) => end && repeatedEnd(end)) }
}

function repeatedEnd(end: SettleEnd): SettleEnd {
  return end.kind === 'settled' ? { ...end, repeated: true } : end
}
