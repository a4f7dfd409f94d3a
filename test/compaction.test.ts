// POST /v1/responses/compact: passed to providers of the same API that have it, and elsewhere a summary by the model. Billed by
// the reported usage. All amounts are worked out by hand.

import { afterAll, expect, test } from 'bun:test'
import { post as postTo } from './parts/ask.ts'
import { everyConfig, startGateway, stopAll } from './parts/gateway.ts'
import { manage } from './parts/manage.ts'
import { startUpstream } from './parts/upstream.ts'
import { answerHello, answerWith } from './parts/upstream-words.ts'

let compacts = true
let isSilent = false
const compacted = {
  ...{ id: 'resp_c1', object: 'response.compaction', created_at: 1 },
  output: [{ type: 'compaction', id: 'cmp_1', encrypted_content: 'opaque' }],
  usage: { input_tokens: 1000, output_tokens: 100, total_tokens: 1100 },
}
const upstream = startUpstream(async (call, reply) => {
  if (isSilent) return await answerWith({ input: 3, output: 0 }, [])(call, reply)
  if (!call.path.endsWith('/compact')) return await answerHello(call, reply)
  const json = { 'content-type': 'application/json' }
  if (compacts) return await reply.send(200, json, JSON.stringify(compacted))
  await reply.send(404, json, JSON.stringify({ error: { message: 'Not Found', type: 'invalid_request_error' } }))
})
const gateway = await startGateway({ config: everyConfig(upstream.url) })
afterAll(() => stopAll(gateway, upstream))

const post = async (path: string, body: object) => {
  const response = await postTo(gateway, `/v1${path}`, body)
  // biome-ignore lint/suspicious/noExplicitAny: answers of every kind.
  return { status: response.status, headers: response.headers, body: (await response.json()) as any }
}
const input = [{ role: 'user', content: 'a long story' }]

/** In millionths of a dollar. */
async function balance(): Promise<number> {
  const { data } = await manage(gateway, 'GET', '/api/workspaces')
  const wallet = await manage(gateway, 'GET', `/api/workspaces/${data[0].id}/wallet`)
  return Math.round(Number(wallet.balance) * 1e6)
}

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

const models = ['test/chat', 'test/messages', 'test/gemini']

test.each(models)('%s, whose provider has no compaction, is asked for a summary', async (model) => {
  const before = await balance()
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }]
  const { status, headers, body } = await post('/responses/compact', { model, input, instructions: 'Be kind.', tools })
  expect(status).toBe(200)
  // 3 tokens in at 1 µ$ and 2 out at 2 µ$.
  const cost = 0.000007
  expect(body).toEqual({
    id: expect.stringMatching(/^resp_/),
    object: 'response.compaction',
    created_at: expect.any(Number),
    output: [{ id: expect.stringMatching(/^cmp_/), type: 'compaction', encrypted_content: expect.any(String) }],
    usage: {
      ...{ input_tokens: 3, output_tokens: 2, total_tokens: 5, cost },
      input_tokens_details: expect.objectContaining({ cached_tokens: 0 }),
      output_tokens_details: { reasoning_tokens: 0 },
    },
  })
  expect(body.output[0].encrypted_content).not.toContain('hello')
  expect([headers.get('x-tollgate-cost'), before - (await balance())]).toEqual(['0.000007', 7])
  const sent = JSON.stringify(upstream.calls.at(-1)?.json())
  for (const part of ['a long story', 'Be kind.', 'Summarize our conversation so far']) expect(sent).toContain(part)
})

test.each([...models, 'test/responses'])('its summary is what %s reads in place of the conversation', async (model) => {
  compacts = false
  const { output } = (await post('/responses/compact', { model: 'test/chat', input })).body
  const next = { role: 'user', content: 'Go on.' }
  const { status, headers } = await post('/responses', { model, input: [...output, next] })
  expect([status, headers.get('x-tollgate-warnings')]).toEqual([200, null])
  const sent = JSON.stringify(upstream.calls.at(-1)?.json())
  expect(sent).toContain('Summary of the conversation so far, which it replaces:\\n\\nhello')
  expect(sent).not.toContain('encrypted_content":"tgr1')
  expect(sent).not.toContain('a long story')

  // Of another workspace, and changed.
  const [item] = output
  const { encrypted_content: content } = item
  const at = content.length - 3
  const changed = `${content.slice(0, at)}${content[at] === 'A' ? 'B' : 'A'}${content.slice(at + 1)}`
  const forged = await post('/responses', { model, input: [{ ...item, encrypted_content: changed }, next] })
  expect([forged.status, forged.body.error.param]).toEqual([400, 'input[0].encrypted_content'])
})

test('a summary can be compacted again', async () => {
  const { output } = (await post('/responses/compact', { model: 'test/chat', input })).body
  const again = await post('/responses/compact', { model: 'test/messages', input: [...output, ...input] })
  expect([again.status, again.body.output[0].type]).toEqual([200, 'compaction'])
  expect(JSON.stringify(upstream.calls.at(-1)?.json())).toContain('which it replaces:\\n\\nhello')
})

test('the compaction of a provider is left out for others, with a warning', async () => {
  const item = { type: 'compaction', id: 'cmp_1', encrypted_content: 'opaque' }
  const { status, headers } = await post('/responses', { model: 'test/chat', input: [item, ...input] })
  expect([status, headers.get('x-tollgate-warnings')]).toEqual([200, 'item_dropped;field=/input/0'])
})

test('a provider of the same API that has no such path is asked for a summary, and stays healthy', async () => {
  compacts = false
  for (let times = 0; times < 6; times++) {
    const before = upstream.calls.length
    const { status, body } = await post('/responses/compact', { model: 'test/responses', input })
    expect([status, body.output[0].type]).toEqual([200, 'compaction'])
    const paths = upstream.calls.slice(before).map(({ path }) => path)
    expect(paths).toEqual(['/v1/responses/compact', '/v1/responses'])
  }
  const { data } = await manage(gateway, 'GET', '/api/catalog')
  const model = data.find(({ id }: { id: string }) => id === 'test/responses')
  expect(model.routes[0].health).toBe('healthy')
})

test('a summary without text is an error and costs nothing', async () => {
  const before = await balance()
  isSilent = true
  const { status, body } = await post('/responses/compact', { model: 'test/chat', input })
  isSilent = false
  expect([status, body.object, await balance()]).toEqual([503, undefined, before])
})

test('the sandbox compacts', async () => {
  const { status, body } = await post('/responses/compact', { model: 'sandbox/echo', input })
  expect([status, body.object, body.output[0].type]).toEqual([200, 'response.compaction', 'compaction'])
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
