// Names that callers may use for models, lists of models to fall back on, and preferences for providers: on all three
// surfaces, billed alike. All amounts are worked out by hand.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { ask as askGateway } from '../parts/ask.ts'
import { forEachEngine } from '../parts/engines.ts'
import { stopAll } from '../parts/gateway.ts'
import type { Reply } from '../parts/manage.ts'
import { chat, inWordsOf, messages, responses, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { answerWith } from '../parts/upstream-words.ts'
import { replyOf, startTenancy, type Tenancy } from './tenancy.ts'

/** In each dialect. */
const answer = answerWith({ input: 10, output: 20 })

const route = (provider: string, more = '') => `{ provider: ${provider}, model: up-${provider}${more} }`
const config = (url: string) => `
aliases: { gpt: one/large, dead: one/none }
providers:
  - { id: one, dialect: openai-chat, base_url: "${url}/one/v1", api_key: k }
  - { id: two, dialect: openai-chat, base_url: "${url}/two/v1", api_key: k }
  - { id: three, dialect: anthropic-messages, base_url: "${url}/three", api_key: k }
  - { id: four, dialect: openai-responses, base_url: "${url}/four/v1", api_key: k }
models:
  - { id: one/large, price: { input: "0", output: "1.00" }, max_output_tokens: 1000, routes: [${route('one')}] }
  - { id: two/large, price: { input: "0", output: "3.00" }, max_output_tokens: 1000, routes: [${route('two')}] }
  - { id: two/small, price: { input: "0", output: "2.00" }, routes: [${route('two')}] }
  - { id: three/claude, price: { input: "0", output: "1.00" }, routes: [${route('three')}] }
  - { id: four/gpt, price: { input: "0", output: "1.00" }, routes: [${route('four')}] }
  - id: all/mix
    price: { input: "0", output: "1.00" }
    routes:
      - ${route('one', ', priority: 1, cost: { input: "2", output: "2" }')}
      - ${route('two', ', priority: 1, cost: { input: "1", output: "1" }')}
`

const surfaces: readonly TestSurface[] = [chat, messages, responses]

let upstream: Upstream
let tenancy: Tenancy
/** Providers that answer with 503. */
const down = new Set<string>()

async function ask(surface: TestSurface, key: string, more: object, headers = {}): Promise<Reply> {
  const members = { max_tokens: 100, messages: [{ role: 'user', content: 'hi' }], ...more }
  return await replyOf(await askGateway({ ...tenancy.gateway, key }, surface, inWordsOf(surface, members), headers))
}

const shown = ({ status, body, headers }: Reply) => [status, body.model, headers.get('x-tollgate-cost')]

/** What pages may call: each path of the four APIs, with `/v1` and without where both are served. */
const publicPaths = [
  ...['/chat/completions', '/embeddings', '/messages', '/messages/count_tokens', '/models', '/model/info'],
  ...['/responses', '/responses/input_tokens', '/responses/compact', '/responses/resp_1/input_items'],
]
  .flatMap((path) => [path, `/v1${path}`])
  .concat('/v1beta/models', '/v1beta/models/acme/large:generateContent', '/v1alpha/models/acme/large:embedContent')

forEachEngine((engine) => {
  let key: string
  let projectId: string
  let workspaceId: string

  beforeAll(async () => {
    upstream = startUpstream(async (call, reply) => {
      const [, provider = ''] = call.path.split('/')
      if (down.has(provider)) return reply.json(503, { error: { message: 'down' } })
      await answer(call, reply)
    })
    const env = { TOLLGATE_CORS_ORIGINS: 'https://app.example.com' }
    tenancy = await startTenancy({ engine, config: `${config(upstream.url)}retries: { attempts: 1 }\n`, env })
    ;({ key, projectId, workspaceId } = await tenancy.tenant({ credit: '1' }))
  })

  afterAll(() => stopAll(tenancy, upstream))

  describe.each(surfaces)('on $name', (surface) => {
    test('a bare name, an alias and a suffix find the model, whose id the answer has', async () => {
      // 20 tokens at $2.00 a million: $0.00004.
      expect(shown(await ask(surface, key, { model: 'small' }))).toEqual([200, 'two/small', '0.00004'])
      expect(shown(await ask(surface, key, { model: 'gpt' }))).toEqual([200, 'one/large', '0.00002'])
      expect(shown(await ask(surface, key, { model: 'gpt:nitro' }))).toEqual([200, 'one/large', '0.00002'])
      const { headers, body } = await ask(surface, key, { model: 'all/mix:floor' })
      expect([body.model, headers.get('x-tollgate-provider')]).toEqual(['all/mix', 'two'])
    })

    test('a bare name of two models is refused with both ids, unless the allowlist has only one', async () => {
      const refused = await ask(surface, key, { model: 'large' })
      expect([refused.status, refused.body.error.code]).toEqual([400, 'INVALID_REQUEST'])
      expect(refused.body.error.message).toContain('`one/large`, `two/large`')
      const narrow = await tenancy.key(projectId, { models: ['two/*'] })
      expect(shown(await ask(surface, narrow.secret, { model: 'large' }))).toEqual([200, 'two/large', '0.00006'])
      // An alias does not open what the allowlist closes.
      expect((await ask(surface, narrow.secret, { model: 'gpt' })).status).toBe(404)
      expect((await ask(surface, key, { model: 'dead' })).status).toBe(404)
    })

    test('aliases of the project come first and take effect at once', async () => {
      await tenancy.must('PATCH', `/api/projects/${projectId}`, { aliases: { gpt: 'two/small' } })
      expect(shown(await ask(surface, key, { model: 'gpt' }))).toEqual([200, 'two/small', '0.00004'])
      await tenancy.must('PATCH', `/api/projects/${projectId}`, { aliases: null })
      expect(shown(await ask(surface, key, { model: 'gpt' }))).toEqual([200, 'one/large', '0.00002'])
    })

    test('the next model of the list answers if the first fails, at its own price', async () => {
      const before = (await tenancy.must('GET', `/api/workspaces/${workspaceId}/wallet`)).balance
      const list = { model: 'one/large', models: ['one/large', 'two/large'] }
      expect(shown(await ask(surface, key, list))).toEqual([200, 'one/large', '0.00002'])
      down.add('one')
      const second = await ask(surface, key, list)
      down.clear()
      expect(shown(second)).toEqual([200, 'two/large', '0.00006'])
      expect(second.headers.get('x-tollgate-warnings')).toBe('fallback_model=two/large;field=/model')
      const explained = await tenancy.must('GET', `/api/requests/${second.headers.get('x-request-id')}`)
      expect([explained.model, explained.cost]).toEqual(['two/large', '0.00006'])
      const after = (await tenancy.must('GET', `/api/workspaces/${workspaceId}/wallet`)).balance
      expect(Math.round((Number(before) - Number(after)) * 1e6)).toBe(80)
    })

    test('`models` alone is enough, and each entry must be allowed', async () => {
      expect(shown(await ask(surface, key, { models: ['two/small', 'one/large'] }))).toEqual([
        ...[200, 'two/small', '0.00004'],
      ])
      const narrow = await tenancy.key(projectId, { models: ['two/*'] })
      const refused = await ask(surface, narrow.secret, { models: ['two/small', 'one/large'] })
      expect([refused.status, refused.body.error.code]).toEqual([404, 'NOT_FOUND'])
      expect(refused.body.error.message).toContain('No model `one/large`')
    })

    test('the hold covers the most expensive model of the list', async () => {
      // 100 tokens: $0.0001 for one/large, $0.0003 for two/large.
      const poor = await tenancy.tenant({ credit: '0.0002' })
      expect((await ask(surface, poor.key, { model: 'one/large' })).status).toBe(200)
      const refused = await ask(surface, poor.key, { model: 'one/large', models: ['two/large'] })
      expect([refused.status, refused.body.error.metadata.needed]).toEqual([402, '0.0003'])
    })

    test('`provider` narrows and orders the routes, and names what it cannot do', async () => {
      const by = async (provider: object) => {
        const { headers, status } = await ask(surface, key, { model: 'all/mix', provider })
        return [status, headers.get('x-tollgate-provider'), headers.get('x-tollgate-warnings')]
      }
      for (const name of ['one', 'two']) {
        expect(await by({ only: [name] })).toEqual([200, name, null])
        expect(await by({ order: [name.toUpperCase()] })).toEqual([200, name, null])
        expect(await by({ ignore: [name] })).toEqual([200, name === 'one' ? 'two' : 'one', null])
      }
      expect(await by({ sort: 'price' })).toEqual([200, 'two', null])
      const dropped = 'provider_option_dropped;field=/provider/quantizations'
      expect(await by({ only: ['one'], quantizations: ['fp8'] })).toEqual([200, 'one', dropped])
      down.add('one')
      expect(await by({ order: ['one'] })).toEqual([200, 'two', null])
      const [closed] = await by({ order: ['one'], allow_fallbacks: false })
      expect(closed).toBe(surface === responses ? 503 : 404)
      down.clear()
      const none = await ask(surface, key, { model: 'all/mix', provider: { only: ['three'] } })
      expect([none.status, none.body.error.message]).toEqual([404, expect.stringContaining('served by one, two')])
      const promise = await ask(surface, key, { model: 'all/mix', provider: { data_collection: 'deny' } })
      expect([promise.status, promise.body.error.message]).toEqual([400, expect.stringContaining('cannot guarantee')])
      const strict = await ask(...([surface, key, { model: 'all/mix', provider: { quantizations: [] } }] as const), {
        'x-tollgate-strict': 'true',
      })
      expect(strict.status).toBe(400)
    })

    test.each(['one/large', 'three/claude', 'four/gpt'])('none of it reaches the provider of %s', async (model) => {
      const preferences = { models: [model, 'two/small'], provider: { sort: 'latency' }, route: 'fallback' }
      const reply = await ask(surface, key, { model, ...preferences })
      expect([reply.status, reply.headers.get('x-tollgate-warnings')]).toEqual([200, null])
      const sent = upstream.calls.at(-1)?.json() ?? {}
      for (const name of Object.keys(preferences)) expect(sent).not.toHaveProperty(name)
      expect(sent.model).toStartWith('up-')
    })
  })

  test('pages of the configured origin may call the API, and only that', async () => {
    const { url } = tenancy.gateway
    const call = (path: string, origin: string, method = 'OPTIONS') =>
      fetch(url + path, { method, headers: { origin, 'access-control-request-headers': 'x-api-key' } })
    const app = 'https://app.example.com'
    for (const path of publicPaths) {
      const preflight = await call(path, app)
      const allowed = ['origin', 'headers', 'methods'].map((name) =>
        preflight.headers.get(`access-control-allow-${name}`),
      )
      expect([path, preflight.status, ...allowed]).toEqual([path, 204, app, 'x-api-key', 'GET, POST, DELETE, OPTIONS'])
    }
    for (const path of ['/v1/models', '/v1beta/models']) {
      const answer = await call(path, app, 'GET')
      expect([path, answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([path, 401, app])
    }
    for (const [path, origin] of [
      ['/v1/models', 'https://other.example.com'],
      ['/api/workspaces', app],
      ['/api/oauth/usage', app],
    ] as const) {
      expect((await call(path, origin, 'GET')).headers.get('access-control-allow-origin')).toBeNull()
      expect((await call(path, origin)).status).not.toBe(204)
    }
  })
})

test('with `provider_choice: off` provider preferences are ignored, with a warning', async () => {
  const server = startUpstream(answer)
  await using off = await startTenancy({ config: config(server.url), env: { TOLLGATE_PROVIDER_CHOICE: 'off' } })
  const { key } = await off.tenant({ credit: '1' })
  const before = tenancy
  tenancy = off
  const reply = await ask(chat, key, { model: 'all/mix', provider: { only: ['three'] } })
  tenancy = before
  server.stop()
  expect([reply.status, reply.headers.get('x-tollgate-warnings')]).toEqual([200, 'provider_choice_off;field=/provider'])
})
