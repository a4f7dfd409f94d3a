// One movement of money and how it is read. Charges and write-offs are written with their requests, by embedded/ and shared/;
// fundings and corrections by fund.ts. Nothing is ever changed.

import type { RequestId, TransferId, WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { type Sql, type SqlValue, timeFromSql, timeToSql } from '../store/sql.ts'
import { type AccountId, walletOf } from './account.ts'

/** `plan_credit` and `expiry`: what a plan gave, and what of it expired. */
export type TransferKind = 'charge' | 'writeoff' | 'topup' | 'grant' | 'plan_credit' | 'expiry' | 'correction'

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
  /** Only transfers of this kind. */
  readonly kind?: TransferKind
}

export interface TransferPage {
  readonly transfers: readonly Transfer[]
  /** undefined = there are no older ones. */
  readonly nextCursor: string | undefined
}

interface FundingRow {
  readonly id: TransferId
  readonly kind: TransferKind
  readonly workspace_id: WorkspaceId
  readonly debit_account: AccountId
  readonly credit_account: AccountId
  readonly amount: Nano
  readonly reference: string | null
  readonly payment_id: string | null
  readonly created_at: bigint
}

export function fundingColumns(workspaceId: WorkspaceId, transfer: Transfer): Record<keyof FundingRow, SqlValue> {
  return {
    id: transfer.id,
    kind: transfer.kind,
    workspace_id: workspaceId,
    debit_account: transfer.debitAccount,
    credit_account: transfer.creditAccount,
    amount: transfer.amount,
    reference: transfer.reference ?? null,
    payment_id: transfer.paymentId ?? null,
    created_at: timeToSql(transfer.createdAt),
  }
}

function fundingFromRow(row: FundingRow): Transfer {
  return {
    id: row.id,
    kind: row.kind,
    requestId: undefined,
    debitAccount: row.debit_account,
    creditAccount: row.credit_account,
    amount: row.amount,
    priceVersion: undefined,
    usage: undefined,
    estimated: false,
    reference: row.reference ?? undefined,
    paymentId: row.payment_id ?? undefined,
    createdAt: timeFromSql(row.created_at),
  }
}

interface ChargeRow {
  readonly request_id: RequestId
  readonly workspace_id: WorkspaceId
  readonly created_at: bigint
  readonly charge: Nano
  readonly written_off: Nano | null
  readonly price_version: string | null
  readonly usage: string | null
  readonly estimated: bigint
}

function chargeFromRow(row: ChargeRow): Transfer {
  return {
    id: `tr_${row.request_id.slice('req_'.length)}`,
    kind: 'charge',
    requestId: row.request_id,
    debitAccount: walletOf(row.workspace_id),
    creditAccount: 'revenue',
    amount: row.charge,
    priceVersion: row.price_version ?? undefined,
    usage: row.usage ?? undefined,
    estimated: row.estimated === 1n,
    reference: undefined,
    paymentId: undefined,
    createdAt: timeFromSql(row.created_at),
  }
}

function writeoffFromRow(row: ChargeRow): Transfer | undefined {
  if (row.written_off === null) return undefined
  const charge = chargeFromRow(row)
  const changed = { kind: 'writeoff', debitAccount: 'writeoff', amount: row.written_off } as const
  return { ...charge, ...changed, id: `${charge.id}_writeoff`, priceVersion: undefined, usage: undefined }
}

export async function readFunding(sql: Sql, id: string): Promise<Transfer | undefined> {
  const [row] = await sql<FundingRow>`SELECT * FROM fundings WHERE id = ${id}`
  return row && fundingFromRow(row)
}

/** The transfers of a workspace, oldest first. There are few of them. */
export async function listFundings(sql: Sql, workspaceId: WorkspaceId): Promise<readonly Transfer[]> {
  const rows = await sql<FundingRow>`SELECT * FROM fundings WHERE workspace_id = ${workspaceId} ORDER BY id`
  return rows.map(fundingFromRow)
}

/** Into and out of the wallet of a workspace from then on, oldest first. Write-offs are not: the operator bears them. */
export async function listWalletFundings(
  sql: Sql,
  workspaceId: WorkspaceId,
  from: number,
): Promise<readonly Transfer[]> {
  const rows = await sql<FundingRow>`SELECT * FROM fundings WHERE workspace_id = ${workspaceId}
    AND created_at >= ${timeToSql(from)} AND kind <> 'writeoff' ORDER BY id`
  return rows.map(fundingFromRow)
}

export async function readPayment(sql: Sql, paymentId: string): Promise<Transfer | undefined> {
  const [row] = await sql<FundingRow>`SELECT * FROM fundings WHERE payment_id = ${paymentId}`
  return row && fundingFromRow(row)
}

/** The charge, and the write-off if there is one. */
export async function readTransfersOf(sql: Sql, requestId: RequestId): Promise<readonly Transfer[]> {
  const rows = await sql<ChargeRow>`SELECT * FROM charges WHERE request_id = ${requestId}`
  return rows.flatMap((row) => [chargeFromRow(row), writeoffFromRow(row) ?? []].flat())
}

/** After the last character of any id in both engines' order. */
const afterAllIds = 'Z'.repeat(27)

/** Each table has an index by workspace. The view `transfers` cannot be read in the order of one, so they are merged here. */
export async function listTransfers(
  sql: Sql,
  workspaceId: WorkspaceId,
  { limit, cursor, kind }: TransferQuery,
): Promise<TransferPage> {
  const before = cursor?.slice('tr_'.length) ?? afterAllIds
  const count = BigInt(limit + 1)
  const fundings =
    kind === undefined
      ? await sql<FundingRow>`SELECT * FROM fundings
          WHERE workspace_id = ${workspaceId} AND id < ${`tr_${before}`} ORDER BY id DESC LIMIT ${count}`
      : await sql<FundingRow>`SELECT * FROM fundings WHERE workspace_id = ${workspaceId} AND kind = ${kind}
          AND id < ${`tr_${before}`} ORDER BY id DESC LIMIT ${count}`
  const charges = kind === undefined || kind === 'charge' ? await listCharges(sql, workspaceId, before, count) : []
  const merged = [...fundings.map(fundingFromRow), ...charges.map(chargeFromRow)]
  const transfers = merged.sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit)
  return { transfers, nextCursor: merged.length > limit ? transfers.at(-1)?.id : undefined }
}

async function listCharges(
  sql: Sql,
  workspaceId: WorkspaceId,
  before: string,
  count: bigint,
): Promise<readonly ChargeRow[]> {
  const charges =
    await sql<ChargeRow>`SELECT id AS request_id, workspace_id, started_at + total_ms AS created_at, charge,
      written_off, price_version, usage, estimated FROM requests
    WHERE workspace_id = ${workspaceId} AND id < ${`req_${before}`} AND charge IS NOT NULL ORDER BY id DESC LIMIT ${count}`
  const archived = await sql<ChargeRow>`SELECT id AS request_id, workspace_id, created_at, charge, written_off,
      price_version, usage, estimated FROM archived_charges
    WHERE workspace_id = ${workspaceId} AND id < ${`req_${before}`} ORDER BY id DESC LIMIT ${count}`
  return [...charges, ...archived]
}
