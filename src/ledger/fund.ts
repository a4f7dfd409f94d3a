// Money that comes into a wallet: paid by someone (topup) or given (grant). The move and the memory that it was made are
// one transaction, so that a retry after any failure credits once.

import { createHash } from 'node:crypto'
import { type Failpoint, noFailpoint } from '../kernel/failpoint.ts'
import { createId, type WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import type { Sql } from '../store/sql.ts'
import { ensureWallet, postedMax, transferMax, type Unavailable, walletOf } from './account.ts'
import { claimKey, freeKey, type MoveKey, rememberMove } from './idempotency-key.ts'
import { fundingColumns, readPayment, type Transfer } from './transfer.ts'

export interface Funding {
  /** Must exist. */
  readonly workspaceId: WorkspaceId
  /** More than 0, at most a million dollars. */
  readonly amount: Nano
  readonly kind: 'topup' | 'grant'
  /** Free text for people, not a key. */
  readonly reference?: string
  /** The same funding asked for again with the same key within a day is the first one. */
  readonly idempotencyKey?: string
  /** The payment provider's id; funds once, for ever. */
  readonly paymentId?: string
}

export type FundOutcome =
  /** `repeated`: it was made by an earlier call; `posted` is the balance after that call, or now for a known payment. */
  | { readonly kind: 'funded'; readonly transfer: Transfer; readonly posted: Nano; readonly repeated: boolean }
  /** The key or the payment was used for another funding. */
  | { readonly kind: 'conflict'; readonly with: 'idempotency_key' | 'payment' }
  /** The amount, or the balance it would lead to, is beyond what a wallet takes. */
  | { readonly kind: 'out_of_range'; readonly max: Nano }
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
  const { workspaceId, amount } = funding
  if (amount <= 0n || amount > transferMax) return { kind: 'out_of_range', max: transferMax }
  const key = keyOf(funding)
  const earlier = await claimKey(sql, key, now)
  if (earlier === 'conflict') return { kind: 'conflict', with: 'idempotency_key' }
  if (earlier) return { kind: 'funded', ...earlier, repeated: true }
  await reach('in_topup')
  await ensureWallet(sql, workspaceId, now)
  const wallet = walletOf(workspaceId)
  // The transfer cannot be taken back, so everything that may refuse comes before it.
  const [balance] = await sql<{ posted: bigint }>`UPDATE balances SET posted = posted + ${amount}
    WHERE account_id = ${wallet} AND posted <= ${postedMax - amount} RETURNING posted`
  if (!balance) {
    await freeKey(sql, key)
    return { kind: 'out_of_range', max: postedMax }
  }
  const posted = balance.posted as Nano
  const transfer = transferFor(funding, now)
  const inserted =
    await sql`INSERT INTO fundings ${sql([fundingColumns(workspaceId, transfer)])} ON CONFLICT DO NOTHING RETURNING id`
  if (inserted.length === 0) {
    await sql`UPDATE balances SET posted = posted - ${amount} WHERE account_id = ${wallet}`
    return await earlierPayment(sql, funding, (posted - amount) as Nano)
  }
  await reach('in_topup')
  await rememberMove(sql, key, { transfer, posted })
  return { kind: 'funded', transfer, posted, repeated: false }
}

function transferFor(funding: Funding, now: number): Transfer {
  return {
    id: createId('tr'),
    kind: funding.kind,
    requestId: undefined,
    debitAccount: funding.kind === 'topup' ? 'funding' : 'grants',
    creditAccount: walletOf(funding.workspaceId),
    amount: funding.amount,
    priceVersion: undefined,
    usage: undefined,
    estimated: false,
    reference: funding.reference,
    paymentId: funding.paymentId,
    createdAt: now,
  }
}

function keyOf({ workspaceId, kind, amount, reference, paymentId, idempotencyKey: key }: Funding): MoveKey {
  const content = JSON.stringify([kind, String(amount), reference ?? null, paymentId ?? null])
  return { scope: `fund:${workspaceId}`, key, digest: createHash('sha256').update(content).digest('hex') }
}

async function earlierPayment(sql: Sql, funding: Funding, posted: Nano): Promise<Exclude<FundOutcome, Unavailable>> {
  const transfer = await readPayment(sql, funding.paymentId ?? '')
  if (!transfer) throw new Error('a new transfer was refused, and there is no earlier one of its payment')
  const same = transfer.amount === funding.amount && transfer.creditAccount === walletOf(funding.workspaceId)
  if (!same) {
    await freeKey(sql, keyOf(funding))
    return { kind: 'conflict', with: 'payment' }
  }
  await rememberMove(sql, keyOf(funding), { transfer, posted })
  return { kind: 'funded', transfer, posted, repeated: true }
}
