// The cost of a call on a workspace's own provider key, and what happens if that key does not work.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { forEachEngine } from '../parts/engines.ts'
import { stopAll } from '../parts/gateway.ts'
import { allSurfaces, chat } from '../parts/surfaces.ts'
import { startUpstream, type Upstream, type UpstreamHandler } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'
import { acmeConfig, failureOf, startTenancy, type Tenancy } from './tenancy.ts'

let upstream: Upstream
let free: Tenancy
let charging: Tenancy

/** 3 tokens in at $3.00 and 2 out at $15.00 a million: $0.000009 + $0.00003 = $0.000039. */
const cost = '0.000039'
/** Five percent of that. */
const fee = '0.00000195'

const ownKey = 'key-of-the-tenant'
const operatorsKey = 'key-of-the-operator'

const answers: UpstreamHandler = (call, reply) =>
  reply.send(200, { 'content-type': 'application/json' }, wordsFor(call).whole)

/** As a provider does to one key and not to the other. */
const refusesOwn: UpstreamHandler = (call, reply) =>
  call.headers.get('authorization') === `Bearer ${ownKey}`
    ? reply.json(401, { error: { message: `Incorrect API key provided: ${ownKey}`, type: 'invalid_request_error' } })
    : answers(call, reply)

const config = (url: string, fees: string) =>
  acmeConfig(
    url,
    { large: 'price: { input: "3.00", output: "15.00" }, max_output_tokens: 1000' },
    `own_keys: { ${fees} }`,
  )

async function ownTenant(tenancy: Tenancy, credit?: string) {
  const tenant = await tenancy.tenant(credit === undefined ? {} : { credit })
  await tenancy.must('PUT', `/api/workspaces/${tenant.workspaceId}/credentials/acme`, { api_key: ownKey })
  return tenant
}

async function chargesOf(tenancy: Tenancy, workspaceId: string) {
  const { data } = await tenancy.must('GET', `/api/workspaces/${workspaceId}/transfers`)
  return (data as { kind: string; amount: string; price_version: string | null; request_id: string }[])
    .filter(({ kind }) => kind === 'charge')
    .map(({ amount, price_version }) => ({ amount, isPriced: price_version !== null }))
}

/** The last request of a workspace, explained. */
async function explained(tenancy: Tenancy, workspaceId: string) {
  const { data } = await tenancy.must('GET', `/api/requests?workspace_id=${workspaceId}&limit=1`)
  return await tenancy.must('GET', `/api/requests/${data[0].id}`)
}

const keysSent = () => upstream.calls.map(({ headers }) => headers.get('authorization'))

forEachEngine((engine) => {
  beforeAll(async () => {
    upstream = startUpstream(answers)
    free = await startTenancy({ engine, config: config(upstream.url, '') })
    charging = await startTenancy({ engine, config: config(upstream.url, 'fee_percent: 5') })
  })

  beforeEach(() => {
    upstream.handle(answers, 'stay unasked')
    upstream.calls.length = 0
  })

  afterAll(() => stopAll(free, charging, upstream))

  test('without a fee an empty wallet may be used; the request is recorded and costs nothing', async () => {
    const { workspaceId, key } = await ownTenant(free)
    for (const surface of allSurfaces) {
      const reply = await free.generate(surface, key, 'acme/large')
      expect([reply.status, reply.headers.get('x-tollgate-cost')]).toEqual([200, '0.00'])
    }
    expect(keysSent()).toEqual(allSurfaces.map(() => `Bearer ${ownKey}`))
    const { data } = await free.must('GET', `/api/requests?workspace_id=${workspaceId}`)
    const record = { model: 'acme/large', status: 200, cost: '0.00', usage: { input_tokens: 3, output_tokens: 2 } }
    expect(data).toMatchObject(allSurfaces.map(() => record))
    expect(await chargesOf(free, workspaceId)).toMatchObject(allSurfaces.map(() => ({ amount: '0.00' })))
    expect(await explained(free, workspaceId)).toMatchObject({
      ...{ price_version: null, charge: null, cost: '0.00' },
      transfers: [{ kind: 'charge', amount: '0.00' }],
    })
    const wallet = await free.must('GET', `/api/workspaces/${workspaceId}/wallet`)
    expect(wallet).toEqual({ balance: '0.00', held: '0.00', available: '0.00', credit: '0.00', currency: 'USD' })
  })

  test('with a fee a request costs exactly the fee, and an empty wallet is refused', async () => {
    const { workspaceId, key } = await ownTenant(charging, '1')
    for (const surface of allSurfaces) {
      const reply = await charging.generate(surface, key, 'acme/large')
      expect([reply.status, reply.headers.get('x-tollgate-cost')]).toEqual([200, fee])
    }
    expect(await chargesOf(charging, workspaceId)).toMatchObject(allSurfaces.map(() => ({ amount: fee })))
    expect(await explained(charging, workspaceId)).toMatchObject({
      ...{ price_version: 'acme/large#own#1', cost: fee, transfers: [{ kind: 'charge', amount: fee }] },
      charge: { price_source: expect.stringMatching(/^5 % of /), total: fee, charged: fee },
    })
    const { balance } = await charging.must('GET', `/api/workspaces/${workspaceId}/wallet`)
    // Four times the fee.
    expect(balance).toBe('0.9999922')
    const { key: poor } = await ownTenant(charging)
    const refused = await charging.generate(chat, poor, 'acme/large')
    expect([refused.status, failureOf(chat, refused)[0]]).toEqual([402, 'INSUFFICIENT_BALANCE'])
  })

  test('with shared routes the operator’s key is tried after a failing own key, at the usual price', async () => {
    const { workspaceId, key } = await ownTenant(charging, '1')
    upstream.handle(refusesOwn)
    await charging.must('PATCH', `/api/workspaces/${workspaceId}`, { shares_routes: true })
    const reply = await charging.generate(chat, key, 'acme/large')
    expect([reply.status, reply.headers.get('x-tollgate-cost')]).toEqual([200, cost])
    expect(reply.headers.get('x-tollgate-attempts')).toBe('2')
    expect(keysSent()).toEqual([`Bearer ${ownKey}`, `Bearer ${operatorsKey}`])
    expect(await chargesOf(charging, workspaceId)).toEqual([{ amount: cost, isPriced: true }])
    expect((await explained(charging, workspaceId)).charge).toMatchObject({ total: cost, charged: cost })
  })

  test("K: a rejected own key is reported as the workspace's, and the operator's is neither used nor marked unhealthy", async () => {
    const { key } = await ownTenant(charging, '1')
    upstream.handle(refusesOwn)
    for (const surface of allSurfaces) {
      const reply = await charging.generate(surface, key, 'acme/large')
      const [code, message] = failureOf(surface, reply)
      expect([reply.status, code]).toEqual([404, 'NOT_FOUND'])
      expect(message).toContain("the workspace's own credential")
      expect(reply.text).not.toContain(ownKey)
    }
    expect(keysSent().filter((sent) => sent === `Bearer ${operatorsKey}`)).toEqual([])
    const { key: other } = await charging.tenant({ credit: '1' })
    expect((await charging.generate(chat, other, 'acme/large')).status).toBe(200)
    const { data } = await charging.must('GET', '/api/catalog')
    const model = (data as { id: string; routes: { health: string }[] }[]).find(({ id }) => id === 'acme/large')
    expect(model?.routes).toMatchObject([{ provider: 'acme', health: 'healthy' }])
  })

  test('a provider without keys is not found and not suggested', async () => {
    const { workspaceId } = await free.tenant()
    for (const provider of ['sandbox', 'sandbo', 'nobody']) {
      const reply = await free.api('PUT', `/api/workspaces/${workspaceId}/credentials/${provider}`, { api_key: ownKey })
      expect([provider, reply.status, reply.body.error.code]).toEqual([provider, 404, 'NOT_FOUND'])
      expect(reply.body.error.message).toBe(`There is no provider \`${provider}\` that takes a key.`)
    }
    const near = await free.api('PUT', `/api/workspaces/${workspaceId}/credentials/acm`, { api_key: ownKey })
    expect(near.body.error.message).toEndWith('Did you mean `acme`?')
  })

  test('a provider without a default address needs one with the key', async () => {
    const { workspaceId } = await free.tenant()
    for (const provider of ['amazon-bedrock', 'azure']) {
      const reply = await free.api('PUT', `/api/workspaces/${workspaceId}/credentials/${provider}`, { api_key: ownKey })
      expect([provider, reply.status, reply.body.error.param]).toEqual([provider, 400, 'base_url'])
      expect(reply.body.error.message).toBe(
        `This gateway knows no address of ${provider}. Its operator can set the variables of that provider, or \`own_keys.base_urls\` so that you can send one.`,
      )
    }
  })

  test('a replaced key is used by the next request; after a delete the operator’s is used', async () => {
    const { workspaceId, key } = await ownTenant(free, '1')
    const credential = `/api/workspaces/${workspaceId}/credentials/acme`
    await free.generate(chat, key, 'acme/large')
    await free.must('PUT', credential, { api_key: 'another-key' })
    await free.generate(chat, key, 'acme/large')
    await free.api('DELETE', credential)
    await free.generate(chat, key, 'acme/large')
    expect(keysSent()).toEqual([`Bearer ${ownKey}`, 'Bearer another-key', `Bearer ${operatorsKey}`])
  })
})
