// A server on loopback in Stripe's place: payment intents, refunds and checkout sessions as its published objects are, with
// idempotency keys and metadata, and events signed as Stripe signs them. https://docs.stripe.com/api

import { createHmac } from 'node:crypto'

/** How the next payment with the saved card ends. */
export type CardBehaviour =
  | 'succeeds'
  | 'declines'
  | 'authentication'
  | 'missing'
  | 'processing'
  | 'server error'
  | 'server error after the payment'

export interface StandIn extends AsyncDisposable {
  readonly url: string
  readonly intents: Map<string, StripeObject>
  readonly refunds: Map<string, StripeObject>
  readonly sessions: Map<string, StripeObject>
  readonly subscriptions: Map<string, StripeObject>
  readonly invoices: Map<string, StripeObject>
  /**
   * The payer pays on the page of a session, or the next period of a subscription begins: a new invoice, paid or not. Returns the
   * invoice; its events are sent by the test.
   */
  bill(subscription: string, terms: { readonly at: number; readonly isPaid?: boolean }): StripeObject
  /** Paid after it was refused. */
  pay(invoice: StripeObject): void
  /** The calls, as `POST /v1/refunds`. */
  readonly calls: string[]
  card: CardBehaviour
  /** Answers 500 to refunds, or refuses them. */
  refundStatus: number
  /** Forgets its idempotency keys, as Stripe does after a day. */
  forgetKeys(): void
}

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind.
export type StripeObject = Record<string, any>

const declines: Partial<Record<CardBehaviour, object>> = {
  declines: { code: 'card_declined', decline_code: 'insufficient_funds' },
  authentication: { code: 'authentication_required', decline_code: 'authentication_required' },
}

const serverError = { status: 500, json: { error: { type: 'api_error' } } }

/** `a[b]` members become nested; only one level is used. */
function metadataOf(form: URLSearchParams, prefix = 'metadata'): Record<string, string> {
  return Object.fromEntries(
    [...form].flatMap(([name, value]) =>
      name.startsWith(`${prefix}[`) ? [[name.slice(prefix.length + 1, -1), value]] : [],
    ),
  )
}

export function startStripe(): StandIn {
  const intents = new Map<string, StripeObject>()
  const refunds = new Map<string, StripeObject>()
  const sessions = new Map<string, StripeObject>()
  const subscriptions = new Map<string, StripeObject>()
  const invoices = new Map<string, StripeObject>()
  const replies = new Map<string, { readonly body: string; readonly status: number; readonly json: StripeObject }>()
  const calls: string[] = []
  const state: { card: CardBehaviour; refundStatus: number } = { card: 'succeeds', refundStatus: 200 }
  const created = Math.floor(Date.now() / 1000)

  const createIntent = (form: URLSearchParams) => {
    if (state.card === 'missing') {
      return {
        status: 400,
        json: { error: { type: 'invalid_request_error', code: 'resource_missing', param: 'payment_method' } },
      }
    }
    if (state.card === 'server error') return serverError
    const error = declines[state.card]
    const amount = Number(form.get('amount'))
    const isPaid = state.card === 'succeeds' || state.card === 'server error after the payment'
    const json = {
      id: `pi_${intents.size + 1}`,
      object: 'payment_intent',
      amount,
      amount_received: isPaid ? amount : 0,
      currency: form.get('currency'),
      customer: form.get('customer'),
      status: error ? 'requires_payment_method' : isPaid ? 'succeeded' : 'processing',
      last_payment_error: error ?? null,
      metadata: metadataOf(form),
      created,
    }
    intents.set(json.id, json)
    if (state.card === 'server error after the payment') return serverError
    return error
      ? { status: 402, json: { error: { type: 'card_error', ...error, payment_intent: json } } }
      : { status: 200, json }
  }
  const createRefund = (form: URLSearchParams) => {
    if (state.refundStatus !== 200) {
      return {
        status: state.refundStatus,
        json: { error: { type: 'invalid_request_error', code: 'charge_already_refunded' } },
      }
    }
    const json = {
      id: `re_${refunds.size + 1}`,
      object: 'refund',
      amount: Number(form.get('amount')),
      currency: 'usd',
      payment_intent: form.get('payment_intent'),
      status: 'succeeded',
      metadata: metadataOf(form),
    }
    refunds.set(json.id, json)
    return { status: 200, json }
  }
  /** The payer completes the page at once; `bill` makes the first invoice. */
  const createSubscription = (form: URLSearchParams) => {
    const id = `cs_test_${sessions.size + 1}`
    const price = 'line_items[0][price_data]'
    const subscription = {
      id: `sub_${subscriptions.size + 1}`,
      object: 'subscription',
      status: 'incomplete',
      cancel_at_period_end: false,
      customer: form.get('customer') ?? `cus_${id}`,
      metadata: metadataOf(form, 'subscription_data[metadata]'),
      items: {
        data: [
          {
            id: `si_${id}`,
            current_period_end: 0,
            price: {
              unit_amount: Number(form.get(`${price}[unit_amount]`)),
              product: `prod_${id}`,
              recurring: { interval: form.get(`${price}[recurring][interval]`) },
            },
          },
        ],
      },
    }
    subscriptions.set(subscription.id, subscription)
    const url = `https://checkout.stripe.test/${id}`
    const json = {
      id,
      object: 'checkout.session',
      mode: 'subscription',
      url,
      subscription: subscription.id,
      metadata: {},
    }
    sessions.set(id, json)
    return { status: 200, json }
  }
  const updateSubscription = (subscription: StripeObject, form: URLSearchParams) => {
    const [item] = subscription.items.data
    const amount = form.get('items[0][price_data][unit_amount]')
    if (amount !== null) {
      const isItem = form.get('items[0][id]') === item.id
      if (!isItem || form.get('items[0][price_data][product]') !== item.price.product) return { status: 400, json: {} }
      item.price = { ...item.price, unit_amount: Number(amount) }
    }
    const cancels = form.get('cancel_at_period_end')
    if (cancels !== null) subscription.cancel_at_period_end = cancels === 'true'
    Object.assign(subscription.metadata, metadataOf(form))
    for (const [name, value] of Object.entries(subscription.metadata)) {
      if (value === '') delete subscription.metadata[name]
    }
    return { status: 200, json: subscription }
  }
  const pay = (invoice: StripeObject) => {
    const intent = `pi_${invoice.id}`
    Object.assign(invoice, { status: 'paid', amount_paid: invoice.amount_due, payment_intent_of_test: intent })
    const subscription = subscriptions.get(invoice.parent.subscription_details.subscription)
    if (subscription) subscription.status = 'active'
    const { id } = invoice
    intents.set(intent, {
      id: intent,
      object: 'payment_intent',
      currency: 'usd',
      status: 'succeeded',
      invoice: id,
      metadata: {},
    })
  }
  /** A month is 30 days here. */
  const seconds: Record<string, number> = { day: 86_400, week: 604_800, month: 2_592_000 }
  const bill: StandIn['bill'] = (id, { at, isPaid = true }) => {
    const subscription = subscriptions.get(id)
    if (!subscription) throw new Error(`there is no subscription ${id}`)
    const [item] = subscription.items.data
    const start = Math.floor(at / 1000)
    const end = start + (seconds[item.price.recurring.interval] ?? 0)
    const invoice = {
      id: `in_${invoices.size + 1}`,
      object: 'invoice',
      status: 'open',
      currency: 'usd',
      amount_due: item.price.unit_amount,
      amount_paid: 0,
      billing_reason: item.current_period_end === 0 ? 'subscription_create' : 'subscription_cycle',
      // The metadata of this moment: https://docs.stripe.com/api/invoices/object
      parent: { subscription_details: { subscription: id, metadata: { ...subscription.metadata } } },
      lines: { data: [{ period: { start, end } }] },
    }
    item.current_period_end = end
    invoices.set(invoice.id, invoice)
    if (isPaid) pay(invoice)
    else if (subscription.status !== 'incomplete') subscription.status = 'past_due'
    return invoice
  }
  const createSession = (form: URLSearchParams) => {
    if (form.get('mode') === 'subscription') return createSubscription(form)
    const id = `cs_test_${sessions.size + 1}`
    const intent = {
      id: `pi_s${sessions.size + 1}`,
      object: 'payment_intent',
      currency: 'usd',
      status: 'succeeded',
      amount_received: Number(form.get('line_items[0][price_data][unit_amount]')),
      customer: form.get('customer') ?? `cus_${id}`,
      payment_method: { id: `pm_${id}`, card: { brand: 'visa', last4: '4242' } },
      metadata: metadataOf(form, 'payment_intent_data[metadata]'),
      created,
    }
    intents.set(intent.id, intent)
    const json = {
      id,
      object: 'checkout.session',
      url: `https://checkout.stripe.test/${id}`,
      mode: 'payment',
      payment_status: 'paid',
      currency: 'usd',
      amount_total: intent.amount_received,
      payment_intent: intent.id,
      customer: intent.customer,
      metadata: metadataOf(form),
    }
    sessions.set(id, json)
    return { status: 200, json }
  }
  const makers: Record<string, (form: URLSearchParams) => { status: number; json: StripeObject }> = {
    '/v1/payment_intents': createIntent,
    '/v1/refunds': createRefund,
    '/v1/checkout/sessions': createSession,
  }

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    development: false,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      calls.push(`${request.method} ${pathname}`)
      if (request.method === 'POST') {
        // The first answer is repeated, server errors included: https://docs.stripe.com/api/idempotent_requests
        const key = request.headers.get('idempotency-key') ?? ''
        const body = await request.text()
        const first = replies.get(key)
        if (first && first.body !== body) {
          return Response.json({ error: { type: 'idempotency_error' } }, { status: 400 })
        }
        const subscription = subscriptions.get(pathname.slice('/v1/subscriptions/'.length))
        const make = subscription ? (form: URLSearchParams) => updateSubscription(subscription, form) : makers[pathname]
        const reply = first ?? make?.(new URLSearchParams(body)) ?? { status: 404, json: {} }
        replies.set(key, { body, ...reply })
        return Response.json(reply.json, { status: reply.status })
      }
      if (pathname === '/v1/payment_intents') {
        const customer = searchParams.get('customer')
        return Response.json({
          object: 'list',
          data: [...intents.values()].filter((each) => each.customer === customer),
        })
      }
      if (pathname === '/v1/refunds') {
        const intent = searchParams.get('payment_intent')
        return Response.json({
          object: 'list',
          data: [...refunds.values()].filter((each) => each.payment_intent === intent),
        })
      }
      if (pathname === '/v1/invoice_payments') {
        const invoice = intents.get(searchParams.get('payment[payment_intent]') ?? '')?.invoice
        return Response.json({ object: 'list', data: invoice ? [{ invoice }] : [] })
      }
      const [, , kind = '', id = ''] = pathname.split('/')
      const found = { payment_intents: intents, subscriptions, invoices }[kind]?.get(id)
      return found ? Response.json(found) : Response.json({ error: { code: 'resource_missing' } }, { status: 404 })
    },
  })
  return Object.assign(state, {
    ...{
      url: `http://127.0.0.1:${server.port}`,
      intents,
      refunds,
      sessions,
      subscriptions,
      invoices,
      calls,
      bill,
      pay,
    },
    forgetKeys: () => replies.clear(),
    async [Symbol.asyncDispose]() {
      await server.stop(true)
    },
  })
}

/** A request as Stripe would send it. */
export function signedEvent(
  { url, secret, nowMs }: { readonly url: string; readonly secret: string; readonly nowMs: number },
  event: object,
): Request {
  const body = JSON.stringify(event)
  const time = Math.floor(nowMs / 1000)
  const digest = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex')
  return new Request(url, { method: 'POST', headers: { 'stripe-signature': `t=${time},v1=${digest}` }, body })
}

let events = 0

export function eventOf(type: string, object: object, more: object = {}): object {
  return { id: `evt_${++events}`, object: 'event', type, livemode: false, data: { object }, ...more }
}
