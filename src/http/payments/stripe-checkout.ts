// Starts a card payment: creates a Checkout Session at Stripe, where the payer is sent. The webhook credits the wallet
// once Stripe reports that it was paid.

import { z } from 'zod'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import { formatUsd, type Nano } from '../../kernel/money.ts'
import type { Secret } from '../../kernel/secret.ts'
import type { Database } from '../../store/database.ts'
import type { Log } from '../../telemetry/log.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import { readResponseBody } from '../../wire/read-body.ts'
import { nanoPerCent, workspaceMetadata } from './stripe-event.ts'

export interface CheckoutSession {
  /** Stripe's page, for the payer's browser. */
  readonly url: string
  /** `cs_…`; the payment's id in the ledger. */
  readonly id: string
}

export interface CheckoutSettings {
  readonly secretKey: Secret | undefined
  /** Without a slash at the end. */
  readonly baseUrl: string
  /** Where payers reach this gateway; Stripe sends them back there. Without a slash at the end. */
  publicUrl(): string
}

export interface CheckoutDependencies {
  readonly database: Database
  readonly log: Log
}

/** Throws a Failure if no payment can be started. */
export type Checkout = (workspaceId: WorkspaceId, amount: Nano, requestId: RequestId) => Promise<CheckoutSession>

/** Stripe takes between 50 cents and eight digits of cents: https://docs.stripe.com/currencies */
const amountMin = (50n * nanoPerCent) as Nano
const amountMax = (99_999_999n * nanoPerCent) as Nano

/** Pinned, so that parameters do not depend on the account's default version. */
const apiVersion = '2025-05-28.basil'

const attemptTimeoutMs = 10_000
const attemptsMax = 2
const replyBytesMax = 1024 * 1024

export function createStripeCheckout(deps: CheckoutDependencies, settings: CheckoutSettings): Checkout {
  return async (workspaceId, amount, requestId) => {
    const { secretKey } = settings
    if (!secretKey) throw new Failure('NOT_FOUND', 'Payments cannot be started here: STRIPE_SECRET_KEY is not set.')
    if (amount < amountMin || amount > amountMax || amount % nanoPerCent !== 0n) {
      const range = `from ${formatUsd(amountMin)} to ${formatUsd(amountMax)}`
      throw invalidRequest(`\`amount\` must be ${range} in whole cents to be paid by card.`, 'amount')
    }
    // Checked before the payment, which otherwise could not be credited to anyone.
    await getWorkspace(deps.database.sql, workspaceId)
    const form = sessionForm(workspaceId, amount, settings.publicUrl())
    const call = () => post(`${settings.baseUrl}/v1/checkout/sessions`, { secretKey, form, requestId })
    const reply = await withRetry(call)
    if (reply instanceof Unreached) throw notReached(deps.log, reply, requestId)
    return sessionOf(deps.log, reply, requestId)
  }
}

/** The connection failed, possibly after Stripe had processed the request. */
class Unreached {
  constructor(readonly error: unknown) {}
}

interface Reply {
  readonly status: number
  /** undefined = not JSON. */
  readonly json: unknown
  /** Stripe's request id, for its support and its log. */
  readonly stripeRequestId: string | undefined
}

/**
 * Only a failed connection is worth a second attempt: under one idempotency key Stripe repeats its first answer, even
 * a 500, and that same key makes it safe. https://docs.stripe.com/api/idempotent_requests
 */
async function withRetry(call: () => Promise<Reply>): Promise<Reply | Unreached> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call()
    } catch (error) {
      if (attempt === attemptsMax) return new Unreached(error)
    }
  }
}

function sessionForm(workspaceId: WorkspaceId, amount: Nano, publicUrl: string): URLSearchParams {
  const item = 'line_items[0]'
  return new URLSearchParams({
    mode: 'payment',
    client_reference_id: workspaceId,
    [`metadata[${workspaceMetadata}]`]: workspaceId,
    // On the payment too, so that a refund names the workspace.
    [`payment_intent_data[metadata][${workspaceMetadata}]`]: workspaceId,
    [`${item}[quantity]`]: '1',
    [`${item}[price_data][currency]`]: 'usd',
    [`${item}[price_data][unit_amount]`]: String(amount / nanoPerCent),
    [`${item}[price_data][product_data][name]`]: 'Tollgate credit',
    // Otherwise Stripe may offer the payer another currency, and a wallet takes dollars.
    'adaptive_pricing[enabled]': 'false',
    success_url: `${publicUrl}/console/?payment=done`,
    cancel_url: `${publicUrl}/console/?payment=cancelled`,
  })
}

interface Post {
  readonly secretKey: Secret
  readonly form: URLSearchParams
  readonly requestId: RequestId
}

async function post(url: string, { secretKey, form, requestId }: Post): Promise<Reply> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${secretKey.reveal()}`,
      'content-type': 'application/x-www-form-urlencoded',
      'idempotency-key': `tollgate-${requestId}`,
      'stripe-version': apiVersion,
      'accept-encoding': 'identity',
      'user-agent': 'tollgate',
    },
    body: form.toString(),
    redirect: 'manual',
    signal: AbortSignal.timeout(attemptTimeoutMs),
  })
  const body = await readResponseBody(response, replyBytesMax)
  return {
    status: response.status,
    json: body === 'too-large' ? undefined : await new Response(body).json().catch(() => undefined),
    stripeRequestId: response.headers.get('request-id') ?? undefined,
  }
}

const sessionSchema = z.object({ id: z.string().startsWith('cs_'), url: z.string().startsWith('https://') })
const text = z.string().optional().catch(undefined)
/** Not its message, which may quote the key. */
const errorSchema = z.object({ error: z.object({ type: text, code: text, param: text }) })

function sessionOf(log: Log, { status, json, stripeRequestId }: Reply, requestId: RequestId): CheckoutSession {
  const session = sessionSchema.safeParse(json)
  if (status === 200 && session.success) return session.data
  const error = errorSchema.safeParse(json).data?.error
  log.error('Stripe did not start a payment', {
    request_id: requestId,
    status,
    stripe_request_id: stripeRequestId,
    ...error,
  })
  if (status === 429 || status >= 500) throw tryLater()
  throw new Failure('INTERNAL', 'Stripe refused to start the payment; the log has the cause under the request id.')
}

function notReached(log: Log, { error }: Unreached, requestId: RequestId): Failure {
  log.warn('Stripe cannot be reached', {
    request_id: requestId,
    error: error instanceof Error ? error.name : 'unknown',
  })
  return tryLater()
}

function tryLater(): Failure {
  return new Failure('OVERLOADED', 'Stripe cannot start a payment at the moment. Retry in a few seconds.', {
    retryAfterMs: 3000,
  })
}
