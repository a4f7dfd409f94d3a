// What an event of Stripe's does: credits a wallet, takes back what was refunded or disputed, ends a payment that was not
// made. Each can be repeated, so that events may come twice, late and in any order, and again after a crash.

import { z } from 'zod'
import { type Raising, raiseAlert } from '../../alerts/alerts.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type Failpoint, noFailpoint } from '../../kernel/failpoint.ts'
import { Failure, invalidRequest, unreachable } from '../../kernel/failure.ts'
import type { PaymentId, RequestId, WorkspaceId } from '../../kernel/ids.ts'
import { formatUsd } from '../../kernel/money.ts'
import { writeOffIdOf } from '../../ledger/fund.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { readPayment } from '../../ledger/transfer.ts'
import type { Database } from '../../store/database.ts'
import { type Sql, timeToSql } from '../../store/sql.ts'
import type { Log, LogFields } from '../../telemetry/log.ts'
import { appendAudit, appendAuditOnce } from '../../tenancy/audit.ts'
import { findWorkspace } from '../../tenancy/workspaces.ts'
import { auditMove } from '../management/writes.ts'
import { endUnpaid, findPayment, findPaymentOfIntent, markPaid } from './payments.ts'
import { type StripeApi, Unreached } from './stripe-api.ts'
import { type MoneyReading, type MoneyReturn, type Payment, readIntent, workspaceMetadata } from './stripe-event.ts'

export interface PaymentDependencies {
  readonly database: Database
  readonly ledger: Pick<Ledger, 'fund' | 'correct' | 'renewPlans'>
  readonly clock: Clock
  readonly log: Log
  /** For alerts. */
  raising(): Raising
  /** undefined = no secret key is set. */
  readonly api?: StripeApi | undefined
  readonly reach?: Failpoint | undefined
  /** Logs a bug under the request id and returns what the caller is shown. */
  onDefect(error: unknown, id: RequestId): Failure
}

/** `not_credited`: a person has to look at it. */
export type Outcome = 'credited' | 'already_credited' | 'ignored' | 'not_credited' | 'corrected' | 'already_corrected'

/** A Failure asks Stripe to send the event again. */
export async function applyReading(
  deps: PaymentDependencies,
  reading: MoneyReading,
  id: RequestId,
): Promise<Outcome | Failure> {
  switch (reading.kind) {
    case 'unreadable':
      return invalidRequest('This is not an event with its object in it; choose the snapshot payload style in Stripe.')
    case 'ignored':
      if (reading.isLogged) deps.log.warn(`an event from Stripe was ignored: ${reading.why}`, reading.fields)
      return 'ignored'
    case 'uncredited':
      return await leaveUncredited(deps, reading.why, { id, fields: reading.fields })
    case 'payment':
      return await credit(deps, reading.payment, { id, fields: reading.fields })
    case 'unpaid':
      await endPayment(deps, reading.ownId, reading.code)
      return 'ignored'
    case 'return':
      return await moveBack(deps, reading.moved, { id, fields: reading.fields })
    case 'detached':
      await forgetCard(deps, reading.paymentMethod)
      return 'ignored'
    default:
      return unreachable(reading)
  }
}

interface EventContext {
  readonly id: RequestId
  readonly fields: LogFields
}

async function credit(deps: PaymentDependencies, payment: Payment, event: EventContext): Promise<Outcome | Failure> {
  const { workspaceId, amount, paymentId, reference } = payment
  const { id, fields } = event
  const { database, clock, log, reach = noFailpoint } = deps
  // Workspaces are never deleted, so a missing one will also be missing at the next delivery.
  if (!(await findWorkspace(database.sql, workspaceId))) {
    if (payment.ownId === undefined) return await leaveUncredited(deps, 'there is no such workspace', event)
    log.warn('an event from Stripe was ignored: another installation started this payment', fields)
    return 'ignored'
  }
  const outcome = await deps.ledger.fund({ workspaceId, amount, kind: 'topup', paymentId, reference })
  switch (outcome.kind) {
    case 'conflict':
      return await leaveUncredited(
        deps,
        'this payment was credited before, to another wallet or with another amount',
        event,
      )
    case 'out_of_range':
      return await leaveUncredited(deps, `a transfer or the balance would exceed ${formatUsd(outcome.max)}`, event)
    case 'unavailable':
      return notCommitted(outcome.retryAfterMs)
    case 'funded':
      break
    default:
      return unreachable(outcome)
  }
  await reach('in_topup')
  const row = await markPaid(database, { ...payment, id: payment.ownId }, clock.now())
  await reach('in_topup')
  const asked = row?.state === 'open' && row.amount !== amount && { asked: formatUsd(row.amount) }
  if (asked) log.warn('a payment differs from what was asked for; what was paid is credited', { ...fields, ...asked })
  const act = { actor: 'stripe', at: clock.now(), requestId: id, action: 'wallet.topup' as const, object: workspaceId }
  const details = { amount: formatUsd(amount), payment: paymentId, ...asked }
  await auditMove(deps, { ...act, details }, outcome)
  if (payment.savesCard && payment.intent !== undefined) {
    const failure = await saveCard(deps, payment.intent, { workspaceId, at: row?.createdAt ?? 0 })
    if (failure) return failure
  }
  if (outcome.repeated) return 'already_credited'
  log.info('a payment was credited', { ...fields, amount: formatUsd(amount), transfer: outcome.transfer.id })
  return 'credited'
}

/** The money stays at Stripe; a person decides what to do about it. */
export async function leaveUncredited(
  { log, database, clock }: PaymentDependencies,
  why: string,
  { id, fields }: EventContext,
): Promise<Outcome> {
  log.error(`a payment was NOT credited: ${why}; credit it by hand, or refund it in Stripe`, fields)
  const act = { actor: 'stripe', at: clock.now(), requestId: id }
  const entry = { ...act, action: 'payment.refuse' as const, object: 'stripe', details: { ...fields, why } }
  await database.transaction((sql) => appendAuditOnce(sql, entry, 'event'))
  return 'not_credited'
}

const cardSchema = z.object({
  customer: z.string(),
  payment_method: z.object({
    id: z.string(),
    card: z.object({ brand: z.string(), last4: z.string() }).nullish(),
  }),
})

/** Keeps the card of a payment for automatic top-ups. */
async function saveCard(
  { api, database, log }: PaymentDependencies,
  intent: string,
  { workspaceId, at }: { readonly workspaceId: WorkspaceId; readonly at: number },
): Promise<Failure | undefined> {
  if (!api) return undefined
  const reply = await api.get(`/v1/payment_intents/${intent}?expand[]=payment_method`)
  const found = reply instanceof Unreached ? undefined : cardSchema.safeParse(reply.json).data
  if (!found) {
    if (reply instanceof Unreached || reply.status === 429 || reply.status >= 500) return notCommitted()
    log.error('the card of a payment could not be saved', { payment_intent: intent, status: reply.status })
    return undefined
  }
  const { customer, payment_method: method } = found
  const card = method.card ? `${method.card.brand} ${method.card.last4}` : 'saved'
  const row = { workspace_id: workspaceId, is_on: 0n, threshold: 0n, amount: 0n, month_max: 0n }
  await database.transaction(async (sql) => {
    await sql`INSERT INTO auto_topups ${sql([row])} ON CONFLICT DO NOTHING`
    await sql`UPDATE auto_topups SET customer = ${customer}, payment_method = ${method.id}, card = ${card}, card_at = ${timeToSql(at)},
        failures = 0
      WHERE workspace_id = ${workspaceId} AND card_at <= ${timeToSql(at)}`
  })
  return undefined
}

/** Turns automatic top-ups off after this many failures in a row. */
export const failuresMax = 3

/** Trying again cannot help: a person has to pay, or to save another card. */
const finalCodes: Readonly<Record<string, string>> = {
  authentication_required: 'the bank asks the card holder to confirm each payment',
  resource_missing: 'the saved card was removed',
  payment_method_unexpected_state: 'the saved card was removed',
}

/** A payment that was started here was not made. */
export async function endPayment(deps: PaymentDependencies, ownId: string, code: string): Promise<void> {
  const { database, raising } = deps
  const why = finalCodes[code] ?? `the payment was declined (${code.slice(0, 60)})`
  await database.transaction(async (sql) => {
    const found = await findPayment(sql, ownId)
    // Locked in the order in which an automatic top-up begins.
    if (found?.kind === 'automatic') await lockTopUp(sql, found.workspaceId)
    const row = await endUnpaid(sql, ownId as PaymentId, code === 'expired' ? 'it expired' : why)
    if (row?.kind !== 'automatic') return
    const { workspaceId } = row
    const [topUp] = await sql<{ failures: bigint }>`UPDATE auto_topups SET failures = failures + 1
      WHERE workspace_id = ${workspaceId} RETURNING failures`
    const isOff = finalCodes[code] !== undefined || (topUp?.failures ?? 0n) >= BigInt(failuresMax)
    const crossing = `topup:${row.id}`
    await reportFailure(sql, { workspaceId, why, isOff, crossing, amount: formatUsd(row.amount), ...raising() })
  })
}

export async function lockTopUp(sql: Sql, workspaceId: WorkspaceId): Promise<void> {
  await sql`SELECT failures FROM auto_topups WHERE workspace_id = ${workspaceId} FOR NO KEY UPDATE`
}

export interface TopUpFailure extends Raising {
  readonly workspaceId: WorkspaceId
  readonly why: string
  readonly isOff: boolean
  readonly crossing: string
  readonly amount?: string
}

/** Raises the alert, and turns automatic top-ups off if they are not tried again. */
export async function reportFailure(sql: Sql, failure: TopUpFailure): Promise<void> {
  const { workspaceId, why, isOff, crossing, amount, now } = failure
  if (isOff) {
    await sql`UPDATE auto_topups SET is_on = 0, stopped = ${why} WHERE workspace_id = ${workspaceId}`
  }
  const name = (await findWorkspace(sql, workspaceId))?.name ?? workspaceId
  const what = amount === undefined ? 'did not run' : `of $${amount} failed`
  const next = isOff
    ? 'It is off now. Pay once on the Billing page and save a card, then turn it on again.'
    : 'It is tried again later.'
  const message = `The automatic top-up ${what} in workspace "${name}": ${why}. ${next}`
  const data = { workspace_name: name, why, is_off: isOff, ...(amount !== undefined && { amount }) }
  await raiseAlert(sql, { crossing, kind: 'topup.failed', workspaceId, message, data }, failure)
  const details = { why, is_off: isOff }
  await appendAudit(sql, { actor: 'stripe', at: now, action: 'auto_topup.fail', object: workspaceId, details })
}

/** A card was removed at Stripe: nothing can be paid with it any more. */
async function forgetCard({ database, raising }: PaymentDependencies, paymentMethod: string): Promise<void> {
  await database.transaction(async (sql) => {
    const rows = await sql<{ workspace_id: WorkspaceId; is_on: bigint }>`UPDATE auto_topups
      SET payment_method = NULL, card = NULL WHERE payment_method = ${paymentMethod} RETURNING workspace_id, is_on`
    for (const { workspace_id: workspaceId, is_on } of rows) {
      const crossing = `topup:detached:${paymentMethod}`
      const why = 'the saved card was removed'
      if (is_on === 1n) await reportFailure(sql, { workspaceId, why, isOff: true, crossing, ...raising() })
    }
  })
}

/** Takes back what went to the payer, as far as the wallet has it, or gives back what was taken. */
async function moveBack(
  deps: PaymentDependencies,
  moved: MoneyReturn,
  event: EventContext,
): Promise<Outcome | Failure> {
  const { database, ledger, log, clock } = deps
  const { id, fields } = event
  const payment = await findPaymentOfIntent(database.sql, moved.intent)
  if (payment?.state !== 'paid') {
    if (payment || (await isOurs(deps, moved.intent))) return tooEarly()
    return 'ignored'
  }
  const { workspaceId } = payment
  const isOwn = moved.refundId !== undefined && (await isOwnRefund(database.sql, moved.refundId))
  // What was asked for here was taken before Stripe was asked.
  if (isOwn && moved.direction === 'take') return 'already_corrected'
  const key = isOwn && moved.refundId !== undefined ? moved.refundId : moved.id
  const taken = moved.direction === 'add' ? await readPayment(database.sql, key) : undefined
  if (moved.direction === 'add' && !taken) return tooEarly()
  const writtenOff = taken && (await readPayment(database.sql, writeOffIdOf(key)))
  const { direction, reason } = moved
  const outcome = await ledger.correct({
    workspaceId,
    direction,
    reason,
    amount: taken?.amount ?? moved.amount,
    paymentId: direction === 'add' ? returnedIdOf(key) : key,
    ...(direction === 'take' && { writeOff: 'rest' as const }),
    ...(writtenOff && { writeOff: writtenOff.amount }),
  })
  if (outcome.kind === 'unavailable') return notCommitted(outcome.retryAfterMs)
  if (outcome.kind !== 'corrected') {
    return await leaveUncredited(deps, `the wallet could not be corrected (${outcome.kind})`, event)
  }
  const amount = formatUsd(outcome.transfer.amount)
  const lost = direction === 'take' ? moved.amount - outcome.transfer.amount : 0n
  const details = {
    direction,
    amount,
    reason,
    ...(lost > 0n && { written_off: formatUsd(lost as typeof moved.amount) }),
  }
  const act = { actor: 'stripe', at: clock.now(), requestId: id, action: 'wallet.correct' as const }
  await auditMove(deps, { ...act, object: workspaceId, details }, outcome)
  if (moved.isDispute && direction === 'take') await stopAfterDispute(deps, workspaceId, moved.id)
  if (outcome.repeated) return 'already_corrected'
  log.warn(`a wallet was corrected: ${reason}`, { ...fields, ...details, transfer: outcome.transfer.id })
  return 'corrected'
}

export function returnedIdOf(key: string): string {
  return `${key}:returned`
}

async function isOwnRefund(sql: Sql, id: string): Promise<boolean> {
  return (await sql`SELECT 1 AS found FROM refunds WHERE id = ${id}`).length > 0
}

/** Whether a payment that is not credited yet will be: then its refund has to wait for it. */
async function isOurs({ api, database }: PaymentDependencies, intent: string): Promise<boolean> {
  const reply = await api?.get(`/v1/payment_intents/${intent}`)
  if (!reply || reply instanceof Unreached) return reply !== undefined
  const found = readIntent(reply.json)
  const named = found?.metadata?.[workspaceMetadata]
  return (
    found?.status === 'succeeded' &&
    named !== undefined &&
    (await findWorkspace(database.sql, named as WorkspaceId)) !== undefined
  )
}

async function stopAfterDispute({ database, raising }: PaymentDependencies, workspaceId: WorkspaceId, id: string) {
  await database.transaction(async (sql) => {
    const on = await sql`SELECT 1 AS found FROM auto_topups WHERE workspace_id = ${workspaceId} AND is_on = 1`
    const failure = { workspaceId, why: 'a payment was disputed', isOff: true, crossing: `topup:${id}` }
    if (on.length > 0) await reportFailure(sql, { ...failure, ...raising() })
  })
}

/** A commit whose answer was lost may have succeeded. */
export function notCommitted(retryAfterMs = 1000): Failure {
  const message = 'The ledger cannot confirm a commit at the moment. Send it again: a payment is credited once.'
  return new Failure('OVERLOADED', message, { retryAfterMs })
}

function tooEarly(): Failure {
  const message = 'What this event undoes has not arrived yet. Send it again later.'
  return new Failure('OVERLOADED', message, { retryAfterMs: 60_000 })
}
