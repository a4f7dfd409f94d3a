// Batches with OpenAI's API, on both engines: created, run through the path of every request, charged by line, cancelled, and of
// no concern to other workspaces.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { systemClock } from '../../src/kernel/clock.ts'
import type { Database } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import type { Sql } from '../../src/store/sql.ts'
import { createWallets, nanos, usd } from '../money/wallets.ts'
import { forEachEngine, type Place } from '../parts/engines.ts'
import { everyConfig, type Gateway, startGateway, stopAll } from '../parts/gateway.ts'
import { manage } from '../parts/manage.ts'
import { chatClientNames, createChatClient } from '../parts/official-clients.ts'
import { startUpstream, type UpstreamHandler } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'
import { batchesOn, call, chatLine, createOf, formOf, linesIn, type Reply, until, uploadLines } from './parts.ts'

/** Only these tests write it. */
const canary = 'the pelican lands at noon'

/** By default. */
const linesAtOnce = 4

type Held = PromiseWithResolvers<void>

/** Refuses what says so. */
const answerMost: UpstreamHandler = async (asked, reply) => {
  const text = JSON.stringify(asked.json())
  if (!text.includes('refuse this')) return await answerHello(asked, reply)
  const error = { error: { message: 'no', type: 'invalid_request_error', param: null, code: null } }
  await reply.send(400, { 'content-type': 'application/json' }, JSON.stringify(error))
}

forEachEngine((engine) => {
  let place: Place
  let gateway: Gateway
  const upstream = startUpstream(answerMost)
  const clock = systemClock
  beforeAll(async () => {
    place = await engine.createPlace()
    const database = place.url === undefined ? {} : { DATABASE_URL: place.url }
    gateway = await startGateway({ config: everyConfig(upstream.url), clock, env: { ...batchesOn, ...database } })
  })
  afterAll(() => stopAll(gateway, upstream, place))

  const open = async (amount?: string, limits?: object) => {
    const purse = await createWallets(gateway).open(amount, limits)
    return { ...purse, as: { url: gateway.url, key: purse.key } }
  }

  const inDatabase = async <T>(work: (database: Database) => Promise<T>) => {
    const database = await openDatabase({ ...place, dataFolder: gateway.dataFolder })
    try {
      return await work(database)
    } finally {
      await database.close()
    }
  }
  const rowsOf = (query: (sql: Sql) => Promise<readonly object[]>) => inDatabase(({ sql }) => query(sql))
  const write = (change: (sql: Sql) => Promise<unknown>) => inDatabase((database) => database.transaction(change))

  const waitsFor = async (id: string) => {
    const [row] = await rowsOf((sql) => sql`SELECT waits_for FROM batches WHERE id = ${id}`)
    return (row as { waits_for: string | null }).waits_for
  }

  test('runs every line, charges each once, and keeps failures apart', async () => {
    const { as, workspaceId } = await open('1.00')
    const lines = [chatLine('a', 'hi'), chatLine('b', 'refuse this'), chatLine('c', 'hi again')]
    const created = await createOf(as, lines, { metadata: { job: 'night' } })
    expect(created).toMatchObject({ status: 200, body: { object: 'batch', errors: null, metadata: { job: 'night' } } })
    const done = await until(as, created.body.id, 'completed')
    expect(done.request_counts).toEqual({ total: 3, completed: 2, failed: 1 })
    const answers = linesIn((await call(as, 'GET', `/files/${done.output_file_id}/content`)).text)
    expect(answers.map(({ custom_id, response }) => [custom_id, response.status_code])).toEqual([
      ['a', 200],
      ['c', 200],
    ])
    expect(answers[0].response.body).toMatchObject({ model: 'test/chat', object: 'chat.completion' })
    const failed = linesIn((await call(as, 'GET', `/files/${done.error_file_id}/content`)).text)
    expect(failed).toMatchObject([
      { custom_id: 'b', response: { status_code: 400, body: { error: { message: expect.any(String) } } } },
    ])

    const { posted } = await createWallets(gateway).read(workspaceId)
    const [sums] = (await rowsOf(
      (sql) => sql`SELECT COUNT(*) AS n, CAST(SUM(charge) AS BIGINT) AS charge FROM requests
      WHERE batch_id = ${done.id} AND charge IS NOT NULL`,
    )) as [{ n: bigint; charge: bigint }]
    expect(sums.n).toBe(2n)
    expect(nanos('1.00') - posted).toBe(sums.charge)
    const size = (await call(as, 'GET', `/files/${done.output_file_id}`)).body.bytes
    expect(size).toBe(Buffer.byteLength((await call(as, 'GET', `/files/${done.output_file_id}/content`)).text))
  })

  test('answers are charged at the price of other calls', async () => {
    const { as, workspaceId } = await open('1.00')
    const { id } = (await createOf(as, [chatLine('a', 'hi')])).body
    await until(as, id, 'completed')
    const batch = nanos('1.00') - (await createWallets(gateway).read(workspaceId)).posted
    const { body } = JSON.parse(chatLine('a', 'hi'))
    await call(as, 'POST', '/chat/completions', { body })
    const both = nanos('1.00') - (await createWallets(gateway).read(workspaceId)).posted
    expect(both).toBe(2n * batch)
  })

  test.each([
    ['/v1/embeddings', 'sandbox/embed', { input: 'hi' }],
    ['/v1/responses', 'test/responses', { input: 'hi' }],
    ['/v1/responses', 'test/gemini', { input: 'hi' }],
    ['/v1/chat/completions', 'test/messages', { messages: [{ role: 'user', content: 'hi' }] }],
  ])('%s with %s', async (endpoint, model, body) => {
    const { as } = await open('1.00')
    const line = JSON.stringify({ custom_id: 'a', method: 'POST', url: endpoint, body: { model, ...body } })
    const { id } = (await createOf(as, [line], { endpoint })).body
    const done = await until(as, id, 'completed', 'failed')
    expect(done).toMatchObject({ status: 'completed', request_counts: { completed: 1, failed: 0 } })
    const [answer] = linesIn((await call(as, 'GET', `/files/${done.output_file_id}/content`)).text)
    expect(answer.response.body.model).toBe(model)
  })

  test.each<[why: string, lines: string[], code: string, line: number | null]>([
    ['no JSON', [chatLine('a', 'hi'), '{"custom_id":'], 'invalid_json_line', 2],
    ['a repeated id', [chatLine('a', 'hi'), chatLine('a', 'ho')], 'duplicate_custom_id', 2],
    ['two models', [chatLine('a', 'hi'), chatLine('b', 'ho', { model: 'test/messages' })], 'mismatched_model', 2],
    ['an unknown model', [chatLine('a', 'hi', { model: 'test/none' })], 'not_found', 1],
    ['another endpoint', [chatLine('a', 'hi').replace('chat/completions', 'embeddings')], 'invalid_url', 1],
    ['a stream', [chatLine('a', 'hi', { stream: true })], 'invalid_request', 1],
    ['no id', [chatLine('', 'hi')], 'missing_required_parameter', 1],
    ['no lines', ['', ' '], 'empty_file', null],
  ])('a file with %s fails before anything runs', async (_why, lines, code, line) => {
    const { as } = await open('1.00')
    const before = upstream.calls.length
    const { body } = await createOf(as, lines)
    expect(body).toMatchObject({ status: 'failed', output_file_id: null, errors: { data: [{ code, line }] } })
    expect(upstream.calls.length).toBe(before)
  })

  test('a batch that the wallet cannot pay is refused', async () => {
    const { as } = await open('0.0005')
    const refused = await createOf(
      as,
      Array.from({ length: 10 }, (_, at) => chatLine(`${at}`, 'hi')),
    )
    expect(refused).toMatchObject({ status: 402, body: { error: { code: 'INSUFFICIENT_BALANCE' } } })
    expect((await call(as, 'GET', '/batches')).body.data).toEqual([])
  })

  test('a batch that a spend limit leaves no room for is refused', async () => {
    const ten = Array.from({ length: 10 }, (_, at) => chatLine(`${at}`, 'hi'))
    const limit = { window: 'month', limit: '0.0001' }
    const { as } = await open('1.00', { spend_limits: [limit] })
    const refused = await createOf(as, ten)
    expect(refused).toMatchObject({
      status: 429,
      body: { error: { code: 'LIMIT_EXCEEDED', metadata: { reason: 'limit', limit: '0.0001', spent: '0.00' } } },
    })
    // Ten times 64 tokens at $2.00 per million, and the input.
    expect(nanos(refused.body.error.metadata.needed)).toBeGreaterThan(10n * 64n * 2_000n)
    expect(refused.body.error.message).toContain('for the 24 hours in which this batch may run')
    expect((await call(as, 'GET', '/batches')).body.data).toEqual([])
    // A limit of another model concerns none of its lines.
    const { as: others } = await open('1.00', { spend_limits: [{ ...limit, models: 'other/*' }] })
    const { id } = (await createOf(others, ten)).body
    expect(await until(others, id, 'completed')).toMatchObject({ request_counts: { completed: 10 } })
  })

  /** The first answer comes once `freeOne` is called, all others with `free`. `begun` resolves with the first call. */
  const holdAnswers = () => {
    const [free, one, begun] = [0, 1, 2].map(() => Promise.withResolvers<void>()) as [Held, Held, Held]
    let calls = 0
    upstream.handle(async (asked, reply) => {
      begun.resolve()
      await (calls++ === 0 ? Promise.race([one.promise, free.promise]) : free.promise)
      await answerMost(asked, reply)
    }, 'stay unasked')
    return { begun: begun.promise, freeOne: one.resolve, free: free.resolve }
  }
  const manyLines = (count: number) => Array.from({ length: count }, (_, at) => chatLine(`${at}`, 'hi'))

  test('waits for a top-up when the wallet runs empty, and goes on', async () => {
    const { as, workspaceId } = await open('1.00')
    const { freeOne, free } = holdAnswers()
    const before = upstream.calls.length
    const { id } = (await createOf(as, manyLines(20))).body
    while (upstream.calls.length < before + linesAtOnce) await Bun.sleep(10)
    const { posted, held } = await createWallets(gateway).read(workspaceId)
    const wallet = `/api/workspaces/${workspaceId}`
    const taken = { direction: 'take', amount: usd(posted - held), reason: 'test' }
    await manage(gateway, 'POST', `${wallet}/corrections`, taken)
    // What it held, less its charge, is not enough for the next line.
    freeOne()
    while ((await waitsFor(id)) !== 'balance') await Bun.sleep(20)
    expect((await call(as, 'GET', `/batches/${id}`)).body.status).toBe('in_progress')
    free()
    await manage(gateway, 'POST', `${wallet}/topups`, { amount: '1.00' })
    expect(await until(as, id, 'completed')).toMatchObject({ request_counts: { completed: 20, failed: 0 } })
  })

  test('a cancelled batch charges what was done, and says what was not', async () => {
    const { as } = await open('1.00')
    const { begun, free } = holdAnswers()
    const { id } = (await createOf(as, manyLines(30))).body
    await begun
    expect((await call(as, 'POST', `/batches/${id}/cancel`)).body.status).toBe('cancelling')
    free()
    const { request_counts: counts, ...done } = await until(as, id, 'cancelled')
    expect(counts.completed).toBeGreaterThan(0)
    expect(counts.completed).toBeLessThan(30)
    expect(linesIn((await call(as, 'GET', `/files/${done.output_file_id}/content`)).text)).toHaveLength(
      counts.completed,
    )
    const not = linesIn((await call(as, 'GET', `/files/${done.error_file_id}/content`)).text)
    expect(not).toHaveLength(30 - counts.completed)
    expect(not[0]).toMatchObject({ response: null, error: { code: 'batch_cancelled' } })
    expect((await call(as, 'POST', `/batches/${id}/cancel`)).status).toBe(400)
  })

  test('a batch that expires charges what was done, and says what was not', async () => {
    const { as, workspaceId } = await open('1.00')
    const { begun, free } = holdAnswers()
    const { id } = (await createOf(as, manyLines(30))).body
    await begun
    await write((sql) => sql`UPDATE batches SET expires_at = 0 WHERE id = ${id}`)
    // Whoever cancels one makes the process look at all of its batches.
    const { as: others } = await open('1.00')
    const { id: other } = (await createOf(others, manyLines(1))).body
    await call(others, 'POST', `/batches/${other}/cancel`)
    free()
    const { request_counts: counts, ...done } = await until(as, id, 'expired')
    expect(counts.completed).toBeGreaterThan(0)
    expect(counts.completed).toBeLessThan(30)
    const not = linesIn((await call(as, 'GET', `/files/${done.error_file_id}/content`)).text)
    expect(not).toHaveLength(30 - counts.completed)
    expect(new Set(not.map(({ error }) => error.code))).toEqual(new Set(['batch_expired']))
    const [sums] = await rowsOf(
      (sql) => sql`SELECT COUNT(*) AS charged, CAST(SUM(charge) AS BIGINT) AS paid FROM requests
        WHERE batch_id = ${id} AND charge IS NOT NULL`,
    )
    const { posted } = await createWallets(gateway).read(workspaceId)
    expect(sums).toEqual({ charged: BigInt(counts.completed), paid: 1_000_000_000n - posted })
  })

  test('a revoked key stops its batch', async () => {
    const { as, workspaceId } = await open('1.00')
    const { begun, free } = holdAnswers()
    const { id } = (await createOf(as, manyLines(30))).body
    await begun
    const { data: projects } = await manage(gateway, 'GET', `/api/workspaces/${workspaceId}/projects`)
    const { data: keys } = await manage(gateway, 'GET', `/api/keys?workspace_id=${workspaceId}`)
    const { secret } = await manage(gateway, 'POST', `/api/projects/${projects[0].id}/keys`, { name: 'another' })
    await manage(gateway, 'POST', `/api/keys/${keys[0].id}/revoke`)
    free()
    const done = await until({ url: gateway.url, key: secret }, id, 'cancelled')
    expect(done.errors.data[0]).toMatchObject({ code: 'key_refused', message: expect.stringContaining('was revoked') })
    expect(done.request_counts.completed).toBeLessThan(30)
  })

  test('every id of another workspace is unknown on every path', async () => {
    const { as } = await open('1.00')
    const created = (await createOf(as, [chatLine('a', canary), chatLine('b', 'refuse this')])).body
    const kept = await uploadLines(as, [chatLine('a', canary)])
    const done = await until(as, created.id, 'completed')
    const { key } = await open('1.00')
    const compared = async (method: string, path: (id: string) => string, id: string, none: string, body?: object) => {
      const foreign = await call(as, method, path(id), { key, ...(body && { body }) })
      const unknown = await call(as, method, path(none), { key, ...(body && { body }) })
      expect(foreign.status).toBe(404)
      expect(foreign.text.replaceAll(id, none)).toBe(unknown.text)
    }
    for (const id of [kept, done.output_file_id, done.error_file_id]) {
      await compared('GET', (file) => `/files/${file}`, id, 'file_none')
      await compared('GET', (file) => `/files/${file}/content`, id, 'file_none')
      await compared('DELETE', (file) => `/files/${file}`, id, 'file_none')
    }
    await compared('GET', (batch) => `/batches/${batch}`, done.id, 'batch_none')
    await compared('POST', (batch) => `/batches/${batch}/cancel`, done.id, 'batch_none')
    const body = { input_file_id: kept, endpoint: '/v1/chat/completions', completion_window: '24h' }
    expect((await call(as, 'POST', '/batches', { key, body })).status).toBe(404)
    expect((await call(as, 'GET', '/files', { key })).body.data).toEqual([])
    expect((await call(as, 'GET', '/batches', { key })).body.data).toEqual([])
    expect((await call(as, 'GET', `/batches/${done.id}`, { key: 'sk-tg-nobody' })).status).toBe(401)
    expect((await call(as, 'GET', `/files/${kept}/content`)).text).toContain(canary)
  })

  test('neither prompts nor answers are readable in the database, and the input goes with the end', async () => {
    const { as, workspaceId } = await open('1.00')
    const { id, input_file_id: input } = (await createOf(as, [chatLine('a', canary)])).body
    const { output_file_id: output } = await until(as, id, 'completed')
    const stored = await rowsOf(async (sql) => [
      ...(await sql<object>`SELECT * FROM batch_file_parts`),
      ...(await sql<object>`SELECT * FROM batch_lines`),
    ])
    expect(stored.length).toBeGreaterThan(1)
    const text = JSON.stringify(stored, (_, value) => (typeof value === 'bigint' ? String(value) : value))
    for (const word of ['pelican', 'hello', 'custom_id']) expect(text).not.toContain(word)
    expect((await call(as, 'GET', `/files/${input}`)).status).toBe(404)
    expect((await call(as, 'GET', `/files/${input}/content`)).status).toBe(404)
    expect((await call(as, 'DELETE', `/files/${output}`)).body).toEqual({ id: output, object: 'file', deleted: true })
    expect((await call(as, 'GET', `/files/${output}/content`)).status).toBe(404)
    const erased = await manage(gateway, 'POST', `/api/workspaces/${workspaceId}/erase`, { confirm: 'erase' })
    expect(erased.batches).toBe(1)
    expect(await rowsOf((sql) => sql`SELECT 1 FROM batches WHERE workspace_id = ${workspaceId}`)).toEqual([])
    expect(await rowsOf((sql) => sql`SELECT 1 FROM batch_files WHERE workspace_id = ${workspaceId}`)).toEqual([])
  })

  test.each<[why: string, form: object, status: number]>([
    ['no form', { purpose: 'batch' }, 400],
    ['another purpose', formOf('{}', { purpose: 'fine-tune' }), 400],
    ['no purpose', formOf('{}', {}), 400],
  ])('an upload with %s is refused', async (_why, body, status) => {
    const { as } = await open()
    expect((await call(as, 'POST', '/files', { body })).status).toBe(status)
    expect((await call(as, 'GET', '/files')).body.data).toEqual([])
  })

  test('lists in pages', async () => {
    const { as } = await open('1.00')
    const ids: string[] = []
    for (const name of ['a', 'b', 'c']) ids.unshift((await createOf(as, [chatLine(name, 'hi')])).body.id)
    const first = (await call(as, 'GET', '/batches?limit=2')).body
    expect([first.data.map(({ id }: { id: string }) => id), first.has_more]).toEqual([ids.slice(0, 2), true])
    const second = (await call(as, 'GET', `/batches?limit=2&after=${first.last_id}`)).body
    expect([second.data.map(({ id }: { id: string }) => id), second.has_more]).toEqual([ids.slice(2), false])
    expect((await call(as, 'GET', '/batches?limit=0')).status).toBe(400)
  })

  test.each(chatClientNames)('%s uploads, creates, polls, lists, cancels and reads', async (name) => {
    const { as, key } = await open('1.00')
    const client = createChatClient(name, { baseURL: `${gateway.url}/v1`, apiKey: key })
    const file = await client.files.create({ file: new File([chatLine('a', 'hi')], 'in.jsonl'), purpose: 'batch' })
    const input = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' } as const
    const { id } = await client.batches.create(input)
    await until(as, id, 'completed')
    const done = await client.batches.retrieve(id)
    const content = await client.files.content(done.output_file_id ?? '')
    expect(linesIn(await content.text())).toMatchObject([{ custom_id: 'a', response: { status_code: 200 } }])
    const listed: string[] = []
    for await (const batch of client.batches.list({ limit: 1 })) listed.push(batch.id)
    expect(listed).toEqual([id])
    const error: unknown = await client.batches.cancel(id).catch((thrown: unknown) => thrown)
    expect(String(error)).toContain('has ended')
    for await (const one of client.files.list()) await client.files.delete(one.id)
    expect((await client.files.list()).data).toEqual([])
  })

  test('a thousand lines', async () => {
    const { as } = await open('5.00')
    const lines = Array.from({ length: 1000 }, (_, at) => chatLine(`line-${at}`, at % 33 === 0 ? 'refuse this' : 'hi'))
    const { id } = (await createOf(as, lines)).body
    const done = await until(as, id, 'completed')
    expect(done.request_counts).toEqual({ total: 1000, completed: 969, failed: 31 })
    const [answered] = await rowsOf(
      (sql) => sql`SELECT COUNT(*) AS n, COUNT(DISTINCT request_id) AS requests
      FROM batch_lines WHERE batch_id = ${id} AND state = 'done'`,
    )
    expect(answered).toEqual({ n: 1000n, requests: 1000n })
  })
})

test('without the setting there are no batches', async () => {
  const gateway = await startGateway()
  const paths = [
    ['GET', '/files'],
    ['GET', '/batches'],
    ['POST', '/batches'],
    ['GET', '/files/file_x/content'],
  ] as const
  const answers: Reply[] = []
  for (const [method, path] of paths) answers.push(await call(gateway, method, path))
  await gateway.stop()
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404])
})
