// Settlements that a lease pays in full, which on a hot wallet are nearly all: for each lease one statement that charges
// its row and writes transfers and records, if the row is still there, and all of them in one message to the server. No
// wallet's row is touched. What this cannot do is left to the batch's own transaction.

import type { Database } from '../../store/database.ts'
import { type ListInsert, listInsert, listInserts, templateOf } from '../../store/insert-list.ts'
import type { Sql, SqlValue } from '../../store/sql.ts'
import type { SettleOutcome } from '../ledger.ts'
import { dueOf, settledTransfers } from '../settlement-transfers.ts'
import { type Transfer, transferColumns } from '../transfer.ts'
import type { Owner } from './hold-rows.ts'
import type { Lease, LeasedPart } from './lease-book.ts'
import type { LeaseRow } from './lease-rows.ts'
import type { SettleOperation, SharedOperation } from './operation.ts'

export type PlainSettle = SettleOperation & { readonly leased: LeasedPart }

/** A charge of nothing is none: its wallet may have to be made first. */
export function isPlain(operation: SharedOperation): operation is PlainSettle {
  if (operation.kind !== 'settle' || operation.hasRow || !operation.leased) return false
  const { lease, amount, isCounted } = operation.leased
  const due = dueOf(operation.settlement)
  return isCounted && !lease.isLost && !lease.isClosing && due > 0n && due <= amount
}

/** Answers what it has charged; returns the others, whose lease is gone. Of each request it must be the first try. */
export async function payLeased(
  database: Database,
  owner: Owner,
  operations: readonly PlainSettle[],
  now: number,
): Promise<ReadonlySet<SharedOperation>> {
  const byLease = Map.groupBy(operations, ({ leased }) => leased.lease)
  // In the order of all locks: leases by their wallets.
  const payments = [...byLease]
    .sort(([a], [b]) => (a.wallet < b.wallet ? -1 : 1))
    .map(([lease, ending]) => paymentOf(lease, ending, now))
  const states = await database.transaction(
    (sql) => Promise.all(payments.map((payment) => chargeLease(sql, owner, payment))),
    'at_once',
  )
  const unpaid = new Set<SharedOperation>()
  for (const [at, { lease, charges }] of payments.entries()) {
    const state = states[at]
    if (state === undefined) lease.isLost = true
    if (state === 'wanted') lease.isWanted = true
    for (const { operation, outcome } of charges) {
      if (state === undefined) unpaid.add(operation)
      else operation.answer(outcome)
    }
  }
  return unpaid
}

interface Payment {
  readonly lease: Lease
  readonly charges: readonly Charge[]
  readonly transfers: readonly Transfer[]
  readonly spent: bigint
}

interface Charge {
  readonly operation: PlainSettle
  readonly outcome: SettleOutcome
}

function paymentOf(lease: Lease, operations: readonly PlainSettle[], now: number): Payment {
  const charges: Charge[] = []
  const transfers: Transfer[] = []
  let spent = 0n
  for (const operation of operations) {
    const { settlement, workspaceId } = operation
    const charged = dueOf(settlement)
    const { charge, writeoff } = settledTransfers(settlement, workspaceId, { charged, now })
    transfers.push(charge, ...(writeoff ? [writeoff] : []))
    spent += charged
    const writtenOff = writeoff?.amount ?? (0n as typeof charged)
    charges.push({ operation, outcome: { kind: 'settled', transfer: charge, writtenOff, repeated: false } })
  }
  return { lease, charges, transfers, spent }
}

/** undefined = the lease is not there any more, or not with so much in it; nothing was written then. */
async function chargeLease(
  sql: Sql,
  { id: owner }: Owner,
  { lease, charges, transfers, spent }: Payment,
): Promise<LeaseRow['state'] | undefined> {
  const held = charges.reduce((sum, { operation }) => sum + operation.leased.amount, 0n)
  const inserts = [
    listInsert(
      'transfers',
      transfers.map((transfer) => transferColumns(transfer)),
    ),
    ...listInserts(charges.flatMap(({ operation }) => operation.settlement.rows?.(dueOf(operation.settlement)) ?? [])),
  ]
  const values: SqlValue[] = [spent, lease.inUse - held, lease.wallet, owner, lease.epoch, spent]
  const [row] = await sql<LeaseRow>(chargeText(inserts), ...values, ...inserts.map(({ list }) => list))
  return row?.state
}

/** The same text for any number of charges; it differs only with the kinds of records. */
function chargeText(inserts: readonly ListInsert[]): TemplateStringsArray {
  const parts = [
    'WITH paid AS (UPDATE leases SET spent = spent + ',
    ', in_use = ',
    ' WHERE wallet_id = ',
    ' AND owner = ',
    ' AND epoch = ',
    ' AND amount - spent >= ',
  ]
  let before = ' RETURNING state)'
  for (const [at, insert] of inserts.entries()) {
    parts.push(`${before}, written${at} AS (${insert.before}`)
    before = `${insert.after} WHERE EXISTS (SELECT 1 FROM paid))`
  }
  return templateOf([...parts, `${before} SELECT state FROM paid`])
}
