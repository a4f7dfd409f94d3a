// Three whole gateways on one PostgreSQL: a burst that crosses a threshold tops up once, and every kind of alert is raised
// once per crossing and arrives once, although its receiver fails at first.

import { describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { raiseProviderState } from '../../src/alerts/alerts.ts'
import { alertKinds } from '../../src/kernel/alert.ts'
import { formatUsd, type Nano, parseUsd } from '../../src/kernel/money.ts'
import { verify } from '../../src/ledger/verify.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import { type Gateway, startGateway } from '../parts/gateway.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { startStripe } from '../parts/stripe.ts'
import { until } from '../tenancy/tenancy.ts'
import { openPostgresStore } from './postgres-store.ts'

const token = 'management-token-of-all-replicas'
const burst = 60

/** Answers 503 until it is back. */
function startReceiver() {
  const taken: { readonly headers: Record<string, string>; readonly body: string }[] = []
  const state = { isBack: false }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const body = await request.text()
      if (!state.isBack) return new Response(null, { status: 503 })
      taken.push({ headers: Object.fromEntries(request.headers), body })
      return new Response(null, { status: 204 })
    },
  })
  return Object.assign(state, { taken, url: `http://127.0.0.1:${server.port}/hook`, stop: () => server.stop(true) })
}

/** A provider that fails until it is mended. */
function startProvider() {
  const state = { isDown: true }
  const choices = [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }]
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  const reply = { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () =>
      state.isDown ? Response.json({ error: { message: 'oh no' } }, { status: 500 }) : Response.json(reply),
  })
  return Object.assign(state, { url: `http://127.0.0.1:${server.port}/v1`, stop: () => server.stop(true) })
}

async function openFleet() {
  const store = await openPostgresStore()
  const [stripe, receiver, provider] = [startStripe(), startReceiver(), startProvider()]
  const env = {
    DATABASE_URL: store.url,
    TOLLGATE_SECRET: 'a0b1c2d3e4f5061728394a5b6c7d8e9fa0b1c2d3e4f5061728394a5b6c7d8e9f',
    TOLLGATE_ADMIN_TOKEN: token,
    STRIPE_SECRET_KEY: 'sk_test_0123456789',
    STRIPE_WEBHOOK_SECRET: 'whsec_of_the_test_endpoint',
  }
  const config = `
webhooks: { allow_hosts: ["127.0.0.1"] }
providers: [{ id: shaky, dialect: openai-chat, base_url: "${provider.url}", api_key: a-secret }]
models: [{ id: test/shaky, price: free, routes: [{ provider: shaky, model: m }] }]
`
  const replicas: Gateway[] = []
  for (let count = 0; count < 3; count++) replicas.push(await startGateway({ env, config, stripeUrl: stripe.url }))
  const replica = (at: number) => replicas[at % 3] as Gateway
  // biome-ignore lint/suspicious/noExplicitAny: answers of every kind.
  const manage = async (method: string, path: string, body?: object, at = 0): Promise<any> => {
    const response = await fetch(replica(at).url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    expect(`${method} ${path} ${response.status} ${text}`).toContain(` ${response.ok ? response.status : 'no error'} `)
    return text === '' ? undefined : JSON.parse(text)
  }
  return {
    ...{ store, stripe, receiver, provider, manage },
    /** A workspace with a key; `lowBalance` 0 = no alert. */
    async tenant(credit: string, lowBalance: string) {
      const { id } = await manage('POST', '/api/workspaces', { name: 'acme' })
      const { data: rules } = await manage('GET', `/api/alert-rules?workspace_id=${id}`)
      const { id: rule } = rules.find(({ kind }: { kind: string }) => kind === 'balance.low')
      if (lowBalance === '0') await manage('DELETE', `/api/alert-rules/${rule}`)
      else await manage('PATCH', `/api/alert-rules/${rule}`, { below: lowBalance })
      await manage('POST', `/api/workspaces/${id}/topups`, { amount: credit })
      const { id: projectId } = await manage('POST', `/api/workspaces/${id}/projects`, { name: 'web' })
      const key = () => manage('POST', `/api/projects/${projectId}/keys`, { name: 'ci' })
      return { id, key }
    },
    /** The status, and the cost in nano-dollars. */
    async call(at: number, secret: string, model = 'sandbox/echo') {
      const response = await fetch(`${replica(at).url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, max_tokens: 8, messages: [{ role: 'user', content: 'hi' }] }),
      })
      await response.text()
      return { status: response.status, cost: parseUsd(response.headers.get('x-tollgate-cost') ?? '0') ?? 0n }
    },
    /** A saved card, and automatic top-up by $10.00 below the threshold. */
    async saveCard(workspaceId: string, threshold: bigint) {
      const terms = { is_on: 1n, threshold, amount: 10_000_000_000n, month_max: 100_000_000_000n }
      const card = { customer: `cus_${workspaceId}`, payment_method: `pm_${workspaceId}`, card: 'visa 4242' }
      const row = { workspace_id: workspaceId, ...terms, ...card }
      await store.database.transaction((sql) => sql`INSERT INTO auto_topups ${sql([row])}`)
    },
    async alerts(kind: string, workspaceId?: string): Promise<readonly { id: string; data: { percent?: number } }[]> {
      const { data } = await manage('GET', '/api/alerts?limit=200')
      return data.filter(
        (alert: { kind: string; workspace_id: string | null }) =>
          alert.kind === kind && (workspaceId === undefined || alert.workspace_id === workspaceId),
      )
    },
    async [Symbol.asyncDispose]() {
      for (const each of replicas) await each.stop()
      receiver.stop()
      provider.stop()
      await stripe[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

describe.skipIf(findPostgresPrograms() === undefined)('on three replicas', () => {
  test('a burst tops up once, and every alert is raised once and outlives an outage of its receiver', async () => {
    await using fleet = await openFleet()
    const { store, stripe, receiver, provider, manage, call, alerts } = fleet
    const hook = await manage('POST', '/api/webhooks', { url: receiver.url })

    // A dollar is the threshold; the first call of the burst crosses it.
    const payer = await fleet.tenant('1.00', '0')
    await fleet.saveCard(payer.id, 1_000_000_000n)
    const { secret } = await payer.key()
    const calls = await Promise.all(Array.from({ length: burst }, (_, at) => call(at, secret)))
    expect(new Set(calls.map(({ status }) => status))).toEqual(new Set([200]))
    const spent = calls.reduce((sum, { cost }) => sum + cost, 0n)
    expect(spent).toBeGreaterThan(0n)
    const expected = formatUsd((11_000_000_000n - spent) as Nano)
    const balance = async () => (await manage('GET', `/api/workspaces/${payer.id}/wallet`)).balance
    await until(async () => (await balance()) === expected)

    // A balance that falls below its threshold, and limits of which 80, 95 and 100 % are used.
    const tenant = await fleet.tenant('1.00', '1.00')
    for (const [at, percent] of [80n, 95n, 100n].entries()) {
      const key = await tenant.key()
      const { cost } = await call(at, key.secret)
      const limit = formatUsd(((cost * 100n + percent - 1n) / percent) as Nano)
      await manage('PUT', `/api/keys/${key.id}/limits`, { spend_per_day: limit }, at)
    }
    await manage('PUT', '/api/models/sandbox%2Fslow/price', { input: '1.20', output: '2.00' }, 1)

    // A provider that fails, as one replica sees it; and another one, as all of them see it at once.
    const member = await fleet.tenant('1.00', '0')
    const { secret: memberKey } = await member.key()
    await until(async () => {
      await call(2, memberKey, 'test/shaky')
      return (await alerts('provider.down')).length > 0
    })
    const databases = await Promise.all([1, 2, 3].map(() => openPostgres(store.url, { timeoutFactor: 30 })))
    for (const isDown of [true, false]) {
      const state = { provider: 'elsewhere', isDown, why: undefined }
      const raising = { now: Date.now(), mail: undefined }
      await Promise.all(databases.map((database) => raiseProviderState(database, state, raising)))
    }
    for (const database of databases) await database.close()
    provider.isDown = false
    await until(async () => {
      await call(2, memberKey, 'test/shaky')
      return (await alerts('provider.up')).length === 2
    })

    stripe.card = 'declines'
    const declined = await fleet.tenant('1.00', '0')
    await fleet.saveCard(declined.id, 2_000_000_000n)
    await until(async () => (await alerts('topup.failed')).length > 0)
    await until(async () => (await alerts('limit.reached')).length >= 3 && (await alerts('balance.low')).length > 0)
    await until(async () => (await alerts('price.changed')).length > 0)

    // The receiver has refused everything so far. It comes back, and the waits are over.
    const undelivered = async () => {
      const [row] = await store.database.sql<{ count: bigint; tried: bigint }>`SELECT COUNT(*) AS count,
        COUNT(CASE WHEN error IS NOT NULL THEN 1 END) AS tried FROM deliveries WHERE delivered_at IS NULL`
      return row ?? { count: -1n, tried: 0n }
    }
    await until(async () => {
      const { count, tried } = await undelivered()
      return count === tried
    })
    expect(receiver.taken).toEqual([])
    receiver.isBack = true
    await store.database.transaction((sql) => sql`UPDATE deliveries SET next_at = 0 WHERE delivered_at IS NULL`)
    await until(async () => (await undelivered()).count === 0n)

    const raised = (await manage('GET', '/api/alerts?limit=200')).data as { id: string; kind: string }[]
    const byKind = Object.fromEntries(
      Object.entries(Object.groupBy(raised, ({ kind }) => kind)).map(([kind, list]) => [kind, list?.length]),
    )
    expect(byKind).toEqual({
      ...{ 'balance.low': 1, 'limit.reached': 3, 'price.changed': 1, 'topup.failed': 1 },
      ...{ 'provider.down': 2, 'provider.up': 2 },
    })
    // A stray response is raised by the replica that got it, and tested where connections are; bills in test/reconcile,
    // batches in test/batches, subscriptions in test/money, credit in src/alerts.
    const others: readonly string[] = [
      ...['test', 'provider.stray', 'bill.differs', 'batch.ended', 'plan.unpaid', 'credit.expiring'],
    ]
    expect(Object.keys(byKind).sort()).toEqual(alertKinds.filter((kind) => !others.includes(kind)).sort())
    const percents = (await alerts('limit.reached', tenant.id)).map(({ data }) => data.percent)
    expect(percents.sort()).toEqual([100, 75, 90])
    const received = receiver.taken.map(
      ({ headers, body }) => new Webhook(hook.secret).verify(body, headers) as { data: { id: string } },
    )
    expect(received.map(({ data }) => data.id).sort()).toEqual(raised.map(({ id }) => id).sort())

    // Rounds of every replica have passed since the burst.
    expect([...stripe.intents.values()].filter(({ status }) => status === 'succeeded')).toHaveLength(1)
    expect(await balance()).toBe(expected)
    expect((await verify(store.database)).findings).toEqual([])
  })
})
