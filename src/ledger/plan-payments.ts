// Plans that a workspace pays for: its subscription at the payment provider, and the payments that grant credit. Credit follows
// payment: each payment grants the credit of one period once, and nothing else does.

import type { WorkspaceId } from '../kernel/ids.ts'
import { type Nano, zeroNano } from '../kernel/money.ts'
import { amount, count, flag, type ItemIn, optional, rowFormat, text, time } from '../store/columns.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { ensureWallet, postedMax } from './account.ts'
import { grantCredit } from './credit.ts'

const dayMs = 86_400_000

/** As the provider last described it; a workspace has at most one. */
export const subscriptionRow = rowFormat({
  id: text(),
  workspaceId: text<WorkspaceId>(),
  /** What the next payment is for. */
  planId: text(),
  credit: amount,
  price: amount,
  /** The provider's word: `active`, `past_due`, `unpaid` … */
  state: text(),
  /** It ends with the period that is paid. */
  isEnding: flag,
  endsAt: time,
})

export type Subscription = ItemIn<typeof subscriptionRow>

const paymentRow = rowFormat({
  /** The provider's id of the invoice. */
  id: text(),
  workspaceId: text<WorkspaceId>(),
  planId: text(),
  paid: amount,
  credit: amount,
  startsAt: time,
  endsAt: time,
  expiresDays: optional(count),
  /** Its credit was granted, or is not owed any more. */
  isGranted: flag,
  createdAt: time,
})

export type PlanPayment = Omit<ItemIn<typeof paymentRow>, 'isGranted'>

export async function readSubscription(sql: Sql, workspaceId: WorkspaceId): Promise<Subscription | undefined> {
  return subscriptionRow.first(await sql`SELECT * FROM subscriptions WHERE workspace_id = ${workspaceId}`)
}

/** False = the workspace has another one. */
export async function putSubscription(sql: Sql, subscription: Subscription): Promise<boolean> {
  const rows = await sql`INSERT INTO subscriptions ${sql([subscriptionRow.write(subscription)])}
    ON CONFLICT (workspace_id) DO UPDATE SET plan_id = excluded.plan_id, credit = excluded.credit,
      price = excluded.price, state = excluded.state, is_ending = excluded.is_ending, ends_at = excluded.ends_at
    WHERE subscriptions.id = excluded.id RETURNING id`
  return rows.length === 1
}

export async function deleteSubscription(sql: Sql, id: string): Promise<void> {
  await sql`DELETE FROM subscriptions WHERE id = ${id}`
}

/** The newest period that was paid. */
export async function lastPlanPayment(sql: Sql, workspaceId: WorkspaceId): Promise<PlanPayment | undefined> {
  return paymentRow.first(
    await sql`SELECT * FROM plan_payments WHERE workspace_id = ${workspaceId} ORDER BY starts_at DESC, id DESC LIMIT 1`,
  )
}

/** Oldest first: one for each period that was paid. */
export async function listPlanPayments(sql: Sql, workspaceId: WorkspaceId): Promise<readonly PlanPayment[]> {
  return paymentRow.all(
    await sql`SELECT * FROM plan_payments WHERE workspace_id = ${workspaceId} ORDER BY starts_at, id`,
  )
}

/** False = it was recorded before. `Ledger.renewPlans` grants its credit. */
export async function recordPlanPayment(sql: Sql, payment: PlanPayment): Promise<boolean> {
  const rows = await sql`INSERT INTO plan_payments ${sql([paymentRow.write({ ...payment, isGranted: false })])}
    ON CONFLICT (id) DO NOTHING RETURNING id`
  return rows.length === 1
}

export async function findPlanPayment(sql: Sql, id: string): Promise<PlanPayment | undefined> {
  return paymentRow.first(await sql`SELECT * FROM plan_payments WHERE id = ${id}`)
}

/** The credit of payments that have not granted theirs, in a transaction of the caller's. */
export async function grantPaid(sql: Sql, workspaceId: WorkspaceId, now: number): Promise<Nano> {
  const rows = await sql`SELECT * FROM plan_payments WHERE workspace_id = ${workspaceId} AND is_granted = 0
    ORDER BY starts_at, id FOR NO KEY UPDATE`
  let granted: bigint = zeroNano
  for (const payment of paymentRow.all(rows)) {
    await ensureWallet(sql, workspaceId, now)
    const grant = {
      ...{ planId: payment.planId, window: windowOf(payment.id), amount: payment.credit },
      expiresAt: expiryOf(payment, now),
    }
    const amount = await grantCredit(sql, workspaceId, grant, { now, max: postedMax })
    // A wallet that cannot take it gets it when it can.
    if (amount === 0n) continue
    await sql`UPDATE plan_payments SET is_granted = 1 WHERE id = ${payment.id}`
    granted += amount
  }
  return granted as Nano
}

/** Credit that was paid late lives as long as a period. */
function expiryOf({ startsAt, endsAt, expiresDays }: PlanPayment, now: number): number {
  if (expiresDays !== undefined) return now + expiresDays * dayMs
  return endsAt > now ? endsAt : now + endsAt - startsAt
}

/** The payment went back to the payer: what remains of its credit expires with the next round. */
export async function endCreditOf(sql: Sql, { id, workspaceId }: PlanPayment, now: number): Promise<void> {
  await sql`UPDATE plan_payments SET is_granted = 1 WHERE id = ${id}`
  await sql`UPDATE credits SET expires_at = ${timeToSql(now)}
    WHERE workspace_id = ${workspaceId} AND time_window = ${windowOf(id)} AND expires_at > ${timeToSql(now)}`
}

function windowOf(id: string): string {
  return `invoice:${id}`
}
