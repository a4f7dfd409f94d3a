// `store: true`: responses that are kept for their workspace, on both engines, through both lanes, streamed or not. With the
// setting off, which is the default, nothing is stored and nothing refers to anything stored.

import { describe, expect, test } from 'bun:test'
import { openDatabase } from '../../src/store/open-database.ts'
import { createWallets } from '../money/wallets.ts'
import { post } from '../parts/ask.ts'
import { forEachEngine, type Place, type TestEngine } from '../parts/engines.ts'
import { type Gateway, responsesConfig, startGateway, stopAll, upstreamConfig } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { adminHeaders, manage } from '../parts/manage.ts'
import { createResponseClient } from '../parts/official-clients.ts'
import { startUpstream, type UpstreamHandler } from '../parts/upstream.ts'
import { answerHello, responsesWords, wantsStream } from '../parts/upstream-words.ts'

const on = { TOLLGATE_STORE_RESPONSES: 'on', TOLLGATE_SECRET: 'p0Xk3vQ9sLr7TzWb2NcYdMfHgJaEiU5o8RtV1xC4' }
/** Only this test writes it. */
const canary = 'the pelican lands at noon'

/** A model behind each lane. */
const lanes = [
  { lane: 'bytes', model: 'test/responses' },
  { lane: 'translation', model: 'test/chat' },
] as const

/** With each item at its end, as the API says. */
const answerWholeItems: UpstreamHandler = async (call, reply) => {
  if (!call.path.endsWith('/responses') || !wantsStream(call)) return await answerHello(call, reply)
  const { opening, says, ending, whole } = responsesWords
  const [item] = (JSON.parse(whole) as { output: object[] }).output
  const done = { type: 'response.output_item.done', output_index: 0, item }
  await reply.startStream()
  await reply.chunk(`${opening}${says('hello')}event: ${done.type}\ndata: ${JSON.stringify(done)}\n\n${ending}`)
  await reply.finish()
}

interface Setup extends AsyncDisposable {
  readonly gateway: Gateway
  readonly place: Place
  readonly upstream: ReturnType<typeof startUpstream>
  ask(body: object, key?: string): Promise<Answer>
  call(method: string, path: string, key?: string): Promise<Answer>
  /** The key of a further workspace with credit. */
  otherKey(): Promise<string>
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into every kind of answer.
  readonly body: any
}

async function setUp(engine: TestEngine, env: Record<string, string> = on, clock = createJumpClock()): Promise<Setup> {
  const place = await engine.createPlace()
  const upstream = startUpstream(answerWholeItems)
  const config = responsesConfig(upstream.url)
  const database = place.url === undefined ? {} : { DATABASE_URL: place.url }
  const gateway = await startGateway({ config, clock, env: { ...env, ...database } })
  const call = async (method: string, path: string, key = gateway.key, body?: object): Promise<Answer> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const response = await fetch(`${gateway.url}/v1/responses${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    // The last event is before the end marker.
    const last = text.startsWith('{') ? text : ([...text.matchAll(/^data: (\{.*)$/gm)].at(-1)?.[1] ?? '')
    const json = JSON.parse(last)
    return { status: response.status, headers: response.headers, text, body: json.response ?? json }
  }
  return {
    gateway,
    place,
    upstream,
    call,
    ask: (body, key) => call('POST', '', key, body),
    otherKey: async () => (await createWallets(gateway).open('5.00')).key,
    [Symbol.asyncDispose]: () => stopAll(gateway, upstream, place),
  }
}

/** Every row of the table as text. */
async function rows({ place, gateway }: Setup): Promise<readonly string[]> {
  const database = await openDatabase({ ...place, dataFolder: gateway.dataFolder })
  try {
    const found = await database.sql`SELECT * FROM stored_responses`
    return found.map((row) => JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? String(value) : value)))
  } finally {
    await database.close()
  }
}

forEachEngine((engine) => {
  describe.each(lanes)('$lane', ({ lane, model }) => {
    test.each([false, true])('a stored response is read, continued and deleted, stream: %p', async (stream) => {
      await using setup = await setUp(engine)
      const { ask, call, upstream } = setup
      const first = await ask({ model, stream, store: true, instructions: 'Be brief.', input: canary })
      expect(first).toMatchObject({ status: 200, body: { store: true, previous_response_id: null } })
      expect(first.headers.get('x-tollgate-warnings')).toBeNull()
      const { id } = first.body
      expect(id).toMatch(/^resp_/)
      expect((await call('GET', `/${id}`)).body).toEqual(first.body)
      expect(await rows(setup)).toHaveLength(1)

      const items = await call('GET', `/${id}/input_items`)
      const asked = { type: 'message', role: 'user', content: [{ type: 'input_text', text: canary }] }
      expect(items.body).toMatchObject({ object: 'list', data: [asked], has_more: false })
      expect(items.body.first_id).toBe(items.body.data[0].id)

      // The provider gets the conversation; the instructions are not part of it.
      const second = await ask({ model, stream, previous_response_id: id, input: [{ role: 'user', content: 'and?' }] })
      expect(second).toMatchObject({ status: 200, body: { store: false, previous_response_id: id } })
      const sent = upstream.calls.at(-1)?.json() as { messages?: object[]; input?: object[]; store?: boolean }
      const turns = sent.messages ?? sent.input ?? []
      expect(turns.map((turn) => (turn as { role: string }).role)).toEqual(['user', 'assistant', 'user'])
      expect(JSON.stringify(turns[0])).toContain(canary)
      expect(JSON.stringify(sent)).not.toContain('Be brief.')
      expect(sent).not.toHaveProperty('previous_response_id')
      if (lane === 'bytes') expect(sent.store).toBe(false)
      expect(await rows(setup)).toHaveLength(1)

      expect((await call('DELETE', `/${id}`)).body).toEqual({ id, object: 'response', deleted: true })
      expect(await rows(setup)).toEqual([])
      for (const [method, path] of [
        ['GET', `/${id}`],
        ['DELETE', `/${id}`],
        ['GET', `/${id}/input_items`],
      ] as const) {
        expect((await call(method, path)).body.error.code).toBe('NOT_FOUND')
      }
    })

    test('the last response is stored with the input of all turns', async () => {
      await using setup = await setUp(engine)
      const { ask, call } = setup
      const first = await ask({ model, store: true, input: canary })
      const second = await ask({ model, store: true, previous_response_id: first.body.id, input: 'and?' })
      const { data } = (await call('GET', `/${second.body.id}/input_items?order=asc&limit=2`)).body
      expect(JSON.stringify(data[0])).toContain(canary)
      expect(data[1]).toMatchObject({ role: 'assistant' })
      const rest = (await call('GET', `/${second.body.id}/input_items?order=asc&after=${data[1].id}`)).body
      expect(rest).toMatchObject({ data: [{ role: 'user' }], has_more: false })
    })

    test('nothing is stored unless the caller asks for it', async () => {
      await using setup = await setUp(engine)
      for (const store of [undefined, false, null]) {
        const { body } = await setup.ask({ model, store, input: canary })
        expect(body.store ?? false).toBe(false)
        expect((await setup.call('GET', `/${body.id}`)).status).toBe(404)
      }
      expect(await rows(setup)).toEqual([])
    })
  })

  test('neither the prompt nor the answer is readable in the database', async () => {
    await using setup = await setUp(engine)
    const { body } = await setup.ask({ model: 'test/chat', store: true, input: canary })
    const [row = ''] = await rows(setup)
    expect(row).toContain(body.id)
    expect(row).not.toContain('pelican')
    expect(row).not.toContain('output_text')
  })

  test('a response of another workspace and one that never was are the same', async () => {
    await using setup = await setUp(engine)
    const { ask, call, upstream } = setup
    const other = await setup.otherKey()
    const { id } = (await ask({ model: 'test/chat', store: true, input: canary })).body
    const before = upstream.calls.length
    const continued = (previous: string) =>
      ask({ model: 'test/chat', previous_response_id: previous, input: 'and?' }, other)
    const [foreign, unknown] = [await continued(id), await continued('resp_none')]
    expect(foreign).toMatchObject({
      status: 400,
      body: { error: { code: 'INVALID_REQUEST', param: 'previous_response_id' } },
    })
    expect(foreign.text).toBe(unknown.text)
    expect(upstream.calls.length).toBe(before)
    for (const [method, part] of [
      ['GET', ''],
      ['DELETE', ''],
      ['GET', '/input_items'],
      ['POST', '/cancel'],
    ] as const) {
      const answers = [await call(method, `/${id}${part}`, other), await call(method, `/resp_none${part}`, other)]
      const [seen, none] = answers.map(({ status, text }) => `${status} ${text.replaceAll(id, 'resp_none')}`)
      expect(seen).toBe(none)
      expect(answers[0]?.status).toBe(404)
    }
    // It is still there for its own workspace.
    expect((await call('GET', `/${id}`)).status).toBe(200)
    expect((await call('GET', `/${id}`, 'sk-tg-nobody')).status).toBe(401)
  })

  test.each(lanes)(
    'an item of a stored response can be referred to, by its workspace only: $lane',
    async ({ model }) => {
      await using setup = await setUp(engine)
      const { ask, upstream } = setup
      const first = (await ask({ model, store: true, input: canary })).body
      const [{ id }] = first.output
      const input = [
        { role: 'user', content: 'hi' },
        { type: 'item_reference', id },
        { role: 'user', content: 'and?' },
      ]
      // Nothing of this answer is kept, which has an item with the same id.
      expect((await ask({ model, input, store: false })).status).toBe(200)
      const sent = upstream.calls.at(-1)?.json() as { messages?: object[]; input?: object[] }
      const turns = sent.messages ?? sent.input ?? []
      expect(turns.map((turn) => (turn as { role: string }).role)).toEqual(['user', 'assistant', 'user'])
      expect(JSON.stringify(turns[1])).toContain('hello')

      const before = upstream.calls.length
      const foreign = await ask({ model, input }, await setup.otherKey())
      const refused = { status: 400, body: { error: { code: 'INVALID_REQUEST', param: 'input[1].id' } } }
      expect(foreign).toMatchObject(refused)
      await setup.call('DELETE', `/${first.id}`)
      expect(await ask({ model, input })).toMatchObject(refused)
      expect(upstream.calls.length).toBe(before)
    },
  )

  test('the export of a workspace has its stored responses', async () => {
    await using setup = await setUp(engine)
    const { id } = (await setup.ask({ model: 'test/chat', store: true, input: canary })).body
    const { data } = await manage(setup.gateway, 'GET', '/api/workspaces')
    const headers = adminHeaders(setup.gateway.dataFolder)
    const response = await fetch(`${setup.gateway.url}/api/workspaces/${data[0].id}/export`, { headers })
    const lines = (await response.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const exported = lines.filter(({ record }) => record === 'response')
    expect(exported).toMatchObject([{ id, response: { id, status: 'completed' } }])
    expect(JSON.stringify(exported[0].input)).toContain(canary)
  })

  test('the tokens of the earlier turns are held, counted and charged', async () => {
    await using setup = await setUp(engine)
    const { ask, call, gateway } = setup
    const long = `${canary} `.repeat(200)
    const { id } = (await ask({ model: 'test/chat', store: true, input: long })).body
    const count = async (body: object) => {
      const response = await post(gateway, '/v1/responses/input_tokens', { model: 'test/chat', ...body })
      return ((await response.json()) as { input_tokens: number }).input_tokens
    }
    expect(await count({ input: 'and?', previous_response_id: id })).toBeGreaterThan(await count({ input: long }))
    const held = async (more: object) => {
      const { headers } = await ask({ model: 'test/chat', input: 'and?', max_output_tokens: 16, ...more })
      return Number((await manage(gateway, 'GET', `/api/requests/${headers.get('x-request-id')}`)).held)
    }
    // 5,200 bytes of input at a dollar per million tokens, against a few.
    expect((await held({ previous_response_id: id })) - (await held({}))).toBeGreaterThan(0.001)
    expect((await call('POST', `/${id}/cancel`)).status).toBe(400)
  })

  test('a stored response ends with its retention, and with its workspace', async () => {
    const clock = createJumpClock()
    await using setup = await setUp(engine, { ...on, TOLLGATE_RESPONSES_RETENTION_DAYS: '2' }, clock)
    const { ask, call, gateway } = setup
    const { id } = (await ask({ model: 'test/chat', store: true, input: canary })).body
    clock.jump(2 * 86_400 - 1)
    expect((await call('GET', `/${id}`)).status).toBe(200)
    clock.jump(1)
    expect((await call('GET', `/${id}`)).status).toBe(404)
    await ask({ model: 'test/chat', store: true, input: canary })
    const { data } = await manage(gateway, 'GET', '/api/workspaces')
    const erased = await manage(gateway, 'POST', `/api/workspaces/${data[0].id}/erase`, { confirm: 'erase' })
    expect(erased.responses).toBeGreaterThan(0)
    expect(await rows(setup)).toEqual([])
  })

  test('with the setting off nothing is stored, and nothing stored is served', async () => {
    await using setup = await setUp(engine, {})
    for (const { model } of lanes) {
      const { body, headers } = await setup.ask({ model, store: true, input: canary })
      expect(body.store ?? false).toBe(false)
      expect(headers.get('x-tollgate-warnings')).toContain('store_dropped')
      expect(await setup.call('GET', `/${body.id}`)).toMatchObject({ status: 404 })
      const continued = await setup.ask({ model, previous_response_id: body.id, input: 'and?' })
      expect(continued).toMatchObject({ status: 400, body: { error: { param: 'previous_response_id' } } })
    }
    expect(await rows(setup)).toEqual([])
  })

  test.each(['openai 7 responses', 'openai 6 responses'] as const)(
    '%s stores, reads, lists and deletes',
    async (name) => {
      await using setup = await setUp(engine)
      const { url, key } = setup.gateway
      const client = createResponseClient(name, { baseURL: `${url}/v1`, apiKey: key })
      const first = await client.responses.create({ model: 'test/chat', store: true, input: canary })
      const second = await client.responses.create({
        model: 'test/chat',
        store: true,
        previous_response_id: first.id,
        input: 'and?',
      })
      expect((await client.responses.retrieve(second.id)).output_text).toBe(second.output_text)
      const listed = []
      for await (const item of client.responses.inputItems.list(second.id, { limit: 1 })) listed.push(item)
      expect(listed).toHaveLength(3)
      await client.responses.delete(first.id)
      const error: unknown = await client.responses.retrieve(first.id).then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      expect(String(error)).toContain('There is no stored response')
    },
  )

  if (engine.name === 'postgres') {
    test('every replica reads what one has stored', async () => {
      await using setup = await setUp(engine)
      const { id } = (await setup.ask({ model: 'test/chat', store: true, input: canary })).body
      const env = { ...on, DATABASE_URL: setup.place.url ?? '' }
      const replica = await startGateway({ config: upstreamConfig(setup.upstream.url), env })
      try {
        const headers = { authorization: `Bearer ${setup.gateway.key}` }
        const read = await fetch(`${replica.url}/v1/responses/${id}`, { headers })
        expect(((await read.json()) as { id: string }).id).toBe(id)
        const body = { model: 'test/chat', previous_response_id: id, input: 'and?' }
        const continued = await post({ ...replica, key: setup.gateway.key }, '/v1/responses', body)
        expect(continued.status).toBe(200)
      } finally {
        await replica.stop()
      }
    })
  }
})
