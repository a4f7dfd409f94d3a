// POST /v1/responses/compact: passed to providers of the same API that have it, billed by the usage that they report, and a
// 404 elsewhere, which says nothing about the health of a route.

import { afterAll, expect, test } from 'bun:test'
import { post as postTo } from './parts/ask.ts'
import { responsesConfig, startGateway, stopAll } from './parts/gateway.ts'
import { manage } from './parts/manage.ts'
import { startUpstream } from './parts/upstream.ts'
import { answerHello } from './parts/upstream-words.ts'

let compacts = true
const compacted = {
  ...{ id: 'resp_c1', object: 'response.compaction', created_at: 1 },
  output: [{ type: 'compaction', id: 'cmp_1', encrypted_content: 'opaque' }],
  usage: { input_tokens: 1000, output_tokens: 100, total_tokens: 1100 },
}
const upstream = startUpstream(async (call, reply) => {
  if (!call.path.endsWith('/compact')) return await answerHello(call, reply)
  const json = { 'content-type': 'application/json' }
  if (compacts) return await reply.send(200, json, JSON.stringify(compacted))
  await reply.send(404, json, JSON.stringify({ error: { message: 'Not Found', type: 'invalid_request_error' } }))
})
const gateway = await startGateway({ config: responsesConfig(upstream.url) })
afterAll(() => stopAll(gateway, upstream))

const post = async (path: string, body: object) => {
  const response = await postTo(gateway, `/v1${path}`, body)
  // biome-ignore lint/suspicious/noExplicitAny: answers of every kind.
  return { status: response.status, headers: response.headers, body: (await response.json()) as any }
}
const input = [{ role: 'user', content: 'a long story' }]

test('a provider that compacts gets the body as it was sent, and its usage is charged', async () => {
  compacts = true
  const { status, headers, body } = await post('/responses/compact', {
    model: 'test/responses',
    input,
    instructions: 'x',
  })
  expect(status).toBe(200)
  const call = upstream.calls.at(-1)
  expect(call?.path).toBe('/v1/responses/compact')
  expect(call?.json()).toEqual({ model: 'upstream-responses-1', input, instructions: 'x' })
  // 1000 × 1 µ$ + 100 × 2 µ$
  expect(body).toMatchObject({ ...compacted, usage: { ...compacted.usage, cost: 0.0012 } })
  expect(headers.get('x-tollgate-cost')).toBe('0.0012')
  const { charge } = await manage(gateway, 'GET', `/api/requests/${headers.get('x-request-id')}`)
  expect(charge.charged).toBe('0.0012')
})

test('a provider without compaction is a 404 before anything is sent', async () => {
  const before = upstream.calls.length
  for (const model of ['test/chat', 'test/messages']) {
    const { status, body } = await post('/responses/compact', { model, input })
    expect([status, body.error.code]).toEqual([404, 'NOT_FOUND'])
    expect(body.error.message).toContain('compacts')
  }
  expect(upstream.calls.length).toBe(before)
})

test('a provider of the same API that has no such path is a 404, costs nothing and stays healthy', async () => {
  compacts = false
  const wallet = async () => {
    const { data } = await manage(gateway, 'GET', '/api/workspaces')
    return await manage(gateway, 'GET', `/api/workspaces/${data[0].id}/wallet`)
  }
  const { balance } = await wallet()
  for (let times = 0; times < 10; times++) {
    expect((await post('/responses/compact', { model: 'test/responses', input })).status).toBe(404)
  }
  expect((await wallet()).balance).toBe(balance)
  const { data } = await manage(gateway, 'GET', '/api/catalog')
  const model = data.find(({ id }: { id: string }) => id === 'test/responses')
  expect(model.routes[0].health).toBe('healthy')
  expect((await post('/responses', { model: 'test/responses', input })).status).toBe(200)
})

test('bad bodies are named', async () => {
  for (const [body, param] of [
    [{ model: 'test/responses' }, 'input'],
    [{ model: 'test/responses', input, previous_response_id: 'resp_1' }, 'previous_response_id'],
    [{ input }, 'model'],
  ] as const) {
    expect(await post('/responses/compact', body)).toMatchObject({ status: 400, body: { error: { param } } })
  }
})
