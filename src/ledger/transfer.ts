// One row of the ledger and how it is read. Rows are only ever added; who adds them stands in fund.ts, embedded/ and
// shared/.

import type { RequestId, TransferId, WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { type Sql, type SqlValue, timeFromSql, timeToSql } from '../store/sql.ts'
import type { TransferColumn } from '../store/write-batch.ts'
import { type AccountId, walletOf } from './account.ts'
import { type BudgetName, renderBudgetNames } from './budget.ts'

export type TransferKind = 'charge' | 'writeoff' | 'topup' | 'grant' | 'correction'

export interface Transfer {
  readonly id: TransferId
  readonly kind: TransferKind
  /** undefined for funding. */
  readonly requestId: RequestId | undefined
  readonly debitAccount: AccountId
  readonly creditAccount: AccountId
  readonly amount: Nano
  readonly priceVersion: string | undefined
  readonly usage: string | undefined
  readonly estimated: boolean
  readonly reference: string | undefined
  readonly paymentId: string | undefined
  readonly createdAt: number
}

export interface TransferQuery {
  readonly limit: number
  /** `nextCursor` of the page before. */
  readonly cursor?: string
}

export interface TransferPage {
  readonly transfers: readonly Transfer[]
  /** undefined = there are no older ones. */
  readonly nextCursor: string | undefined
}

interface TransferRow {
  readonly id: TransferId
  readonly kind: TransferKind
  readonly request_id: RequestId | null
  readonly debit_account: AccountId
  readonly credit_account: AccountId
  readonly amount: bigint
  readonly price_version: string | null
  readonly usage: string | null
  readonly estimated: bigint
  readonly reference: string | null
  readonly payment_id: string | null
  readonly created_at: bigint
}

/** `budgets`: those that the amount is counted in. */
export function transferColumns(
  transfer: Transfer,
  budgets: readonly BudgetName[] = [],
): Record<TransferColumn, SqlValue> {
  return {
    id: transfer.id,
    kind: transfer.kind,
    request_id: transfer.requestId ?? null,
    seq: 0n,
    debit_account: transfer.debitAccount,
    credit_account: transfer.creditAccount,
    amount: transfer.amount,
    price_version: transfer.priceVersion ?? null,
    usage: transfer.usage ?? null,
    estimated: transfer.estimated ? 1n : 0n,
    reference: transfer.reference ?? null,
    payment_id: transfer.paymentId ?? null,
    created_at: timeToSql(transfer.createdAt),
    budgets: renderBudgetNames(budgets),
  }
}

function transferFromRow(row: TransferRow): Transfer {
  return {
    id: row.id,
    kind: row.kind,
    requestId: row.request_id ?? undefined,
    debitAccount: row.debit_account,
    creditAccount: row.credit_account,
    amount: row.amount as Nano,
    priceVersion: row.price_version ?? undefined,
    usage: row.usage ?? undefined,
    estimated: row.estimated === 1n,
    reference: row.reference ?? undefined,
    paymentId: row.payment_id ?? undefined,
    createdAt: timeFromSql(row.created_at),
  }
}

export async function readTransfer(sql: Sql, id: string): Promise<Transfer | undefined> {
  const [row] = await sql<TransferRow>`SELECT * FROM transfers WHERE id = ${id}`
  return row && transferFromRow(row)
}

export async function readPayment(sql: Sql, paymentId: string): Promise<Transfer | undefined> {
  const [row] = await sql<TransferRow>`SELECT * FROM transfers WHERE payment_id = ${paymentId}`
  return row && transferFromRow(row)
}

export async function readTransfersOf(sql: Sql, requestId: RequestId): Promise<readonly Transfer[]> {
  const rows = await sql<TransferRow>`SELECT * FROM transfers WHERE request_id = ${requestId} ORDER BY id`
  return rows.map(transferFromRow)
}

/** After the last character of any id in both engines' order. */
const afterAllIds = 'tr_ZZZZZZZZZZZZZZZZZZZZZZZZZZZ'

/** Each leg has its index, so each is read by itself and the two are merged here. */
export async function listTransfers(
  sql: Sql,
  workspaceId: WorkspaceId,
  { limit, cursor }: TransferQuery,
): Promise<TransferPage> {
  const wallet = walletOf(workspaceId)
  const before = cursor ?? afterAllIds
  const count = BigInt(limit + 1)
  const paid = await sql<TransferRow>`SELECT * FROM transfers
    WHERE debit_account = ${wallet} AND id < ${before} ORDER BY id DESC LIMIT ${count}`
  const received = await sql<TransferRow>`SELECT * FROM transfers
    WHERE credit_account = ${wallet} AND kind <> 'charge' AND id < ${before} ORDER BY id DESC LIMIT ${count}`
  const merged = [...paid, ...received].sort((a, b) => (a.id < b.id ? 1 : -1))
  const transfers = merged.slice(0, limit).map(transferFromRow)
  return { transfers, nextCursor: merged.length > limit ? transfers.at(-1)?.id : undefined }
}
