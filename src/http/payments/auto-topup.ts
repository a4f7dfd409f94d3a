// Automatic top-ups with a saved card: a payment begins when a balance is below its threshold. Every replica looks; one row
// in the database is the payment, and at most one is open in a workspace. Stripe gets an idempotency key made from its id,
// and what was sent before a crash or a server error is looked for at Stripe first, so that there is never a second payment.

import { z } from 'zod'
import { noFailpoint } from '../../kernel/failpoint.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { createId, type PaymentId, type WorkspaceId } from '../../kernel/ids.ts'
import { formatUsd, type Nano } from '../../kernel/money.ts'
import { amount, count, flag, optional, rowFormat, text } from '../../store/columns.ts'
import { type Sql, timeToSql } from '../../store/sql.ts'
import { applyReading, endPayment, lockTopUp, type PaymentDependencies, reportFailure } from './apply-event.ts'
import { insertPayment, type PaymentRow, paymentRow } from './payments.ts'
import { errorOf, isKeyUsedUp, keyOf, replyFields, type StripeReply, Unreached } from './stripe-api.ts'
import { type AmountBounds, checkAmount } from './stripe-checkout.ts'
import {
  automaticMetadata,
  type Intent,
  nanoPerCent,
  paymentMetadata,
  readAutomatic,
  readIntent,
  workspaceMetadata,
} from './stripe-event.ts'

export interface AutoTopUpTerms {
  readonly threshold: Nano
  readonly amount: Nano
  readonly monthMax: Nano
}

const topUpRow = rowFormat({
  isOn: flag,
  /** Why the gateway turned it off. */
  stopped: optional(text()),
  threshold: amount,
  amount,
  monthMax: amount,
  failures: count,
  customer: optional(text()),
  paymentMethod: optional(text()),
  /** `visa 4242`; undefined = no card is saved. */
  card: optional(text()),
})

export type AutoTopUps = ReturnType<typeof createAutoTopUps>

/** After a payment that failed, before the next one. */
const retryMs = 3_600_000
/** How long one replica has for a payment before another looks at it. */
const leaseMs = 60_000

export function createAutoTopUps(
  deps: PaymentDependencies,
  { bounds, isLive }: { bounds(): AmountBounds; readonly isLive: boolean },
) {
  const { database, clock, api, log, raising, reach = noFailpoint } = deps

  const begin = (workspaceId: WorkspaceId): Promise<void> =>
    database.transaction(async (sql) => {
      // The order matters: a payment is credited before it stops being open. So a replica that finds none open, and reads the
      // balance after that, reads one that has the last payment in it.
      await lockTopUp(sql, workspaceId)
      const rows = await sql`SELECT * FROM auto_topups t WHERE workspace_id = ${workspaceId} AND is_on = 1
        AND payment_method IS NOT NULL AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.workspace_id = t.workspace_id
          AND p.kind = 'automatic' AND (p.state = 'open'
            OR (p.state = 'failed' AND p.created_at > ${timeToSql(clock.now() - retryMs)})))`
      const [balance] = await sql<{ posted: Nano }>`SELECT posted FROM balances
        WHERE account_id = ${`wallet:${workspaceId}`}`
      const row = topUpRow.first(rows)
      if (!row || !balance || balance.posted >= row.threshold) return
      const now = clock.now()
      const { amount, monthMax } = row
      if ((await spentSince(sql, workspaceId, monthStart(now))) + amount > monthMax) {
        const crossing = `topup:month:${workspaceId}:${monthStart(now)}:${monthMax}`
        const why = `its limit of $${formatUsd(monthMax)} a month is used up`
        const [earlier] = await sql`SELECT 1 AS found FROM alerts WHERE crossing = ${crossing}`
        if (!earlier) await reportFailure(sql, { workspaceId, why, isOff: false, crossing, ...raising() })
        return
      }
      await insertPayment(sql, { workspaceId, kind: 'automatic', amount }, now)
    })

  /** undefined = another replica has it, or it is too early. */
  const lease = async (id: PaymentId): Promise<PaymentRow | undefined> =>
    await database.transaction(async (sql) => {
      const now = clock.now()
      const rows = await sql`UPDATE payments SET next_at = ${timeToSql(now + leaseMs)}, attempts = attempts + 1
        WHERE id = ${id} AND state = 'open' AND next_at <= ${timeToSql(now)} RETURNING *`
      return paymentRow.first(rows)
    })

  const perform = async (id: PaymentId): Promise<void> => {
    const payment = await lease(id)
    if (!payment || !api) return
    await reach('in_topup')
    const { customer, paymentMethod: method } = (await readTopUp(database.sql, payment.workspaceId)) ?? {}
    if (!customer || !method) return await endPayment(deps, id, 'resource_missing')
    const found = payment.attempts > 1 ? await find(payment, customer) : undefined
    if (found === 'unknown') return
    const reply =
      found ?? (await api.post('/v1/payment_intents', intentForm(payment, { customer, method }), keyOf(payment)))
    await reach('in_topup')
    await conclude(payment, reply)
  }

  /**
   * The payment intent of an earlier attempt. Idempotency keys are not enough: Stripe forgets them after a day, and a server
   * error uses one up, possibly after the payment was made. A lease is over by now, so no attempt is still running.
   */
  const find = async (payment: PaymentRow, customer: string): Promise<StripeReply | 'unknown' | undefined> => {
    const since = Math.floor(payment.createdAt / 1000) - 3600
    const query = new URLSearchParams({ customer, 'created[gte]': String(since), limit: '100' })
    const reply = await api?.get(`/v1/payment_intents?${query}`)
    const list = !reply || reply instanceof Unreached ? undefined : listSchema.safeParse(reply.json).data
    if (!list) {
      log.warn('Stripe cannot say whether an automatic top-up was made; it is asked again', { payment: payment.id })
      return 'unknown'
    }
    const json = list.data.find((each) => readIntent(each)?.metadata?.[paymentMetadata] === payment.id)
    return json === undefined ? undefined : { status: 200, json, stripeRequestId: undefined }
  }

  const conclude = async ({ id, failedKeys }: PaymentRow, reply: StripeReply | Unreached): Promise<void> => {
    const intent = reply instanceof Unreached ? undefined : intentOf(reply)
    if (intent) {
      await database.transaction((sql) => sql`UPDATE payments SET payment_intent = ${intent.id} WHERE id = ${id}`)
      // Looked at again when the lease is over, unless an event comes first.
      if (intent.status === 'processing') return
      const requestId = createId('req')
      const outcome = await applyReading(deps, readAutomatic(intent, isLive, { payment: id }), requestId)
      if (outcome === 'not_credited') await endPayment(deps, id, 'not_credited')
      return
    }
    if (isKeyUsedUp(reply)) {
      await database.transaction(
        (sql) => sql`UPDATE payments SET failed_keys = failed_keys + 1
          WHERE id = ${id} AND failed_keys = ${BigInt(failedKeys)}`,
      )
    }
    const isFinal = !(reply instanceof Unreached) && !isKeyUsedUp(reply) && [400, 402, 404].includes(reply.status)
    if (!isFinal) return log.warn('an automatic top-up could not be made; it is tried again', replyFields(reply))
    const { code, decline_code } = errorOf(reply)
    log.warn('an automatic top-up failed', { payment: id, ...replyFields(reply) })
    await endPayment(deps, id, (code === 'card_declined' ? decline_code : undefined) ?? code ?? 'refused')
  }

  return {
    bounds,
    /** `spentThisMonth`: by automatic top-ups, also those that are not paid yet. undefined = it was never set, and no card is saved. */
    async read(sql: Sql, workspaceId: WorkspaceId) {
      const row = await readTopUp(sql, workspaceId)
      return row && { ...row, spentThisMonth: await spentSince(sql, workspaceId, monthStart(clock.now())) }
    },
    /** Throws a Failure if it cannot work. */
    async turnOn(sql: Sql, workspaceId: WorkspaceId, { threshold, amount, monthMax }: AutoTopUpTerms): Promise<void> {
      if (!api) throw new Failure('NOT_FOUND', 'Automatic top-ups need STRIPE_SECRET_KEY, which is not set.')
      checkAmount(amount, bounds())
      if (monthMax < amount) throw invalidRequest('`monthly_max` must be at least `amount`.', 'monthly_max')
      const rows = await sql`UPDATE auto_topups SET is_on = 1, stopped = NULL, failures = 0, threshold = ${threshold},
          amount = ${amount}, month_max = ${monthMax}
        WHERE workspace_id = ${workspaceId} AND payment_method IS NOT NULL RETURNING workspace_id`
      if (rows.length > 0) return
      const message = 'No card is saved. Pay once with `save_card`, for example on the Billing page, then turn it on.'
      throw invalidRequest(message)
    },
    async turnOff(sql: Sql, workspaceId: WorkspaceId): Promise<void> {
      await sql`UPDATE auto_topups SET is_on = 0, stopped = NULL WHERE workspace_id = ${workspaceId}`
    },
    async round(): Promise<void> {
      if (!api) return
      const { sql } = database
      const due = await sql<{ workspace_id: WorkspaceId }>`SELECT t.workspace_id FROM auto_topups t
        JOIN balances b ON b.account_id = 'wallet:' || t.workspace_id WHERE t.is_on = 1 AND b.posted < t.threshold`
      for (const { workspace_id } of due) await begin(workspace_id)
      await reach('in_topup')
      const open = await sql<{ id: PaymentId }>`SELECT id FROM payments
        WHERE kind = 'automatic' AND state = 'open' AND next_at <= ${timeToSql(clock.now())} ORDER BY id`
      for (const { id } of open) await perform(id)
    },
  }
}

async function readTopUp(sql: Sql, workspaceId: WorkspaceId) {
  return topUpRow.first(await sql`SELECT * FROM auto_topups WHERE workspace_id = ${workspaceId}`)
}

const listSchema = z.object({ data: z.array(z.unknown()) })

/** Also of a declined payment, whose error has it. */
function intentOf({ status, json }: StripeReply): Intent | undefined {
  if (status === 200) return readIntent(json)
  const error = z.object({ error: z.object({ payment_intent: z.unknown() }) }).safeParse(json)
  return error.success && status === 402 ? readIntent(error.data.error.payment_intent) : undefined
}

function intentForm(
  { id, workspaceId, amount }: PaymentRow,
  { customer, method }: { readonly customer: string; readonly method: string },
) {
  return {
    amount: String(amount / nanoPerCent),
    currency: 'usd',
    customer,
    payment_method: method,
    'payment_method_types[0]': 'card',
    off_session: 'true',
    confirm: 'true',
    // Nobody is there to confirm it.
    error_on_requires_action: 'true',
    description: 'Tollgate credit, automatic top-up',
    [`metadata[${workspaceMetadata}]`]: workspaceId,
    [`metadata[${paymentMetadata}]`]: id,
    [`metadata[${automaticMetadata}]`]: 'yes',
  }
}

async function spentSince(sql: Sql, workspaceId: WorkspaceId, since: number): Promise<Nano> {
  const [row] = await sql<{ spent: bigint | null }>`SELECT CAST(SUM(amount) AS BIGINT) AS spent FROM payments
    WHERE workspace_id = ${workspaceId} AND kind = 'automatic' AND state <> 'failed' AND created_at >= ${timeToSql(since)}`
  return (row?.spent ?? 0n) as Nano
}

/** In UTC. */
function monthStart(now: number): number {
  const date = new Date(now)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth())
}
