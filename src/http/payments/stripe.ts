// Payments through Stripe's REST API: switching them on, and the webhook that credits a payment once. Its status tells
// Stripe only whether to send the event again, so a problem that a retry cannot solve is a 200 and an error in the log.

import { unreachable } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { createId, type RequestId } from '../../kernel/ids.ts'
import { formatUsd } from '../../kernel/money.ts'
import type { Secret } from '../../kernel/secret.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { failureResponse, requestIdHeaders } from '../../pipeline/headers.ts'
import type { Database } from '../../store/database.ts'
import { isStoreUnavailable } from '../../store/sql-error.ts'
import type { Log, LogFields } from '../../telemetry/log.ts'
import { findWorkspace } from '../../tenancy/workspaces.ts'
import { BodyFault, readBody } from '../../wire/read-body.ts'
import { auditMove } from '../management/writes.ts'
import { wrongMethod } from '../responses.ts'
import { type Checkout, createStripeCheckout } from './stripe-checkout.ts'
import {
  checkSignature,
  modeOf,
  type Payment,
  readEvent,
  type SignatureFault,
  type StripeMode,
} from './stripe-event.ts'

interface WebhookDependencies {
  readonly database: Database
  readonly ledger: Pick<Ledger, 'fund'>
  readonly clock: Clock
  readonly log: Log
  /** In the error format of the chat surface. */
  renderFailure(failure: Failure, id: RequestId): string
  /** Logs a bug under the request id and returns what the caller is shown. */
  onDefect(error: unknown, id: RequestId): Failure
}

export interface StripePaymentsOptions extends WebhookDependencies {
  /** `sk_live_…`, `sk_test_…` or a restricted key. undefined = payments are started elsewhere, for example by links. */
  readonly secretKey?: Secret | undefined
  /** `whsec_…` of the endpoint whose address ends with webhookPath. */
  readonly webhookSecret?: Secret | undefined
  /** A server in place of Stripe's, for tests. */
  readonly baseUrl?: string | undefined
  /** Where payers reach this gateway's pages. */
  publicUrl(): string
}

export interface StripePayments {
  /** The workspace is checked, the caller is not. One request id starts one payment. */
  readonly checkout: Checkout
  /** Serves webhookPath; the signature is the only authorisation. Never throws. */
  webhook(request: Request): Promise<Response>
}

export const webhookPath = '/api/payments/stripe/webhook'

/** Stripe's have 38 characters; anything shorter than this is a placeholder and can be guessed. */
const webhookSecretMinLength = 16

/**
 * Without a webhook secret nothing is mounted: an endpoint that checks signatures with an empty secret credits anyone who
 * calls it (CVE-2026-41432).
 */
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

interface WebhookSettings {
  readonly webhookSecret: Secret
  readonly mode: StripeMode
}

type Outcome = 'credited' | 'already_credited' | 'ignored' | 'not_credited'

/** Events have a few kilobytes; the limit is for other senders. */
const bodyBytesMax = 1024 * 1024

function createStripeWebhook(
  deps: WebhookDependencies,
  settings: WebhookSettings,
): (request: Request) => Promise<Response> {
  const logForgery = createForgeryLog(deps)
  const reject = (failure: Failure, id: RequestId) => failureResponse(deps, failure, requestIdHeaders(id), id)

  async function serve(request: Request, id: RequestId): Promise<Outcome | Failure> {
    const json = await readSigned(request)
    if (json instanceof Failure) return json
    const reading = readEvent(json.value, settings.mode)
    switch (reading.kind) {
      case 'unreadable':
        return invalidRequest(
          'This is not an event with its object in it; choose the snapshot payload style in Stripe.',
        )
      case 'ignored':
        if (reading.isLogged) deps.log.warn(`an event from Stripe was ignored: ${reading.why}`, reading.fields)
        return 'ignored'
      case 'uncredited':
        return leaveUncredited(deps, reading.why, reading.fields)
      case 'payment':
        return await credit(deps, reading.payment, { id, fields: reading.fields })
      default:
        return unreachable(reading)
    }
  }

  async function readSigned(request: Request): Promise<{ readonly value: unknown } | Failure> {
    if (request.method !== 'POST') {
      return wrongMethod(request.method, 'POST')
    }
    // Checked before the body is read: an unsigned request is not worth reading.
    const header = request.headers.get('stripe-signature')
    if (header === null) return invalidRequest('The header Stripe-Signature is missing.', 'Stripe-Signature')
    const body = await readBody(request, { bytesMax: bodyBytesMax })
    if (body instanceof BodyFault) {
      return body.reason === 'too-large'
        ? new Failure('PAYLOAD_TOO_LARGE', 'An event may have at most 1 MiB.')
        : invalidRequest('The connection ended before the body did.')
    }
    const fault = checkSignature({ header, body }, settings.webhookSecret, deps.clock.now())
    if (fault) {
      logForgery(fault)
      return invalidRequest(signatureMessages[fault], 'Stripe-Signature')
    }
    const value: unknown = await new Response(body).json().catch(() => undefined)
    return value === undefined ? invalidRequest('The body is not JSON.') : { value }
  }

  return async (request) => {
    const id = createId('req')
    try {
      const outcome = await serve(request, id)
      return outcome instanceof Failure ? reject(outcome, id) : accept(outcome, id)
    } catch (thrown) {
      return reject(isStoreUnavailable(thrown) ? notCommitted() : deps.onDefect(thrown, id), id)
    }
  }
}

async function credit(
  deps: WebhookDependencies,
  payment: Payment,
  { id, fields }: { readonly id: RequestId; readonly fields: LogFields },
): Promise<Outcome | Failure> {
  const { workspaceId, amount } = payment
  // Workspaces are never deleted, so a missing one will also be missing at the next delivery.
  if (!(await findWorkspace(deps.database.sql, workspaceId))) {
    return leaveUncredited(deps, 'there is no such workspace', fields)
  }
  const outcome = await deps.ledger.fund({ ...payment, kind: 'topup' })
  const act = { actor: 'stripe', at: deps.clock.now(), requestId: id }
  const details = { amount: formatUsd(amount), payment: payment.paymentId }
  switch (outcome.kind) {
    case 'funded':
      await auditMove(deps, { ...act, action: 'wallet.topup', object: workspaceId, details }, outcome)
      if (outcome.repeated) return 'already_credited'
      deps.log.info('a payment was credited', { ...fields, amount: formatUsd(amount), transfer: outcome.transfer.id })
      return 'credited'
    case 'conflict':
      return leaveUncredited(deps, 'this payment was credited before, to another wallet or with another amount', fields)
    case 'out_of_range':
      return leaveUncredited(deps, `a transfer or the balance would exceed ${formatUsd(outcome.max)}`, fields)
    case 'unavailable':
      return notCommitted(outcome.retryAfterMs)
    default:
      return unreachable(outcome)
  }
}

/** The money stays at Stripe; a person decides whether to credit it manually or refund it. */
function leaveUncredited({ log }: WebhookDependencies, why: string, fields: LogFields): Outcome {
  log.error(`a payment was NOT credited: ${why}; credit it by hand, or refund it in Stripe`, fields)
  return 'not_credited'
}

const signatureMessages: Record<SignatureFault, string> = {
  malformed: 'Stripe-Signature must have one t= and at least one v1=.',
  mismatch:
    'The signature does not match. Check that STRIPE_WEBHOOK_SECRET belongs to this endpoint and that no proxy changes bodies.',
  stale: 'The signature is more than five minutes old or in the future. Check the clock of this machine.',
}

const forgeryLogMs = 60_000

/** At most one line a minute, because anyone can send forgeries. */
function createForgeryLog({ log, clock }: WebhookDependencies): (fault: SignatureFault) => void {
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

/** A commit whose answer was lost may have succeeded. */
function notCommitted(retryAfterMs = 1000): Failure {
  const message = 'The ledger cannot confirm a commit at the moment. Send it again: a payment is credited once.'
  return new Failure('OVERLOADED', message, { retryAfterMs })
}

function accept(outcome: Outcome, id: RequestId): Response {
  return Response.json({ received: true, outcome }, { headers: requestIdHeaders(id) })
}
