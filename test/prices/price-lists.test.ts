// Price lists: what one workspace pays instead of the catalog's prices, from its next request on, exact to the nano-dollar.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readRecomputeCharge } from '../../src/catalog/price-versions.ts'
import { verify } from '../../src/ledger/verify.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { forEachEngine } from '../parts/engines.ts'
import { allSurfaces, chat } from '../parts/surfaces.ts'
import type { UpstreamReply } from '../parts/upstream.ts'
import { usageIn, wordsOf } from '../parts/upstream-words.ts'
import { ask, type Tenant } from '../tenancy/tenancy.ts'
import { explained, openPriced, type PricedGateway, used } from './priced-gateway.ts'

const usage = usageIn('chat', used)
const words = wordsOf('chat')

/** 130 in at $1.00 and 50 out at $2.00 per million, then with the markups of the tests. */
const costs = { catalog: '0.00023', plus20: '0.000276', explicit: '0.00075' }

const config = (url: string) => `
providers:
  - { id: acme, dialect: openai-chat, base_url: "${url}/v1", api_key: key-of-the-operator }
models:
  - id: acme/large
    price: { input: "1.00", output: "2.00" }
    routes: [{ provider: acme, model: u, cost: { input: "0.90", output: "1.80" } }]
  - { id: acme/small, price: { input: "1.00", output: "2.00" }, routes: [{ provider: acme, model: s }] }
`

forEachEngine((engine) => {
  let priced: PricedGateway
  let other: Tenant
  beforeAll(async () => {
    priced = await openPriced({ engine, config })
    other = await priced.tenancy.tenant({ credit: '10' })
  })
  afterAll(() => priced[Symbol.asyncDispose]())

  const put = (name: string, body: object) => priced.tenancy.api('PUT', `/api/price-lists/${name}`, body)
  const assign = (list: string | null) =>
    priced.tenancy.api('PATCH', `/api/workspaces/${priced.tenant.workspaceId}`, { price_list: list })
  const costOf = async (key: string, model = 'acme/large') => {
    const answer = await ask(priced.tenancy.gateway.url, chat, key, model, {})
    await answer.text()
    return [answer.status, answer.headers.get('x-tollgate-cost'), answer.headers.get('x-request-id') ?? ''] as const
  }

  test('a markup applies from the next request on, to its workspace only; running requests keep their price', async () => {
    const { tenancy, tenant, upstream } = priced
    expect((await costOf(tenant.key))[1]).toBe(costs.catalog)
    const begun: UpstreamReply[] = []
    upstream.handle(async (_, reply) => {
      await reply.startStream()
      await reply.chunk(words.opening({ usage }) + words.text('first'))
      begun.push(reply)
    })
    const running = await ask(tenancy.gateway.url, chat, tenant.key, 'acme/large', { stream: true })
    upstream.handle((_, reply) => reply.json(200, words.whole({ texts: ['hello'], usage })))

    expect(await put('retail', { markup_percent: '20' })).toMatchObject({
      status: 200,
      body: { name: 'retail', markup_percent: '20', prices: {}, workspaces: 0 },
    })
    expect((await assign('retail')).body).toMatchObject({ price_list: 'retail' })
    const [status, cost, id] = await costOf(tenant.key)
    expect([status, cost]).toEqual([200, costs.plus20])
    expect(await explained(tenancy, id)).toMatchObject({
      price_version: 'acme/large#list-retail#1',
      cost: costs.plus20,
    })
    expect((await costOf(other.key))[1]).toBe(costs.catalog)

    for (const reply of begun) {
      await reply.chunk(words.text('last') + words.ending({ usage }))
      await reply.finish()
    }
    await running.text()
    const old = await explained(tenancy, running.headers.get('x-request-id') ?? '')
    expect([old.cost, old.price_version]).toEqual([costs.catalog, 'acme/large#1'])
  })

  test('an explicit price replaces the markup for its model, on every surface, until it is reset', async () => {
    const { tenancy, tenant } = priced
    const path = '/api/models/acme/large/price?list=retail'
    const set = await tenancy.api('PUT', path, { input: '5.00', output: '2.00' })
    expect(set).toMatchObject({ status: 200, body: { version: 'acme/large#list-retail#2', source: 'management API' } })
    for (const surface of allSurfaces) {
      const answer = await ask(tenancy.gateway.url, surface, tenant.key, 'acme/large', {})
      await answer.text()
      expect([surface.name, answer.headers.get('x-tollgate-cost')]).toEqual([surface.name, costs.explicit])
    }
    expect((await costOf(tenant.key, 'acme/small'))[1]).toBe(costs.plus20)
    expect((await tenancy.api('GET', '/api/price-lists')).body.data).toMatchObject([
      { name: 'retail', prices: { 'acme/large': { input: '5.00', output: '2.00' } }, workspaces: 1 },
    ])
    // Beside the price of the catalog and the cost of its routes; 20 % more than $1.00 and $2.00 for the other model.
    const { models } = (await tenancy.api('GET', '/api/price-lists/retail')).body
    const listed = (id: string) => models.find(({ model }: { model: string }) => model === id)
    expect(listed('acme/large')).toMatchObject({
      ...{ is_explicit: true, price: { input: '5.00' }, catalog_price: { input: '1.00' } },
      routes: [{ provider: 'acme', upstream_model: 'u', cost: { input: '0.90', output: '1.80' } }],
    })
    expect(listed('acme/small')).toMatchObject({
      ...{ is_explicit: false, price: { input: '1.20', output: '2.40' } },
      routes: [{ cost: null }],
    })
    expect((await tenancy.api('GET', '/api/price-lists/none')).status).toBe(404)
    expect((await tenancy.api('DELETE', path)).body).toMatchObject({ version: 'acme/large#list-retail#3' })
    expect((await costOf(tenant.key))[1]).toBe(costs.plus20)
    expect((await tenancy.api('DELETE', path)).status).toBe(404)
  })

  test('prices below the cost of a route need to be allowed; a list in use cannot be deleted', async () => {
    const { tenancy } = priced
    const below = await put('retail', { markup_percent: '-10.01' })
    expect([below.status, below.body.error.param]).toEqual([400, 'allow_below_cost'])
    expect(below.body.error.message).toContain('input of acme/large, output of acme/large')
    expect((await put('loss-leader', { markup_percent: '-50', allow_below_cost: true })).status).toBe(200)
    const path = '/api/models/acme/large/price?list=retail'
    const price = { input: '0.50', output: '2.00' }
    expect((await tenancy.api('PUT', path, price)).body.error.message).toContain('input of acme/large')
    expect((await tenancy.api('PUT', `${path}&allow_below_cost=true`, price)).status).toBe(200)
    expect((await tenancy.api('DELETE', '/api/price-lists/retail')).status).toBe(400)
    expect((await assign(null)).body.price_list).toBeNull()
    expect((await tenancy.api('DELETE', '/api/price-lists/retail')).status).toBe(204)
    expect((await costOf(priced.tenant.key))[1]).toBe(costs.catalog)
    expect((await tenancy.api('DELETE', '/api/price-lists/retail')).status).toBe(404)
  })

  test.each([
    ['a missing list', 'PATCH', (id: string) => `/api/workspaces/${id}`, { price_list: 'gone' }, 404],
    ['a markup of -100 %', 'PUT', () => '/api/price-lists/x', { markup_percent: '-100' }, 400],
    ['a markup that is a number', 'PUT', () => '/api/price-lists/x', { markup_percent: 20 }, 400],
    ['a third decimal', 'PUT', () => '/api/price-lists/x', { markup_percent: '1.005' }, 400],
    ['a name with a slash', 'PUT', () => '/api/price-lists/a%2Fb', { markup_percent: '1' }, 404],
    [
      'a price in a missing list',
      'PUT',
      () => '/api/models/acme/large/price?list=gone',
      { input: '1', output: '1' },
      404,
    ],
  ])('%s is refused', async (_, method, path, body, status) => {
    const reply = await priced.tenancy.api(method, path(priced.tenant.workspaceId), body)
    expect(reply.status).toBe(status)
  })

  test('margins are charges less what the routes cost, and leave out routes without a known cost', async () => {
    const { tenancy } = priced
    const keyed = await tenancy.tenant({ credit: '10' })
    await put('margin', { markup_percent: '20' })
    await tenancy.must('PATCH', `/api/workspaces/${keyed.workspaceId}`, { price_list: 'margin' })
    for (const model of ['acme/large', 'acme/large', 'acme/small'])
      expect((await costOf(keyed.key, model))[0]).toBe(200)
    const read = (by: string) => tenancy.must('GET', `/api/margin?workspace_id=${keyed.workspaceId}&group_by=${by}`)
    // Each costs 130 in at $0.90 and 50 out at $1.80 per million: $0.000207; it is sold for $0.000276.
    const known = {
      requests: 2,
      charged: '0.000552',
      upstream_cost: '0.000414',
      failed_cost: '0.00',
      margin: '0.000138',
    }
    const unknown = { requests: 1, charged: '0.000276', upstream_cost: '0.00', failed_cost: '0.00', margin: '0.00' }
    expect((await read('model,route')).groups).toEqual([
      {
        ...{ values: ['acme/large', 'acme u'], names: [null, null] },
        ...{ ...known, requests_without_cost: 0, charged_without_cost: '0.00' },
      },
      {
        ...{ values: ['acme/small', 'acme s'], names: [null, null] },
        ...{ ...unknown, requests_without_cost: 1, charged_without_cost: '0.000276' },
      },
    ])
    const { total } = await read('day')
    expect(total).toEqual({
      ...{ requests: 3, charged: '0.000828', upstream_cost: '0.000414', failed_cost: '0.00', margin: '0.000138' },
      ...{ requests_without_cost: 1, charged_without_cost: '0.000276' },
    })
  })

  test('answers, request log, statement, CSV, wallet and margin agree to the nano-dollar across a change of prices', async () => {
    const { tenancy, upstream } = priced
    const { workspaceId, key } = await tenancy.tenant({ credit: '10' })
    const at = `workspace_id=${workspaceId}`
    let running: UpstreamReply | undefined
    upstream.handle(async (_, reply) => {
      await reply.startStream()
      await reply.chunk(words.opening({ usage }) + words.text('first'))
      running = reply
    })
    const more = { stream: true, stream_options: { include_usage: true } }
    const stream = await ask(tenancy.gateway.url, chat, key, 'acme/large', more)
    upstream.handle((_, reply) => reply.json(200, words.whole({ texts: ['hello'], usage })))
    await put('third', { markup_percent: '33.33' })
    await tenancy.must('PATCH', `/api/workspaces/${workspaceId}`, { price_list: 'third' })
    const marked = await costOf(key)
    const explicit = { input: '1.234567', output: '2.00' }
    await tenancy.must('PUT', '/api/models/acme/large/price?list=third', explicit)
    const priced130 = await costOf(key)
    await running?.chunk(words.text('last') + words.ending({ usage }))
    await running?.finish()
    const streamed = /"cost":([0-9.e-]+)/.exec(await stream.text())?.[1]

    // 130 in and 50 out: at $1.00 and $2.00 per million; at $1.3333 and $2.6666; at $1.234567 and $2.00, where the
    // $0.00026049371 are rounded up to a nano-dollar.
    const expected = ['0.00023', '0.000306659', '0.000260494']
    expect([streamed, marked[1], priced130[1]]).toEqual(expected)
    const ids = [stream.headers.get('x-request-id') ?? '', marked[2], priced130[2]]
    for (const id of ids) await explained(tenancy, id)
    const { data } = await tenancy.must('GET', `/api/requests?${at}`)
    const costs = new Map(data.map((request: { id: string; cost: string }) => [request.id, request.cost]))
    expect(ids.map((id) => costs.get(id))).toEqual(expected)

    const charged = '0.000797153'
    const left = '9.999202847'
    expect(await tenancy.must('GET', `/api/workspaces/${workspaceId}/wallet`)).toMatchObject({ balance: left })
    expect(await tenancy.must('GET', `/api/workspaces/${workspaceId}/statement`)).toMatchObject({
      charges: [{ model: 'acme/large', requests: 3, amount: charged, plan_credit: '0.00' }],
      closing_balance: left,
    })
    const csv = await tenancy.api('GET', `/api/workspaces/${workspaceId}/statement/export`)
    const [, ...lines] = csv.text.trim().split('\r\n')
    expect(lines.map((line) => line.slice(line.lastIndexOf(',') + 1))).toEqual(['0.00', '10.00', `-${charged}`, left])
    // Three times 130 in at $0.90 and 50 out at $1.80 per million.
    const total = {
      requests: 3,
      charged,
      upstream_cost: '0.000621',
      failed_cost: '0.00',
      margin: '0.000176153',
      requests_without_cost: 0,
    }
    for (const by of ['day', 'workspace', 'model', 'provider', 'route']) {
      const margin = await tenancy.must('GET', `/api/margin?${at}&group_by=${by}`)
      expect([by, margin.total]).toEqual([by, expect.objectContaining(total)])
      expect([by, margin.groups]).toEqual([by, [expect.objectContaining(total)]])
    }
  })

  test('the books agree with every version', async () => {
    const { databaseUrl: url, gateway } = priced.tenancy
    const database = await openDatabase({ url, dataFolder: gateway.dataFolder })
    const { findings } = await verify(database, { readPrice: readRecomputeCharge })
    await database.close()
    expect(findings).toEqual([])
  })
})
