// A correction of what came into a wallet: a transfer of its own with a reason, because nothing that stands in the books is
// ever changed. What is taken back must be free; what running requests hold stays theirs, and no wallet goes below zero.

import { createHash } from 'node:crypto'
import type { Failpoint } from '../kernel/failpoint.ts'
import { createId, type WorkspaceId } from '../kernel/ids.ts'
import { type Nano, zeroNano } from '../kernel/money.ts'
import type { Sql } from '../store/sql.ts'
import {
  ensureWallet,
  type Insufficient,
  postedMax,
  transferMax,
  type Unavailable,
  type WalletId,
  walletOf,
} from './account.ts'
import { claimKey, freeKey, type MoveKey, rememberMove } from './idempotency-key.ts'
import { fundingColumns, type Transfer } from './transfer.ts'

export interface Correction {
  /** Must exist. */
  readonly workspaceId: WorkspaceId
  readonly direction: 'add' | 'take'
  /** More than 0, at most a million dollars. */
  readonly amount: Nano
  /** Free text for people; it becomes the transfer's reference. */
  readonly reason: string
  /** The same correction asked for again with the same key within a day is the first one. */
  readonly idempotencyKey?: string
}

export type CorrectOutcome =
  /** `repeated`: it was made by an earlier call; `posted` is the balance after that call. */
  | { readonly kind: 'corrected'; readonly transfer: Transfer; readonly posted: Nano; readonly repeated: boolean }
  /** The key was used for another correction. */
  | { readonly kind: 'conflict' }
  /** The amount, or the balance it would lead to, is beyond what a wallet takes. */
  | { readonly kind: 'out_of_range'; readonly max: Nano }
  /** Less is free than should be taken. */
  | Insufficient
  | Unavailable

export interface CorrectionTerms {
  readonly now: number
  readonly reach: Failpoint
  /** Where holds live in memory: sets aside what is to be taken, before the database knows; or says what there is. */
  reserve?(): Insufficient | undefined
}

/** Runs inside a transaction of the caller's, who must roll back if it throws. */
export async function recordCorrection(
  sql: Sql,
  correction: Correction,
  { now, reach, reserve }: CorrectionTerms,
): Promise<Exclude<CorrectOutcome, Unavailable>> {
  const { workspaceId, amount, direction } = correction
  if (amount <= 0n || amount > transferMax) return { kind: 'out_of_range', max: transferMax }
  const key = keyOf(correction)
  // Before anything is set aside: what was made once is answered whatever the wallet has now.
  const earlier = await claimKey(sql, key, now)
  if (earlier === 'conflict') return { kind: 'conflict' }
  if (earlier) return { kind: 'corrected', ...earlier, repeated: true }
  await reach('in_topup')
  await ensureWallet(sql, workspaceId, now)
  const wallet = walletOf(workspaceId)
  // The transfer cannot be taken back, so everything that may refuse comes before it.
  const balance =
    direction === 'add' ? await add(sql, wallet, amount) : (reserve?.() ?? (await take(sql, wallet, amount)))
  if ('kind' in balance) {
    await freeKey(sql, key)
    return balance
  }
  const posted = balance.posted as Nano
  const transfer = transferFor(correction, now)
  await sql`INSERT INTO fundings ${sql([fundingColumns(workspaceId, transfer)])}`
  await reach('in_topup')
  await rememberMove(sql, key, { transfer, posted })
  return { kind: 'corrected', transfer, posted, repeated: false }
}

interface BalanceRow {
  readonly posted: bigint
}

type OutOfRange = Extract<CorrectOutcome, { kind: 'out_of_range' }>

async function add(sql: Sql, wallet: WalletId, amount: Nano): Promise<BalanceRow | OutOfRange> {
  const [row] = await sql<BalanceRow>`UPDATE balances SET posted = posted + ${amount}
    WHERE account_id = ${wallet} AND posted <= ${postedMax - amount} RETURNING posted`
  return row ?? { kind: 'out_of_range', max: postedMax }
}

async function take(sql: Sql, wallet: WalletId, amount: Nano): Promise<BalanceRow | Insufficient> {
  // A change to the same locks the row, so that what a refusal tells is what it was refused by.
  const [before] = await sql<{ posted: Nano; held: Nano }>`UPDATE balances SET held = held
    WHERE account_id = ${wallet} RETURNING posted, held`
  const [row] = await sql<BalanceRow>`UPDATE balances SET posted = posted - ${amount}
    WHERE account_id = ${wallet} AND posted - held >= ${amount} RETURNING posted`
  return row ?? { kind: 'insufficient', posted: before?.posted ?? zeroNano, held: before?.held ?? zeroNano }
}

function transferFor({ workspaceId, direction, amount, reason }: Correction, now: number): Transfer {
  const wallet = walletOf(workspaceId)
  const legs =
    direction === 'add'
      ? ({ debitAccount: 'funding', creditAccount: wallet } as const)
      : ({ debitAccount: wallet, creditAccount: 'funding' } as const)
  return {
    id: createId('tr'),
    kind: 'correction',
    requestId: undefined,
    ...legs,
    amount,
    priceVersion: undefined,
    usage: undefined,
    estimated: false,
    reference: reason,
    paymentId: undefined,
    createdAt: now,
  }
}

function keyOf({ workspaceId, direction, amount, reason, idempotencyKey: key }: Correction): MoveKey {
  const content = JSON.stringify([direction, String(amount), reason])
  return { scope: `correct:${workspaceId}`, key, digest: createHash('sha256').update(content).digest('hex') }
}
