import { expect, test } from 'bun:test'
import { forEachEngine, type TestEngine } from '../../../test/parts/engines.ts'
import { addWorkspace } from '../../../test/parts/ledger.ts'
import { refusalOf } from '../../../test/parts/refused.ts'
import { systemClock } from '../../kernel/clock.ts'
import { createId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import { Secret } from '../../kernel/secret.ts'
import type { Log } from '../../telemetry/log.ts'
import { createStripeApi } from './stripe-api.ts'
import { createStripeCheckout, stripeBounds } from './stripe-checkout.ts'

const key = 'sk_test_0123456789abcdef'
const session = { id: 'cs_test_a1', object: 'checkout.session', url: 'https://checkout.stripe.com/c/pay/cs_test_a1' }

interface Received {
  readonly method: string
  readonly path: string
  readonly headers: Headers
  readonly form: Record<string, string>
}

/** A server on loopback in Stripe's place, with the given answers. */
function serveStripe(answer: (call: number) => Response | Promise<Response>) {
  const received: Received[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    development: false,
    async fetch(request) {
      const form = Object.fromEntries(new URLSearchParams(await request.text()))
      received.push({ method: request.method, path: new URL(request.url).pathname, headers: request.headers, form })
      return await answer(received.length)
    },
  })
  return {
    received,
    url: `http://127.0.0.1:${server.port}`,
    async [Symbol.asyncDispose]() {
      await server.stop(true)
    },
  }
}

async function setUp(engine: TestEngine, baseUrl: string) {
  const store = await engine.openStore()
  const { database } = store
  const logged: string[] = []
  const say = (message: string, fields?: object) => void logged.push(`${message} ${JSON.stringify(fields)}`)
  const log: Log = { info: say, warn: say, error: say, line() {}, flush() {} }
  const api = createStripeApi({ secretKey: new Secret(key), baseUrl })
  const settings = { api, publicUrl: () => 'https://gate.example', bounds: () => stripeBounds }
  return {
    logged,
    workspaceId: await addWorkspace(database),
    checkout: createStripeCheckout({ database, clock: systemClock, log }, settings),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

/** $25.00 */
const amount = 25_000_000_000n as Nano

forEachEngine((engine) => {
  test('requests a session in dollars and cents, for the workspace, once per request id', async () => {
    await using stripe = serveStripe(() => Response.json(session))
    await using setup = await setUp(engine, stripe.url)
    const { workspaceId } = setup
    const requestId = createId('req')
    expect(await setup.checkout(workspaceId, { amount, requestId })).toEqual({
      ...{ id: session.id, url: session.url, payment_id: expect.stringMatching(/^pay_/) },
    })
    expect(stripe.received).toHaveLength(1)
    const [call] = stripe.received
    expect([call?.method, call?.path]).toEqual(['POST', '/v1/checkout/sessions'])
    expect(call?.headers.get('authorization')).toBe(`Bearer ${key}`)
    expect(call?.headers.get('idempotency-key')).toBe(`tollgate-${requestId}`)
    expect(call?.headers.get('content-type')).toBe('application/x-www-form-urlencoded')
    const id = call?.form['metadata[tollgate_payment_id]'] ?? ''
    expect(call?.form).toEqual({
      mode: 'payment',
      client_reference_id: workspaceId,
      'metadata[tollgate_workspace_id]': workspaceId,
      'metadata[tollgate_payment_id]': id,
      'payment_intent_data[metadata][tollgate_workspace_id]': workspaceId,
      'line_items[0][quantity]': '1',
      'line_items[0][price_data][currency]': 'usd',
      'line_items[0][price_data][unit_amount]': '2500',
      'line_items[0][price_data][product_data][name]': 'Tollgate credit',
      'adaptive_pricing[enabled]': 'false',
      success_url: `https://gate.example/console/${workspaceId}/wallet?payment=${id}`,
      cancel_url: `https://gate.example/console/${workspaceId}/wallet?payment=${id}&cancelled=yes`,
    })
    expect(setup.logged).toEqual([])
  })

  test('does not send Stripe what could not be paid or credited', async () => {
    await using stripe = serveStripe((call) => Response.json({ ...session, id: `cs_test_${call}` }))
    await using setup = await setUp(engine, stripe.url)
    const { checkout, workspaceId } = setup
    const cent = 10_000_000n
    for (const wrong of [0n, -cent, 49n * cent, 100_000_000n * cent, 50n * cent + 1n]) {
      const refused = await refusalOf(checkout(workspaceId, { amount: wrong as Nano, requestId: createId('req') }))
      expect(refused).toMatchObject({ code: 'INVALID_REQUEST', facts: { param: 'amount' } })
    }
    expect(await refusalOf(checkout(createId('ws'), { amount, requestId: createId('req') }))).toMatchObject({
      code: 'NOT_FOUND',
    })
    expect(stripe.received).toEqual([])
    for (const right of [50n * cent, 99_999_999n * cent]) {
      expect(await checkout(workspaceId, { amount: right as Nano, requestId: createId('req') })).toMatchObject({
        id: expect.stringMatching(/^cs_test_/),
      })
    }
    expect(stripe.received.map(({ form }) => form['line_items[0][price_data][unit_amount]'])).toEqual([
      '50',
      '99999999',
    ])
  })

  test('starts no payment without a secret key', async () => {
    await using stripe = serveStripe(() => Response.json(session))
    await using store = await engine.openStore()
    const log: Log = { info() {}, warn() {}, error() {}, line() {}, flush() {} }
    const settings = { api: undefined, publicUrl: () => 'https://gate.example', bounds: () => stripeBounds }
    const checkout = createStripeCheckout({ database: store.database, clock: systemClock, log }, settings)
    const workspaceId = await addWorkspace(store.database)
    expect(await refusalOf(checkout(workspaceId, { amount, requestId: createId('req') }))).toMatchObject({
      code: 'NOT_FOUND',
    })
    expect(stripe.received).toEqual([])
  })

  test('retries a broken connection once with the same idempotency key', async () => {
    await using stripe = serveStripe((call) => (call === 1 ? brokenAnswer() : Response.json(session)))
    await using setup = await setUp(engine, stripe.url)
    expect(await setup.checkout(setup.workspaceId, { amount, requestId: createId('req') })).toMatchObject({
      id: session.id,
    })
    const keys = stripe.received.map(({ headers }) => headers.get('idempotency-key'))
    expect(keys).toHaveLength(2)
    expect(keys[0]).toBe(keys[1] ?? '')
  })

  test('asks the caller to retry if Stripe cannot be reached', async () => {
    const stripe = serveStripe(() => Response.json(session))
    await stripe[Symbol.asyncDispose]()
    await using setup = await setUp(engine, stripe.url)
    const refused = await refusalOf(setup.checkout(setup.workspaceId, { amount, requestId: createId('req') }))
    expect(refused).toMatchObject({ code: 'OVERLOADED', facts: { retryAfterMs: 3000 } })
  })

  test('fails if the answer is not a session, and logs it without what Stripe quotes', async () => {
    const error = { type: 'invalid_request_error', code: 'api_key_expired', message: `Expired: ${key}` }
    const answers: readonly [response: () => Response, code: string][] = [
      [() => Response.json({ error }, { status: 401, headers: { 'request-id': 'req_stripe' } }), 'INTERNAL'],
      [() => Response.json({ error }, { status: 400 }), 'INTERNAL'],
      [() => Response.json({ error }, { status: 429 }), 'OVERLOADED'],
      [() => new Response('<html>', { status: 502 }), 'OVERLOADED'],
      [() => new Response('<html>'), 'INTERNAL'],
      [() => Response.json({ ...session, url: null }), 'INTERNAL'],
      [() => Response.json({ ...session, url: 'javascript:alert(1)' }), 'INTERNAL'],
      [() => Response.json({ ...session, id: 'pi_1' }), 'INTERNAL'],
      [() => new Response(null, { status: 302, headers: { location: 'http://127.0.0.1:9/' } }), 'INTERNAL'],
    ]
    await using stripe = serveStripe((call) => answers[call - 1]?.[0]() ?? new Response('?'))
    await using setup = await setUp(engine, stripe.url)
    for (const [, code] of answers) {
      expect(await refusalOf(setup.checkout(setup.workspaceId, { amount, requestId: createId('req') }))).toMatchObject({
        code,
      })
    }
    // One call each: Stripe would only repeat its answer.
    expect(stripe.received).toHaveLength(answers.length)
    expect(setup.logged).toHaveLength(answers.length)
    expect(setup.logged[0]).toContain('api_key_expired')
    expect(setup.logged[0]).toContain('req_stripe')
    expect(setup.logged.join()).not.toContain(key)
  })
})

/** Promises more than it sends, then closes. */
function brokenAnswer(): Response {
  let isFirst = true
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (isFirst) controller.enqueue(new TextEncoder().encode('{"id":'))
      else controller.error(new Error('broken on purpose'))
      isFirst = false
    },
  })
  return new Response(body, { headers: { 'content-type': 'application/json' } })
}
