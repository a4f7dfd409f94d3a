// The surroundings of a translated conversation: headers and versions, counting, the list of models, names in replies.
// The same on both lanes, wherever the provider's dialect could show through.

import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { ask } from '../parts/ask.ts'
import { startGateway, stopAll, upstreamConfig } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { bodyOf, bothSurfaces, messages, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type UpstreamHandler } from '../parts/upstream.ts'
import { answerHello, wordsFor } from '../parts/upstream-words.ts'

/** A day passes between two tests: what was learned of the providers' health is over. */
const clock = createJumpClock()

const hello: UpstreamHandler = (call, reply) =>
  call.path.endsWith('/count_tokens') ? reply.json(200, { input_tokens: 77 }) : answerHello(call, reply)

const upstream = startUpstream(hello)
const gateway = await startGateway({ config: upstreamConfig(upstream.url), env: { TOLLGATE_SANDBOX: 'off' }, clock })
beforeEach(() => {
  clock.jump(86_400)
  upstream.handle(hello, 'stay unasked')
})
afterAll(() => stopAll(gateway, upstream))

const models = ['test/chat', 'test/messages']
const say = (surface: TestSurface, model: string, changed: object = {}, headers: Record<string, string> = {}) =>
  ask(gateway, surface, { ...JSON.parse(bodyOf(surface)), model, ...changed }, headers)
const countPath: TestSurface = { ...messages, path: '/v1/messages/count_tokens' }
const askCount = (model: string, fields: object = {}, at = gateway) =>
  ask(at, countPath, { model, messages: [{ role: 'user', content: 'hi' }], ...fields })
const count = async (fields: object, model = 'test/chat') =>
  ((await (await askCount(model, fields)).json()) as { input_tokens: number }).input_tokens

describe('versions and keys', () => {
  test.each(['2023-06-01', '2026-10-21', '2025-01-01'])('vector 55: the version %s is taken', async (version) => {
    const response = await say(messages, 'test/chat', {}, { 'anthropic-version': version })
    expect(response.status).toBe(200)
  })

  test.each(['', 'latest'])('vector 55: the version %p is refused with what to send', async (version) => {
    const response = await say(messages, 'test/chat', {}, { 'anthropic-version': version })
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    expect([response.status, error.code]).toEqual([400, 'INVALID_REQUEST'])
    expect(error.message).toContain('anthropic-version: 2023-06-01')
  })

  test('vector 55, pitfall 153: a key is taken in either header on either surface, and goes no further', async () => {
    for (const surface of bothSurfaces) {
      for (const model of models) {
        const ways = [
          { authorization: `Bearer ${gateway.key}` },
          { authorization: '', 'x-api-key': gateway.key },
          { authorization: `Bearer ${gateway.key}`, 'x-api-key': gateway.key },
        ]
        for (const headers of ways) expect((await say(surface, model, {}, headers)).status).toBe(200)
        const { headers } = upstream.calls.at(-1) ?? {}
        expect(JSON.stringify([...(headers ?? [])])).not.toContain(gateway.key)
      }
    }
  })

  test('vector 97, pitfall 154: probes are answered without a key, and a query changes nothing', async () => {
    for (const path of ['/api/hello', '/']) {
      expect((await fetch(gateway.url + path, { method: 'HEAD' })).status).toBe(200)
    }
    const beta = { ...messages, path: '/v1/messages?beta=true' }
    expect((await say(beta, 'test/chat')).status).toBe(200)
    expect((await ask(gateway, { ...countPath, path: `${countPath.path}?beta=true` }, bodyOf(messages))).status).toBe(
      200,
    )
  })
})

describe('betas', () => {
  const fields = {
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    thinking: { type: 'adaptive' },
  }
  const headers = { 'anthropic-beta': 'context-management-2025-06-27,some-day-2027-01-01' }

  test('pitfall 8 and 150: to Anthropic the flags and the fields they unlock go together, untouched', async () => {
    await (await say(messages, 'test/messages', fields, headers)).text()
    const call = upstream.calls.at(-1)
    expect(call?.headers.get('anthropic-beta')).toBe(headers['anthropic-beta'])
    expect(call?.json()).toMatchObject(fields)
  })

  test('pitfall 8, 10 and 150: to others neither goes, edits that hang on thinking included', async () => {
    const response = await say(messages, 'test/chat', fields, headers)
    expect(response.status).toBe(200)
    const call = upstream.calls.at(-1)
    expect([...(call?.headers.keys() ?? [])].filter((name) => name.startsWith('anthropic'))).toEqual([])
    expect(Object.keys(call?.json() ?? {})).not.toContain('context_management')
    expect(response.headers.get('x-tollgate-warnings')).toContain('context_management_dropped')
  })
})

test('pitfall 152: an encoded answer is none, and no encoding or length of the provider reaches the client', async () => {
  for (const status of [200, 400]) {
    upstream.handle((call, reply) =>
      reply.send(
        status,
        { 'content-type': 'application/json', 'content-encoding': 'gzip', 'x-provider': 'theirs' },
        gzipSync(wordsFor(call).whole),
      ),
    )
    for (const surface of bothSurfaces) {
      for (const model of models) {
        const response = await say(surface, model)
        const text = await response.text()
        JSON.parse(text)
        // A message that cannot be read is not shown either.
        expect(text).not.toContain('\ufffd')
        expect(response.headers.get('content-encoding')).toBeNull()
        expect(response.headers.get('x-provider')).toBeNull()
        expect(Number(response.headers.get('content-length'))).toBe(Buffer.byteLength(text))
      }
    }
  }
})

describe('counting', () => {
  test('vector 98, pitfall 155 and 157: a model without such a call is counted here, and marked so', async () => {
    const before = upstream.calls.length
    const response = await askCount('test/chat')
    const body = (await response.json()) as Record<string, number>
    expect(Object.keys(body)).toEqual(['input_tokens'])
    expect(body.input_tokens).toBeGreaterThan(0)
    expect(response.headers.get('x-tollgate-usage')).toBe('estimated')
    expect(upstream.calls).toHaveLength(before)
  })

  test('the provider counts if it can', async () => {
    expect(await count({}, 'test/messages')).toBe(77)
  })

  test.each([404, 429, 500])(
    'pitfall 157 and 158: a count that ends with %d is estimated, and harms no route',
    async (status) => {
      upstream.handle((call, reply) =>
        call.path.endsWith('/count_tokens') ? reply.json(status, { error: { message: 'no' } }) : hello(call, reply),
      )
      const response = await askCount('test/messages')
      expect(response.status).toBe(200)
      expect(response.headers.get('x-tollgate-usage')).toBe('estimated')
      for (let i = 0; i < 5; i++) expect((await say(messages, 'test/messages')).status).toBe(200)
    },
  )

  test.each(['<html>busy</html>', '', '[]', '{"tokens":7}', '{"input_tokens":"many"}'])(
    'a count that is none is estimated instead: %j',
    async (garbage) => {
      upstream.handle((_, reply) => reply.send(200, { 'content-type': 'application/json' }, garbage))
      const response = await askCount('test/messages')
      expect([response.status, response.headers.get('x-tollgate-usage')]).toEqual([200, 'estimated'])
      expect(await response.json()).toEqual({ input_tokens: expect.any(Number) })
    },
  )

  test('a provider that is slow to count is waited for no longer than its route says', async () => {
    const timeouts = 'timeouts: { first_event_ms: 1 }'
    const extra = `  - { id: test/hasty, price: free, routes: [{ provider: messy, model: slow, ${timeouts} }] }\n`
    const hasty = await startGateway({ config: upstreamConfig(upstream.url, extra) })
    upstream.handle(() => {})
    const response = await askCount('test/hasty', {}, hasty)
    expect([response.status, response.headers.get('x-tollgate-usage')]).toEqual([200, 'estimated'])
    await hasty.stop()
  })

  test('half a minute is the longest wait for a count, also on a route with more patience', async () => {
    const timeouts = 'timeouts: { first_event_ms: 600000 }'
    const extra = `  - { id: test/patient, price: free, routes: [{ provider: messy, model: slow, ${timeouts} }] }\n`
    const own = createJumpClock()
    const patient = await startGateway({ config: upstreamConfig(upstream.url, extra), clock: own })
    upstream.handle(() => own.jump(30))
    const response = await askCount('test/patient', {}, patient)
    expect([response.status, response.headers.get('x-tollgate-usage')]).toEqual([200, 'estimated'])
    await patient.stop()
  })

  test('a request that is at fault is refused as the provider refuses it', async () => {
    upstream.handle((_, reply) => reply.json(400, { error: { type: 'invalid_request_error', message: 'bad turn' } }))
    const response = await askCount('test/messages')
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('bad turn')
  })

  test('pitfall 156: everything the model reads is counted', async () => {
    const bare = await count({})
    const words = 'many words of some length '.repeat(20)
    const schema = { type: 'object', properties: { place: { type: 'string', description: words } } }
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }
    const pdf = Buffer.from(`%PDF-1.7 ${words.repeat(20)}`).toString('base64')
    const document = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf } }
    const call = { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: { place: words } }] }
    const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: words }] }
    const hi = { role: 'user', content: 'hi' }
    const more: readonly object[] = [
      { system: words },
      { tools: [{ name: 'f', input_schema: schema }] },
      { messages: [{ role: 'user', content: [image] }] },
      { messages: [{ role: 'user', content: [document] }] },
      { messages: [hi, call, { ...result, content: [{ type: 'tool_result', tool_use_id: 't' }] }] },
      { messages: [hi, { ...call, content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] }, result] },
    ]
    // 520 characters are at least a hundred tokens for every tokenizer.
    for (const fields of more) expect(await count(fields)).toBeGreaterThan(bare + 100)
  })

  test('pitfall 159: the key that generates may count, and no other', async () => {
    const body = bodyOf(messages)
    const response = await ask({ url: gateway.url, key: `${gateway.key}x` }, countPath, body)
    expect(response.status).toBe(401)
    expect((await ask(gateway, countPath, body)).status).toBe(200)
  })
})

describe('names', () => {
  test("pitfall 160 and 164: one list of models for both families, with Anthropic's fields on its path", async () => {
    const list = async (headers: Record<string, string>) => {
      const response = await fetch(`${gateway.url}/v1/models`, { headers: { 'x-api-key': gateway.key, ...headers } })
      return (await response.json()) as { data: Record<string, unknown>[] } & Record<string, unknown>
    }
    const plain = await list({})
    expect(plain.object).toBe('list')
    expect(plain.data.map(({ id }) => id)).toEqual(models)
    expect(Object.keys(plain)).not.toContain('has_more')
    const paged = await list({ 'anthropic-version': '2023-06-01' })
    expect(paged).toMatchObject({ object: 'list', has_more: false, first_id: 'test/chat', last_id: 'test/messages' })
    for (const item of paged.data) {
      expect(item).toMatchObject({ object: 'model', type: 'model', max_tokens: 8000 })
      expect(Object.keys(item)).toEqual(expect.arrayContaining(['display_name', 'created_at', 'max_input_tokens']))
    }
  })

  test("pitfall 161: Claude Code's picker gets names that it keeps, and they are the models they stand for", async () => {
    const headers = { 'x-api-key': gateway.key, 'anthropic-version': '2023-06-01' }
    const idsFor = async (agent: string, query = '?limit=1000') => {
      const response = await fetch(`${gateway.url}/v1/models${query}`, { headers: { ...headers, 'user-agent': agent } })
      return ((await response.json()) as { data: { id: string }[] }).data.map(({ id }) => id)
    }
    expect(await idsFor('claude-cli/2.1.0 (external, cli)')).toEqual(['claude/test/chat', 'claude/test/messages'])
    expect(await idsFor('claude-cli/2.1.0', '?after_id=claude/test/chat')).toEqual(['claude/test/messages'])
    expect(await idsFor('Anthropic/JS 1.8.0')).toEqual(models)
    for (const alias of ['claude/test/chat', 'claude/test/chat[1m]']) {
      const response = await say(messages, alias)
      expect(((await response.json()) as { model: string }).model).toBe('test/chat')
    }
    expect((await say(messages, 'claude/claude/test/chat')).status).toBe(404)
  })

  test.each([...bothSurfaces])('pitfall 162: replies on $name carry the id the caller passed', async (surface) => {
    for (const model of models) {
      const whole = await say(surface, model)
      expect(((await whole.json()) as { model: string }).model).toBe(model)
      const stream = await say(surface, model, { stream: true })
      const named = [...(await stream.text()).matchAll(/"model":"([^"]*)"/g)].map(([, name]) => name)
      expect(new Set(named)).toEqual(new Set([model]))
      const upstreamModel = model === 'test/chat' ? 'upstream-chat-1' : 'upstream-messages-1'
      for (const { headers } of [whole, stream]) {
        expect(headers.get('x-tollgate-upstream-model')).toBe(upstreamModel)
      }
    }
  })

  test('pitfall 163: the suffix for a long context is not part of an id, and any other is', async () => {
    const response = await say(messages, 'test/messages[1m]')
    expect(((await response.json()) as { model: string }).model).toBe('test/messages')
    expect(upstream.calls.at(-1)?.json().model).toBe('upstream-messages-1')
    expect((await say(messages, 'test/messages[2m]')).status).toBe(404)
    const item = await fetch(`${gateway.url}/v1/models/${encodeURIComponent('test/messages[1m]')}`, {
      headers: { 'x-api-key': gateway.key },
    })
    expect(((await item.json()) as { id: string }).id).toBe('test/messages')
  })
})
