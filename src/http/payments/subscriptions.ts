// Plans that are paid for by a subscription at Stripe. An event only says what to look at: invoices and subscriptions are read
// from Stripe, so events may come twice, late and in any order. A paid invoice grants the credit of its period, once.

import { z } from 'zod'
import { type Raising, raiseAlert } from '../../alerts/alerts.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { isId, type RequestId, type WorkspaceId } from '../../kernel/ids.ts'
import { formatUsd, type Nano, parseUsd } from '../../kernel/money.ts'
import type { Period } from '../../kernel/spend-limit.ts'
import { transferMax } from '../../ledger/account.ts'
import {
  deleteSubscription,
  endCreditOf,
  findPlanPayment,
  type PlanPayment,
  putSubscription,
  readSubscription,
  recordPlanPayment,
  type Subscription,
} from '../../ledger/plan-payments.ts'
import { type Plan, readWorkspacePlan, setWorkspacePlan } from '../../ledger/plans.ts'
import type { LogFields } from '../../telemetry/log.ts'
import { appendAudit } from '../../tenancy/audit.ts'
import { findWorkspace, getWorkspace } from '../../tenancy/workspaces.ts'
import { leaveUncredited, notCommitted, type Outcome, type PaymentDependencies } from './apply-event.ts'
import { replyFields, type StripeApi, type StripeReply, Unreached } from './stripe-api.ts'
import { checkAmount, stripeBounds } from './stripe-checkout.ts'
import { type MoneyReturn, nanoPerCent, planMetadata, workspaceMetadata } from './stripe-event.ts'

export type Subscriptions = ReturnType<typeof createSubscriptions>

/** The price of a plan that can be paid for by card; undefined = it is given by the operator only. */
export function priceOf({ price }: Plan): Nano | undefined {
  return price !== undefined && price >= stripeBounds.min && price <= stripeBounds.max && price % nanoPerCent === 0n
    ? price
    : undefined
}

const metadata = z.record(z.string(), z.string()).nullish()

const subscriptionSchema = z.object({
  id: z.string(),
  status: z.string(),
  cancel_at_period_end: z.boolean(),
  metadata,
  items: z.object({
    data: z
      .array(
        z.object({
          id: z.string(),
          current_period_end: z.int(),
          price: z.object({
            unit_amount: z.int().nonnegative(),
            product: z.string(),
            recurring: z.object({ interval: z.string() }),
          }),
        }),
      )
      .length(1),
  }),
})

type StripeSubscription = z.output<typeof subscriptionSchema>

const invoiceSchema = z.object({
  id: z.string(),
  status: z.string(),
  currency: z.string(),
  amount_paid: z.int().nonnegative(),
  billing_reason: z.string().nullish(),
  parent: z.object({ subscription_details: z.object({ subscription: z.string(), metadata }).nullish() }).nullish(),
  lines: z.object({ data: z.array(z.object({ period: z.object({ start: z.int(), end: z.int() }) })) }),
})

type Invoice = z.output<typeof invoiceSchema>

/** Of a subscription that is not paid for the first time yet, or has ended. */
const overStates: ReadonlySet<string> = new Set(['incomplete', 'incomplete_expired', 'canceled'])

/** What an invoice pays for, unless somebody changed the subscription at Stripe. */
const paidReasons: ReadonlySet<string> = new Set(['subscription_create', 'subscription_cycle'])

const expiresDaysMax = 366
/** Until Stripe says the same before and after it was written down. */
const readsMax = 5

interface EventContext {
  readonly id: RequestId
  readonly fields: LogFields
}

export function createSubscriptions(
  deps: PaymentDependencies & { readonly api: StripeApi },
  { publicUrl }: { publicUrl(): string },
) {
  const { api, database, clock, log, raising } = deps

  async function read<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.output<Schema> | undefined> {
    const reply = await api.get(path)
    if (!(reply instanceof Unreached)) {
      if (reply.status === 404) return undefined
      const parsed = schema.safeParse(reply.json)
      if (reply.status === 200 && parsed.success) return parsed.data
    }
    log.warn('Stripe did not say what a subscription is', { path, ...replyFields(reply) })
    throw notCommitted()
  }

  const readOwn = (id: string) => read(`/v1/subscriptions/${id}`, subscriptionSchema)

  async function change(path: string, form: Readonly<Record<string, string>>, requestId: RequestId): Promise<unknown> {
    const reply = await api.post(path, form, requestId)
    if (!(reply instanceof Unreached) && reply.status === 200) return reply.json
    throw refusalOf(reply, requestId)
  }

  function refusalOf(reply: StripeReply | Unreached, requestId: RequestId): Failure {
    log.error('Stripe did not change a subscription', { request_id: requestId, ...replyFields(reply) })
    return reply instanceof Unreached || reply.status === 429 || reply.status >= 500
      ? new Failure('OVERLOADED', 'Stripe cannot be reached at the moment. Retry in a few seconds.', {
          retryAfterMs: 3000,
        })
      : new Failure('INTERNAL', 'Stripe refused the subscription; the log has the cause under the request id.')
  }

  /** Writes down what Stripe says now. */
  async function follow(id: string, context: EventContext): Promise<void> {
    let before = ''
    for (let reads = 0; reads < readsMax; reads++) {
      const found = await readOwn(id)
      const text = JSON.stringify(found)
      // Another process may have written what it read earlier, so what is written is compared with what holds afterwards.
      if (text === before) return
      before = text
      if (!found || overStates.has(found.status)) await database.transaction((sql) => deleteSubscription(sql, id))
      else await keep(found, context)
    }
  }

  async function isOver(id: string): Promise<boolean> {
    const found = await readOwn(id)
    return !found || overStates.has(found.status)
  }

  async function keep(found: StripeSubscription, { id: requestId, fields }: EventContext): Promise<void> {
    const subscription = subscriptionOf(found)
    if (!subscription) return
    const { workspaceId } = subscription
    const isKept = await database.transaction(async (sql) => {
      if (!(await findWorkspace(sql, workspaceId))) return true
      if (!(await putSubscription(sql, subscription))) return false
      // A plan that the operator gave while this one was being paid ends with its period.
      const given = await readWorkspacePlan(sql, workspaceId)
      if (given?.nextPlanId !== undefined) await setWorkspacePlan(sql, workspaceId, undefined)
      return true
    })
    if (isKept || subscription.isEnding) return
    const other = await readSubscription(database.sql, workspaceId)
    if (other && (await isOver(other.id))) {
      // The event that said so was lost.
      await database.transaction((sql) => deleteSubscription(sql, other.id))
      return await keep(found, { id: requestId, fields })
    }
    log.error('a workspace subscribed twice; the second subscription ends with the period that is paid', fields)
    await change(`/v1/subscriptions/${found.id}`, { cancel_at_period_end: 'true' }, requestId)
  }

  async function applyInvoice(invoice: Invoice, type: string, context: EventContext): Promise<Outcome | Failure> {
    const details = invoice.parent?.subscription_details
    const named = details?.metadata?.[workspaceMetadata]
    if (!details || named === undefined) return 'ignored'
    if (!isId('ws', named)) return await leaveUncredited(deps, `${workspaceMetadata} is not a workspace's id`, context)
    const workspace = await findWorkspace(database.sql, named)
    if (!workspace) return 'ignored'
    if (invoice.status !== 'paid') {
      await follow(details.subscription, context)
      if (type === 'invoice.payment_failed') await reportUnpaid(invoice, workspace, raising())
      return 'ignored'
    }
    const payment = paymentOf(invoice, named, clock.now())
    if (typeof payment === 'string') return await leaveUncredited(deps, payment, context)
    const isNew = await database.transaction(async (sql) => {
      if (!(await recordPlanPayment(sql, payment))) return false
      const paid = { plan: payment.planId, paid: formatUsd(payment.paid), credit: formatUsd(payment.credit) }
      const act = { actor: 'stripe', at: clock.now(), requestId: context.id, action: 'plan.pay' as const }
      await appendAudit(sql, { ...act, object: named, details: { ...paid, invoice: invoice.id } })
      return true
    })
    // If this is not confirmed, the next round of the ledger grants it.
    await deps.ledger.renewPlans(named)
    await follow(details.subscription, context)
    return isNew ? 'credited' : 'already_credited'
  }

  async function reportUnpaid(
    invoice: Invoice,
    { id: workspaceId, name }: { readonly id: WorkspaceId; readonly name: string },
    to: Raising,
  ): Promise<void> {
    const message = `The payment for the plan of workspace "${name}" failed. No credit is granted until it is paid; Stripe tries again by itself and has told the payer.`
    const data = { workspace_name: name, invoice: invoice.id }
    const crossing = `plan:${invoice.id}`
    await database.transaction((sql) =>
      raiseAlert(sql, { crossing, kind: 'plan.unpaid', workspaceId, message, data }, to),
    )
  }

  return {
    /** Throws a Failure if the workspace cannot subscribe. `url`: where to pay; null = its subscription was changed. */
    async choose(workspaceId: WorkspaceId, plan: Plan, requestId: RequestId): Promise<{ readonly url: string | null }> {
      const price = priceOf(plan)
      if (price === undefined) {
        if (plan.price !== undefined) checkAmount(plan.price, stripeBounds, 'price')
        throw invalidRequest(`The plan \`${plan.id}\` has no price. Ask the operator to give it to you.`, 'plan')
      }
      const terms = { workspaceId, plan, price }
      const own = await readSubscription(database.sql, workspaceId)
      if (own && !(await isOver(own.id))) {
        await changePlan(own, terms, requestId)
        return { url: null }
      }
      await getWorkspace(database.sql, workspaceId)
      if (await readWorkspacePlan(database.sql, workspaceId)) {
        const message = 'The operator gave this workspace a plan. Ask the operator to end it, then subscribe.'
        throw invalidRequest(message, 'plan')
      }
      const [saved] = await database.sql<{ customer: string | null }>`SELECT customer FROM auto_topups
        WHERE workspace_id = ${workspaceId}`
      const back = `${publicUrl()}/console/${workspaceId}/wallet`
      const form = { ...sessionForm(terms, back), ...(saved?.customer && { customer: saved.customer }) }
      const session = sessionSchema.safeParse(await change('/v1/checkout/sessions', form, requestId))
      if (!session.success) throw new Failure('INTERNAL', 'Stripe did not start a subscription.')
      return { url: session.data.url }
    },
    /** It ends with the period that is paid. */
    async cancel(workspaceId: WorkspaceId, requestId: RequestId): Promise<void> {
      const own = await readSubscription(database.sql, workspaceId)
      if (!own) throw new Failure('NOT_FOUND', 'This workspace has no subscription.')
      await change(`/v1/subscriptions/${own.id}`, { cancel_at_period_end: 'true' }, requestId)
      await follow(own.id, { id: requestId, fields: { subscription: own.id } })
    },
    /** A Failure asks Stripe to send the event again. */
    async apply({ object, type }: { readonly object: string; readonly type: string }, context: EventContext) {
      if (object.startsWith('in_')) {
        const invoice = await read(`/v1/invoices/${object}`, invoiceSchema)
        return invoice ? await applyInvoice(invoice, type, context) : 'ignored'
      }
      await follow(object, context)
      return 'ignored' as const
    },
    /** Money of a payment intent went back. If it had paid for a plan, what remains of that credit expires. */
    async takeBack({ intent, amount, isDispute, direction }: MoneyReturn, { id }: EventContext): Promise<Outcome> {
      if (direction !== 'take') return 'ignored'
      const query = new URLSearchParams({ 'payment[type]': 'payment_intent', 'payment[payment_intent]': intent })
      const list = await read(`/v1/invoice_payments?${query}`, invoicePaymentsSchema)
      const payment = await findPlanPayment(database.sql, list?.data[0]?.invoice ?? '')
      // A part of the price does not end the credit.
      if (!payment || (!isDispute && amount < payment.paid)) return 'ignored'
      const act = { actor: 'stripe', at: clock.now(), requestId: id, action: 'plan.refund' as const }
      await database.transaction(async (sql) => {
        await endCreditOf(sql, payment, clock.now())
        await appendAudit(sql, { ...act, object: payment.workspaceId, details: { invoice: payment.id } })
      })
      await deps.ledger.renewPlans(payment.workspaceId)
      return 'corrected'
    },
  }

  /** From the next payment on. It is no cancellation any more. */
  async function changePlan(own: Subscription, terms: Terms, requestId: RequestId): Promise<void> {
    const [item] = (await readOwn(own.id))?.items.data ?? []
    if (!item) throw new Failure('NOT_FOUND', 'Stripe has no such subscription any more. Retry in a minute.')
    if (item.price.recurring.interval !== terms.plan.period) {
      const message = `A subscription for a ${item.price.recurring.interval} cannot become one for a ${terms.plan.period}. Cancel it, and subscribe to \`${terms.plan.id}\` when it has ended.`
      throw invalidRequest(message, 'plan')
    }
    const form = {
      'items[0][id]': item.id,
      ...priceForm('items[0][price_data]', terms),
      'items[0][price_data][product]': item.price.product,
      // Nothing is paid or paid back for the current period.
      proration_behavior: 'none',
      cancel_at_period_end: 'false',
      description: terms.plan.name,
      ...metadataForm('metadata', terms),
    }
    await change(`/v1/subscriptions/${own.id}`, form, requestId)
    await follow(own.id, { id: requestId, fields: { subscription: own.id } })
  }
}

const sessionSchema = z.object({ url: z.string().startsWith('https://') })
const invoicePaymentsSchema = z.object({ data: z.array(z.object({ invoice: z.string() })) })

interface Terms {
  readonly workspaceId: WorkspaceId
  readonly plan: Plan
  readonly price: Nano
}

const intervals: Readonly<Record<Period, string>> = { day: 'day', week: 'week', month: 'month' }

function priceForm(name: string, { plan, price }: Terms) {
  return {
    [`${name}[currency]`]: 'usd',
    [`${name}[unit_amount]`]: String(price / nanoPerCent),
    [`${name}[recurring][interval]`]: intervals[plan.period],
  }
}

function metadataForm(name: string, { workspaceId, plan }: Terms) {
  return {
    [`${name}[${workspaceMetadata}]`]: workspaceId,
    [`${name}[${planMetadata.plan}]`]: plan.id,
    [`${name}[${planMetadata.credit}]`]: formatUsd(plan.credit),
    // An empty text removes what an earlier plan had.
    [`${name}[${planMetadata.expiresDays}]`]: plan.expiresDays === undefined ? '' : String(plan.expiresDays),
  }
}

function sessionForm(terms: Terms, back: string): Readonly<Record<string, string>> {
  return {
    mode: 'subscription',
    client_reference_id: terms.workspaceId,
    'line_items[0][quantity]': '1',
    ...priceForm('line_items[0][price_data]', terms),
    'line_items[0][price_data][product_data][name]': 'Tollgate plan',
    'subscription_data[description]': terms.plan.name,
    ...metadataForm('subscription_data[metadata]', terms),
    // Otherwise Stripe may offer the payer another currency, and a wallet takes dollars.
    'adaptive_pricing[enabled]': 'false',
    success_url: `${back}?subscribed=${terms.plan.id}`,
    cancel_url: back,
  }
}

interface PaidTerms {
  readonly planId: string
  readonly credit: Nano
  readonly expiresDays: number | undefined
}

/** undefined = this subscription was not started here. */
function termsOf(named: z.output<typeof metadata>): PaidTerms | undefined {
  const planId = named?.[planMetadata.plan] ?? ''
  const credit = parseUsd(named?.[planMetadata.credit] ?? '')
  const days = named?.[planMetadata.expiresDays] || undefined
  const expiresDays = days === undefined ? undefined : Number(days)
  if (planId === '' || credit === undefined || credit <= 0n || credit > transferMax) return undefined
  if (
    expiresDays !== undefined &&
    !(Number.isInteger(expiresDays) && expiresDays > 0 && expiresDays <= expiresDaysMax)
  ) {
    return undefined
  }
  return { planId, credit, expiresDays }
}

function subscriptionOf({ id, status, metadata, items, ...rest }: StripeSubscription): Subscription | undefined {
  const terms = termsOf(metadata)
  const workspaceId = metadata?.[workspaceMetadata] ?? ''
  const [item] = items.data
  if (!terms || !item || !isId('ws', workspaceId)) return undefined
  const { planId, credit } = terms
  return {
    ...{ id, workspaceId, planId, credit, state: status, isEnding: rest.cancel_at_period_end },
    price: (BigInt(item.price.unit_amount) * nanoPerCent) as Nano,
    endsAt: item.current_period_end * 1000,
  }
}

/** Or why it grants nothing. */
function paymentOf(invoice: Invoice, workspaceId: WorkspaceId, now: number): PlanPayment | string {
  const { id, currency, amount_paid: cents, billing_reason: reason, lines, parent } = invoice
  const terms = termsOf(parent?.subscription_details?.metadata)
  if (!terms) return 'its metadata does not name a plan and its credit'
  if (currency !== 'usd') return 'plans are in USD'
  if (!paidReasons.has(reason ?? '')) return 'it pays for a change of the subscription that was made at Stripe'
  // The longest is the plan's; others are discounts or taxes.
  const [period] = lines.data.map((line) => line.period).sort((a, b) => b.end - b.start - (a.end - a.start))
  if (!period || period.end <= period.start) return 'it names no period'
  const times = { startsAt: period.start * 1000, endsAt: period.end * 1000, createdAt: now }
  return { id, workspaceId, ...terms, ...times, paid: (BigInt(cents) * nanoPerCent) as Nano }
}
