// Starts a card payment: creates a Checkout Session at Stripe, where the payer is sent. The webhook credits the wallet
// once Stripe reports that it was paid.

import { z } from 'zod'
import type { Clock } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import type { PaymentId, RequestId, WorkspaceId } from '../../kernel/ids.ts'
import { formatUsd, type Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import type { Log } from '../../telemetry/log.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import { endUnpaid, insertPayment } from './payments.ts'
import { replyFields, type StripeApi, type StripeReply, Unreached } from './stripe-api.ts'
import { nanoPerCent, paymentMetadata, saveCardMetadata, workspaceMetadata } from './stripe-event.ts'

export interface CheckoutSession {
  /** Stripe's page, for the payer's browser. */
  readonly url: string
  /** `cs_…`; the payment's id in the ledger. */
  readonly id: string
  /** `pay_…`, in the list of payments. */
  readonly payment_id: string
}

export interface CheckoutSettings {
  /** undefined = payments cannot be started here. */
  readonly api: StripeApi | undefined
  /** Where payers reach this gateway; Stripe sends them back there. Without a slash at the end. */
  publicUrl(): string
  /** What one payment may be. */
  bounds(): AmountBounds
}

export interface AmountBounds {
  readonly min: Nano
  readonly max: Nano
}

export interface CheckoutDependencies {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
}

export interface CheckoutTerms {
  readonly amount: Nano
  /** One request id starts one payment. */
  readonly requestId: RequestId
  /** Keeps the card for automatic top-ups. */
  readonly savesCard?: boolean | undefined
}

/** Throws a Failure if no payment can be started. */
export type Checkout = (workspaceId: WorkspaceId, terms: CheckoutTerms) => Promise<CheckoutSession>

/** Stripe takes between 50 cents and eight digits of cents: https://docs.stripe.com/currencies */
export const stripeBounds: AmountBounds = {
  min: (50n * nanoPerCent) as Nano,
  max: (99_999_999n * nanoPerCent) as Nano,
}

/** Throws a Failure if an amount cannot be paid by card. */
export function checkAmount(amount: Nano, { min, max }: AmountBounds, field = 'amount'): void {
  if (amount >= min && amount <= max && amount % nanoPerCent === 0n) return
  const range = `from ${formatUsd(min)} to ${formatUsd(max)}`
  throw invalidRequest(`\`${field}\` must be ${range} in whole cents to be paid by card.`, field)
}

export function createStripeCheckout(deps: CheckoutDependencies, settings: CheckoutSettings): Checkout {
  const { database, clock, log } = deps
  return async (workspaceId, { amount, requestId, savesCard = false }) => {
    const { api } = settings
    if (!api) throw new Failure('NOT_FOUND', 'Payments cannot be started here: STRIPE_SECRET_KEY is not set.')
    checkAmount(amount, settings.bounds())
    // Checked before the payment, which otherwise could not be credited to anyone.
    await getWorkspace(database.sql, workspaceId)
    const [saved] = await database.sql<{ customer: string | null }>`SELECT customer FROM auto_topups
      WHERE workspace_id = ${workspaceId}`
    const kind = 'checkout'
    const id = await database.transaction((sql) => insertPayment(sql, { workspaceId, kind, amount }, clock.now()))
    if (id === undefined) throw new Error('a new id is unique')
    const customer = saved?.customer ?? undefined
    const form = sessionForm({ workspaceId, id, amount, savesCard, customer }, settings.publicUrl())
    const reply = await api.post('/v1/checkout/sessions', form, requestId)
    const session = sessionOf(log, reply, requestId)
    await database.transaction(async (sql) => {
      if (session instanceof Failure) await endUnpaid(sql, id, 'Stripe did not start it.')
      else await sql`UPDATE payments SET payment_id = ${session.id} WHERE id = ${id} AND state = 'open'`
    })
    if (session instanceof Failure) throw session
    return { ...session, payment_id: id }
  }
}

interface SessionTerms {
  readonly workspaceId: WorkspaceId
  readonly id: PaymentId
  readonly amount: Nano
  readonly savesCard: boolean
  readonly customer: string | undefined
}

function sessionForm({ workspaceId, id, amount, savesCard, customer }: SessionTerms, publicUrl: string) {
  const item = 'line_items[0]'
  return {
    mode: 'payment',
    client_reference_id: workspaceId,
    [`metadata[${workspaceMetadata}]`]: workspaceId,
    [`metadata[${paymentMetadata}]`]: id,
    // On the payment too, so that a refund that arrives before the session's event names the workspace.
    [`payment_intent_data[metadata][${workspaceMetadata}]`]: workspaceId,
    [`${item}[quantity]`]: '1',
    [`${item}[price_data][currency]`]: 'usd',
    [`${item}[price_data][unit_amount]`]: String(amount / nanoPerCent),
    [`${item}[price_data][product_data][name]`]: 'Tollgate credit',
    // Otherwise Stripe may offer the payer another currency, and a wallet takes dollars.
    'adaptive_pricing[enabled]': 'false',
    ...(customer !== undefined && { customer }),
    ...(savesCard && {
      [`metadata[${saveCardMetadata}]`]: 'yes',
      'payment_intent_data[setup_future_usage]': 'off_session',
      // Automatic top-ups need a method that can be charged without the payer.
      'payment_method_types[0]': 'card',
      ...(customer === undefined && { customer_creation: 'always' }),
    }),
    success_url: `${publicUrl}/console/${workspaceId}/wallet?payment=${id}`,
    cancel_url: `${publicUrl}/console/${workspaceId}/wallet?payment=${id}&cancelled=yes`,
  }
}

const sessionSchema = z.object({ id: z.string().startsWith('cs_'), url: z.string().startsWith('https://') })

function sessionOf(log: Log, reply: StripeReply | Unreached, requestId: RequestId) {
  const fields = { request_id: requestId, ...replyFields(reply) }
  if (reply instanceof Unreached) {
    log.warn('Stripe cannot be reached', fields)
    return tryLater()
  }
  const session = sessionSchema.safeParse(reply.json)
  if (reply.status === 200 && session.success) return session.data
  log.error('Stripe did not start a payment', fields)
  if (reply.status === 429 || reply.status >= 500) return tryLater()
  return new Failure('INTERNAL', 'Stripe refused to start the payment; the log has the cause under the request id.')
}

function tryLater(): Failure {
  return new Failure('OVERLOADED', 'Stripe cannot start a payment at the moment. Retry in a few seconds.', {
    retryAfterMs: 3000,
  })
}
