// What a spend limit does besides refusing: another model answers, or requests are slowed down. Always within the limit, at the
// price of the model that answers, and never silently. All amounts are worked out by hand: a call of `acme/large` costs
// $0.00005 and holds $0.0001; one of `acme/small` costs and holds a tenth.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { verify } from '../../src/ledger/verify.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { ask as askGateway } from '../parts/ask.ts'
import { forEachEngine, type Place } from '../parts/engines.ts'
import { stopAll } from '../parts/gateway.ts'
import { allSurfaces, chat, inWordsOf, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { answerWith } from '../parts/upstream-words.ts'
import { acmeConfig, outputPriced, startTenancy, type Tenancy, until } from './tenancy.ts'

const answer = answerWith({ input: 3, output: 50 })
const at = (output: string) => `price: { input: "0", output: "${output}" }, max_output_tokens: 1000`

forEachEngine((engine) => {
  let upstream: Upstream
  let tenancy: Tenancy
  let place: Place

  beforeAll(async () => {
    upstream = startUpstream(answer)
    place = await engine.createPlace()
    const config = acmeConfig(upstream.url, { ...outputPriced, small: at('0.10'), tiny: at('0.10'), gift: 'tags: []' })
    tenancy = await startTenancy({ engine: { ...engine, createPlace: async () => place }, config })
  })

  afterAll(() => stopAll(tenancy, upstream))

  async function ask(secret: string, more: object = {}, { surface = chat, headers = {} } = {}) {
    const members = { model: 'acme/large', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }], ...more }
    const response = await askGateway(
      { ...tenancy.gateway, key: secret },
      surface as TestSurface,
      inWordsOf(surface as TestSurface, members),
      headers,
    )
    const text = await response.text()
    const models = new Set([...text.matchAll(/"model(?:Version)?":\s*"([^"]*)"/g)].map(([, model]) => model))
    return {
      ...{ status: response.status, text, models: [...models], id: response.headers.get('x-request-id') },
      ...{ warnings: response.headers.get('x-tollgate-warnings'), headers: response.headers },
    }
  }

  const limit = (kind: 'projects' | 'workspaces' | 'keys', id: string, ...limits: object[]) =>
    tenancy.must('PUT', `/api/${kind}/${id}/limits`, { spend_limits: limits })

  async function recorded(id: string | null) {
    const find = () => tenancy.api('GET', `/api/requests/${id}`)
    await until(async () => (await find()).status === 200)
    return (await find()).body
  }

  const spentOf = async (projectId: string) => {
    const { spend } = await tenancy.must('GET', `/api/projects/${projectId}`)
    return spend.map(({ spent }: { spent: string }) => spent)
  }

  describe.each(allSurfaces)('another model on $name', (surface) => {
    test.each([false, true])('answers at its own price once the limit has no room; streamed: %p', async (stream) => {
      const { projectId, key } = await tenancy.tenant({ credit: '1' })
      await limit('projects', projectId, {
        ...{ models: '!acme/small', window: 'day', limit: '0.0002', then: 'acme/small' },
      })
      const streamed = stream ? { stream } : {}
      // n × $0.00005 + $0.0001 ≤ $0.0002 while n ≤ 2.
      for (let calls = 0; calls < 3; calls++) {
        const reply = await ask(key, streamed, { surface })
        expect([reply.status, reply.models, reply.warnings]).toEqual([200, ['acme/large'], null])
      }
      const reply = await ask(key, streamed, { surface })
      expect([reply.status, reply.models]).toEqual([200, ['acme/small']])
      expect(reply.warnings).toBe('model_by_spend_limit=acme/small;field=/model')
      const { notes, ...explained } = await recorded(reply.id)
      expect(explained).toMatchObject({
        model: 'acme/small',
        requested_model: 'acme/large',
        charge: { charged: '0.000005' },
      })
      expect(explained.warnings).toContain('model_by_spend_limit=acme/small /model')
      expect(notes).toEqual([
        'Project "a project" with !acme/small reached the spend limit of $0.0002 per day, so acme/small is used instead of acme/large',
      ])
      expect(await spentOf(projectId)).toEqual(['0.00015'])
    })
  })

  test('has limits of its own, which may name a third one; the last one refuses', async () => {
    const { projectId, key } = await tenancy.tenant({ credit: '1' })
    await limit(
      'projects',
      projectId,
      { models: 'acme/large', window: '5h', limit: '0.0001', then: 'acme/small' },
      { models: 'acme/small', window: 'week', limit: '0.00001', then: 'acme/tiny' },
      { models: 'acme/tiny', window: 'month', limit: '0.00001' },
    )
    const models: unknown[] = []
    for (let reply = await ask(key); reply.status === 200; reply = await ask(key)) models.push(reply.models[0])
    expect(models).toEqual(['acme/large', 'acme/small', 'acme/tiny'])
    const refused = await ask(key)
    expect([refused.status, refused.headers.get('x-should-retry')]).toEqual([429, 'false'])
    expect(refused.text).toContain('acme/tiny has used $0.000005 of $0.00001 per month')
    expect(await spentOf(projectId)).toEqual(['0.00005', '0.000005', '0.000005'])
  })

  test('is not used for a strict caller, nor for a key that may not use it, and a circle ends', async () => {
    const { workspaceId, projectId, key } = await tenancy.tenant({ credit: '1' })
    await limit('projects', projectId, { models: 'acme/large', window: 'day', limit: '0.00009', then: 'acme/small' })
    expect((await ask(key)).models).toEqual(['acme/small'])
    const strict = await ask(key, {}, { headers: { 'x-tollgate-strict': 'true' } })
    expect([strict.status, strict.text.includes('acme/large has used $0.00')]).toEqual([429, true])
    const narrow = await tenancy.key(projectId, { models: ['acme/large'] })
    const hidden = await ask(narrow.secret)
    expect(hidden.status).toBe(429)
    expect(hidden.text).toContain('The model that the limit names cannot be used: No model `acme/small`.')
    await limit('workspaces', workspaceId, {
      models: 'acme/small',
      window: 'day',
      limit: '0.000009',
      then: 'acme/large',
    })
    const circle = await ask(key)
    expect([circle.status, circle.text.includes('acme/small has used')]).toEqual([429, true])
  })

  test('one that cannot be used is refused when the limit is set, by name', async () => {
    const { projectId, keyId } = await tenancy.tenant()
    await tenancy.must('PATCH', `/api/projects/${projectId}`, { models: ['acme/large', 'acme/small', 'acme/gift'] })
    const put = async (...limits: object[]) => {
      const spend_limits = limits.map((each) => ({ models: 'acme/large', window: 'day', limit: '1', ...each }))
      const { status, body } = await tenancy.api('PUT', `/api/keys/${keyId}/limits`, { spend_limits })
      return [status, body.error?.message ?? body.spend_limits]
    }
    expect(await put({ then: 'acme/none' })).toEqual([
      ...[
        400,
        '`spend_limits`: `then` names acme/none, but the catalog has no such model. Name one that can be called.',
      ],
    ])
    expect((await put({ then: 'acme/gift' }))[1]).toContain('acme/gift, but that model has no price')
    expect((await put({ then: 'acme/tiny' }))[1]).toContain('acme/tiny, but the allowlist does not allow that model')
    expect((await put({ then: 'acme/*' }))[1]).toContain("`spend_limits[0].then` must be a model's id")
    expect((await put({ then: 'acme/large' }))[1]).toContain('which counts in the same limit')
    expect((await put({ models: null, then: 'acme/small' }))[1]).toContain(
      'such as "!acme/small" for every other model',
    )
    expect((await put({ then: 'acme/small' }, { models: 'acme/sm*', then: 'acme/large' }))[1]).toContain(
      '`then` leads in a circle, acme/small → acme/large → acme/small. Remove one of them.',
    )
    expect((await put({ slow_down: 0 }))[0]).toBe(400)
    expect((await put({ models: '!' }))[1]).toContain('or `!` and one of these for every other model')
    const created = await tenancy.api('POST', `/api/projects/${projectId}/keys`, {
      name: 'k',
      models: ['acme/large'],
      limits: { spend_limits: [{ models: 'acme/large', window: 'day', limit: '1', then: 'acme/small' }] },
    })
    expect([created.status, created.body.error.param]).toEqual([400, 'limits.spend_limits'])
    const limits = {
      subject: 'all',
      models: '!acme/small',
      window: '5h',
      limit: '1.00',
      then: 'acme/small',
      slow_down: 6,
    }
    expect(await put(limits)).toEqual([200, [limits]])
  })

  test('one that cannot be used any more does not keep the other limits from being changed', async () => {
    const { projectId } = await tenancy.tenant()
    const spend_limits = [{ subject: 'all', models: 'acme/large', window: 'day', limit: '1.00', then: 'acme/small' }]
    const put = async (limits: object) => (await tenancy.api('PUT', `/api/projects/${projectId}/limits`, limits)).status
    expect(await put({ spend_limits })).toBe(200)
    await tenancy.must('PATCH', `/api/projects/${projectId}`, { models: ['acme/large'] })
    const { limits } = await tenancy.must('GET', `/api/projects/${projectId}`)
    expect(limits).toEqual({ spend_limits })
    expect(await put({ ...limits, requests_per_minute: 60 })).toBe(200)
    // A limit that names it anew is refused.
    expect([await put({}), await put({ spend_limits })]).toEqual([200, 400])
  })

  test('from 80 % on a limit admits so many requests per minute, of all its keys together', async () => {
    const { projectId, key } = await tenancy.tenant({ credit: '1' })
    const other = await tenancy.key(projectId)
    await limit('projects', projectId, { window: 'day', limit: '0.001', slow_down: 2 })
    // Sixteen calls are 80 %.
    for (let calls = 0; calls < 16; calls++) {
      const reply = await ask(key)
      expect([reply.status, reply.warnings]).toEqual([200, null])
    }
    for (const secret of [key, other.secret]) {
      const reply = await ask(secret)
      expect([reply.status, reply.warnings]).toEqual([200, 'slowed_by_spend_limit=2_per_minute;field='])
      expect(reply.headers.get('x-ratelimit-limit-requests')).toBe('2')
    }
    const refused = await ask(key)
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeWithin(1, 31)
    expect(refused.headers.get('x-should-retry')).not.toBe('false')
    expect(JSON.parse(refused.text).error.message).toStartWith(
      'Project "a project" has used $0.0009 of $0.001 per day, which slows it down to 2 requests per minute from 80 % on. Retry in ',
    )
    // Nothing is held for a request that was slowed down: another limit has as much room as before.
    expect(await spentOf(projectId)).toEqual(['0.0009'])
    await limit('projects', projectId, { window: 'day', limit: '0.002', slow_down: 2 })
    const faster = await ask(key)
    expect([faster.status, faster.warnings]).toEqual([200, null])
  })

  test('the books are right afterwards', async () => {
    const database = await openDatabase({ url: place.url, dataFolder: tenancy.gateway.dataFolder })
    expect((await verify(database)).findings).toEqual([])
    const held = await database.sql<{ held: bigint }>`SELECT held FROM budgets WHERE held <> 0`
    expect(held).toEqual([])
    await database.close()
  })
})
