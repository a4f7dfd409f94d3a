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
