import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Gateway, startGateway } from '../../../test/parts/gateway.ts'

/** A provider that knows one key, counts its calls, and quotes a wrong key as some do. */
const calls: string[] = []
const provider = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const key = request.headers.get('authorization') ?? ''
    calls.push(`${new URL(request.url).pathname} ${await request.text()}`)
    if (!key.includes('good')) return Response.json({ error: { message: `wrong key ${key}` } }, { status: 401 })
    return Response.json({ error: { message: 'you must provide a model parameter' } }, { status: 400 })
  },
})
const address = `http://127.0.0.1:${provider.port}/v1`

let gateway: Gateway
let token = ''
let workspace = ''

beforeAll(async () => {
  gateway = await startGateway({
    env: { GROQ_API_KEY: 'canary-of-the-operator' },
    config: `
providers:
  - { id: acme, dialect: openai-chat, base_url: "${address}", api_key: canary-good-9f3e }
  - { id: acme-eu, dialect: openai-chat, base_url: "${address}", api_key: canary-bad-77aa }
  - { id: closed, dialect: openai-chat, base_url: "http://127.0.0.1:1/v1", api_key: canary-good }
own_keys: { base_urls: true }
`,
  })
  token = readFileSync(join(gateway.dataFolder, 'admin-token'), 'utf8').trim()
  const { data } = await ask('GET', '/api/workspaces')
  workspace = data[0].id
})
afterAll(async () => {
  await gateway.stop()
  await provider.stop(true)
})

// biome-ignore lint/suspicious/noExplicitAny: the test looks into every kind of answer.
async function ask(method: string, path: string, body?: object): Promise<any> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await fetch(gateway.url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  const text = await response.text()
  expect(text).not.toContain('canary')
  return { status: response.status, ...JSON.parse(text) }
}

test('shows how attempts ended, and what became of requests while a route failed', async () => {
  // Every other call of its first route fails.
  for (let calls = 0; calls < 5; calls++) {
    const headers = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'sandbox/flaky', messages: [{ role: 'user', content: 'hello' }] })
    expect((await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body })).status).toBe(200)
  }
  for (const [period, buckets] of [
    ['24h', 24],
    ['7d', 28],
    ['30d', 30],
  ] as const) {
    const { routes, incidents } = await ask('GET', `/api/providers/history?period=${period}`)
    const sums = routes.map((route: { buckets: readonly ([number, number] | null)[] }) => {
      const counted = route.buckets.filter((bucket) => bucket !== null)
      return [0, 1].map((place) => counted.reduce((sum, bucket) => sum + (bucket[place] ?? 0), 0))
    })
    expect(sums.sort()).toEqual([
      [2, 3],
      [3, 0],
    ])
    expect(routes[0].buckets).toHaveLength(buckets)
    expect(incidents).toMatchObject([
      {
        ...{ provider: 'sandbox', ended_at: expect.any(String), causes: [{ outcome: '503', attempts: 3 }] },
        ...{ requests_rescued: 3, requests_failed: 0 },
      },
    ])
  }
  expect(await ask('GET', '/api/providers/history?period=9d')).toMatchObject({ status: 400 })
})

test('lists providers with where they were enabled, and only the last four characters of keys', async () => {
  const { data } = await ask('GET', '/api/providers')
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  const byId = Object.fromEntries(data.map((each: any) => [each.id, each]))
  expect(byId.groq).toMatchObject({ origin: 'environment', source: 'GROQ_API_KEY', last4: 'ator' })
  expect(byId.acme).toMatchObject({ origin: 'file', source: 'tollgate.yaml:3', last4: '9f3e' })
  expect(byId.acme.address).toBe(`127.0.0.1:${provider.port}`)
  expect(byId.sandbox).toMatchObject({ origin: 'built_in', last4: null, address: null })
  expect(byId.sandbox.models).toBeGreaterThan(5)
})

test('tests a key with an empty request, and does not quote the provider', async () => {
  calls.length = 0
  const verdicts = []
  for (const id of ['acme', 'acme-eu', 'closed', 'sandbox']) {
    const { verdict, status, message } = await ask('POST', `/api/providers/${id}/test`)
    verdicts.push([id, verdict, status])
    expect(message).toEndWith('.')
  }
  // The status of the answer stands over the member of the same name, which says what the provider answered with.
  expect(verdicts).toEqual([
    ['acme', 'ok', 400],
    ['acme-eu', 'refused', 401],
    ['closed', 'unreachable', null],
    ['sandbox', 'ok', null],
  ])
  expect(calls).toEqual(['/v1/chat/completions {}', '/v1/chat/completions {}'])
  expect(await ask('POST', '/api/providers/unknown/test')).toMatchObject({ status: 404 })
})

test("a workspace's own key is tried where it would be sent, and nowhere the guard forbids", async () => {
  const path = `/api/workspaces/${workspace}/credentials/acme`
  expect(await ask('POST', `${path}/test`)).toMatchObject({ status: 404 })
  await ask('PUT', path, { api_key: 'canary-good-of-my-own' })
  expect(await ask('POST', `${path}/test`)).toMatchObject({ verdict: 'ok', status: 400 })
  await ask('PUT', path, { api_key: 'canary-bad-of-my-own' })
  expect(await ask('POST', `${path}/test`)).toMatchObject({ verdict: 'refused', status: 401 })
  calls.length = 0
  // The guard refuses the address when it is stored; what is tried is what was stored.
  const elsewhere = `${address}/elsewhere`
  expect(await ask('PUT', path, { api_key: 'canary', base_url: elsewhere })).toMatchObject({ status: 400 })
  expect(calls).toEqual([])
  const unknown = `/api/workspaces/ws_00000000000000000000000000/credentials/acme/test`
  expect(await ask('POST', unknown)).toMatchObject({ status: 404 })
})

test('shows the configuration in effect with its sources and without secrets', async () => {
  const { data } = await ask('GET', '/api/config')
  const of = (name: string) => data.find((each: { name: string }) => each.name === name)
  expect(of('server.port')).toEqual({ name: 'server.port', value: '0', source: 'TOLLGATE_PORT' })
  expect(of('server.sandbox')).toEqual({ name: 'server.sandbox', value: 'on', source: 'default' })
  expect(of('GROQ_API_KEY')).toEqual({ name: 'GROQ_API_KEY', value: 'set', source: 'GROQ_API_KEY' })
  expect(of('own_keys.base_urls')).toMatchObject({ value: 'true', source: 'tollgate.yaml:6' })
  expect(of('providers.acme')).toMatchObject({ value: `openai-chat, ${address}, key set`, source: 'tollgate.yaml:3' })
  const response = await fetch(`${gateway.url}/api/config`)
  expect(response.status).toBe(401)
})

test('adds a provider, a model and an alias to the file, in effect at once and in the audit log without the key', async () => {
  const { digest } = await ask('GET', '/api/config/file')
  const provider = { dialect: 'openai-chat', base_url: address, api_key: 'canary-good-beta' }
  const model = { price: 'free', routes: [{ provider: 'beta', model: 'one' }] }
  const change = {
    providers: { beta: provider },
    models: { 'beta/one': model },
    aliases: { first: 'beta/one' },
    digest,
  }
  const changed = await ask('PATCH', '/api/config/file', change)
  expect(changed).toMatchObject({ status: 200, read_only: null, aliases: { first: 'beta/one' } })
  const { data } = await ask('GET', '/api/providers')
  expect(data.find(({ id }: { id: string }) => id === 'beta')).toMatchObject({
    origin: 'file',
    last4: 'beta',
    models: 1,
  })
  expect((await ask('POST', '/api/providers/beta/test', {})).verdict).toBe('ok')
  // The file has changed since.
  expect((await ask('PATCH', '/api/config/file', change)).status).toBe(400)
  const wrong = await ask('PATCH', '/api/config/file', {
    models: { 'beta/two': { routes: [{ provider: 'no', model: 'x' }] } },
  })
  expect([wrong.status, wrong.error.message.includes('there is no provider with this id')]).toEqual([400, true])
  const audit = await ask('GET', '/api/audit?limit=3')
  expect(audit.data.map(({ action, object }: Record<string, string>) => [action, object])).toEqual([
    ['alias.put', 'first'],
    ['model.put', 'beta/one'],
    ['provider.put', 'beta'],
  ])
  expect(audit.data[2].details).toMatchObject({ api_key: 'replaced', base_url: address })
  const disabled = await ask('PATCH', '/api/config/file', { disabled_providers: { beta: true } })
  expect(disabled.disabled_providers).toEqual(['beta'])
  expect(await ask('POST', '/api/providers/beta/test', {})).toMatchObject({ status: 404 })
  const catalog = await ask('GET', '/api/catalog')
  expect(catalog.data.some(({ id }: { id: string }) => id === 'beta/one')).toBe(false)
  const enabled = await ask('PATCH', '/api/config/file', { disabled_providers: { beta: false } })
  expect(enabled.disabled_providers).toEqual([])
  expect((await ask('POST', '/api/providers/beta/test', {})).verdict).toBe('ok')
  const removed = await ask('PATCH', '/api/config/file', {
    ...{ aliases: { first: null }, models: { 'beta/one': null }, providers: { beta: null } },
  })
  expect(removed.providers.map(({ id }: { id: string }) => id)).toEqual(['acme', 'acme-eu', 'closed'])
})
