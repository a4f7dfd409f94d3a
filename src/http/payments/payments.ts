// The rows of payments: what was asked for at the payment provider, and what came of it. Money moves only in the ledger;
// each step here can be repeated after a crash.

import { createId, type PaymentId, type WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import { amount, count, type ItemIn, optional, rowFormat, text, time } from '../../store/columns.ts'
import type { Database } from '../../store/database.ts'
import { type Sql, timeToSql } from '../../store/sql.ts'

export const paymentRow = rowFormat({
  id: text<PaymentId>(),
  workspaceId: text<WorkspaceId>(),
  kind: text<'checkout' | 'automatic'>(),
  amount,
  state: text<'open' | 'paid' | 'failed'>(),
  paymentIntent: optional(text()),
  failure: optional(text()),
  createdAt: time,
  attempts: count,
  failedKeys: count,
})

export type PaymentRow = ItemIn<typeof paymentRow>

export async function insertPayment(
  sql: Sql,
  { workspaceId, kind, amount }: { workspaceId: WorkspaceId; kind: PaymentRow['kind']; amount: Nano },
  now: number,
): Promise<PaymentId | undefined> {
  const id = createId('pay')
  const at = timeToSql(now)
  const facts = { workspace_id: workspaceId, kind, amount, state: 'open', created_at: at }
  const row = { id, ...facts, next_at: kind === 'automatic' ? at : null }
  const added = await sql`INSERT INTO payments ${sql([row])} ON CONFLICT DO NOTHING RETURNING id`
  return added.length === 0 ? undefined : id
}

export async function findPayment(sql: Sql, id: string): Promise<PaymentRow | undefined> {
  return paymentRow.first(await sql`SELECT * FROM payments WHERE id = ${id}`)
}

export async function findPaymentOfIntent(sql: Sql, intent: string): Promise<PaymentRow | undefined> {
  return paymentRow.first(await sql`SELECT * FROM payments WHERE payment_intent = ${intent}`)
}

/** Newest first. */
export async function listPayments(
  sql: Sql,
  { workspaceId, limit, cursor }: { workspaceId: WorkspaceId; limit: number; cursor?: string },
): Promise<readonly PaymentRow[]> {
  const rows = await sql`SELECT * FROM payments WHERE workspace_id = ${workspaceId} AND id < ${cursor ?? 'pay_z'}
    ORDER BY id DESC LIMIT ${BigInt(limit)}`
  return paymentRow.all(rows)
}

export async function endUnpaid(sql: Sql, id: PaymentId, failure: string): Promise<PaymentRow | undefined> {
  const rows = await sql`UPDATE payments SET state = 'failed', failure = ${failure}, next_at = NULL
    WHERE id = ${id} AND state = 'open' RETURNING *`
  return paymentRow.first(rows)
}

export interface Paid {
  /** As the payment's metadata names it; undefined = it was started elsewhere. */
  readonly id: string | undefined
  readonly workspaceId: WorkspaceId
  readonly kind: PaymentRow['kind']
  readonly amount: Nano
  readonly paymentId: string
  readonly intent: string | undefined
}

/** After the wallet was credited. Returns the row as it was asked for; undefined = it was started elsewhere. */
export async function markPaid(database: Database, paid: Paid, now: number): Promise<PaymentRow | undefined> {
  const { workspaceId, kind, amount, paymentId, intent } = paid
  return await database.transaction(async (sql) => {
    const found = await sql`SELECT * FROM payments
      WHERE workspace_id = ${workspaceId} AND (id = ${paid.id ?? ''} OR payment_id = ${paymentId})`
    const row = paymentRow.first(found)
    if (row) {
      await sql`UPDATE payments SET state = 'paid', amount = ${amount}, payment_id = ${paymentId},
          payment_intent = ${intent ?? null}, failure = NULL, next_at = NULL
        WHERE id = ${row.id}`
    } else {
      const facts = { id: createId('pay'), workspace_id: workspaceId, kind, amount, created_at: timeToSql(now) }
      const added = { ...facts, state: 'paid', payment_id: paymentId, payment_intent: intent ?? null }
      // The same event may be delivered several times at once; one of them adds the row.
      await sql`INSERT INTO payments ${sql([added])} ON CONFLICT DO NOTHING`
    }
    if (kind === 'automatic') await sql`UPDATE auto_topups SET failures = 0 WHERE workspace_id = ${workspaceId}`
    return row
  })
}
