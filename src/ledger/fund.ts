// Adds money to wallets, paid (topup) or given (grant), and corrects that in either direction. Each change is a new transfer;
// transfers are never edited. The transfer and its idempotency key are written in one transaction, so a retry after any
// failure moves the money once. Only the free balance can be taken back, not what running requests hold, and no wallet goes
// below zero.

import { createHash } from 'node:crypto'
import { type Failpoint, noFailpoint } from '../kernel/failpoint.ts'
import { createId, type WorkspaceId } from '../kernel/ids.ts'
import { type Nano, zeroNano } from '../kernel/money.ts'
import { abandonKey, claimKey, completeKey, type KeyClaimant } from '../store/idempotency.ts'
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
import { spendCreditBeyondBalance } from './credit.ts'
import { fundingColumns, readFunding, readPayment, type Transfer } from './transfer.ts'

interface Move {
  /** Must exist. */
  readonly workspaceId: WorkspaceId
  /** More than 0, at most a million dollars. */
  readonly amount: Nano
  /** A repeated call with the same key within a day returns the first result. */
  readonly idempotencyKey?: string
}

export interface Funding extends Move {
  readonly kind: 'topup' | 'grant'
  /** Free text for people, not a key. */
  readonly reference?: string
  /** The payment provider's id; each id funds only once, without a time limit. */
  readonly paymentId?: string
}

export interface Correction extends Move {
  readonly direction: 'add' | 'take'
  /** Free text for people; it becomes the transfer's reference. */
  readonly reason: string
  /** The payment provider's id of a refund or dispute; each id corrects only once, without a time limit. */
  readonly paymentId?: string
  /**
   * The money has left or come back already. `rest`: takes what is free and writes the rest off in the same commit. An
   * amount: adds to the wallet, and takes this much back from what was written off.
   */
  readonly writeOff?: 'rest' | Nano
}

interface Moved {
  readonly transfer: Transfer
  /** The balance after the first call, or now for a known payment. */
  readonly posted: Nano
  /** It was made by an earlier call. */
  readonly repeated: boolean
}

/** The amount, or the balance it would lead to, is beyond what a wallet takes. */
interface OutOfRange {
  readonly kind: 'out_of_range'
  readonly max: Nano
}

export type FundOutcome =
  | ({ readonly kind: 'funded' } & Moved)
  /** The key or the payment was used for another funding. */
  | { readonly kind: 'conflict'; readonly with: 'idempotency_key' | 'payment' }
  | OutOfRange
  | Unavailable

export type CorrectOutcome =
  | ({ readonly kind: 'corrected' } & Moved)
  /** The key was used for another correction. */
  | { readonly kind: 'conflict' }
  | OutOfRange
  /** Less is free than should be taken. */
  | Insufficient
  | Unavailable

/**
 * Runs inside a transaction of the caller's, who must roll back if it throws. On the embedded engine a running ledger
 * does not see it: there it is for the time before the ledger is made (the opening credit); afterwards use Ledger.fund.
 */
export async function recordFunding(
  sql: Sql,
  funding: Funding,
  now: number,
  reach: Failpoint = noFailpoint,
): Promise<Exclude<FundOutcome, Unavailable>> {
  const { workspaceId, kind, amount, reference, paymentId } = funding
  const key = keyOf('fund', funding, [kind, String(amount), reference ?? null, paymentId ?? null])
  const wallet = walletOf(workspaceId)
  const transfer: Transfer = {
    ...transferBase(amount, now),
    kind,
    debitAccount: kind === 'topup' ? 'funding' : 'grants',
    creditAccount: wallet,
    reference,
    paymentId,
  }
  const outcome = await move(sql, { key, transfer, workspaceId, now, reach, change: () => add(sql, wallet, amount) })
  if (outcome === 'conflict') return { kind: 'conflict', with: 'idempotency_key' }
  if (outcome !== 'exists') return 'kind' in outcome ? outcome : { kind: 'funded', ...outcome }
  // Only the payment can have been there.
  const [balance] = await sql<BalanceRow>`UPDATE balances SET posted = posted - ${amount} WHERE account_id = ${wallet}
    RETURNING posted`
  const earlier = await readPayment(sql, paymentId ?? '')
  if (!earlier || !balance) throw new Error('a new transfer was refused, and there is no earlier one of its payment')
  if (earlier.amount !== amount || earlier.creditAccount !== wallet) {
    await forget(sql, key)
    return { kind: 'conflict', with: 'payment' }
  }
  await remember(sql, key, earlier, balance.posted)
  return { kind: 'funded', transfer: earlier, posted: balance.posted, repeated: true }
}

export interface CorrectionTerms {
  readonly now: number
  readonly reach: Failpoint
  /** On the embedded engine: reserves the amount in memory before it is taken in the database, or reports the balance. */
  reserve?(): Insufficient | Nano
}

/** The write-off that belongs to a correction. */
export function writeOffIdOf(paymentId: string): string {
  return `${paymentId}:writeoff`
}

/** Runs inside a transaction of the caller's, who must roll back if it throws. */
export async function recordCorrection(
  sql: Sql,
  correction: Correction,
  { now, reach, reserve }: CorrectionTerms,
): Promise<Exclude<CorrectOutcome, Unavailable>> {
  const { workspaceId, amount, direction, reason, paymentId, writeOff } = correction
  const key = keyOf('correct', correction, [direction, String(amount), reason])
  const wallet = walletOf(workspaceId)
  const isAdded = direction === 'add'
  if (paymentId !== undefined) {
    await ensureWallet(sql, workspaceId, now)
    // Locks the row, so that the second of two deliveries finds the transfer of the first.
    const [balance] = await sql<BalanceRow>`SELECT posted FROM balances WHERE account_id = ${wallet} FOR NO KEY UPDATE`
    const earlier = await readPayment(sql, paymentId)
    if (earlier && balance) return { kind: 'corrected', transfer: earlier, posted: balance.posted, repeated: true }
  }
  const transfer: Transfer = {
    ...transferBase(amount, now),
    kind: 'correction',
    debitAccount: isAdded ? 'funding' : wallet,
    creditAccount: isAdded ? wallet : 'funding',
    reference: reason,
    paymentId,
  }
  const change = async () => {
    if (isAdded) return await add(sql, wallet, amount)
    const reserved = reserve?.() ?? (writeOff === 'rest' ? await freeUpTo(sql, wallet, amount) : amount)
    return typeof reserved === 'bigint' ? await take(sql, wallet, reserved) : reserved
  }
  const outcome = await move(sql, { key, transfer, workspaceId, now, reach, change })
  if (outcome === 'conflict') return { kind: 'conflict' }
  if (outcome === 'exists') throw new Error('a correction has a new id')
  if ('kind' in outcome) return outcome
  if (!isAdded) await spendCreditBeyondBalance(sql, workspaceId, outcome.transfer.id)
  const lost = writeOff === 'rest' ? amount - outcome.transfer.amount : (writeOff ?? 0n)
  if (lost > 0n && paymentId !== undefined) {
    const accounts = isAdded
      ? ({ debitAccount: 'funding', creditAccount: 'writeoff' } as const)
      : ({ debitAccount: 'writeoff', creditAccount: 'funding' } as const)
    const base = { ...transfer, ...transferBase(lost as Nano, now), ...accounts }
    const row = fundingColumns(workspaceId, { ...base, kind: 'writeoff', paymentId: writeOffIdOf(paymentId) })
    await sql`INSERT INTO fundings ${sql([row])}`
  }
  return { kind: 'corrected', ...outcome }
}

/** As much of the amount as no request holds. Locks the wallet. */
async function freeUpTo(sql: Sql, wallet: WalletId, amount: Nano): Promise<Nano> {
  const [row] = await sql<{ free: Nano }>`SELECT posted - held AS free FROM balances WHERE account_id = ${wallet}
    FOR NO KEY UPDATE`
  return row && row.free < amount ? row.free : amount
}

function transferBase(amount: Nano, now: number) {
  const none = { requestId: undefined, priceVersion: undefined, usage: undefined, estimated: false } as const
  return { id: createId('tr'), amount, createdAt: now, ...none }
}

interface MoveTerms<Refused> {
  readonly key: KeyClaimant | undefined
  readonly transfer: Transfer
  readonly workspaceId: WorkspaceId
  readonly now: number
  readonly reach: Failpoint
  change(): Promise<Changed | Refused>
}

/** `exists`: there is a transfer of the same payment; the balance was changed all the same. */
async function move<Refused extends { readonly kind: string }>(
  sql: Sql,
  { key, transfer, workspaceId, now, reach, change }: MoveTerms<Refused>,
): Promise<Moved | Refused | OutOfRange | 'conflict' | 'exists'> {
  const { amount } = transfer
  // Zero is valid for a refund by the payment provider: the wallet may have nothing left to take.
  if (amount < 0n || amount > transferMax || (amount === 0n && !transfer.paymentId))
    return { kind: 'out_of_range', max: transferMax }
  // Checked before anything is reserved: a repeated call gets its first result, whatever the balance is now.
  const earlier = await claim(sql, key, now)
  if (earlier) return earlier
  await reach('in_topup')
  await ensureWallet(sql, workspaceId, now)
  // The transfer cannot be taken back, so everything that may refuse comes before it.
  const balance = await change()
  if ('kind' in balance) {
    await forget(sql, key)
    return balance
  }
  const made = { ...transfer, amount: balance.moved }
  const inserted =
    await sql`INSERT INTO fundings ${sql([fundingColumns(workspaceId, made)])} ON CONFLICT DO NOTHING RETURNING id`
  if (inserted.length === 0) return 'exists'
  await reach('in_topup')
  await remember(sql, key, made, balance.posted)
  return { transfer: made, posted: balance.posted, repeated: false }
}

interface BalanceRow {
  readonly posted: Nano
}

interface Changed extends BalanceRow {
  readonly moved: Nano
}

async function add(sql: Sql, wallet: WalletId, amount: Nano): Promise<Changed | OutOfRange> {
  const [row] = await sql<BalanceRow>`UPDATE balances SET posted = posted + ${amount}
    WHERE account_id = ${wallet} AND posted <= ${postedMax - amount} RETURNING posted`
  return row ? { ...row, moved: amount } : { kind: 'out_of_range', max: postedMax }
}

async function take(sql: Sql, wallet: WalletId, amount: Nano): Promise<Changed | Insufficient> {
  // Locked, so that a refusal reports the balance it was decided on.
  const [before] = await sql<{ posted: Nano; held: Nano }>`SELECT posted, held FROM balances
    WHERE account_id = ${wallet} FOR NO KEY UPDATE`
  const [row] = await sql<BalanceRow>`UPDATE balances SET posted = posted - ${amount}
    WHERE account_id = ${wallet} AND posted - held >= ${amount} RETURNING posted`
  return row
    ? { ...row, moved: amount }
    : { kind: 'insufficient', posted: before?.posted ?? zeroNano, held: before?.held ?? zeroNano }
}

// Idempotency keys: a repeated call finds the result of the first.

/** `content`: everything that identifies the move; different content under the same key is a conflict. */
function keyOf(kind: string, { workspaceId, idempotencyKey: key }: Move, content: unknown): KeyClaimant | undefined {
  if (key === undefined) return undefined
  const bodySha256 = createHash('sha256').update(JSON.stringify(content)).digest('hex')
  return { scope: `${kind}:${workspaceId}`, key, bodySha256 }
}

/** undefined = the key is ours now, or none was given. A twin in another process is waited for. */
async function claim(sql: Sql, key: KeyClaimant | undefined, now: number): Promise<Moved | 'conflict' | undefined> {
  const found = key && (await claimKey(sql, key, now))
  if (!key || found === 'claimed') return undefined
  if (found?.body_sha256 !== key.bodySha256) return 'conflict'
  const [id = '', posted = '0'] = (found.response ?? '').split(' ')
  const transfer = await readFunding(sql, id)
  if (!transfer) throw new Error(`the idempotency key ${key.key} names the transfer ${id}, which does not exist`)
  return { transfer, posted: BigInt(posted) as Nano, repeated: true }
}

/** Frees the key after a refusal. */
async function forget(sql: Sql, key: KeyClaimant | undefined): Promise<void> {
  if (key) await abandonKey(sql, key)
}

async function remember(sql: Sql, key: KeyClaimant | undefined, { id }: Transfer, posted: Nano): Promise<void> {
  if (key) await completeKey(sql, key, { response: `${id} ${posted}` })
}
