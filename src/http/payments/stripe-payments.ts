// Payments through Stripe, over its REST API. Without a webhook secret there is nothing to mount: an endpoint that
// checks signatures with an empty secret credits whoever calls it (CVE-2026-41432).

import type { Secret } from '../../kernel/secret.ts'
import { type Checkout, createStripeCheckout } from './stripe-checkout.ts'
import { modeOf } from './stripe-event.ts'
import { createStripeWebhook, type WebhookDependencies } from './stripe-webhook.ts'

export interface StripePaymentsOptions extends WebhookDependencies {
  /** `sk_live_…`, `sk_test_…` or a restricted key. undefined = payments are started elsewhere, such as by links. */
  readonly secretKey?: Secret | undefined
  /** `whsec_…`, of the endpoint whose address ends with webhookPath. */
  readonly webhookSecret?: Secret | undefined
  /** Another server than Stripe's, for tests. */
  readonly baseUrl?: string | undefined
  /** Where payers reach this gateway's pages. */
  publicUrl(): string
}

export interface StripePayments {
  /** The workspace is checked, the caller is not. One request id starts one payment. */
  readonly checkout: Checkout
  /** Whatever comes to webhookPath; the signature is all the authorisation there is. Never rejects. */
  webhook(request: Request): Promise<Response>
}

export const webhookPath = '/api/payments/stripe/webhook'

/** Stripe's have 38; what is shorter than this is a placeholder, and can be guessed. */
const webhookSecretMinLength = 16

export function createStripePayments(options: StripePaymentsOptions): StripePayments | undefined {
  const { secretKey, webhookSecret, log } = options
  if (!webhookSecret || webhookSecret.reveal().trim() === '') {
    if (secretKey) log.warn('payments are off: STRIPE_WEBHOOK_SECRET is not set, so no payment could be credited')
    return undefined
  }
  if (webhookSecret.reveal().trim().length < webhookSecretMinLength) {
    log.error(`payments are off: STRIPE_WEBHOOK_SECRET has fewer than ${webhookSecretMinLength} characters`)
    return undefined
  }
  const baseUrl = withoutSlash(options.baseUrl ?? 'https://api.stripe.com')
  const publicUrl = (): string => withoutSlash(options.publicUrl())
  return {
    checkout: createStripeCheckout(options, { secretKey, baseUrl, publicUrl }),
    webhook: createStripeWebhook(options, { webhookSecret, mode: modeOf(secretKey) }),
  }
}

function withoutSlash(url: string): string {
  return url.replace(/(?<!\/)\/+$/, '')
}
