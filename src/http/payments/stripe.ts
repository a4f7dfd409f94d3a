// Payments through Stripe's REST API: switching them on, and the webhook that credits a payment once. Its status tells
// Stripe only whether to send the event again, so a problem that a retry cannot solve is a 200 and an error in the log.

import { parseJson } from '../../dialects/canonical/json.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { createId, type RequestId } from '../../kernel/ids.ts'
import type { Secret } from '../../kernel/secret.ts'
import { type Answer, failureAnswer, requestIdHeaders } from '../../pipeline/answer.ts'
import { bodyFailure, type ClientRequest } from '../../pipeline/client-request.ts'
import { isStoreUnavailable } from '../../store/sql-error.ts'
import type { Log } from '../../telemetry/log.ts'
import { BodyFault, readBody } from '../../wire/read-body.ts'
import { jsonAnswer, wrongMethod } from '../responses.ts'
import { applyReading, notCommitted, type Outcome, type PaymentDependencies } from './apply-event.ts'
import { createAutoTopUps } from './auto-topup.ts'
import { createRefunds } from './refunds.ts'
import { createStripeApi } from './stripe-api.ts'
import { type AmountBounds, createStripeCheckout, stripeBounds } from './stripe-checkout.ts'
import { checkSignature, modeOf, readEvent, type SignatureFault, type StripeMode } from './stripe-event.ts'
import { createSubscriptions, type Subscriptions } from './subscriptions.ts'

interface WebhookDependencies extends PaymentDependencies {
  /** In the error format of the chat surface. */
  renderFailure(failure: Failure, id: RequestId): string
}

export interface StripePaymentsOptions extends Omit<WebhookDependencies, 'api'> {
  /** `sk_live_…`, `sk_test_…` or a restricted key. undefined = payments are started elsewhere, for example by links. */
  readonly secretKey?: Secret | undefined
  /** `whsec_…` of the endpoint whose address ends with webhookPath. */
  readonly webhookSecret?: Secret | undefined
  /** A server in place of Stripe's, for tests. */
  readonly baseUrl?: string | undefined
  /** Where payers reach this gateway's pages. */
  publicUrl(): string
  /** What one payment may be; absent = what Stripe takes. */
  bounds?(): AmountBounds
}

export type StripePayments = NonNullable<ReturnType<typeof createStripePayments>>

export const webhookPath = '/api/payments/stripe/webhook'

/** Stripe's have 38 characters; anything shorter than this is a placeholder and can be guessed. */
const webhookSecretMinLength = 16

/**
 * Without a webhook secret nothing is mounted: an endpoint that checks signatures with an empty secret credits anyone who
 * calls it (CVE-2026-41432).
 */
export function createStripePayments(options: StripePaymentsOptions) {
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
  const bounds = () => options.bounds?.() ?? stripeBounds
  const api = secretKey && createStripeApi({ secretKey, baseUrl })
  const deps = { ...options, api }
  const autoTopUps = createAutoTopUps(deps, { bounds, isLive: modeOf(secretKey) !== 'test' })
  const refunds = createRefunds(deps)
  const subscriptions = api && createSubscriptions({ ...deps, api }, { publicUrl })
  return {
    /** The workspace is checked, the caller is not. One request id starts one payment. */
    checkout: createStripeCheckout(deps, { api, publicUrl, bounds }),
    autoTopUps,
    refunds,
    /** undefined = plans cannot be paid for here. */
    subscriptions,
    /** Serves webhookPath; the signature is the only authorisation. Never throws. */
    webhook: createStripeWebhook(deps, { webhookSecret, mode: modeOf(secretKey), subscriptions }),
    /** Begins automatic top-ups that are due, and continues what was interrupted. */
    async round(): Promise<void> {
      await autoTopUps.round()
      await refunds.round()
    },
  }
}

function withoutSlash(url: string): string {
  return url.replace(/(?<!\/)\/+$/, '')
}

interface WebhookSettings {
  readonly webhookSecret: Secret
  readonly mode: StripeMode
  readonly subscriptions: Subscriptions | undefined
}

/** Events have a few kilobytes; the limit is for other senders. */
const bodyBytesMax = 1024 * 1024

function createStripeWebhook(
  deps: WebhookDependencies,
  settings: WebhookSettings,
): (request: ClientRequest) => Promise<Answer> {
  const logForgery = createForgeryLog(deps)
  const reject = (failure: Failure, id: RequestId) => failureAnswer(deps, failure, requestIdHeaders(id), id)

  async function serve(request: ClientRequest, id: RequestId): Promise<Outcome | Failure> {
    const json = await readSigned(request)
    if (json instanceof Failure) return json
    const { mode, subscriptions } = settings
    const reading = readEvent(json.value, mode)
    if (reading.kind === 'subscription') {
      return subscriptions ? await subscriptions.apply(reading, { id, fields: reading.fields }) : 'ignored'
    }
    const outcome = await applyReading(deps, reading, id)
    if (reading.kind !== 'return' || outcome !== 'ignored' || !subscriptions) return outcome
    return await subscriptions.takeBack(reading.moved, { id, fields: reading.fields })
  }

  async function readSigned(request: ClientRequest): Promise<{ readonly value: unknown } | Failure> {
    if (request.method !== 'POST') {
      return wrongMethod(request.method, 'POST')
    }
    // Checked before the body is read: an unsigned request is not worth reading.
    const header = request.headers.get('stripe-signature')
    if (header === null) return invalidRequest('The header Stripe-Signature is missing.', 'Stripe-Signature')
    const body = await readBody(request, bodyBytesMax)
    if (body instanceof BodyFault) return bodyFailure(body, 'An event may have at most 1 MiB.')
    const fault = checkSignature({ header, body }, settings.webhookSecret, deps.clock.now())
    if (fault) {
      logForgery(fault)
      return invalidRequest(signatureMessages[fault], 'Stripe-Signature')
    }
    const value = parseJson(new TextDecoder().decode(body))
    return value === undefined ? invalidRequest('The body is not JSON.') : { value }
  }

  return async (request) => {
    const id = createId('req')
    try {
      const outcome = await serve(request, id)
      return outcome instanceof Failure ? reject(outcome, id) : accept(outcome, id)
    } catch (thrown) {
      if (thrown instanceof Failure) return reject(thrown, id)
      return reject(isStoreUnavailable(thrown) ? notCommitted() : deps.onDefect(thrown, id), id)
    }
  }
}

const signatureMessages: Record<SignatureFault, string> = {
  malformed: 'Stripe-Signature must have one t= and at least one v1=.',
  mismatch:
    'The signature does not match. Check that STRIPE_WEBHOOK_SECRET belongs to this endpoint and that no proxy changes bodies.',
  stale: 'The signature is more than five minutes old or in the future. Check the clock of this machine.',
}

const forgeryLogMs = 60_000

/** At most one line a minute, because anyone can send forgeries. */
function createForgeryLog({
  log,
  clock,
}: {
  readonly log: Log
  readonly clock: Clock
}): (fault: SignatureFault) => void {
  let nextAtMs = Number.NEGATIVE_INFINITY
  let count = 0
  return (fault) => {
    count++
    if (clock.monotonicMs() < nextAtMs) return
    log.warn('the payment webhook refused what Stripe did not sign, or signed with another secret', { fault, count })
    nextAtMs = clock.monotonicMs() + forgeryLogMs
    count = 0
  }
}

function accept(outcome: Outcome, id: RequestId): Answer {
  return jsonAnswer({ received: true, outcome }, requestIdHeaders(id))
}
