// Plans that are paid for by a subscription at Stripe: credit follows payment, however the events arrive. Expectations are worked
// out by hand; time passes only when the test says so.

import { expect } from 'bun:test'
import { createId, type WorkspaceId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import { listCredits } from '../../src/ledger/credit.ts'
import { readSubscription } from '../../src/ledger/plan-payments.ts'
import { type Plan, putPlan, readWorkspacePlan, setWorkspacePlan, workspacesWith } from '../../src/ledger/plans.ts'
import { verify } from '../../src/ledger/verify.ts'
import { listAudit } from '../../src/tenancy/audit.ts'
import { forEachEngine, type TestEngine, testWith } from '../parts/engines.ts'
import { addWorkspace, expectBooksRight, holdOf, settlementOf } from '../parts/ledger.ts'
import { openPayments } from '../parts/payments.ts'
import { refusalOf } from '../parts/refused.ts'
import { openSteppedBooks } from '../parts/stepped-books.ts'
import { eventOf, type StripeObject, startStripe } from '../parts/stripe.ts'

const cent = 10_000_000n
const dayMinutes = 24 * 60

const planOf = (id: string, more: Partial<Plan> = {}): Plan => ({
  ...{ id, name: id, credit: (2000n * cent) as Nano, period: 'month', expiresDays: undefined },
  price: (1500n * cent) as Nano,
  ...more,
})

/** A workspace with $1.00, and the plans pro ($20 for $15 a month), max ($50 for $40) and weekly. */
async function setUp(engine: TestEngine) {
  const stripe = startStripe()
  const books = await openSteppedBooks(engine, 100n * cent)
  const { database, workspaceId, replicas } = books
  const [first] = replicas
  if (!first) throw new Error('no replica is open')
  const { ledger, clock } = first
  const opened = openPayments({ database, ledger, clock, stripeUrl: stripe.url })
  const { subscriptions } = opened.payments
  if (!subscriptions) throw new Error('payments are configured')
  const plans = {
    pro: planOf('pro'),
    max: planOf('max', { credit: (5000n * cent) as Nano, price: (4000n * cent) as Nano }),
    weekly: planOf('weekly', { period: 'week', expiresDays: 3 }),
  }
  await database.transaction(async (sql) => {
    for (const plan of Object.values(plans)) await putPlan(sql, plan, 0)
  })
  const choose = (plan: Plan, id: WorkspaceId = workspaceId) => subscriptions.choose(id, plan, createId('req'))
  const newest = () => [...stripe.subscriptions.keys()].at(-1) ?? ''
  return {
    ...{ stripe, books, database, workspaceId, ledger, subscriptions, plans, choose, newest, ...opened },
    cancel: () => subscriptions.cancel(workspaceId, createId('req')),
    /** Pays the next period, or refuses to. */
    bill: (isPaid = true, id = newest()) => stripe.bill(id, { at: books.minute() * 60_000, isPaid }),
    tell: (type: string, object: StripeObject) => opened.deliver(eventOf(type, { id: object.id })),
    /** `balance plan:remaining …` in cents. */
    async money() {
      const { posted } = await ledger.wallet(workspaceId)
      const credits = await listCredits(database.sql, workspaceId)
      await expectBooksRight(database)
      // Those that expire at the same time have no order of their own.
      const left = credits.map(({ planId, remaining }) => `${planId}:${remaining / cent}`).sort()
      return [posted / cent, ...left].join(' ')
    },
    async spend(cents: bigint) {
      const hold = holdOf(workspaceId, cents * cent)
      expect(await ledger.hold(hold)).toMatchObject({ kind: 'held' })
      expect(await ledger.settle(settlementOf(hold.requestId, cents * cent))).toMatchObject({ kind: 'settled' })
    },
    subscription: () => readSubscription(database.sql, workspaceId),
    async [Symbol.asyncDispose]() {
      await books[Symbol.asyncDispose]()
      await stripe[Symbol.asyncDispose]()
    },
  }
}

forEachEngine((engine) => {
  const storeTest = testWith(() => setUp(engine))

  storeTest('a payment grants the credit of its period once, and the next one renews it', async (setup) => {
    const { books, money, bill, tell, choose, plans, deliver } = setup
    expect((await choose(plans.pro)).url).toStartWith('https://checkout.stripe.test/')
    const invoice = bill(false)
    // Nothing is granted before it is paid, also if the event says so.
    expect(await tell('invoice.paid', invoice)).toBe('200 ignored')
    expect([await money(), await setup.subscription()]).toEqual(['100', undefined])
    setup.stripe.pay(invoice)
    // Twice at once, and again later.
    const paid = eventOf('invoice.paid', { id: invoice.id })
    expect((await Promise.all([deliver(paid), deliver(paid)])).sort()).toEqual(['200 already_credited', '200 credited'])
    expect(await money()).toBe('2100 pro:2000')
    expect(await setup.subscription()).toMatchObject({ planId: 'pro', state: 'active', isEnding: false })
    await setup.spend(300n)
    await books.pass(29 * dayMinutes)
    expect(await tell('invoice.paid', invoice)).toBe('200 already_credited')
    expect(await money()).toBe('1800 pro:1700')
    await books.pass(dayMinutes)
    // The period is over and not paid yet: the rest has expired.
    expect(await money()).toBe('100')
    expect(await tell('invoice.paid', bill())).toBe('200 credited')
    expect(await money()).toBe('2100 pro:2000')
    const { items } = await listAudit(setup.database.sql, { limit: 10 })
    expect(items.filter(({ action }) => action === 'plan.pay')).toHaveLength(2)
  })

  storeTest(
    'a failed payment grants nothing until it is paid, and credit that is paid late lives a period',
    async (setup) => {
      const { books, money, bill, tell, choose, plans, stripe } = setup
      await choose(plans.pro)
      expect(await tell('invoice.paid', bill())).toBe('200 credited')
      await books.pass(30 * dayMinutes)
      const failed = bill(false)
      expect(await tell('invoice.payment_failed', failed)).toBe('200 ignored')
      expect([await money(), (await setup.subscription())?.state]).toEqual(['100', 'past_due'])
      await books.pass(31 * dayMinutes)
      stripe.pay(failed)
      expect(await tell('invoice.paid', failed)).toBe('200 credited')
      expect([await money(), (await setup.subscription())?.state]).toEqual(['2100 pro:2000', 'active'])
      await books.pass(29 * dayMinutes)
      expect(await money()).toBe('2100 pro:2000')
      await books.pass(dayMinutes)
      expect(await money()).toBe('100')
    },
  )

  storeTest(
    'a cancelled subscription keeps what is paid, and another plan begins with the next payment',
    async (setup) => {
      const { books, money, bill, tell, choose, plans, stripe, newest } = setup
      await choose(plans.pro)
      await tell('invoice.paid', bill())
      expect(await choose(plans.max)).toEqual({ url: null })
      expect([await money(), (await setup.subscription())?.planId]).toEqual(['2100 pro:2000', 'max'])
      // What the operator changes now is for those who subscribe later.
      await setup.database.transaction((sql) => putPlan(sql, { ...plans.max, credit: cent as Nano }, 0))
      await books.pass(30 * dayMinutes)
      await tell('invoice.paid', bill())
      expect(await money()).toBe('5100 max:5000')
      expect([...stripe.invoices.values()].map(({ amount_paid }) => amount_paid)).toEqual([1500, 4000])
      expect(await refusalOf(choose(plans.weekly))).toMatchObject({ code: 'INVALID_REQUEST', facts: { param: 'plan' } })
      await setup.cancel()
      expect(await setup.subscription()).toMatchObject({ isEnding: true })
      // Choosing a plan takes the cancellation back.
      await choose(plans.pro)
      expect(await setup.subscription()).toMatchObject({ isEnding: false, planId: 'pro' })
      await setup.cancel()
      await books.pass(30 * dayMinutes)
      Object.assign(stripe.subscriptions.get(newest()) ?? {}, { status: 'canceled' })
      expect(await tell('customer.subscription.deleted', { id: newest() })).toBe('200 ignored')
      expect([await money(), await setup.subscription()]).toEqual(['100', undefined])
      expect(await refusalOf(setup.cancel())).toMatchObject({ code: 'NOT_FOUND' })
    },
  )

  storeTest('events that arrive late, in the wrong order or forged leave what Stripe says', async (setup) => {
    const { money, bill, tell, choose, plans, stripe, newest, deliver } = setup
    await choose(plans.pro)
    const invoice = bill()
    Object.assign(stripe.subscriptions.get(newest()) ?? {}, { status: 'canceled' })
    expect(await tell('customer.subscription.deleted', { id: newest() })).toBe('200 ignored')
    expect(await tell('invoice.paid', invoice)).toBe('200 credited')
    // It was paid for, and there is no subscription any more.
    expect([await money(), await setup.subscription()]).toEqual(['2100 pro:2000', undefined])
    expect(await tell('customer.subscription.updated', { id: newest() })).toBe('200 ignored')
    expect(await setup.subscription()).toBe(undefined)
    // The end of one that nobody told of does not stand in the way of the next.
    await choose(plans.pro)
    const [lost] = [newest(), await tell('invoice.paid', bill())]
    Object.assign(stripe.subscriptions.get(lost) ?? {}, { status: 'canceled' })
    expect((await choose(plans.max)).url).toStartWith('https://')
    expect(await tell('invoice.paid', bill())).toBe('200 credited')
    expect(await setup.subscription()).toMatchObject({ id: newest(), planId: 'max' })
    expect(await money()).toBe('9100 max:5000 pro:2000 pro:2000')

    const forged = { ...invoice, id: 'in_of_nobody', status: 'paid', amount_paid: 1500 }
    expect(await deliver(eventOf('invoice.paid', forged))).toBe('200 ignored')
    expect(await deliver(eventOf('invoice.paid', { id: '../refunds' }))).toBe('400')
    const change = { id: 'in_change', billing_reason: 'subscription_update' }
    stripe.invoices.set('in_change', { ...invoice, ...change })
    expect(await tell('invoice.paid', { id: 'in_change' })).toBe('200 not_credited')
    const details = { ...invoice.parent.subscription_details, metadata: { tollgate_workspace_id: setup.workspaceId } }
    stripe.invoices.set('in_bare', { ...invoice, id: 'in_bare', parent: { subscription_details: details } })
    expect(await tell('invoice.paid', { id: 'in_bare' })).toBe('200 not_credited')
    expect(await money()).toBe('9100 max:5000 pro:2000 pro:2000')
    // Stripe cannot say what an invoice is: it sends the event again.
    stripe.invoices.set('in_broken', { id: 'in_broken' })
    expect(await tell('invoice.paid', { id: 'in_broken' })).toBe('503')
  })

  storeTest('two subscriptions and a plan of the operator end in one plan, and nothing paid is lost', async (setup) => {
    const { database, workspaceId, money, bill, tell, choose, plans, stripe, books } = setup
    await choose(plans.pro)
    await choose(plans.max)
    const [pro = '', max = ''] = stripe.subscriptions.keys()
    await database.transaction((sql) => setWorkspacePlan(sql, workspaceId, 'weekly'))
    await books.pass(1)
    await tell('invoice.paid', bill(true, pro))
    await tell('invoice.paid', bill(true, max))
    const credits = await listCredits(database.sql, workspaceId)
    expect(credits.map(({ planId }) => planId).sort()).toEqual(['max', 'pro', 'weekly'])
    expect((await setup.subscription())?.id).toBe(pro)
    expect(stripe.subscriptions.get(max)).toMatchObject({ cancel_at_period_end: true })
    expect((await readWorkspacePlan(database.sql, workspaceId))?.nextPlanId).toBe(undefined)
    await money()
    // A workspace with a plan of the operator's does not subscribe.
    const other = await addWorkspace(database)
    await database.transaction((sql) => setWorkspacePlan(sql, other, 'weekly'))
    expect(await refusalOf(choose(plans.pro, other))).toMatchObject({
      code: 'INVALID_REQUEST',
      facts: { param: 'plan' },
    })
    const cheap = planOf('cheap', { price: 1n as Nano })
    expect(await refusalOf(choose(cheap, other))).toMatchObject({ facts: { param: 'price' } })
    expect(await refusalOf(choose(planOf('free', { price: undefined }), other))).toMatchObject({
      facts: { param: 'plan' },
    })
    expect(await workspacesWith(database.sql, 'pro')).toEqual([workspaceId])
  })

  storeTest('money that went back ends what remains of its credit, and what was spent stays spent', async (setup) => {
    const { money, bill, tell, choose, plans, deliver, spend } = setup
    await choose(plans.pro)
    const invoice = bill()
    await tell('invoice.paid', invoice)
    await spend(300n)
    const refund = (amount: number) => ({
      id: `re_${amount}`,
      payment_intent: `pi_${invoice.id}`,
      currency: 'usd',
      amount,
    })
    expect(await deliver(eventOf('refund.created', refund(100)))).toBe('200 ignored')
    expect(await money()).toBe('1800 pro:1700')
    expect(await deliver(eventOf('refund.created', refund(1500)))).toBe('200 corrected')
    expect(await money()).toBe('100')
    expect(await tell('invoice.paid', invoice)).toBe('200 already_credited')
    expect(await money()).toBe('100')
    expect((await verify(setup.database)).findings).toEqual([])
  })
})
