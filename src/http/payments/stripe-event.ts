// Verifies that Stripe signed an event, and reads what it means for a wallet. Amount and currency are those in Stripe's
// object, never what a caller asked for. Nothing is credited here.

import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { isId, type WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Secret } from '../../kernel/secret.ts'
import type { LogFields } from '../../telemetry/log.ts'

// The signature covers the bytes as received: JSON that was parsed and written again is not what was signed.
// https://docs.stripe.com/webhooks/signature

export interface SignedBody {
  /** `Stripe-Signature`: `t=1800000000,v1=…`, several v1 while a secret is being replaced; other schemes are ignored. */
  readonly header: string
  readonly body: Uint8Array
}

/** `mismatch` comes before `stale`: only a genuine signature can be too old. */
export type SignatureFault = 'malformed' | 'mismatch' | 'stale'

/** In both directions, for clock differences. A replay within it finds its payment already credited. */
const toleranceMs = 5 * 60_000

const timePattern = /^[0-9]{1,12}$/
const digestPattern = /^[0-9a-f]{64}$/

/** undefined = genuine. */
export function checkSignature(signed: SignedBody, secret: Secret, now: number): SignatureFault | undefined {
  const { time, digests } = parseHeader(signed.header)
  if (time === undefined || digests.length === 0) return 'malformed'
  const expected = createHmac('sha256', secret.reveal()).update(`${time}.`).update(signed.body).digest()
  // Compares all of them in constant time, so that timing does not reveal how close a guess was.
  const matches = digests.filter((digest) => timingSafeEqual(Buffer.from(digest, 'hex'), expected))
  if (matches.length === 0) return 'mismatch'
  return Math.abs(now - Number(time) * 1000) > toleranceMs ? 'stale' : undefined
}

/** With two timestamps it is unclear which one was signed, so then there is none. */
function parseHeader(header: string): { readonly time: string | undefined; readonly digests: readonly string[] } {
  const times: string[] = []
  const digests: string[] = []
  for (const part of header.split(',')) {
    const [name = '', value = ''] = part.trim().split('=', 2)
    if (name === 't') times.push(value)
    if (name === 'v1' && digestPattern.test(value)) digests.push(value)
  }
  const [time = ''] = times
  return { time: times.length === 1 && timePattern.test(time) ? time : undefined, digests }
}

/**
 * The metadata field of a session that names the workspace. Not client_reference_id: on a payment link that is part of
 * the address, which the payer can change.
 */
export const workspaceMetadata = 'tollgate_workspace_id'
/** The metadata field with our id of the payment, of everything that was started here. */
export const paymentMetadata = 'tollgate_payment_id'
/** On the session: the card is kept for automatic top-ups. */
export const saveCardMetadata = 'tollgate_save_card'
/** On a payment intent: it is an automatic top-up, and has no session. */
export const automaticMetadata = 'tollgate_automatic'
/** On a refund that was asked for here. */
export const refundMetadata = 'tollgate_refund_id'

/** On a subscription: the plan and its terms, so that an invoice says what it pays for. */
export const planMetadata = {
  plan: 'tollgate_plan',
  credit: 'tollgate_plan_credit',
  expiresDays: 'tollgate_plan_expires_days',
} as const

/** A cent is 10⁷ nano-dollars. */
export const nanoPerCent = 10_000_000n

/** Whether money is real; undefined = the secret key does not say, or there is none. */
export type StripeMode = 'live' | 'test' | undefined

/** `sk_live_…`, `rk_test_…`, `sk_org_live_…` */
export function modeOf(secretKey: Secret | undefined): StripeMode {
  const mode = /^[a-z_]+?_(live|test)_/.exec(secretKey?.reveal() ?? '')?.[1]
  return mode === 'live' || mode === 'test' ? mode : undefined
}

export interface Payment {
  /**
   * The session's id, not the payment intent's: both events of a session carry it, from its creation on, so they
   * credit once together.
   */
  readonly paymentId: string
  readonly workspaceId: WorkspaceId
  readonly amount: Nano
  readonly reference: string
  readonly kind: 'checkout' | 'automatic'
  /** Our id of it; undefined = it was started elsewhere. */
  readonly ownId: string | undefined
  readonly intent: string | undefined
  readonly savesCard: boolean
}

/** Money that went back to the payer, or came back from there. */
export interface MoneyReturn {
  /** The id of the refund or dispute. */
  readonly id: string
  readonly intent: string
  readonly direction: 'take' | 'add'
  readonly amount: Nano
  readonly reason: string
  readonly isDispute: boolean
  /** Of a refund that was asked for here. */
  readonly refundId: string | undefined
}

export type EventReading =
  | { readonly kind: 'payment'; readonly payment: Payment; readonly fields: LogFields }
  /** A payment that was started here will not be paid. */
  | { readonly kind: 'unpaid'; readonly ownId: string; readonly code: string; readonly fields: LogFields }
  | { readonly kind: 'return'; readonly moved: MoneyReturn; readonly fields: LogFields }
  /** An invoice or a subscription; what it says now is asked of Stripe. */
  | { readonly kind: 'subscription'; readonly object: string; readonly type: string; readonly fields: LogFields }
  /** A saved card was removed at Stripe. */
  | { readonly kind: 'detached'; readonly paymentMethod: string; readonly fields: LogFields }
  /** No money is owed. */
  | { readonly kind: 'ignored'; readonly why: string; readonly fields: LogFields; readonly isLogged: boolean }
  /** Someone paid and is not credited: a person has to look at it. */
  | { readonly kind: 'uncredited'; readonly why: string; readonly fields: LogFields }
  /** Not an event as Stripe documents it. */
  | { readonly kind: 'unreadable' }

/** What the event itself says. */
export type MoneyReading = Exclude<EventReading, { readonly kind: 'subscription' }>

const eventSchema = z.object({
  id: z.string(),
  type: z.string(),
  livemode: z.boolean(),
  /** The connected account it happened in; absent = the operator's own. */
  account: z.string().nullish(),
  data: z.object({ object: z.unknown() }),
})

const sessionSchema = z.object({
  id: z.string().regex(/^cs_[A-Za-z0-9_]{1,250}$/),
  mode: z.string(),
  payment_status: z.string(),
  currency: z.string().nullish(),
  amount_total: z.number().nullish(),
  payment_intent: z.string().nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
})

const intentSchema = z.object({
  id: z.string().regex(/^pi_[A-Za-z0-9_]{1,250}$/),
  status: z.string(),
  currency: z.string(),
  amount_received: z.number().nullish(),
  last_payment_error: z.object({ code: z.string().nullish(), decline_code: z.string().nullish() }).nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
})

export type Intent = z.output<typeof intentSchema>

export function readIntent(json: unknown): Intent | undefined {
  return intentSchema.safeParse(json).data
}

/** The fields that refunds and disputes share. */
const returnSchema = z.object({
  id: z.string().regex(/^[a-z]{1,10}_[A-Za-z0-9_]{1,200}$/),
  payment_intent: z.string().nullish(),
  currency: z.string(),
  amount: z.number(),
  metadata: z.record(z.string(), z.string()).nullish(),
})

type StripeEvent = z.output<typeof eventSchema>

/** `charge.refunded` is not among them: it has the sum of a charge's refunds, not the refund. */
const returnTypes: Readonly<Record<string, readonly ['take' | 'add', string]>> = {
  'refund.created': ['take', 'refund'],
  'refund.failed': ['add', 'failed refund'],
  'charge.dispute.funds_withdrawn': ['take', 'dispute'],
  'charge.dispute.funds_reinstated': ['add', 'won dispute'],
}

const readers: Readonly<Record<string, (event: StripeEvent) => EventReading>> = {
  'checkout.session.completed': readSession,
  'checkout.session.async_payment_succeeded': readSession,
  'checkout.session.async_payment_failed': readUnpaidSession,
  'checkout.session.expired': readUnpaidSession,
  'payment_intent.succeeded': readIntentEvent,
  'payment_intent.payment_failed': readIntentEvent,
  'payment_method.detached': readDetached,
  'invoice.paid': readSubscriptionEvent,
  'invoice.payment_failed': readSubscriptionEvent,
  'customer.subscription.updated': readSubscriptionEvent,
  'customer.subscription.deleted': readSubscriptionEvent,
  ...Object.fromEntries(Object.keys(returnTypes).map((type) => [type, readReturn])),
}

export function readEvent(json: unknown, mode: StripeMode): EventReading {
  const parsed = eventSchema.safeParse(json)
  if (!parsed.success) return { kind: 'unreadable' }
  const event = parsed.data
  const fields = { event: event.id, type: event.type }
  const ignored = (why: string, isLogged: boolean): EventReading => ({ kind: 'ignored', why, fields, isLogged })
  const read = readers[event.type]
  if (!read) return ignored('events of this type are not used', false)
  // The owner of a connected account writes its metadata and gets the money; it never reached the operator.
  if (event.account) return ignored('it happened in a connected account', true)
  if (mode !== undefined && event.livemode !== (mode === 'live')) {
    return ignored(
      `it is a ${event.livemode ? 'live' : 'test'} mode event, and the secret key is for ${mode} mode`,
      true,
    )
  }
  return read(event)
}

/** A session is paid when it completes, or days later for methods such as bank debits. */
function readSession(event: StripeEvent): EventReading {
  const parsed = sessionSchema.safeParse(event.data.object)
  if (!parsed.success) return { kind: 'unreadable' }
  const session = parsed.data
  const named = session.metadata?.[workspaceMetadata]
  const fields = {
    event: event.id,
    session: session.id,
    payment_intent: session.payment_intent ?? undefined,
    workspace_id: named?.slice(0, 80),
    amount_total: session.amount_total ?? undefined,
    currency: session.currency ?? undefined,
    livemode: event.livemode,
  }
  const ignored = (why: string): EventReading => ({ kind: 'ignored', why, fields, isLogged: false })
  const uncredited = (why: string): EventReading => ({ kind: 'uncredited', why, fields })
  // The same account may sell other things.
  if (named === undefined) return ignored(`its metadata has no ${workspaceMetadata}`)
  if (session.mode !== 'payment') return ignored('it is not a single payment')
  if (session.payment_status !== 'paid') return ignored('it is not paid')
  const amount = amountOf(session.currency, session.amount_total)
  if (typeof amount === 'string') return uncredited(amount)
  if (!isId('ws', named)) return uncredited(`${workspaceMetadata} is not the id of a workspace`)
  const payment: Payment = {
    paymentId: session.id,
    workspaceId: named,
    amount,
    reference: referenceOf(session.payment_intent ?? session.id, event),
    kind: 'checkout',
    ownId: session.metadata?.[paymentMetadata],
    intent: session.payment_intent ?? undefined,
    savesCard: session.metadata?.[saveCardMetadata] !== undefined,
  }
  return { kind: 'payment', payment, fields }
}

/** Or why it cannot be credited. */
function amountOf(currency: string | null | undefined, cents: number | null | undefined): Nano | string {
  if (currency !== 'usd') return 'wallets are in USD'
  if (typeof cents !== 'number' || !Number.isSafeInteger(cents) || cents <= 0) {
    return 'the amount is not a positive whole number of cents'
  }
  return (BigInt(cents) * nanoPerCent) as Nano
}

function referenceOf(id: string, { livemode }: Pick<StripeEvent, 'livemode'>): string {
  return `Stripe ${id}${livemode ? '' : ' (test mode)'}`
}

function readUnpaidSession({ id: event, type, data }: StripeEvent): EventReading {
  const session = sessionSchema.safeParse(data.object).data
  const fields = { event, type, session: session?.id }
  const ownId = session?.metadata?.[paymentMetadata]
  if (ownId === undefined) return { kind: 'ignored', why: 'it was not started here', fields, isLogged: false }
  return { kind: 'unpaid', ownId, code: type.endsWith('expired') ? 'expired' : 'by the bank', fields }
}

function readIntentEvent(event: StripeEvent): EventReading {
  const intent = readIntent(event.data.object)
  if (!intent) return { kind: 'unreadable' }
  const fields = { event: event.id, type: event.type, payment_intent: intent.id }
  // The payment intent of a session is credited with the session's event.
  if (intent.metadata?.[automaticMetadata] === undefined) {
    return { kind: 'ignored', why: 'it is not an automatic top-up', fields, isLogged: false }
  }
  return readAutomatic(intent, event.livemode, fields)
}

/** An automatic top-up, from an event or from Stripe's answer. */
export function readAutomatic(intent: Intent, livemode: boolean, fields: LogFields): MoneyReading {
  const { metadata, last_payment_error: error } = intent
  const [ownId, workspaceId = ''] = [metadata?.[paymentMetadata], metadata?.[workspaceMetadata]]
  if (ownId === undefined || !isId('ws', workspaceId)) {
    return { kind: 'ignored', why: 'it was not started here', fields, isLogged: false }
  }
  if (intent.status !== 'succeeded') {
    const code = error?.code === 'card_declined' ? (error.decline_code ?? error.code) : error?.code
    return { kind: 'unpaid', ownId, code: code ?? intent.status, fields }
  }
  const amount = amountOf(intent.currency, intent.amount_received)
  if (typeof amount === 'string') return { kind: 'uncredited', why: amount, fields }
  const reference = referenceOf(intent.id, { livemode })
  const ids = { paymentId: intent.id, intent: intent.id, workspaceId, ownId }
  return { kind: 'payment', payment: { ...ids, amount, reference, kind: 'automatic', savesCard: false }, fields }
}

function readDetached({ id: event, type, data }: StripeEvent): EventReading {
  const { success, data: method } = z.object({ id: z.string() }).safeParse(data.object)
  return success ? { kind: 'detached', paymentMethod: method.id, fields: { event, type } } : { kind: 'unreadable' }
}

function readSubscriptionEvent({ id: event, type, data }: StripeEvent): EventReading {
  const named = z.object({ id: z.string().regex(/^(in|sub)_[A-Za-z0-9_]{1,250}$/) })
  const { success, data: object } = named.safeParse(data.object)
  if (!success) return { kind: 'unreadable' }
  return { kind: 'subscription', object: object.id, type, fields: { event, type, object: object.id } }
}

function readReturn(event: StripeEvent): EventReading {
  const parsed = returnSchema.safeParse(event.data.object)
  const type = returnTypes[event.type]
  if (!parsed.success || !type) return { kind: 'unreadable' }
  const { id, payment_intent: intent, currency, amount: cents, metadata } = parsed.data
  const fields = {
    event: event.id,
    type: event.type,
    object: id,
    payment_intent: intent ?? undefined,
    amount: cents,
    currency,
  }
  if (!intent) return { kind: 'ignored', why: 'it names no payment intent', fields, isLogged: true }
  const amount = amountOf(currency, cents)
  if (typeof amount === 'string') return { kind: 'uncredited', why: amount, fields }
  const [direction, what] = type
  const moved = { id, intent, direction, amount, reason: `Stripe ${what} ${id} of ${intent}` }
  const isDispute = event.type.startsWith('charge.dispute')
  return { kind: 'return', moved: { ...moved, isDispute, refundId: metadata?.[refundMetadata] }, fields }
}
