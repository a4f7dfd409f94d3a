// Refunds that an operator asks for. The money leaves the wallet before Stripe is asked, so that it cannot be spent
// meanwhile; it comes back if Stripe refuses. Every step can be repeated: what was interrupted is continued by a round.

import { z } from 'zod'
import { noFailpoint } from '../../kernel/failpoint.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { createId, type PaymentId, type RefundId } from '../../kernel/ids.ts'
import { formatUsd, type Nano } from '../../kernel/money.ts'
import type { Insufficient } from '../../ledger/account.ts'
import { amount, count, type ItemIn, optional, rowFormat, text, time } from '../../store/columns.ts'
import { type Sql, timeToSql } from '../../store/sql.ts'
import { notFound } from '../../tenancy/management.ts'
import { tooLittleAvailable } from '../management/writes.ts'
import { notCommitted, type PaymentDependencies, returnedIdOf } from './apply-event.ts'
import { findPayment, type PaymentRow, paymentRow } from './payments.ts'
import { errorOf, isKeyUsedUp, keyOf, replyFields, type StripeReply, Unreached } from './stripe-api.ts'
import { nanoPerCent, refundMetadata } from './stripe-event.ts'

const refundRow = rowFormat({
  id: text<RefundId>(),
  paymentId: text<PaymentId>(),
  amount,
  reason: text(),
  /** `open`: Stripe has not confirmed it yet; it is tried again. */
  state: text<'open' | 'done' | 'failed'>(),
  failure: optional(text()),
  createdAt: time,
  failedKeys: count,
})

export type RefundRow = ItemIn<typeof refundRow>

export type Refunds = ReturnType<typeof createRefunds>

const leaseMs = 60_000

export function createRefunds(deps: PaymentDependencies) {
  const { database, ledger, clock, log, api, reach = noFailpoint } = deps

  const end = async (id: RefundId, state: 'done' | 'failed', failure: string | null): Promise<RefundRow> =>
    await database.transaction(async (sql) => {
      await sql`UPDATE refunds SET state = ${state}, failure = ${failure}, next_at = NULL WHERE id = ${id} AND state = 'open'`
      return await getRefund(sql, id)
    })

  /** Looks for the refund of an earlier attempt, whose idempotency key Stripe may have forgotten or may be used up. */
  const ask = async (refund: RefundRow, payment: PaymentRow, isFirst: boolean): Promise<StripeReply | Unreached> => {
    if (!api) return new Unreached('no secret key')
    const intent = payment.paymentIntent ?? ''
    if (!isFirst) {
      const reply = await api.get(`/v1/refunds?payment_intent=${intent}&limit=100`)
      const list = reply instanceof Unreached ? undefined : listSchema.safeParse(reply.json).data
      if (!list) return reply
      const json = list.data.find(({ metadata }) => metadata?.[refundMetadata] === refund.id)
      if (json) return { status: 200, json, stripeRequestId: undefined }
    }
    const form = {
      payment_intent: intent,
      amount: String(refund.amount / nanoPerCent),
      [`metadata[${refundMetadata}]`]: refund.id,
    }
    return await api.post('/v1/refunds', form, keyOf(refund))
  }

  const proceed = async (id: RefundId, isFirst: boolean): Promise<RefundRow> => {
    const refund = await getRefund(database.sql, id)
    const payment = await findPayment(database.sql, refund.paymentId)
    if (refund.state !== 'open' || !payment) return refund
    const { workspaceId } = payment
    const { amount } = refund
    const reason = `Refund of ${payment.paymentIntent}: ${refund.reason}`
    const taken = await ledger.correct({ workspaceId, amount, direction: 'take', reason, paymentId: id })
    if (taken.kind === 'unavailable') throw notCommitted(taken.retryAfterMs)
    if (taken.kind !== 'corrected') {
      await end(id, 'failed', 'the wallet has less')
      throw taken.kind === 'insufficient'
        ? cannotRefund(taken, amount)
        : invalidRequest('The wallet cannot be corrected.')
    }
    await reach('in_topup')
    const reply = await ask(refund, payment, isFirst && refund.failedKeys === 0)
    await reach('in_topup')
    const status = reply instanceof Unreached ? undefined : refundSchema.safeParse(reply.json).data?.status
    const isMade = !(reply instanceof Unreached) && reply.status === 200 && status !== undefined
    if (isMade && status !== 'failed' && status !== 'canceled') return await end(id, 'done', null)
    const isRefused = !(reply instanceof Unreached) && !isKeyUsedUp(reply) && [400, 402, 404].includes(reply.status)
    if (!isMade && !isRefused) {
      if (isKeyUsedUp(reply)) {
        await database.transaction(
          (sql) => sql`UPDATE refunds SET failed_keys = failed_keys + 1
            WHERE id = ${id} AND failed_keys = ${BigInt(refund.failedKeys)}`,
        )
      }
      log.warn('a refund is not confirmed by Stripe; it is tried again', { refund: id, ...replyFields(reply) })
      return refund
    }
    const back = { workspaceId, amount, direction: 'add', reason: `Not refunded: ${reason}` } as const
    const outcome = await ledger.correct({ ...back, paymentId: returnedIdOf(id) })
    if (outcome.kind !== 'corrected') throw notCommitted()
    await reach('in_topup')
    log.error('Stripe refused a refund', { refund: id, ...replyFields(reply) })
    const code = reply instanceof Unreached ? undefined : errorOf(reply).code
    return await end(id, 'failed', `Stripe refused it (${code ?? status ?? 'no reason given'})`)
  }

  return {
    /** Records what is to be done, for `run`. Without an amount: what was not refunded yet. Throws a Failure. */
    async begin(
      sql: Sql,
      paymentId: PaymentId,
      { amount, reason }: { amount: Nano | undefined; reason: string },
    ): Promise<RefundRow> {
      // Locked, so that two refunds at once cannot exceed the payment.
      const locked = await sql`SELECT * FROM payments WHERE id = ${paymentId} FOR NO KEY UPDATE`
      const payment = paymentRow.first(locked)
      if (!payment) throw notFound('payment', paymentId)
      if (payment.state !== 'paid' || payment.paymentIntent === undefined || !api) {
        throw invalidRequest('This payment was not made through Stripe, or not paid, so it cannot be refunded here.')
      }
      const [sum] = await sql<{ refunded: bigint | null }>`SELECT CAST(SUM(amount) AS BIGINT) AS refunded FROM refunds
        WHERE payment_id = ${paymentId} AND state <> 'failed'`
      const left = (payment.amount - (sum?.refunded ?? 0n)) as Nano
      const wanted = amount ?? left
      if (wanted <= 0n || wanted > left || wanted % nanoPerCent !== 0n) {
        throw invalidRequest(
          `\`amount\` must be whole cents and at most ${formatUsd(left)}, what is not refunded yet.`,
          'amount',
        )
      }
      const at = timeToSql(clock.now())
      const row = { id: createId('rfn'), payment_id: paymentId, amount: wanted, reason, state: 'open', created_at: at }
      await sql`INSERT INTO refunds ${sql([{ ...row, next_at: timeToSql(clock.now() + leaseMs) }])}`
      return await getRefund(sql, row.id)
    },
    /** Throws a Failure where nothing was refunded. */
    run: (id: RefundId) => proceed(id, true),
    async round(): Promise<void> {
      const now = clock.now()
      const due = await database.transaction(
        (sql) => sql<{ id: RefundId }>`UPDATE refunds SET next_at = ${timeToSql(now + leaseMs)}
          WHERE state = 'open' AND next_at <= ${timeToSql(now)} RETURNING id`,
      )
      for (const { id } of due) {
        await proceed(id, false).catch((thrown) => {
          if (!(thrown instanceof Failure)) throw thrown
          log.warn('a refund could not be made', { refund: id, error: thrown.message })
        })
      }
    },
  }
}

const refundSchema = z.object({ status: z.string(), metadata: z.record(z.string(), z.string()).nullish() })
const listSchema = z.object({ data: z.array(refundSchema) })

async function getRefund(sql: Sql, id: string): Promise<RefundRow> {
  const refund = refundRow.first(await sql`SELECT * FROM refunds WHERE id = ${id}`)
  if (!refund) throw notFound('refund', id)
  return refund
}

function cannotRefund(outcome: Insufficient, amount: Nano): Failure {
  return tooLittleAvailable(outcome, amount, (available) => {
    const rest = `a wallet never goes below zero. Refund at most $${available}.`
    return `Cannot refund $${formatUsd(amount)}: $${available} is available, and ${rest}`
  })
}
