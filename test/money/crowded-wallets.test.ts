// Requests that run beside each other in one wallet: what one may still take never stands in the way of another one's own
// limit, a request whose patience ends leaves no hold, and an earlier turn vouches only for what it had.

import { afterAll, expect, test } from 'bun:test'
import { forEachEngine } from '../parts/engines.ts'
import { messages } from '../parts/surfaces.ts'
import { startUpstream, type Upstream, type UpstreamHandler } from '../parts/upstream.ts'
import { dialectOf, say, usageIn } from '../parts/upstream-words.ts'
import { startTenancy } from '../tenancy/tenancy.ts'

const upstreams: Upstream[] = []
afterAll(() => {
  for (const upstream of upstreams) upstream.stop()
})

function open(handler: UpstreamHandler): Upstream {
  const upstream = startUpstream(handler)
  upstreams.push(upstream)
  return upstream
}

const config = (url: string) => `providers:
  - { id: messy, dialect: anthropic-messages, base_url: "${url}", api_key: secret }
models:
  - id: acme/burst
    price: { input: "0", output: "10" }
    max_output_tokens: 64000
    routes: [{ provider: messy, model: up }]
  - id: acme/long
    price: { input: "0", output: "10" }
    max_output_tokens: 64000
    routes: [{ provider: messy, model: long }]
  - id: acme/short
    price: { input: "0", output: "100" }
    max_output_tokens: 4096
    routes: [{ provider: messy, model: short }]
  - id: acme/agent
    price: { input: "3", output: "15", cache_read: "0.30", cache_write: "3.75", cache_write_1h: "6" }
    context_tokens: 200000
    max_output_tokens: 64000
    routes: [{ provider: messy, model: up }]
`

forEachEngine((engine) => {
  test('what the streams of one key may still take does not use up the limit of another', async () => {
    const gate = Promise.withResolvers<void>()
    let begun = 0
    const upstream = open(async (call, reply) => {
      begun++
      if (JSON.stringify(call.json()).includes('slow')) await gate.promise
      await say(call, reply, { texts: ['done'], usage: usageIn(dialectOf(call), { input: 3, output: 10 }) })
    })
    await using tenancy = await startTenancy({ engine, config: config(upstream.url) })
    const { projectId, key } = await tenancy.tenant({ credit: '1000' })
    const other = await tenancy.key(projectId, { limits: { spend_per_day: '1.00' } })
    // Each may take $0.64, of which it holds the first 4,096 tokens.
    const slow = { stream: true, max_tokens: 64_000, messages: [{ role: 'user', content: 'slow' }] }
    const running = Array.from({ length: 3 }, () => tenancy.generate(messages, key, 'acme/burst', slow))
    while (begun < 3) await Bun.sleep(5)
    expect((await tenancy.generate(messages, other.secret, 'acme/burst', { max_tokens: 300 })).status).toBe(200)
    gate.resolve()
    for (const answer of await Promise.all(running)) expect(answer.status).toBe(200)
  })

  /** A dollar in a wallet or under a limit, $0.60 of which the first request holds until the gate opens. */
  async function openLine(of: 'wallet' | 'limit') {
    const gate = Promise.withResolvers<void>()
    const order: string[] = []
    const upstream = open(async (call, reply) => {
      const [name = ''] = /first|large|small/.exec(JSON.stringify(call.json())) ?? []
      order.push(name)
      if (name === 'first') await gate.promise
      await say(call, reply, { texts: ['done'], usage: usageIn(dialectOf(call), { input: 3, output: 10 }) })
    })
    const asked: string[] = []
    const tenancy = await startTenancy({
      ...{ engine, config: config(upstream.url) },
      wrapLedger: (real) => ({
        ...real,
        async hold(request) {
          const outcome = await real.hold(request)
          asked.push(request.requestId)
          return outcome
        },
      }),
    })
    const limits = of === 'limit' ? { limits: { spend_per_day: '1.00' } } : {}
    const tenant = await tenancy.tenant({ credit: of === 'limit' ? '100' : '1', with: limits })
    /** Its cap is not lowered: it holds a cent for 1,000 tokens. It waits for 15 s. */
    const send = async (name: string, max_tokens: number) => {
      const response = await fetch(`${tenancy.gateway.url}/v1/messages`, {
        method: 'POST',
        headers: {
          ...{ authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' },
          ...{ 'anthropic-version': '2023-06-01', 'x-tollgate-strict': 'true', 'x-stainless-timeout': '600' },
        },
        body: JSON.stringify({ model: 'acme/burst', max_tokens, messages: [{ role: 'user', content: name }] }),
      })
      return { status: response.status, text: await response.text() }
    }
    const first = send('first', 60_000)
    while (order.length < 1) await Bun.sleep(5)
    return {
      ...{ tenancy, tenant, gate, order, asked, send, first },
      /** Until the ledger has refused or granted holds of so many requests. */
      async until(count: number) {
        while (new Set(asked).size < count) await Bun.sleep(5)
      },
    }
  }

  test.each([
    ['wallet', 50_000, ['first', 'large', 'small']],
    ['limit', 50_000, ['first', 'large', 'small']],
    // It would stop all others.
    ['limit', 51_000, ['first', 'small', 'large']],
  ] as const)('a request waits for its %s and needs %i tokens: %j', async (of, tokens, expected) => {
    const { tenancy, tenant, gate, order, asked, send, until, first } = await openLine(of)
    await using opened = tenancy
    // It needs more than the $0.40 that are left, and the small one less.
    const large = send('large', tokens)
    await until(2)
    const small = send('small', 10_000)
    await until(3)
    if (expected[1] === 'small') {
      await small
      // It got its hold at once.
      expect(asked.filter((id) => id === [...new Set(asked)][2])).toHaveLength(1)
    }
    gate.resolve()
    for (const { status, text } of await Promise.all([first, large, small])) expect([status, text]).toEqual([200, text])
    expect(order).toEqual([...expected])
    expect((await opened.must('GET', `/api/workspaces/${tenant.workspaceId}/wallet`)).held).toBe('0.00')
  })

  test.each([
    ['its limit was raised', '2.00', 200],
    ['its limit was lowered', '0.40', 429],
    ['its key was revoked', undefined, 401],
  ] as const)('a request that waits learns that %s', async (_, limit, status) => {
    const { tenancy, tenant, gate, order, send, until, first } = await openLine('limit')
    await using opened = tenancy
    const waiting = send('large', 50_000)
    await until(2)
    if (limit === undefined) await opened.must('POST', `/api/keys/${tenant.keyId}/revoke`)
    else await opened.must('PUT', `/api/keys/${tenant.keyId}/limits`, { spend_per_day: limit })
    // Under a higher limit it need not wait for the first one.
    if (status !== 200) gate.resolve()
    const ended = await waiting
    expect([ended.status, ended.text]).toEqual([status, ended.text])
    expect(order).toEqual(status === 200 ? ['first', 'large'] : ['first'])
    gate.resolve()
    expect((await first).status).toBe(200)
    expect((await opened.must('GET', `/api/workspaces/${tenant.workspaceId}/wallet`)).held).toBe('0.00')
  })

  test('with little money no fallback is cut that its cap could have ended', async () => {
    let cap = 0
    const upstream = open(async (call, reply) => {
      const { model, max_tokens } = call.json() as { model: string; max_tokens: number }
      if (model === 'short') return await reply.send(500, {}, '{}')
      cap = max_tokens
      const texts = Array.from({ length: 4 }, () => 'x'.repeat(cap))
      await say(call, reply, { texts, usage: usageIn(dialectOf(call), { input: 3, output: cap }), stop: 'length' })
    })
    await using tenancy = await startTenancy({ engine, config: config(upstream.url) })
    const { workspaceId, key } = await tenancy.tenant({ credit: '0.50' })
    const request = { stream: true, max_tokens: 64_000, models: ['acme/long'] }
    const answer = await tenancy.generate(messages, key, 'acme/short', request)
    expect(answer.status).toBe(200)
    expect(answer.text).not.toMatch(/so it ends here/)
    // 4,096 tokens of the first are $0.4096, and 50,000 of the second $0.50. Half of them are left to other requests.
    expect(cap).toBe(25_000)
    expect((await tenancy.must('GET', `/api/workspaces/${workspaceId}/wallet`)).balance).toBe('0.25')
  })

  test('a request whose patience ends while others end leaves no hold behind', async () => {
    const upstream = open(async (call, reply) => {
      await Bun.sleep(60 + Math.random() * 80)
      await say(call, reply, { texts: ['done'], usage: usageIn(dialectOf(call), { input: 3, output: 10 }) })
    })
    await using tenancy = await startTenancy({ engine, config: config(upstream.url) })
    const tenants = await Promise.all(Array.from({ length: 10 }, () => tenancy.tenant({ credit: '0.10' })))
    const send = async (key: string): Promise<number> => {
      const body = { model: 'acme/burst', max_tokens: 2000 + Math.floor(Math.random() * 6000) }
      const answer = await fetch(`${tenancy.gateway.url}/v1/messages`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          ...{ 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
          // Patience of a third of it, and a cap that is not lowered.
          ...{ 'x-stainless-timeout': String(0.5 + Math.random()), 'x-tollgate-strict': 'true' },
        },
        body: JSON.stringify({ ...body, messages: [{ role: 'user', content: 'hi' }] }),
      })
      await answer.text()
      return answer.status
    }
    const statuses = await Promise.all(tenants.flatMap(({ key }) => Array.from({ length: 30 }, () => send(key))))
    for (const status of statuses) expect([200, 402]).toContain(status)
    for (const { workspaceId } of tenants) {
      expect((await tenancy.must('GET', `/api/workspaces/${workspaceId}/wallet`)).held).toBe('0.00')
    }
  })
})

test('a session that is known does not vouch for a document at a URL', async () => {
  const upstream = open((call, reply) =>
    say(call, reply, { texts: ['done'], usage: usageIn(dialectOf(call), { input: 20, output: 10 }) }),
  )
  await using tenancy = await startTenancy({ config: config(upstream.url) })
  const { key } = await tenancy.tenant({ credit: '0.05' })
  const ask = (content: unknown) =>
    tenancy.generate(messages, key, 'acme/agent', {
      ...{ max_tokens: 300, metadata: { user_id: 'user_1_account__session_s' } },
      messages: [{ role: 'user', content }],
    })
  expect((await ask('hi')).status).toBe(200)
  const document = { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } }
  const refused = await ask([document, { type: 'text', text: 'sum up' }])
  // 200,000 tokens, the context window, would be more than half a dollar.
  expect(refused.status).toBe(402)
})
