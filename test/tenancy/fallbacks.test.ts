// Fallbacks that the operator gives a model: on every surface, streamed or not, charged at the model that answers, and never
// silent. All amounts are worked out by hand.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { ask as askGateway } from '../parts/ask.ts'
import { forEachEngine } from '../parts/engines.ts'
import { startGateway, stopAll } from '../parts/gateway.ts'
import {
  chatClientNames,
  createChatClient,
  createMessageClient,
  messageClientNames,
} from '../parts/official-clients.ts'
import { allSurfaces, chat, inWordsOf, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { answerWith } from '../parts/upstream-words.ts'
import { startTenancy, type Tenancy, until } from './tenancy.ts'

/** In each dialect. */
const answer = answerWith({ input: 10, output: 20 })
const price = (output: string) => `price: { input: "0", output: "${output}" }, max_output_tokens: 1000`
const at = (provider: string) => `routes: [{ provider: ${provider}, model: up-${provider} }]`

/** `one/large` and `two/large` name each other. */
const config = (url: string) => `
retries: { attempts: 1 }
providers:
  - { id: one, dialect: openai-chat, base_url: "${url}/one/v1", api_key: k }
  - { id: two, dialect: anthropic-messages, base_url: "${url}/two", api_key: k }
  - { id: three, dialect: openai-responses, base_url: "${url}/three/v1", api_key: k }
models:
  - { id: one/large, ${price('1.00')}, fallbacks: [two/large, three/small], ${at('one')} }
  - { id: two/large, ${price('3.00')}, fallbacks: [one/large], ${at('two')} }
  - { id: three/small, ${price('2.00')}, ${at('three')} }
  - { id: one/alone, ${price('1.00')}, ${at('one')} }
  - { id: two/alone, ${price('1.00')}, ${at('two')} }
  - { id: sandbox/echo, fallbacks: [one/alone] }
`

let upstream: Upstream
/** Providers that answer with 503. */
const down = new Set<string>()

function start(): void {
  upstream = startUpstream(async (call, reply) => {
    const [, provider = ''] = call.path.split('/')
    if (down.has(provider)) return reply.json(503, { error: { message: 'down' } })
    await answer(call, reply)
  })
}

const called = () => upstream.calls.map(({ path }) => path.split('/')[1])
const warning = (model: string) => `fallback_model=${model};field=/model`

/** The models that an answer names, whole or streamed. */
function modelsIn(text: string): readonly (string | undefined)[] {
  return [...new Set([...text.matchAll(/"model(?:Version)?":\s*"([^"]*)"/g)].map(([, model]) => model))]
}

/** 404 where the specification says so. */
const unavailableOn = (surface: TestSurface) => (surface.name === 'chat' || surface.name === 'messages' ? 404 : 503)

forEachEngine((engine) => {
  let tenancy: Tenancy
  let key: string
  let projectId: string
  let workspaceId: string
  /** The key of another workspace. */
  let others: string

  beforeAll(async () => {
    start()
    tenancy = await startTenancy({ engine, config: config(upstream.url) })
    ;({ key, projectId, workspaceId } = await tenancy.tenant({ credit: '1' }))
    others = (await tenancy.tenant({ credit: '1' })).key
  })
  beforeEach(recover)
  afterAll(() => stopAll(tenancy, upstream))

  async function ask(surface: TestSurface, secret: string, more: object, headers = {}) {
    const members = { max_tokens: 100, messages: [{ role: 'user', content: 'hi' }], ...more }
    const response = await askGateway(
      { ...tenancy.gateway, key: secret },
      surface,
      inWordsOf(surface, members),
      headers,
    )
    const text = await response.text()
    const id = response.headers.get('x-request-id')
    return { status: response.status, text, id, warnings: response.headers.get('x-tollgate-warnings') }
  }

  /** Its answers outweigh the failures of earlier tests, which would otherwise keep a route from being tried. */
  async function recover(): Promise<void> {
    down.clear()
    for (const model of ['one/alone', 'two/alone', 'one/alone', 'two/alone', 'one/alone', 'two/alone'])
      expect((await ask(chat, others, { model })).status).toBe(200)
    upstream.calls.length = 0
  }

  /** Requests without a charge are recorded in the background. */
  async function recorded(id: string | null) {
    const find = () => tenancy.api('GET', `/api/requests/${id}`)
    await until(async () => (await find()).status === 200)
    return (await find()).body
  }

  const balance = async (id = workspaceId) => {
    const wallet = await tenancy.must('GET', `/api/workspaces/${id}/wallet`)
    return Math.round(Number(wallet.balance) * 1e6)
  }

  // Gemini's API has no members for either.
  describe.each(allSurfaces.filter(({ name }) => name !== 'gemini'))('of the caller, on $name', (surface) => {
    const unavailable = unavailableOn(surface)

    test('the list of the caller wins, also an empty one', async () => {
      down.add('one')
      const own = await ask(surface, key, { model: 'one/large', models: ['three/small'] })
      expect([modelsIn(own.text), called()]).toEqual([['three/small'], ['one', 'three']])
      await recover()
      down.add('one')
      const none = await ask(surface, key, { model: 'one/large', models: [] })
      expect([none.status, called()]).toEqual([unavailable, ['one']])
    })

    test('fallbacks that `provider` excludes are skipped', async () => {
      down.add('one')
      const reply = await ask(surface, key, { model: 'one/large', provider: { only: ['one', 'three'] } })
      expect([modelsIn(reply.text), called()]).toEqual([['three/small'], ['one', 'three']])
    })
  })

  describe.each(allSurfaces)('on $name', (surface) => {
    const unavailable = unavailableOn(surface)

    test.each([false, true])('the fallback answers at its own price, and says so; streamed: %p', async (stream) => {
      const streamed = stream ? { stream } : {}
      const before = await balance()
      const first = await ask(surface, key, { model: 'one/large', ...streamed })
      expect([first.status, modelsIn(first.text), first.warnings]).toEqual([200, ['one/large'], null])
      down.add('one')
      const second = await ask(surface, key, { model: 'one/large', ...streamed })
      expect([second.status, modelsIn(second.text)]).toEqual([200, ['two/large']])
      expect(second.warnings).toBe(warning('two/large'))
      const explained = await recorded(second.id)
      // 20 tokens at $3.00 a million; up to 100 at the highest of the three prices were held, before it was known who answers.
      expect(explained).toMatchObject({
        model: 'two/large',
        requested_model: 'one/large',
        cost: '0.00006',
        held: '0.0003',
      })
      expect(await recorded(first.id)).toMatchObject({ model: 'one/large', requested_model: null, held: '0.0003' })
      expect(explained.warnings).toContain('fallback_model=two/large /model')
      expect(explained.charge).toMatchObject({
        charged: '0.00006',
        price_version: expect.stringMatching(/^two\/large#/),
      })
      expect(explained.candidates.map(({ why }: { why: string }) => why.match(/fallback .*/)?.[0])).toEqual([
        undefined,
        'fallback two/large',
        'fallback three/small',
      ])
      // 20 at $1.00 for the first answer.
      expect(before - (await balance())).toBe(20 + 60)
    })

    test.each([false, true])('only when all fail is there an error, and no charge; streamed: %p', async (stream) => {
      const streamed = stream ? { stream } : {}
      const before = await balance()
      down.add('one').add('two')
      const third = await ask(surface, key, { model: 'one/large', ...streamed })
      expect([third.status, modelsIn(third.text), called()]).toEqual([200, ['three/small'], ['one', 'two', 'three']])
      await recover()
      down.add('one').add('two')
      // Each model once, although the fallback names the first one, and no fallbacks of fallbacks.
      const loop = await ask(surface, key, { model: 'two/large', ...streamed })
      expect([loop.status, called()]).toEqual([unavailable, ['two', 'one']])
      expect(await recorded(loop.id)).toMatchObject({ model: 'two/large', requested_model: null, charge: null })
      // 20 tokens at $2.00 for the third model.
      expect(before - (await balance())).toBe(40)
    })

    test('a fallback that the key may not use is skipped', async () => {
      const narrow = await tenancy.key(projectId, { models: ['one/*', 'three/*'] })
      down.add('one')
      const reply = await ask(surface, narrow.secret, { model: 'one/large' })
      expect([reply.status, modelsIn(reply.text), reply.warnings]).toEqual([
        ...[200, ['three/small'], warning('three/small')],
      ])
      expect(called()).toEqual(['one', 'three'])
    })

    test('a strict caller gets the model that it asked for, or an error', async () => {
      down.add('one')
      const reply = await ask(surface, key, { model: 'one/large' }, { 'x-tollgate-strict': 'true' })
      expect([reply.status, called()]).toEqual([unavailable, ['one']])
    })

    test('the hold covers the most expensive of them', async () => {
      // 100 tokens: $0.0001 for one/large, $0.0003 for two/large.
      const poor = await tenancy.tenant({ credit: '0.0002' })
      expect((await ask(surface, poor.key, { model: 'one/alone' })).status).toBe(200)
      const refused = await ask(surface, poor.key, { model: 'one/large' })
      expect([refused.status, refused.text.includes('0.0003')]).toEqual([402, true])
      expect(called()).toEqual(['one'])
    })

    test('a workspace that pays its own provider is not billed for a fallback unless it allows that', async () => {
      const own = await tenancy.tenant({ credit: '1' })
      const workspace = `/api/workspaces/${own.workspaceId}`
      await tenancy.must('PUT', `${workspace}/credentials/one`, { api_key: 'its-own' })
      down.add('one')
      expect((await ask(surface, own.key, { model: 'one/large' })).status).toBe(unavailable)
      expect([called(), await balance(own.workspaceId)]).toEqual([['one'], 1_000_000])
      await tenancy.must('PATCH', workspace, { shares_routes: true })
      await recover()
      down.add('one')
      const shared = await ask(surface, own.key, { model: 'one/large' })
      expect([modelsIn(shared.text), await balance(own.workspaceId)]).toEqual([['two/large'], 999_940])
    })

    test('a built-in model gets fallbacks by an entry of two keys', async () => {
      const reply = await ask(surface, key, { model: 'sandbox/echo' })
      expect([reply.status, modelsIn(reply.text)]).toEqual([200, ['sandbox/echo']])
    })
  })

  const limit = (id: string, limits: object) =>
    tenancy.must('PUT', `/api/projects/${id}/limits`, { spend_limits: [{ window: 'day', ...limits }] })

  test('one whose spend limit has no room is left out, because the caller did not ask for it', async () => {
    const limited = await tenancy.tenant({ credit: '1' })
    // 100 tokens of two/large hold $0.0003.
    await limit(limited.projectId, { models: 'two/*', limit: '0.0001', then: 'three/small' })
    const reply = await ask(chat, limited.key, { model: 'one/large' })
    expect([reply.status, modelsIn(reply.text), reply.warnings]).toEqual([200, ['one/large'], null])
    const explained = await recorded(reply.id)
    expect([explained.held, explained.notes]).toEqual([
      '0.0002',
      [
        'Project "a project" with two/* has no room in the spend limit of $0.0001 per day, so two/large is not a fallback of this request',
      ],
    ])
    expect(explained.candidates.map(({ provider }: { provider: string }) => provider)).toEqual(['one', 'three'])
    upstream.calls.length = 0
    down.add('one')
    expect(modelsIn((await ask(chat, limited.key, { model: 'one/large' })).text)).toEqual(['three/small'])
    expect(called()).toEqual(['one', 'three'])
    await recover()
    // What was asked for, and what the caller named, must fit.
    const asked = await ask(chat, limited.key, { model: 'two/large' })
    expect([modelsIn(asked.text), asked.warnings]).toEqual([
      ...[['three/small'], 'model_by_spend_limit=three/small;field=/model'],
    ])
    await limit(limited.projectId, { models: 'two/*', limit: '0.0001' })
    expect((await ask(chat, limited.key, { model: 'one/large', models: ['two/large'] })).status).toBe(429)
  })

  test('one whose spend limit is nearly reached does not slow the requested model down', async () => {
    const limited = await tenancy.tenant({ credit: '1' })
    await limit(limited.projectId, { models: 'two/*', limit: '0.00042', slow_down: 1 })
    // Six answers of 20 tokens are $0.00036, 86 %. What is left is enough for one more.
    for (let calls = 0; calls < 6; calls++)
      expect((await ask(chat, limited.key, { model: 'two/large', models: [], max_tokens: 20 })).status).toBe(200)
    for (let calls = 0; calls < 3; calls++) {
      const reply = await ask(chat, limited.key, { model: 'one/large', max_tokens: 20 })
      expect([reply.status, modelsIn(reply.text), reply.warnings]).toEqual([200, ['one/large'], null])
    }
    const slowed = await ask(chat, limited.key, { model: 'two/large', models: [], max_tokens: 20 })
    expect(slowed.warnings).toBe('slowed_by_spend_limit=1_per_minute;field=')
  })

  test('the plan and the catalog show them', async () => {
    const plan = await tenancy.must('GET', `/api/models/${encodeURIComponent('one/large')}/plan?surface=chat`)
    const places = plan.candidates.map((each: Record<string, unknown>) => [each.place, each.model, each.provider])
    expect(places).toEqual([
      [1, 'one/large', 'one'],
      [2, 'two/large', 'two'],
      [3, 'three/small', 'three'],
    ])
    const { data } = await tenancy.must('GET', '/api/catalog?limit=200')
    const shown = data.flatMap(({ id, fallbacks }: Record<string, unknown>) => (fallbacks ? [[id, fallbacks]] : []))
    expect(shown).toEqual([
      ['one/large', ['two/large', 'three/small']],
      ['sandbox/echo', ['one/alone']],
      ['two/large', ['one/large']],
    ])
  })
})

describe('the official clients', () => {
  test.each([...chatClientNames, ...messageClientNames])('%s see which model answered', async (name) => {
    start()
    const gateway = await startGateway({ config: config(upstream.url) })
    down.add('one')
    const settings = { apiKey: gateway.key, baseURL: gateway.url }
    const body = { model: 'one/large', max_tokens: 50, messages: [{ role: 'user' as const, content: 'hi' }] }
    const found: unknown[] = []
    if (name === 'anthropic 1' || name === 'anthropic 0') {
      const client = createMessageClient(name, settings)
      found.push((await client.messages.create(body)).model, (await client.messages.stream(body).finalMessage()).model)
    } else {
      const client = createChatClient(name, { ...settings, baseURL: `${gateway.url}/v1` })
      const { data, response } = await client.chat.completions.create(body).withResponse()
      found.push(data.model)
      expect(response.headers.get('x-tollgate-warnings')).toBe(warning('two/large'))
      for await (const { model } of await client.chat.completions.create({ ...body, stream: true })) found.push(model)
      const asked = { model: 'one/large', input: 'hi' }
      found.push((await client.responses.create(asked)).model)
      found.push((await client.responses.stream(asked).finalResponse()).model)
    }
    expect(found.length).toBeGreaterThan(1)
    expect([...new Set(found)]).toEqual(['two/large'])
    await stopAll(gateway, upstream)
    down.clear()
  })
})
