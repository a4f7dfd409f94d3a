// Money that comes into a wallet: paid by someone (topup) or given (grant). The move and the memory that it was made are
// one transaction, so that a retry after any failure credits once.

import { createHash } from 'node:crypto'
import { type Failpoint, noFailpoint } from '../kernel/failpoint.ts'
import { createId, type WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { ensureWallet, postedMax, transferMax, type WalletId, walletOf } from './account.ts'
import { readPayment, readTransfer, type Transfer, transferColumns } from './transfer.ts'
import type { Unavailable } from './unavailable.ts'

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

const keyLifetimeMs = 24 * 60 * 60 * 1000

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
  const earlier = await claimKey(sql, funding, now)
  if (earlier) return earlier
  await reach('in_topup')
  await ensureWallet(sql, workspaceId, now)
  const wallet = walletOf(workspaceId)
  // The transfer cannot be taken back, so everything that may refuse comes before it.
  const [balance] = await sql<{ posted: bigint }>`UPDATE balances SET posted = posted + ${amount}
    WHERE account_id = ${wallet} AND posted <= ${postedMax - amount} RETURNING posted`
  if (!balance) {
    await freeKey(sql, funding)
    return { kind: 'out_of_range', max: postedMax }
  }
  const posted = balance.posted - (await spentByLeases(sql, wallet))
  const transfer = transferFor(funding, now)
  const inserted =
    await sql`INSERT INTO transfers ${sql([transferColumns(transfer)])} ON CONFLICT DO NOTHING RETURNING id`
  if (inserted.length === 0) {
    await sql`UPDATE balances SET posted = posted - ${amount} WHERE account_id = ${wallet}`
    return await earlierPayment(sql, funding, (posted - amount) as Nano)
  }
  await reach('in_topup')
  await rememberOutcome(sql, funding, transfer, posted)
  return { kind: 'funded', transfer, posted: posted as Nano, repeated: false }
}

/** Charges that the wallet's row does not know yet; it is locked here, so they cannot come home meanwhile. */
async function spentByLeases(sql: Sql, wallet: WalletId): Promise<bigint> {
  const [row] = await sql<{ spent: bigint }>`SELECT COALESCE(CAST(SUM(spent) AS BIGINT), 0) AS spent FROM leases
    WHERE wallet_id = ${wallet}`
  return row?.spent ?? 0n
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

function scopeOf({ workspaceId }: Funding): string {
  return `fund:${workspaceId}`
}

function digestOf({ kind, amount, reference, paymentId }: Funding): string {
  return createHash('sha256')
    .update(JSON.stringify([kind, String(amount), reference ?? null, paymentId ?? null]))
    .digest('hex')
}

/** undefined = the key is ours now, or none was given. A twin in another process is waited for. */
async function claimKey(
  sql: Sql,
  funding: Funding,
  now: number,
): Promise<Exclude<FundOutcome, Unavailable> | undefined> {
  const { idempotencyKey: key } = funding
  if (key === undefined) return undefined
  const scope = scopeOf(funding)
  await sql`DELETE FROM idempotency WHERE scope = ${scope} AND key = ${key} AND expires_at <= ${timeToSql(now)}`
  const claimed = await sql`INSERT INTO idempotency (scope, key, body_sha256, state, expires_at)
    VALUES (${scope}, ${key}, ${digestOf(funding)}, 'running', ${timeToSql(now + keyLifetimeMs)})
    ON CONFLICT DO NOTHING RETURNING key`
  if (claimed.length === 1) return undefined
  const [row] = await sql<{ body_sha256: string; response: string }>`SELECT body_sha256, response FROM idempotency
    WHERE scope = ${scope} AND key = ${key}`
  if (row?.body_sha256 !== digestOf(funding)) return { kind: 'conflict', with: 'idempotency_key' }
  const [id = '', posted = '0'] = row.response.split(' ')
  const transfer = await readTransfer(sql, id)
  if (!transfer) throw new Error(`the idempotency key ${key} names the transfer ${id}, which does not exist`)
  return { kind: 'funded', transfer, posted: BigInt(posted) as Nano, repeated: true }
}

async function freeKey(sql: Sql, funding: Funding): Promise<void> {
  if (funding.idempotencyKey === undefined) return
  await sql`DELETE FROM idempotency WHERE scope = ${scopeOf(funding)} AND key = ${funding.idempotencyKey}`
}

async function rememberOutcome(sql: Sql, funding: Funding, transfer: Transfer, posted: bigint): Promise<void> {
  if (funding.idempotencyKey === undefined) return
  await sql`UPDATE idempotency SET state = 'done', response = ${`${transfer.id} ${posted}`}
    WHERE scope = ${scopeOf(funding)} AND key = ${funding.idempotencyKey}`
}

async function earlierPayment(sql: Sql, funding: Funding, posted: Nano): Promise<Exclude<FundOutcome, Unavailable>> {
  const transfer = await readPayment(sql, funding.paymentId ?? '')
  if (!transfer) throw new Error('a new transfer was refused, and there is no earlier one of its payment')
  const same = transfer.amount === funding.amount && transfer.creditAccount === walletOf(funding.workspaceId)
  if (!same) {
    await freeKey(sql, funding)
    return { kind: 'conflict', with: 'payment' }
  }
  await rememberOutcome(sql, funding, transfer, posted)
  return { kind: 'funded', transfer, posted, repeated: true }
}
