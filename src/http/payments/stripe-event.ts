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
}

export type EventReading =
  | { readonly kind: 'payment'; readonly payment: Payment; readonly fields: LogFields }
  /** No money is owed. */
  | { readonly kind: 'ignored'; readonly why: string; readonly fields: LogFields; readonly isLogged: boolean }
  /** Someone paid and is not credited: a person has to look at it. */
  | { readonly kind: 'uncredited'; readonly why: string; readonly fields: LogFields }
  /** Not an event as Stripe documents it. */
  | { readonly kind: 'unreadable' }

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

/** The fields that refunds and disputes share, for the log. */
const returnSchema = z.object({
  id: z.string().optional(),
  payment_intent: z.string().nullish(),
  currency: z.string().nullish(),
  amount: z.number().nullish(),
  amount_refunded: z.number().nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
})

type StripeEvent = z.output<typeof eventSchema>

/** A session is paid when it completes, or days later for methods such as bank debits. */
const paymentTypes = new Set(['checkout.session.completed', 'checkout.session.async_payment_succeeded'])
const returnTypes = new Set(['charge.refunded', 'charge.dispute.created', 'charge.dispute.closed'])

export function readEvent(json: unknown, mode: StripeMode): EventReading {
  const parsed = eventSchema.safeParse(json)
  if (!parsed.success) return { kind: 'unreadable' }
  const event = parsed.data
  const fields = { event: event.id, type: event.type }
  const ignored = (why: string, isLogged: boolean): EventReading => ({ kind: 'ignored', why, fields, isLogged })
  const isReturn = returnTypes.has(event.type)
  if (!isReturn && !paymentTypes.has(event.type)) return ignored('events of this type are not used', false)
  // The owner of a connected account writes its metadata and gets the money; it never reached the operator.
  if (event.account) return ignored('it happened in a connected account', true)
  if (mode !== undefined && event.livemode !== (mode === 'live')) {
    return ignored(
      `it is a ${event.livemode ? 'live' : 'test'} mode event, and the secret key is for ${mode} mode`,
      true,
    )
  }
  return isReturn ? readReturn(event) : readSession(event)
}

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
  if (session.currency !== 'usd') return uncredited('wallets are in USD')
  const cents = session.amount_total
  if (!Number.isSafeInteger(cents) || typeof cents !== 'number' || cents <= 0) {
    return uncredited('the amount is not a positive whole number of cents')
  }
  if (!isId('ws', named)) return uncredited(`${workspaceMetadata} is not the id of a workspace`)
  const payment: Payment = {
    paymentId: session.id,
    workspaceId: named,
    amount: (BigInt(cents) * nanoPerCent) as Nano,
    reference: `Stripe ${session.payment_intent ?? session.id}${event.livemode ? '' : ' (test mode)'}`,
  }
  return { kind: 'payment', payment, fields }
}

/** Only logged: the money may be spent already, and a wallet never goes below zero. */
function readReturn(event: StripeEvent): EventReading {
  const parsed = returnSchema.safeParse(event.data.object)
  const { id, payment_intent, currency, amount, amount_refunded, metadata } = parsed.success ? parsed.data : {}
  const fields = {
    event: event.id,
    type: event.type,
    object: id,
    payment_intent: payment_intent ?? undefined,
    workspace_id: metadata?.[workspaceMetadata]?.slice(0, 80),
    amount: amount_refunded ?? amount ?? undefined,
    currency: currency ?? undefined,
  }
  return { kind: 'ignored', why: 'refunds and disputes do not change a wallet by themselves', fields, isLogged: true }
}
