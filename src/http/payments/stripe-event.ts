// What an event of Stripe means for a wallet. It reads the object Stripe sent and nothing else: amount and currency are
// Stripe's, never what someone asked for. It moves no money and knows of no request.

import { z } from 'zod'
import { isId, type WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Secret } from '../../kernel/secret.ts'
import type { LogFields } from '../../telemetry/log.ts'

/**
 * The member of a session's metadata that names the wallet. Not client_reference_id: on a payment link that is a part
 * of the address, which whoever opens the link can change.
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
  /** Nothing is owed to anyone here. */
  | { readonly kind: 'ignored'; readonly why: string; readonly fields: LogFields; readonly isTold: boolean }
  /** Somebody paid and gets no credit: a person has to look at it. */
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

/** What refunds and disputes have in common, as far as people need it. */
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
  const ignored = (why: string, isTold: boolean): EventReading => ({ kind: 'ignored', why, fields, isTold })
  const isReturn = returnTypes.has(event.type)
  if (!isReturn && !paymentTypes.has(event.type)) return ignored('events of this type are not used', false)
  // The owner of a connected account writes its metadata, and is paid for it: the money never came to the operator.
  if (event.account) return ignored('it happened in a connected account', true)
  if (mode !== undefined && event.livemode !== (mode === 'live')) {
    return ignored(`it is of ${event.livemode ? 'live' : 'test'} mode, and the secret key is of ${mode} mode`, true)
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
  const ignored = (why: string): EventReading => ({ kind: 'ignored', why, fields, isTold: false })
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

/** Told and not acted on: the money may be spent already, and a wallet never goes below zero. */
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
  return { kind: 'ignored', why: 'refunds and disputes do not change a wallet by themselves', fields, isTold: true }
}
