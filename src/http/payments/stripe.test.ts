import { expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { forEachEngine, type TestEngine, testWith } from '../../../test/parts/engines.ts'
import { received, responseOf } from '../../../test/parts/http.ts'
import { addWorkspace, expectBooksRight, openLedger } from '../../../test/parts/ledger.ts'
import { openaiChat } from '../../dialects/openai-chat/index.ts'
import { systemClock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/failure.ts'
import { createId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import { Secret } from '../../kernel/secret.ts'
import { unavailable } from '../../ledger/account.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Database } from '../../store/database.ts'
import type { Log, LogFields } from '../../telemetry/log.ts'
import { listAudit } from '../../tenancy/audit.ts'
import { createStripePayments, type StripePaymentsOptions, webhookPath } from './stripe.ts'

const unused = () => {
  throw new Error('nothing is asked of it at the start')
}

function create(settings: Partial<StripePaymentsOptions>) {
  const logged: string[] = []
  const say = (message: string) => void logged.push(message)
  const payments = createStripePayments({
    database: { sql: unused, transaction: unused } as unknown as Database,
    ledger: { fund: unused, correct: unused, renewPlans: unused },
    clock: systemClock,
    raising: () => ({ now: systemClock.now(), mail: undefined }),
    log: { info: say, warn: say, error: say, line() {}, flush() {} },
    renderFailure: (failure) => failure.message,
    onDefect: () => new Failure('INTERNAL', 'Tollgate failed.'),
    publicUrl: () => 'https://gate.example/',
    ...settings,
  })
  return { payments, logged }
}

test('offers no payments without a webhook secret', () => {
  expect(create({})).toEqual({ payments: undefined, logged: [] })
})

test.each(['', '   ', '\n'])('treats a webhook secret of %p as absent', (text) => {
  expect(create({ webhookSecret: new Secret(text) }).payments).toBeUndefined()
})

test('offers no payments with a secret key alone, and logs what is missing', () => {
  const { payments, logged } = create({ secretKey: new Secret('sk_live_1') })
  expect(payments).toBeUndefined()
  expect(logged).toEqual([expect.stringContaining('STRIPE_WEBHOOK_SECRET is not set')])
})

test('offers no payments with a webhook secret that can be guessed', () => {
  const { payments, logged } = create({ webhookSecret: new Secret('whsec_901234567') })
  expect(payments).toBeUndefined()
  expect(logged).toEqual([expect.stringContaining('fewer than 16 characters')])
  expect(create({ webhookSecret: new Secret('whsec_9012345678') }).payments).toBeDefined()
})

const secret = 'whsec_of_the_test_endpoint'

interface Delivery {
  readonly event?: object
  readonly secret?: string
  /** Seconds before now. */
  readonly ageSeconds?: number
  /** What is sent instead of what was signed. */
  readonly sentBody?: string | ReadableStream<Uint8Array>
  readonly headers?: Record<string, string>
}

/** Events as Stripe would sign and send them; `wrap` stands in for the real ledger. */
async function setUp(engine: TestEngine, wrap: (ledger: Ledger) => Partial<Ledger> = (ledger) => ledger) {
  const store = await engine.openStore()
  const { database } = store
  const workspaceId = await addWorkspace(database)
  const { ledger, clock } = await openLedger(database)
  const lines: { level: string; message: string; fields: LogFields | undefined }[] = []
  const say = (level: string) => (message: string, fields?: LogFields) => void lines.push({ level, message, fields })
  const log: Log = { info: say('info'), warn: say('warn'), error: say('error'), line() {}, flush() {} }
  const defects: unknown[] = []
  const options: StripePaymentsOptions = {
    database,
    ledger: { ...ledger, ...wrap(ledger) },
    clock,
    log,
    raising: () => ({ now: clock.now(), mail: undefined }),
    renderFailure: openaiChat.renderFailure,
    onDefect(error) {
      defects.push(error)
      return new Failure('INTERNAL', 'Tollgate failed.')
    },
    secretKey: new Secret('sk_live_0123456789'),
    webhookSecret: new Secret(secret),
    publicUrl: () => 'https://gate.example',
  }
  const payments = createStripePayments(options)
  if (!payments) throw new Error('payments are configured')
  const deliver = async (delivery: Delivery = {}) => {
    const body = JSON.stringify(delivery.event ?? completed(workspaceId))
    const time = Math.floor(clock.now() / 1000) - (delivery.ageSeconds ?? 0)
    const digest = createHmac('sha256', delivery.secret ?? secret)
      .update(`${time}.${body}`)
      .digest('hex')
    const headers = { 'stripe-signature': `t=${time},v1=${digest}`, ...delivery.headers }
    const sent = { method: 'POST', headers, body: delivery.sentBody ?? body }
    const response = responseOf(await payments.webhook(received(new Request(`http://gate${webhookPath}`, sent))))
    expect(response.headers.get('x-request-id')).toMatch(/^req_/)
    return { status: response.status, headers: response.headers, body: (await response.json()) as { outcome?: string } }
  }
  return {
    database,
    ledger,
    clock,
    workspaceId,
    lines,
    defects,
    payments,
    deliver,
    posted: async () => (await ledger.wallet(workspaceId)).posted as bigint,
    async [Symbol.asyncDispose]() {
      await ledger.close()
      await store[Symbol.asyncDispose]()
    },
  }
}

/** $25.00 to the workspace. */
function completed(workspaceId: string, session: object = {}, event: object = {}) {
  const object = {
    id: 'cs_live_a1',
    mode: 'payment',
    payment_status: 'paid',
    currency: 'usd',
    amount_total: 2500,
    payment_intent: 'pi_1',
    metadata: { tollgate_workspace_id: workspaceId },
    ...session,
  }
  return { id: 'evt_1', type: 'checkout.session.completed', livemode: true, data: { object }, ...event }
}

const dollars25 = 25_000_000_000n

forEachEngine((engine) => {
  const storeTest = testWith(() => setUp(engine))

  storeTest('credits a paid session, with a transfer that names the payment and an audit entry', async (setup) => {
    expect(await setup.deliver()).toMatchObject({ status: 200, body: { received: true, outcome: 'credited' } })
    expect(await setup.posted()).toBe(dollars25)
    const { transfers } = await setup.ledger.transfers(setup.workspaceId, { limit: 10 })
    expect(transfers).toMatchObject([{ kind: 'topup', paymentId: 'cs_live_a1', reference: 'Stripe pi_1' }])
    const { items } = await listAudit(setup.database.sql, { limit: 10 })
    expect(items).toMatchObject([
      { actor: 'stripe', action: 'wallet.topup', object: setup.workspaceId, details: { amount: '25.00' } },
    ])
    expect(setup.defects).toEqual([])
    await expectBooksRight(setup.database)
  })

  storeTest('credits once for ten simultaneous deliveries and a late one', async (setup) => {
    const replies = await Promise.all(Array.from({ length: 10 }, () => setup.deliver()))
    expect(replies.map(({ status }) => status)).toEqual(Array(10).fill(200))
    expect(replies.map(({ body }) => body.outcome).sort()).toEqual([...Array(9).fill('already_credited'), 'credited'])
    setup.clock.advance(30 * 24 * 60 * 60_000)
    expect(await setup.deliver()).toMatchObject({ status: 200, body: { outcome: 'already_credited' } })
    expect(await setup.posted()).toBe(dollars25)
    const { items } = await listAudit(setup.database.sql, { limit: 10 })
    expect(items).toHaveLength(1)
    await expectBooksRight(setup.database)
  })

  storeTest('writes the audit entry of an interrupted delivery at the next one', async (setup) => {
    const { database, ledger, workspaceId } = setup
    const payment = { amount: dollars25 as Nano, paymentId: 'cs_live_a1', reference: 'Stripe pi_1' }
    await ledger.fund({ workspaceId, kind: 'topup', ...payment })
    expect(await setup.deliver()).toMatchObject({ status: 200, body: { outcome: 'already_credited' } })
    expect(await setup.posted()).toBe(dollars25)
    const { items } = await listAudit(database.sql, { limit: 10 })
    const details = { amount: '25.00', payment: 'cs_live_a1', repeated: true }
    expect(items).toMatchObject([{ actor: 'stripe', action: 'wallet.topup', object: workspaceId, details }])
  })

  storeTest('credits a session that is paid later, once for both of its events', async (setup) => {
    const unpaid = completed(setup.workspaceId, { payment_status: 'unpaid' })
    expect(await setup.deliver({ event: unpaid })).toMatchObject({ status: 200, body: { outcome: 'ignored' } })
    expect(await setup.posted()).toBe(0n)
    const paid = completed(setup.workspaceId, {}, { id: 'evt_2', type: 'checkout.session.async_payment_succeeded' })
    expect(await setup.deliver({ event: paid })).toMatchObject({ body: { outcome: 'credited' } })
    expect(await setup.deliver()).toMatchObject({ body: { outcome: 'already_credited' } })
    expect(await setup.posted()).toBe(dollars25)
  })

  storeTest('accepts what a retry cannot fix, credits nothing, and logs an error', async (setup) => {
    const other = await addWorkspace(setup.database)
    await setup.deliver()
    const cases: readonly [event: object, why: string][] = [
      [completed(createId('ws'), { id: 'cs_live_b' }), 'there is no such workspace'],
      [completed(other), 'credited before'],
      [completed(setup.workspaceId, { amount_total: 2501 }), 'credited before'],
      [completed(setup.workspaceId, { id: 'cs_live_c', currency: 'jpy' }), 'wallets are in USD'],
      [completed(setup.workspaceId, { id: 'cs_live_d', amount_total: 0 }), 'positive whole number of cents'],
      // A cent more than the million dollars of one transfer.
      [completed(setup.workspaceId, { id: 'cs_live_e', amount_total: 100_000_001 }), 'would exceed 1000000.00'],
    ]
    for (const [event, why] of cases) {
      setup.lines.length = 0
      expect(await setup.deliver({ event })).toMatchObject({ status: 200, body: { outcome: 'not_credited' } })
      expect(setup.lines).toMatchObject([{ level: 'error', message: expect.stringContaining(why) }])
    }
    expect(await setup.posted()).toBe(dollars25)
    expect((await setup.ledger.wallet(other)).posted as bigint).toBe(0n)
    expect(setup.defects).toEqual([])
    await expectBooksRight(setup.database)
  })

  test('asks Stripe to retry while the ledger cannot commit, and credits at the next delivery', async () => {
    let works = false
    await using setup = await setUp(engine, (ledger) => ({
      fund: async (funding) => (works ? await ledger.fund(funding) : unavailable),
    }))
    const refused = await setup.deliver()
    expect(refused).toMatchObject({ status: 503, body: { error: { code: 'OVERLOADED' } } })
    expect(refused.headers.get('retry-after')).toBe('1')
    works = true
    expect(await setup.deliver()).toMatchObject({ status: 200, body: { outcome: 'credited' } })
  })

  test('answers a defect with 500 without details, so that Stripe retries', async () => {
    await using setup = await setUp(engine, () => ({ fund: () => Promise.reject(new Error('secret of the house')) }))
    const reply = await setup.deliver()
    expect(reply).toMatchObject({ status: 500, body: { error: { code: 'INTERNAL', message: 'Tollgate failed.' } } })
    expect(setup.defects.map(String)).toEqual(['Error: secret of the house'])
  })

  storeTest('credits nothing that Stripe did not sign recently, with our secret, byte for byte', async (setup) => {
    const event = completed(setup.workspaceId)
    const altered = JSON.stringify(event).replace('2500', '9500')
    const deliveries: readonly Delivery[] = [
      { secret: 'whsec_of_another_endpoint' },
      { ageSeconds: 301 },
      { ageSeconds: -301 },
      { sentBody: altered },
      { sentBody: `${JSON.stringify(event)}\n` },
      { headers: { 'stripe-signature': `t=${Math.floor(setup.clock.now() / 1000)},v1=${'0'.repeat(64)}` } },
      { headers: { 'stripe-signature': '' } },
    ]
    for (const delivery of deliveries) {
      const reply = await setup.deliver(delivery)
      expect(reply).toMatchObject({
        status: 400,
        body: { error: { code: 'INVALID_REQUEST', param: 'Stripe-Signature' } },
      })
    }
    const unsigned = received(new Request(`http://gate${webhookPath}`, { method: 'POST', body: JSON.stringify(event) }))
    expect((await setup.payments.webhook(unsigned)).status).toBe(400)
    expect(await setup.posted()).toBe(0n)
  })

  storeTest('logs forgeries once a minute, however many arrive', async (setup) => {
    for (let sent = 0; sent < 5; sent++) await setup.deliver({ secret: 'whsec_of_another_endpoint' })
    expect(setup.lines).toMatchObject([{ level: 'warn', fields: { fault: 'mismatch', count: 1 } }])
    setup.clock.advance(60_000)
    await setup.deliver({ ageSeconds: 1000 })
    expect(setup.lines).toMatchObject([{ level: 'warn' }, { level: 'warn', fields: { fault: 'stale', count: 5 } }])
  })

  storeTest('refuses a body of more than 1 MiB, announced or not', async (setup) => {
    const huge = 'x'.repeat(1024 * 1024 + 1)
    const announced = { sentBody: 'x', headers: { 'content-length': String(huge.length) } }
    for (const delivery of [announced, { sentBody: new Blob([huge]).stream() }]) {
      expect(await setup.deliver(delivery)).toMatchObject({
        status: 413,
        body: { error: { code: 'PAYLOAD_TOO_LARGE' } },
      })
    }
  })

  storeTest('answers a signed body that is not an event with 400, another method with 405', async (setup) => {
    expect(await setup.deliver({ event: ['evt_1'] })).toMatchObject({ status: 400 })
    const got = await setup.payments.webhook(received(new Request(`http://gate${webhookPath}`)))
    expect([got.status, got.headers.allow]).toEqual([405, 'POST'])
  })

  storeTest('ignores an event of test mode with a live key', async (setup) => {
    const play = completed(setup.workspaceId, {}, { livemode: false })
    expect(await setup.deliver({ event: play })).toMatchObject({ status: 200, body: { outcome: 'ignored' } })
    expect(await setup.posted()).toBe(0n)
    expect(setup.lines.map(({ level }) => level)).toEqual(['warn'])
  })
})
