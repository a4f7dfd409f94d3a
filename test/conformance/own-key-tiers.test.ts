// A service tier without a price is refused where the operator would pay for it, and passes where the provider bills the
// workspace: on both surfaces. Counts cost nothing.

import { afterAll, beforeEach, expect, test } from 'bun:test'
import { stopAll } from '../parts/gateway.ts'
import { chat, messages, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'
import { startTenancy } from '../tenancy/tenancy.ts'

const config = (url: string) => `
providers:
  - { id: chatty, dialect: openai-chat, base_url: "${url}/v1", api_key: key-of-the-operator }
  - { id: messy, dialect: anthropic-messages, base_url: "${url}", api_key: key-of-the-operator }
models:
  - { id: test/chat, price: { input: "1.00", output: "2.00" }, routes: [{ provider: chatty, model: c }] }
  - { id: test/messages, price: { input: "1.00", output: "2.00" }, routes: [{ provider: messy, model: m }] }
`

const upstream = startUpstream((call, reply) =>
  call.path.endsWith('/count_tokens')
    ? reply.json(200, { input_tokens: 7 })
    : reply.send(200, { 'content-type': 'application/json' }, wordsFor(call).whole),
)
const tenancy = await startTenancy({ config: config(upstream.url) })
beforeEach(() => {
  upstream.calls.length = 0
})
afterAll(() => stopAll(tenancy, upstream))

const counts: TestSurface = { ...messages, path: '/v1/messages/count_tokens' }
const paths: readonly [says: string, surface: TestSurface, model: string, tier: object, status: number][] = [
  ['a chat completion', chat, 'test/chat', { service_tier: 'priority' }, 400],
  ['a tier that we do not know', chat, 'test/chat', { service_tier: 'turbo' }, 400],
  ['a message', messages, 'test/messages', { speed: 'fast' }, 400],
  ['a token count', counts, 'test/messages', { speed: 'fast' }, 200],
]

test.each(paths)('%s', async (_, surface, model, tier, status) => {
  const tenant = await tenancy.tenant()
  expect((await tenancy.generate(surface, tenant.key, model, tier)).status).toBe(status)
  expect(upstream.calls.length).toBe(status === 200 ? 1 : 0)
  for (const provider of ['chatty', 'messy']) {
    const path = `/api/workspaces/${tenant.workspaceId}/credentials/${provider}`
    await tenancy.must('PUT', path, { api_key: 'key-of-the-tenant' })
  }
  expect((await tenancy.generate(surface, tenant.key, model, tier)).status).toBe(200)
  expect(upstream.calls.at(-1)?.json()).toMatchObject(tier)
})
