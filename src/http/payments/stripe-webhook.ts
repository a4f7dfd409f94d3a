// POST /api/payments/stripe/webhook: a signed event comes in, a payment is credited once. The answer tells Stripe one
// thing: whether to send the event again. So what a retry cannot mend is a 200, and the log tells the operator.

import { requestIdHeaders } from '../../generation/answer-headers.ts'
import { unreachable } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure, invalidRequest, retryHeaders } from '../../kernel/failure.ts'
import { createId, type RequestId } from '../../kernel/ids.ts'
import { formatUsd } from '../../kernel/money.ts'
import type { Secret } from '../../kernel/secret.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Database } from '../../store/database.ts'
import { isStoreUnavailable } from '../../store/sql-error.ts'
import type { Log, LogFields } from '../../telemetry/log.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import { BodyFault, readBody } from '../../wire/read-body.ts'
import { noteMove } from '../management/money-move.ts'
import { type Payment, readEvent, type StripeMode } from './stripe-event.ts'
import { checkSignature, type SignatureFault } from './stripe-signature.ts'

export interface WebhookDependencies {
  readonly database: Database
  readonly ledger: Pick<Ledger, 'fund'>
  readonly clock: Clock
  readonly log: Log
  /** In the chat surface's shape. */
  renderFailure(failure: Failure, id: RequestId): string
  /** What the caller is told of a defect of ours; the details go to the log, under the same id. */
  onDefect(error: unknown, id: RequestId): Failure
}

export interface WebhookSettings {
  readonly webhookSecret: Secret
  readonly mode: StripeMode
}

type Outcome = 'credited' | 'already_credited' | 'ignored' | 'not_credited'

/** Events are a few kilobytes; the limit is for those who are not Stripe. */
const bodyBytesMax = 1024 * 1024

export function createStripeWebhook(
  deps: WebhookDependencies,
  settings: WebhookSettings,
): (request: Request) => Promise<Response> {
  const noteForgery = createForgeryNote(deps)

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
        if (reading.isTold) deps.log.warn(`an event from Stripe was ignored: ${reading.why}`, reading.fields)
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
      return new Failure('METHOD_NOT_ALLOWED', `${request.method} is not served here; use POST.`, { allow: 'POST' })
    }
    // Before the body: who has not even signed it need not be listened to.
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
      noteForgery(fault)
      return invalidRequest(signatureMessages[fault], 'Stripe-Signature')
    }
    const value: unknown = await new Response(body).json().catch(() => undefined)
    return value === undefined ? invalidRequest('The body is not JSON.') : { value }
  }

  return async (request) => {
    const id = createId('req')
    try {
      const outcome = await serve(request, id)
      return outcome instanceof Failure ? refuse(deps, outcome, id) : accept(outcome, id)
    } catch (thrown) {
      return refuse(deps, isStoreUnavailable(thrown) ? notCommitted() : deps.onDefect(thrown, id), id)
    }
  }
}

async function credit(
  deps: WebhookDependencies,
  payment: Payment,
  { id, fields }: { readonly id: RequestId; readonly fields: LogFields },
): Promise<Outcome | Failure> {
  const { workspaceId, amount } = payment
  // Workspaces are never deleted, so one that is missing will be missing at the next delivery too.
  if ((await getWorkspace(deps.database.sql, workspaceId)) === 'not found') {
    return leaveUncredited(deps, 'there is no such workspace', fields)
  }
  const outcome = await deps.ledger.fund({ ...payment, kind: 'topup' })
  const act = { actor: 'stripe', at: deps.clock.now(), requestId: id }
  const details = { amount: formatUsd(amount), payment: payment.paymentId }
  switch (outcome.kind) {
    case 'funded':
      await noteMove(deps, { ...act, action: 'wallet.topup', object: workspaceId, details }, outcome)
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

/** The money stays where it is, at Stripe; a person decides whether it is credited by hand or paid back. */
function leaveUncredited({ log }: WebhookDependencies, why: string, fields: LogFields): Outcome {
  log.error(`a payment was NOT credited: ${why}; credit it by hand, or refund it in Stripe`, fields)
  return 'not_credited'
}

const signatureMessages: Record<SignatureFault, string> = {
  malformed: 'Stripe-Signature must have one t= and at least one v1=.',
  mismatch:
    "The signature does not fit. Is STRIPE_WEBHOOK_SECRET this endpoint's own, and does no proxy change bodies?",
  stale: 'The signature is more than five minutes from now. Is the clock of this machine right?',
}

const forgeryNoteMs = 60_000

/** One line a minute at most: anyone can send forgeries, and could fill the log with them. */
function createForgeryNote({ log, clock }: WebhookDependencies): (fault: SignatureFault) => void {
  let nextAtMs = Number.NEGATIVE_INFINITY
  let count = 0
  return (fault) => {
    count++
    if (clock.monotonicMs() < nextAtMs) return
    log.warn('the payment webhook refused what Stripe did not sign, or signed with another secret', { fault, count })
    nextAtMs = clock.monotonicMs() + forgeryNoteMs
    count = 0
  }
}

/** A commit whose answer was lost may have been made. */
function notCommitted(retryAfterMs = 1000): Failure {
  const message = 'The ledger cannot confirm a commit at the moment. Send it again: a payment is credited once.'
  return new Failure('OVERLOADED', message, { retryAfterMs })
}

function accept(outcome: Outcome, id: RequestId): Response {
  return Response.json({ received: true, outcome }, { headers: requestIdHeaders(id) })
}

function refuse(deps: WebhookDependencies, failure: Failure, id: RequestId): Response {
  const headers = { ...requestIdHeaders(id), 'content-type': 'application/json', ...retryHeaders(failure) }
  const allow = failure.facts.allow === undefined ? {} : { allow: failure.facts.allow }
  return new Response(deps.renderFailure(failure, id), { status: failure.status, headers: { ...headers, ...allow } })
}
