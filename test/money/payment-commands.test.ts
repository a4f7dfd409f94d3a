// The commands for payments, statements, alerts and webhooks against a whole gateway, with a server in Stripe's place.

import { describe, expect, test } from 'bun:test'
import { runHere } from '../parts/command-line.ts'
import { forEachEngine } from '../parts/engines.ts'
import { eventOf, signedEvent, startStripe } from '../parts/stripe.ts'
import { chat } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'
import { acmeConfig, startTenancy, type Tenancy, until } from '../tenancy/tenancy.ts'

const secret = 'whsec_of_the_test_endpoint'
const token = 'tg-admin-0123456789abcdef0123456789abcdef'
const env = { TOLLGATE_ADMIN_TOKEN: token }

/** `~` stands for a space within an argument. */
function commandsOf({ gateway }: Tenancy) {
  const environment = { TOLLGATE_URL: gateway.url, TOLLGATE_ADMIN_TOKEN: token }
  return (args: string) =>
    runHere(
      args.split(' ').map((arg) => arg.replaceAll('~', ' ')),
      { env: environment, cwd: gateway.dataFolder },
    )
}

describe('payments', () => {
  test('a payment is started, arrives, is refunded in part, and its card is kept for automatic top-ups', async () => {
    await using stripe = startStripe()
    const stripeEnv = { ...env, STRIPE_SECRET_KEY: 'sk_test_0123456789', STRIPE_WEBHOOK_SECRET: secret }
    await using tenancy = await startTenancy({ env: stripeEnv, stripeUrl: stripe.url })
    const run = commandsOf(tenancy)
    // The first start gave $5.00.
    expect((await run('auto-topup on --below 5 --amount 10 --monthly-max 100')).err).toContain('No card is saved.')
    const started = await run('wallet pay 25 --save-card')
    const [session] = [...stripe.sessions.values()]
    expect(started).toEqual({
      exit: 0,
      out: `${session?.url}\n`,
      err: 'Pay there. Whether it has arrived: tollgate wallet payments\n',
    })
    expect((await run('wallet payments')).out).toMatch(/checkout +\$25\.00 +open +pay_/)
    const event = eventOf('checkout.session.completed', session ?? {})
    const url = `${tenancy.gateway.url}/api/payments/stripe/webhook`
    expect((await fetch(signedEvent({ url, secret, nowMs: Date.now() }, event))).status).toBe(200)
    expect((await run('wallet payments')).out).toMatch(/checkout +\$25\.00 +paid +pay_/)
    const id = session?.metadata.tollgate_payment_id
    expect((await run(`wallet refund ${id} --amount 10`)).err).toContain('--reason is missing')
    expect((await run(`wallet refund ${id} --amount 10 --reason ordered~twice`)).out).toMatch(
      /^\$10\.00 refunded {3}rfn_\w+\n$/,
    )
    expect([...stripe.refunds.values()]).toMatchObject([{ amount: 1000, payment_intent: session?.payment_intent }])
    expect((await run('wallet')).out).toContain('balance    $20.00')
    expect((await run(`wallet refund ${id} --reason rest`)).out).toMatch(/^\$15\.00 refunded /)
    expect((await run(`wallet refund ${id} --amount 0.01 --reason more`)).err).toContain('at most 0.00')
    expect((await run('auto-topup on --below 2 --amount 10 --monthly-max 100')).out).toContain('automatic top-up  on')
    expect((await run('auto-topup')).out).toContain('card              visa 4242')
    expect((await run('auto-topup off')).exit).toBe(0)
    expect((await run('auto-topup')).out).toContain('automatic top-up  off')
    expect((await run('statements export')).out).toContain('correction')
  })

  test('without Stripe the commands name the settings to make', async () => {
    await using tenancy = await startTenancy({ env })
    const run = commandsOf(tenancy)
    for (const args of ['wallet pay 25', 'auto-topup on --below 5 --amount 10 --monthly-max 100', 'auto-topup off']) {
      const { exit, err } = await run(args)
      expect([args, exit, err]).toEqual([args, 4, expect.stringContaining('Set STRIPE_SECRET_KEY and STRIPE_WEBHOOK')])
    }
    expect((await run('auto-topup')).out).toContain('STRIPE_SECRET_KEY')
    expect((await run('wallet payments')).exit).toBe(0)
  })
})

forEachEngine((engine) => {
  test('what was written off and taken back did not touch the wallet, and the list adds up to the balance', async () => {
    await using stripe = startStripe()
    const stripeEnv = { ...env, STRIPE_SECRET_KEY: 'sk_test_0123456789', STRIPE_WEBHOOK_SECRET: secret }
    await using tenancy = await startTenancy({ engine, env: stripeEnv, stripeUrl: stripe.url })
    const run = commandsOf(tenancy)
    const deliver = async (type: string, object: object) => {
      const url = `${tenancy.gateway.url}/api/payments/stripe/webhook`
      const signed = signedEvent({ url, secret, nowMs: Date.now() }, eventOf(type, object))
      expect((await fetch(signed)).status).toBe(200)
    }
    const [workspace] = (await tenancy.must('GET', '/api/workspaces')).data
    const listed = async () => {
      const { data } = await tenancy.must('GET', `/api/workspaces/${workspace.id}/transfers`)
      return data as readonly { kind: string; direction: 'in' | 'out' | 'none'; amount: string }[]
    }
    const signs = { in: 1, out: -1, none: 0 }
    const expectBalance = async (balance: string) => {
      expect((await run('wallet')).out).toContain(`balance    $${balance}\n`)
      const sum = (await listed()).reduce(
        (total, { direction, amount }) => total + signs[direction] * Number(amount),
        0,
      )
      expect(sum.toFixed(2)).toBe(balance)
      const { out } = await run('wallet transfers')
      const amounts = [...out.matchAll(/ ([-+]?)\$([0-9.]+) {2}/g)].map(([, sign, usd]) => Number(`${sign}${usd}`))
      expect(amounts).toHaveLength(out.trimEnd().split('\n').length - 1)
      expect(amounts.reduce((total, amount) => total + amount, 0).toFixed(2)).toBe(balance)
    }
    // The first start gave $5.00. Of the $25.00 that are paid, $20.00 are spent before the bank takes all of it back.
    await run('wallet pay 25')
    const [session] = [...stripe.sessions.values()]
    await deliver('checkout.session.completed', session ?? {})
    await run('wallet correct --take 20 --reason spent')
    await expectBalance('10.00')
    const dispute = { id: 'du_1', amount: 2500, currency: 'usd', payment_intent: session?.payment_intent }
    await deliver('charge.dispute.funds_withdrawn', dispute)
    await expectBalance('0.00')
    await deliver('charge.dispute.funds_reinstated', dispute)
    await expectBalance('10.00')
    const writeOffs = (await listed()).filter(({ kind }) => kind === 'writeoff')
    expect(writeOffs).toMatchObject([
      { direction: 'none', amount: '15.00' },
      { direction: 'none', amount: '15.00' },
    ])
    expect((await run('wallet transfers')).out).toMatch(/writeoff of \$15\.00, not from the wallet +\$0\.00 /)
  })
})

test('a call on an own provider key is a line of the statement and a transfer of zero, without a sign', async () => {
  await using cleanup = new AsyncDisposableStack()
  const upstream = startUpstream((call, reply) =>
    reply.send(200, { 'content-type': 'application/json' }, wordsFor(call).whole),
  )
  cleanup.defer(() => upstream.stop())
  const prices = { large: 'price: { input: "3.00", output: "15.00" }, max_output_tokens: 1000' }
  await using tenancy = await startTenancy({ env, config: acmeConfig(upstream.url, prices) })
  const { workspaceId, key } = await tenancy.tenant({ credit: '1' })
  // 3 tokens in at $3.00 and 2 out at $15.00 a million.
  expect((await tenancy.generate(chat, key, 'acme/large')).headers.get('x-tollgate-cost')).toBe('0.000039')
  await tenancy.must('PUT', `/api/workspaces/${workspaceId}/credentials/acme`, { api_key: 'key-of-the-tenant' })
  expect((await tenancy.generate(chat, key, 'acme/large')).headers.get('x-tollgate-cost')).toBe('0.00')
  const run = commandsOf(tenancy)
  const statement = (await run(`statements --workspace ${workspaceId}`)).out
  expect(statement).toMatch(/^acme\/large +1 request +-\$0\.000039$/m)
  expect(statement).toMatch(/^own provider keys +1 request +\$0\.00$/m)
  const transfers = (await run(`wallet transfers --workspace ${workspaceId}`)).out
  expect(transfers).toMatch(/charge +\$0\.00 +req_/)
  expect(transfers).toMatch(/charge +-\$0\.000039 +req_/)
})

test('webhooks are created, listed, tested, replayed and deleted, and their deliveries are listed', async () => {
  let received = 0
  await using receiver = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch() {
      received++
      return new Response(null, { status: 204 })
    },
  })
  const hookUrl = `http://127.0.0.1:${receiver.port}/hook`
  await using tenancy = await startTenancy({ env, config: 'webhooks: { allow_hosts: ["127.0.0.1"] }\n' })
  const run = commandsOf(tenancy)
  expect(await run('webhooks')).toMatchObject({ exit: 0, err: expect.stringContaining('There are no webhooks.') })
  expect((await run('alerts deliveries')).exit).toBe(0)
  const created = await run(`webhooks create ${hookUrl} --workspace default --kinds balance.low,limit.reached`)
  expect(created.out).toMatch(/^whsec_\S+\n$/)
  const [id = ''] = /whk_\w+/.exec(created.err) ?? []
  for (const args of ['webhooks', 'webhooks --workspace default']) {
    expect((await run(args)).out).toContain(`${id}  ${hookUrl}`)
  }
  expect((await run(`webhooks test ${id}`)).exit).toBe(0)
  await until(() => received === 1)
  await until(async () => /test +\S+ \S+ +1 +\d{4}-/.test((await run(`webhooks deliveries ${id}`)).out))
  const listed = (await run('alerts deliveries --workspace default')).out
  expect(listed).toContain(hookUrl)
  const [delivery = ''] = /dlv_\w+/.exec(listed) ?? []
  expect((await run(`webhooks replay ${delivery}`)).out).toMatch(/^Sent again as dlv_\w+\.\n$/)
  await until(() => received === 2)
  expect((await run(`webhooks delete ${id} --yes`)).out).toBe(`Webhook ${id} deleted.\n`)
  expect((await run('alerts')).exit).toBe(0)
})
