// Card payments from the first one to the dispute: automatic top-ups, refunds, and what the ledger has after each, to the
// nano-dollar, also after kill -9 between any two steps.

import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { listAlerts } from '../../src/alerts/alerts.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createId, type PaymentId, type WorkspaceId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import { createLedger } from '../../src/ledger/create-ledger.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { listAudit } from '../../src/tenancy/audit.ts'
import { createEngine, forEachEngine, type Place, type TestEngine, testWith } from '../parts/engines.ts'
import { addWorkspace, createTestTimers, expectBooksRight, holdOf, openLedger, settlementOf } from '../parts/ledger.ts'
import { openPayments } from '../parts/payments.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { refusalOf } from '../parts/refused.ts'
import { eventOf, startStripe } from '../parts/stripe.ts'

const usd = (text: string) => BigInt(text.replace('.', '').padEnd(text.indexOf('.') + 9, '0')) as Nano
const hourMs = 3_600_000

async function spend(ledger: Ledger, workspaceId: WorkspaceId, amount: bigint): Promise<void> {
  const hold = holdOf(workspaceId, amount)
  expect(await ledger.hold(hold)).toMatchObject({ kind: 'held' })
  expect(await ledger.settle(settlementOf(hold.requestId, amount))).toMatchObject({ kind: 'settled', charge: amount })
}

/** A workspace that has paid $25.00 by card and saved it. */
async function setUp(engine: TestEngine) {
  const stripe = startStripe()
  const store = await engine.openStore()
  const { database } = store
  const workspaceId = await addWorkspace(database)
  const { ledger, clock, timers } = await openLedger(database)
  const opened = openPayments({ database, ledger, clock, stripeUrl: stripe.url })
  const { payments } = opened
  const session = await payments.checkout(workspaceId, {
    amount: usd('25.00'),
    savesCard: true,
    requestId: createId('req'),
  })
  const first = eventOf('checkout.session.completed', stripe.sessions.get(session.id) ?? {})
  const turnOn = (terms: { threshold?: string; amount?: string; monthMax?: string } = {}) =>
    database.transaction((sql) =>
      payments.autoTopUps.turnOn(sql, workspaceId, {
        threshold: usd(terms.threshold ?? '5.00'),
        amount: usd(terms.amount ?? '10.00'),
        monthMax: usd(terms.monthMax ?? '100.00'),
      }),
    )
  const alerts = async () => (await listAlerts(database.sql, { workspaceId, limit: 50 })).items
  return {
    ...{ stripe, database, workspaceId, ledger, clock, timers, ...opened, session, first, turnOn, alerts },
    posted: async () => (await ledger.wallet(workspaceId)).posted as bigint,
    state: () => payments.autoTopUps.read(database.sql, workspaceId),
    paymentsOf: (kind: string) =>
      database.sql<{ id: PaymentId; state: string; failure: string | null }>`SELECT id, state, failure FROM payments
        WHERE kind = ${kind} ORDER BY id`,
    refund: async (id: PaymentId, amount: string | undefined) => {
      const terms = { amount: amount === undefined ? undefined : usd(amount), reason: 'test' }
      const row = await database.transaction((sql) => payments.refunds.begin(sql, id, terms))
      return await payments.refunds.run(row.id)
    },
    async [Symbol.asyncDispose]() {
      await ledger.close()
      await store[Symbol.asyncDispose]()
      await stripe[Symbol.asyncDispose]()
    },
  }
}

forEachEngine((engine) => {
  const storeTest = testWith(() => setUp(engine))

  storeTest(
    'credits the first payment once and keeps its card, and an older event does not replace a newer card',
    async (setup) => {
      const { deliver, session, first, stripe, payments, workspaceId } = setup
      const states = async () => (await setup.paymentsOf('checkout')).map(({ id, state }) => `${id} ${state}`)
      expect(await states()).toEqual([`${session.payment_id} open`])
      expect(await refusalOf(setup.turnOn())).toMatchObject({ code: 'INVALID_REQUEST' })
      expect(await deliver(first)).toBe('200 credited')
      expect(await states()).toEqual([`${session.payment_id} paid`])
      expect(await setup.state()).toMatchObject({ isOn: false, card: 'visa 4242' })
      setup.clock.advance(1000)
      const terms = { amount: usd('1.00'), savesCard: true, requestId: createId('req') }
      const second = await payments.checkout(workspaceId, terms)
      const paid = stripe.sessions.get(second.id) ?? {}
      expect(paid.customer).toBe(stripe.sessions.get(session.id)?.customer)
      expect(await deliver(eventOf('checkout.session.completed', paid))).toBe('200 credited')
      expect(await deliver(first)).toBe('200 already_credited')
      const [row] = await setup.database.sql<{ payment_method: string }>`SELECT payment_method FROM auto_topups`
      expect(row?.payment_method).toBe(`pm_${second.id}`)
      expect(await setup.posted()).toBe(usd('26.00'))
      await expectBooksRight(setup.database)
    },
  )

  storeTest(
    'reconciles another amount, and refuses another currency and another installation, with an audit line',
    async (setup) => {
      const { deliver, stripe, session } = setup
      const object = stripe.sessions.get(session.id) ?? {}
      const elsewhere = { ...object, metadata: { ...object.metadata, tollgate_workspace_id: createId('ws') } }
      expect(await deliver(eventOf('checkout.session.completed', elsewhere))).toBe('200 ignored')
      const euros = { ...object, currency: 'eur' }
      expect(await deliver(eventOf('checkout.session.completed', euros))).toBe('200 not_credited')
      expect(await setup.posted()).toBe(0n)
      expect(await deliver(eventOf('checkout.session.completed', { ...object, amount_total: 2000 }))).toBe(
        '200 credited',
      )
      expect(await setup.posted()).toBe(usd('20.00'))
      const { items } = await listAudit(setup.database.sql, { limit: 10 })
      expect(items.map(({ action, details }) => [action, details.asked ?? details.why])).toEqual([
        ['wallet.topup', '25.00'],
        ['payment.refuse', 'wallets are in USD'],
      ])
    },
  )

  storeTest('tops up once below the threshold, whether by its own call, a round or an event', async (setup) => {
    const { deliver, first, stripe, payments, ledger, workspaceId } = setup
    await deliver(first)
    await setup.turnOn()
    await payments.round()
    expect(stripe.intents.size).toBe(1)
    await spend(ledger, workspaceId, usd('20.000000001'))
    await payments.round()
    await payments.round()
    // 25 − 20.000000001 + 10
    expect(await setup.posted()).toBe(14_999_999_999n)
    const intent = stripe.intents.get('pi_2')
    expect(intent).toMatchObject({ amount: 1000, currency: 'usd', status: 'succeeded' })
    expect(await deliver(eventOf('payment_intent.succeeded', intent ?? {}))).toBe('200 already_credited')
    // The payment intent of the session has no credit of its own.
    expect(await deliver(eventOf('payment_intent.succeeded', stripe.intents.get('pi_s1') ?? {}))).toBe('200 ignored')
    expect(await setup.posted()).toBe(14_999_999_999n)
    expect(await setup.state()).toMatchObject({ spentThisMonth: usd('10.00'), failures: 0 })
    await expectBooksRight(setup.database)
  })

  storeTest('credits a payment that takes days when its event comes, and begins no other meanwhile', async (setup) => {
    const { deliver, first, stripe, payments, ledger, workspaceId, clock } = setup
    await deliver(first)
    await setup.turnOn()
    await spend(ledger, workspaceId, usd('21.00'))
    stripe.card = 'processing'
    await payments.round()
    clock.advance(48 * hourMs)
    stripe.forgetKeys()
    await payments.round()
    expect(stripe.intents.size).toBe(2)
    const intent = { ...stripe.intents.get('pi_2'), status: 'succeeded', amount_received: 1000 }
    expect(await deliver(eventOf('payment_intent.succeeded', intent))).toBe('200 credited')
    expect(await setup.posted()).toBe(usd('14.00'))
  })

  storeTest(
    'looks for the payment after a server error, which Stripe repeats, and pays once under a new key',
    async (setup) => {
      const { deliver, first, stripe, payments, ledger, workspaceId, clock } = setup
      await deliver(first)
      await setup.turnOn()
      await spend(ledger, workspaceId, usd('21.00'))
      const minuteLater = async () => {
        clock.advance(61_000)
        // With a heartbeat: a replica that was silent for long is taken for dead.
        await setup.timers.round()
        await payments.round()
        return [stripe.intents.size - 1, await setup.posted()] as const
      }
      // Nothing was paid: each key is used up by its first answer.
      stripe.card = 'server error'
      await payments.round()
      expect(await minuteLater()).toEqual([0, usd('4.00')])
      // Stripe has the payment, and its answer was an error.
      stripe.card = 'server error after the payment'
      expect(await minuteLater()).toEqual([1, usd('4.00')])
      stripe.card = 'succeeds'
      expect(await minuteLater()).toEqual([1, usd('14.00')])
      await spend(ledger, workspaceId, usd('10.00'))
      stripe.card = 'server error'
      expect(await minuteLater()).toEqual([1, usd('4.00')])
      stripe.card = 'succeeds'
      expect(await minuteLater()).toEqual([2, usd('14.00')])
      expect(await minuteLater()).toEqual([2, usd('14.00')])
      expect((await setup.paymentsOf('automatic')).map(({ state }) => state)).toEqual(['paid', 'paid'])
      expect(await setup.state()).toMatchObject({ failures: 0, isOn: true })
      await expectBooksRight(setup.database)
    },
  )

  storeTest('pays with a card that was saved after a server error under the same payment', async (setup) => {
    const { deliver, first, stripe, payments, ledger, workspaceId, clock, database } = setup
    await deliver(first)
    await setup.turnOn()
    await spend(ledger, workspaceId, usd('21.00'))
    stripe.card = 'server error'
    await payments.round()
    // As if the process had died before it knew the answer.
    await database.transaction((sql) => sql`UPDATE payments SET failed_keys = 0`)
    await database.transaction((sql) => sql`UPDATE auto_topups SET payment_method = 'pm_new'`)
    stripe.card = 'succeeds'
    for (const intents of [1, 2, 2]) {
      clock.advance(61_000)
      await payments.round()
      expect(stripe.intents.size).toBe(intents)
    }
    expect(await setup.posted()).toBe(usd('14.00'))
    expect(await setup.alerts()).toEqual([])
  })

  storeTest('stops after three declines, each with an alert, and keeps to the monthly cap', async (setup) => {
    const { deliver, first, stripe, payments, ledger, workspaceId, clock } = setup
    await deliver(first)
    await setup.turnOn({ monthMax: '15.00' })
    await spend(ledger, workspaceId, usd('24.00'))
    stripe.card = 'declines'
    for (const failures of [1, 2, 3]) {
      await payments.round()
      await payments.round()
      expect(await setup.state()).toMatchObject({ failures, isOn: failures < 3 })
      clock.advance(hourMs + 1)
    }
    await payments.round()
    expect((await setup.paymentsOf('automatic')).map(({ state }) => state)).toEqual(['failed', 'failed', 'failed'])
    const why = 'the payment was declined (insufficient_funds)'
    expect(await setup.state()).toMatchObject({ stopped: why })
    expect((await setup.alerts()).map(({ kind, data }) => [kind, data.is_off])).toEqual([
      ['topup.failed', true],
      ['topup.failed', false],
      ['topup.failed', false],
    ])
    expect(await setup.posted()).toBe(usd('1.00'))
    stripe.card = 'succeeds'
    await setup.turnOn({ monthMax: '15.00', threshold: '20.00' })
    await payments.round()
    expect(await setup.posted()).toBe(usd('11.00'))
    // $10 of $15 are used; another $10 would be too much. One alert says so.
    await payments.round()
    await payments.round()
    expect(await setup.posted()).toBe(usd('11.00'))
    const [latest, ...earlier] = await setup.alerts()
    expect([latest?.message, earlier.length]).toEqual([expect.stringContaining('$15.00 a month is used up'), 3])
  })

  storeTest('stops at once if the bank wants a confirmation, or the card is gone', async (setup) => {
    const { deliver, first, stripe, payments, ledger, workspaceId } = setup
    await deliver(first)
    await spend(ledger, workspaceId, usd('24.00'))
    for (const [card, why] of [
      ['authentication', 'confirm each payment'],
      ['missing', 'the saved card was removed'],
    ] as const) {
      stripe.card = card
      setup.clock.advance(hourMs + 1)
      await setup.turnOn()
      await payments.round()
      expect(await setup.state()).toMatchObject({ isOn: false, stopped: expect.stringContaining(why) })
    }
    await setup.turnOn()
    expect(await deliver(eventOf('payment_method.detached', { id: `pm_${setup.session.id}` }))).toBe('200 ignored')
    expect(await setup.state()).toMatchObject({ isOn: false, card: undefined, stopped: 'the saved card was removed' })
    expect(await setup.alerts()).toHaveLength(3)
    expect(await setup.posted()).toBe(usd('1.00'))
  })

  storeTest(
    'refunds what the wallet has through Stripe, gives it back if Stripe refuses, and never goes below zero',
    async (setup) => {
      const { deliver, first, stripe, ledger, workspaceId, clock } = setup
      await deliver(first)
      const [payment] = await setup.paymentsOf('checkout')
      const id = payment?.id ?? 'pay_'
      expect(await setup.refund(id, '5.00')).toMatchObject({ state: 'done' })
      expect(await setup.posted()).toBe(usd('20.00'))
      // The event of our own refund takes nothing again, also twice.
      const made = stripe.refunds.get('re_1') ?? {}
      expect(await deliver(eventOf('refund.created', made))).toBe('200 already_corrected')
      await spend(ledger, workspaceId, usd('8.000000003'))
      expect(await refusalOf(setup.refund(id, '12.00'))).toMatchObject({ code: 'INSUFFICIENT_BALANCE' })
      expect(await refusalOf(setup.refund(id, '20.01'))).toMatchObject({ code: 'INVALID_REQUEST' })
      stripe.refundStatus = 400
      expect(await setup.refund(id, '3.00')).toMatchObject({ state: 'failed' })
      expect(await setup.posted()).toBe(11_999_999_997n)
      // Not confirmed: taken from the wallet, and continued by a round.
      stripe.refundStatus = 500
      expect(await setup.refund(id, '1.00')).toMatchObject({ state: 'open' })
      stripe.refundStatus = 200
      clock.advance(61_000)
      await setup.payments.round()
      expect([stripe.refunds.size, await setup.posted()]).toEqual([2, 10_999_999_997n])
      // A refund that fails later comes back.
      expect(await deliver(eventOf('refund.failed', made))).toBe('200 corrected')
      expect(await deliver(eventOf('refund.failed', made))).toBe('200 already_corrected')
      expect(await setup.posted()).toBe(15_999_999_997n)
      await expectBooksRight(setup.database)
    },
  )

  storeTest(
    'takes a refund of the dashboard and a dispute as far as the wallet has it, and gives back what was won',
    async (setup) => {
      const { deliver, first, ledger, workspaceId, database } = setup
      const money = { payment_intent: 'pi_s1', currency: 'usd' }
      const refund = eventOf('refund.created', { id: 're_dashboard', amount: 1000, ...money })
      // Before its payment it has to wait.
      expect(await deliver(refund)).toBe('503')
      await deliver(first)
      expect(await deliver(refund)).toBe('200 corrected')
      expect(await deliver(refund)).toBe('200 already_corrected')
      expect(await setup.posted()).toBe(usd('15.00'))
      await setup.turnOn()
      await spend(ledger, workspaceId, usd('9.000000001'))
      const dispute = { id: 'du_1', amount: 1500, ...money }
      const won = eventOf('charge.dispute.funds_reinstated', dispute)
      expect(await deliver(won)).toBe('503')
      expect(await deliver(eventOf('charge.dispute.funds_withdrawn', dispute))).toBe('200 corrected')
      // 5.999999999 were left; the rest of the 15 is lost.
      expect(await setup.posted()).toBe(0n)
      const writtenOff = () =>
        database.sql<{ debit_account: string; amount: bigint }>`SELECT debit_account, amount FROM fundings
        WHERE kind = 'writeoff' ORDER BY id`
      expect(await writtenOff()).toEqual([{ debit_account: 'writeoff', amount: 9_000_000_001n }])
      expect(await setup.state()).toMatchObject({ isOn: false, stopped: 'a payment was disputed' })
      await expectBooksRight(database)
      expect(await deliver(won)).toBe('200 corrected')
      expect(await deliver(won)).toBe('200 already_corrected')
      expect(await setup.posted()).toBe(5_999_999_999n)
      expect(await writtenOff()).toHaveLength(2)
      expect((await writtenOff())[1]).toEqual({ debit_account: 'funding', amount: 9_000_000_001n })
      // Of payments that are not Tollgate's.
      expect(
        await deliver(eventOf('refund.created', { ...money, id: 're_9', amount: 1, payment_intent: 'pi_9' })),
      ).toBe('200 ignored')
      await expectBooksRight(database)
    },
  )

  test('after kill -9 between any two steps there is one payment, one refund, and the right balance', async () => {
    // A process is slow to start, and the steps are the same: PostgreSQL gets every third.
    for (let passes = 0; ; passes += engine.name === 'postgres' ? 3 : 1) {
      const stripe = startStripe()
      const place = await preparedPlace(engine)
      const died = await runChild(place, stripe.url, String(passes))
      // A minute later, when the lease of the process that died is over.
      if (died) expect(await runChild(place, stripe.url, '', '61000')).toBe(false)
      await using after = await openAfter(place)
      const automatic = [...stripe.intents.values()]
      expect([passes, automatic.length, stripe.refunds.size]).toEqual([passes, 1, 1])
      // 4.999999999 + 10 − 4
      expect([passes, after.posted]).toEqual([passes, 10_999_999_999n])
      await expectBooksRight(after.database)
      await stripe[Symbol.asyncDispose]()
      place[Symbol.dispose]()
      if (!died) {
        expect(passes).toBeGreaterThan(5)
        break
      }
    }
  })
})

/** A funded workspace with a saved card, below its threshold. */
async function preparedPlace(engine: TestEngine): Promise<Place> {
  const { place, database } = await engine.openStore()
  const workspaceId = await addWorkspace(database)
  const ledger = await createLedger({ database, clock: systemClock, timers: createTestTimers() })
  await ledger.fund({ workspaceId, amount: 4_999_999_999n as Nano, kind: 'topup' })
  await ledger.close()
  const row = { workspace_id: workspaceId, is_on: 1n, threshold: usd('5.00'), amount: usd('10.00') }
  const card = { month_max: usd('100.00'), customer: 'cus_1', payment_method: 'pm_1', card: 'visa 4242' }
  await database.transaction((sql) => sql`INSERT INTO auto_topups ${sql([{ ...row, ...card }])}`)
  await database.close()
  return place
}

/** Whether it was killed. */
async function runChild(place: Place, stripeUrl: string, passes: string, laterMs = '0'): Promise<boolean> {
  const script = join(import.meta.dir, '../parts/payments-child.ts')
  const child = Bun.spawn([process.execPath, script, place.url ?? '', place.dataFolder, stripeUrl, passes, laterMs], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  await child.exited
  if (child.signalCode === null) expect(child.exitCode).toBe(0)
  return child.signalCode === 'SIGKILL'
}

async function openAfter(place: Place) {
  const database = await openDatabase(place)
  const [row] = await database.sql<{ posted: bigint }>`SELECT posted FROM balances`
  return { database, posted: row?.posted, [Symbol.asyncDispose]: () => database.close() }
}

describe('three replicas', () => {
  test.skipIf(findPostgresPrograms() === undefined)('a burst that crosses the threshold tops up once', async () => {
    await using stripe = startStripe()
    using place = await preparedPlace(createEngine('postgres'))
    const replicas = await Promise.all(
      [1, 2, 3].map(async () => {
        const database = await openDatabase(place)
        const ledger = await createLedger({ database, clock: systemClock, timers: createTestTimers() })
        return { database, ledger, ...openPayments({ database, ledger, clock: systemClock, stripeUrl: stripe.url }) }
      }),
    )
    const [one] = replicas
    if (!one) throw new Error('there are three')
    const [row] = await one.database.sql<{ id: WorkspaceId }>`SELECT id FROM workspaces`
    const workspaceId = row?.id ?? 'ws_'
    // Above the threshold first: 4.999999999 + 1.
    await one.ledger.fund({ workspaceId, amount: usd('1.00'), kind: 'topup' })
    await Promise.all(
      replicas.map(async ({ ledger, payments }) => {
        for (let each = 0; each < 10; each++) {
          await spend(ledger, workspaceId, 100_000_000n)
          await payments.round()
        }
      }),
    )
    await Promise.all(replicas.map(({ payments }) => payments.round()))
    expect(stripe.intents.size).toBe(1)
    // 5.999999999 − 30 × 0.1 + 10
    expect((await one.ledger.wallet(workspaceId)).posted as bigint).toBe(12_999_999_999n)
    await expectBooksRight(one.database)
    for (const { database, ledger } of replicas) {
      await ledger.close()
      await database.close()
    }
  })
})
