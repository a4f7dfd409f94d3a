// Batches that run at the API for batches of their provider, on both engines: what is sent there, what comes back to callers, and
// what is held, charged and released, by plain SQL.

import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { systemClock } from '../../src/kernel/clock.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import type { Sql } from '../../src/store/sql.ts'
import { createWallets } from '../money/wallets.ts'
import { forEachEngine, type Place } from '../parts/engines.ts'
import { type Gateway, startGateway, stopAll } from '../parts/gateway.ts'
import { manage } from '../parts/manage.ts'
import { batchesOn, call, chatLine, createOf, linesIn, until } from './parts.ts'
import { type BatchProvider, batchConfig, saysHello, startBatchProvider } from './provider-fakes.ts'

/** 10 × $0.50 + 20 × $1.00 per million: $0.000025, in nano-dollars. */
const lineCost = 25_000n

forEachEngine((engine) => {
  let place: Place
  let gateway: Gateway
  let provider: BatchProvider
  beforeAll(async () => {
    place = await engine.createPlace()
    provider = startBatchProvider()
    const database = place.url === undefined ? {} : { DATABASE_URL: place.url }
    gateway = await startGateway({
      config: batchConfig(provider.url),
      clock: systemClock,
      env: { ...batchesOn, ...database },
    })
  })
  afterEach(() => {
    provider.breakWith(undefined)
    provider.batches.splice(0)
    provider.files.clear()
  })
  afterAll(() => stopAll(gateway, provider, place))

  const open = async (amount = '1.00', limits?: object) => {
    const purse = await createWallets(gateway).open(amount, limits)
    return { ...purse, as: { url: gateway.url, key: purse.key } }
  }
  const wallet = (workspaceId: string) => createWallets(gateway).read(workspaceId)
  const read = async (query: (sql: Sql) => Promise<readonly object[]>) => {
    const database = await openDatabase({ ...place, dataFolder: gateway.dataFolder })
    try {
      return (await query(database.sql))[0] as Record<string, unknown>
    } finally {
      await database.close()
    }
  }
  const charged = (id: string) =>
    read(
      (sql) => sql`SELECT COUNT(*) AS n, CAST(COALESCE(SUM(charge), 0) AS BIGINT) AS sum FROM requests
        WHERE charge IS NOT NULL AND batch_id = ${id}`,
    )
  const answersOf = async (as: { url: string; key: string }, file: string | null) =>
    file === null ? [] : linesIn((await call(as, 'GET', `/files/${file}/content`)).text)
  /** 64 tokens of output at $1.00 per million. */
  const heldAtLeast = 64_000n

  test.each([
    [
      '/v1/chat/completions',
      'test/chat',
      { max_tokens: 64, messages: [{ role: 'user', content: 'hi' }] },
      '/v1/chat/completions',
      'files',
    ],
    [
      '/v1/chat/completions',
      'test/messages',
      { max_tokens: 64, messages: [{ role: 'user', content: 'hi' }] },
      undefined,
      'messages',
    ],
    ['/v1/responses', 'test/responses', { input: 'hi' }, '/v1/responses', 'files'],
    ['/v1/responses', 'test/messages', { input: 'hi' }, undefined, 'messages'],
    ['/v1/embeddings', 'test/vectors', { input: 'hi' }, '/v1/embeddings', 'files'],
  ] as const)('%s with %s runs at the provider, at its batch price', async (endpoint, model, body, url, kind) => {
    const { as, workspaceId } = await open()
    const lines = ['mine', 'other'].map((custom_id) =>
      JSON.stringify({ custom_id, method: 'POST', url: endpoint, body: { model, ...body } }),
    )
    const created = await createOf(as, lines, { endpoint })
    expect(created.status).toBe(200)
    const held = await provider.created()
    expect(held).toMatchObject({ kind })
    expect(held.lines.map((line) => line.url)).toEqual([url, url] as string[])
    // The ids of callers stay here.
    expect(JSON.stringify(held)).not.toContain('mine')
    for (const line of held.lines) expect(line.body).not.toHaveProperty('stream', true)
    for (const line of held.lines) expect(line.body).not.toHaveProperty('service_tier')
    expect((await wallet(workspaceId)).held).toBeGreaterThan(0n)
    provider.end(held, saysHello)
    const done = await until(as, created.body.id, 'completed')
    expect(done.request_counts).toEqual({ total: 2, completed: 2, failed: 0 })
    const answers = await answersOf(as, done.output_file_id)
    expect(answers.map(({ custom_id, response }) => [custom_id, response.status_code, response.body.model])).toEqual([
      ['mine', 200, model],
      ['other', 200, model],
    ])
    const cost = endpoint === '/v1/embeddings' ? 5_000n : lineCost
    expect(await charged(created.body.id)).toEqual({ n: 2n, sum: 2n * cost })
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n - 2n * cost, held: 0n })
    // Nothing stays at the provider.
    while (provider.files.size > 0 || (kind === 'messages' && provider.batches.length > 0)) await Bun.sleep(20)
  })

  test.each(['test/messages', 'test/chat'])("Anthropic's API with %s runs at the provider", async (model) => {
    const { as, workspaceId } = await open()
    const params = { model, max_tokens: 64, messages: [{ role: 'user', content: 'hi' }] }
    const { body } = await call(as, 'POST', '/messages/batches', { body: { requests: [{ custom_id: 'a', params }] } })
    provider.end(await provider.created(), saysHello)
    for (;;) {
      const now = await call(as, 'GET', `/messages/batches/${body.id}`)
      if (now.body.processing_status === 'ended') break
      await Bun.sleep(50)
    }
    const [line] = linesIn((await call(as, 'GET', `/messages/batches/${body.id}/results`)).text)
    expect(line).toMatchObject({ custom_id: 'a', result: { type: 'succeeded', message: { type: 'message', model } } })
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n - lineCost, held: 0n })
  })

  test('holds the whole estimate at the batch price, shows where it runs, and shrinks with each result', async () => {
    const { as, workspaceId } = await open()
    const { body } = await createOf(
      as,
      ['a', 'b', 'c'].map((id) => chatLine(id, 'hi')),
    )
    const held = await provider.created()
    const shown = (await manage(gateway, 'GET', `/api/batches/${body.id}`)) as Record<string, unknown>
    expect(shown).toMatchObject({ provider: 'chatty', status: 'in_progress' })
    const whole = (await wallet(workspaceId)).held
    expect(whole).toBeGreaterThanOrEqual(3n * heldAtLeast)
    // At the standard price it would be twice as much.
    expect(whole).toBeLessThan(2n * 3n * heldAtLeast)
    const row = await read((sql) => sql`SELECT estimate FROM batches WHERE id = ${body.id}`)
    expect(row.estimate).toBe(whole)
    provider.end(held, saysHello)
    await until(as, body.id, 'completed')
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n - 3n * lineCost, held: 0n })
    const request = (await read((sql) => sql`SELECT id FROM requests WHERE batch_id = ${body.id}`)) as { id: string }
    const explained = (await manage(gateway, 'GET', `/api/requests/${request.id}`)) as {
      usage: { service_tier: string }
      cost: string
    }
    expect(explained.usage.service_tier).toBe('batch')
    expect(explained.cost).toBe('0.000025')
  })

  test('is refused with 402 if the wallet cannot hold the whole estimate', async () => {
    const { as } = await open('0.0001')
    const before = provider.calls.length
    const { status, body } = await createOf(as, [chatLine('a', 'hi'), chatLine('b', 'hi')])
    expect([status, body.error.code]).toEqual([402, 'INSUFFICIENT_BALANCE'])
    expect(provider.calls).toHaveLength(before)
  })

  test('failed lines cost nothing, and an error is the one that a live call would have', async () => {
    const { as, workspaceId } = await open()
    const { body } = await createOf(
      as,
      ['a', 'b', 'c'].map((id) => chatLine(id, 'hi')),
    )
    const held = await provider.created()
    const [first, second] = held.lines
    const error = { error: { message: 'bad image', type: 'invalid_request_error', param: null, code: null } }
    provider.end(held, (line) =>
      line === first ? { status: 400, body: error } : line === second ? 'expired' : saysHello(line),
    )
    const done = await until(as, body.id, 'completed', 'expired')
    const wrong = await answersOf(as, done.error_file_id)
    expect(
      wrong.map(({ custom_id, response, error: why }) => [custom_id, response?.status_code ?? why.code]).sort(),
    ).toEqual([
      ['a', 400],
      ['b', 'batch_expired'],
    ])
    expect(await charged(body.id)).toEqual({ n: 1n, sum: lineCost })
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n - lineCost, held: 0n })
  })

  test('repeated, unknown, broken and missing results harm no other line', async () => {
    const { as, workspaceId } = await open()
    const { body } = await createOf(
      as,
      ['a', 'b', 'c'].map((id) => chatLine(id, 'hi')),
    )
    const held = await provider.created()
    provider.end(held, saysHello, {
      change: ([a = '', , c = '']) => [
        a,
        a,
        '{"custom_id":',
        c.replace(/"custom_id":"[^"]*"/, '"custom_id":"job_other-1"'),
        c,
        c,
      ],
    })
    const done = await until(as, body.id, 'completed')
    expect(done.request_counts).toEqual({ total: 3, completed: 2, failed: 1 })
    const [missing] = await answersOf(as, done.error_file_id)
    expect(missing).toMatchObject({ custom_id: 'b', response: { status_code: 503 } })
    expect(missing.response.body.error.message).toContain('returned no readable result')
    expect(await charged(body.id)).toEqual({ n: 2n, sum: 2n * lineCost })
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n - 2n * lineCost, held: 0n })
  })

  test('results that begin with a byte order mark and end their lines with CRLF are read', async () => {
    const { as, workspaceId } = await open()
    const { body } = await createOf(
      as,
      ['a', 'b'].map((id) => chatLine(id, 'hi')),
    )
    provider.end(await provider.created(), saysHello, { change: ([a = '', b = '']) => [`\ufeff${a}\r`, `${b}\r`] })
    const done = await until(as, body.id, 'completed')
    expect(done.request_counts).toEqual({ total: 2, completed: 2, failed: 0 })
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n - 2n * lineCost, held: 0n })
  })

  test('results that have disappeared are the error of their lines', async () => {
    const { as, workspaceId } = await open()
    const { body } = await createOf(as, [chatLine('a', 'hi')])
    const held = await provider.created()
    provider.breakWith((each) =>
      each === `GET /v1/files/file-out-${held.id}/content` ? new Response('{}', { status: 404 }) : undefined,
    )
    provider.end(held, saysHello)
    const done = await until(as, body.id, 'completed')
    const [gone] = await answersOf(as, done.error_file_id)
    expect(gone.response.body.error.message).toContain(
      'no longer has the batch that this request was in, or its results',
    )
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n, held: 0n })
  })

  test('a provider that does not find a batch for some seconds does not lose it', async () => {
    const { as, workspaceId } = await open()
    const { body } = await createOf(as, [chatLine('a', 'hi')])
    const held = await provider.created()
    let missed = 0
    provider.breakWith((each) =>
      each === `GET /v1/batches/${held.id}` && ++missed <= 4 ? new Response('{}', { status: 404 }) : undefined,
    )
    while (missed < 4) await Bun.sleep(20)
    provider.end(held, saysHello)
    await until(as, body.id, 'completed')
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n - lineCost, held: 0n })
  })

  test('a cancellation that a provider refuses is repeated no more often than the batch is looked at', async () => {
    const { as, workspaceId } = await open()
    const { body } = await createOf(as, [chatLine('a', 'hi')])
    const held = await provider.created()
    const [cancel, look] = [`POST /v1/batches/${held.id}/cancel`, `GET /v1/batches/${held.id}`]
    provider.breakWith((each) => (each === cancel || each === look ? new Response('{}', { status: 429 }) : undefined))
    const from = provider.calls.length
    await call(as, 'POST', `/batches/${body.id}/cancel`)
    const count = (which: string) => provider.calls.slice(from).filter((each) => each === which).length
    while (count(look) < 3 || count(cancel) < 2) await Bun.sleep(20)
    expect(count(cancel)).toBeLessThanOrEqual(count(look) + 1)
    provider.breakWith(undefined)
    while (!held.isCancelling) await Bun.sleep(20)
    provider.end(held, saysHello, { status: 'cancelled' })
    await until(as, body.id, 'cancelled')
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n - lineCost, held: 0n })
  })

  test('a cancelled batch is looked at although its provider asked to be left alone for a day', async () => {
    const { as, workspaceId } = await open()
    const { body } = await createOf(as, [chatLine('a', 'hi')])
    const held = await provider.created()
    let refused = 0
    provider.breakWith((each) =>
      each === `GET /v1/batches/${held.id}` && refused++ === 0
        ? new Response('{}', { status: 429, headers: { 'retry-after': '86400' } })
        : undefined,
    )
    while (refused === 0) await Bun.sleep(20)
    provider.end(held, saysHello)
    await call(as, 'POST', `/batches/${body.id}/cancel`)
    await until(as, body.id, 'cancelled')
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n - lineCost, held: 0n })
  })

  test('an error that does not end is not read to its end', async () => {
    const { as } = await open()
    const { body } = await createOf(as, [chatLine('a', 'hi')])
    const held = await provider.created()
    const piece = new Uint8Array(2 ** 20)
    let [sent, isLeft] = [0, false]
    const endless = () =>
      new ReadableStream({
        async pull(stream) {
          await Bun.sleep(1)
          if (++sent > 200) stream.close()
          else stream.enqueue(piece)
        },
        cancel() {
          isLeft = true
        },
      })
    let isMet = false
    provider.breakWith((each) => {
      if (isMet || each !== `GET /v1/batches/${held.id}`) return undefined
      isMet = true
      return new Response(endless(), { status: 500 })
    })
    while (!isLeft && sent <= 200) await Bun.sleep(20)
    expect(isLeft).toBe(true)
    provider.end(held, saysHello)
    await until(as, body.id, 'completed')
  })

  test('a cancelled batch is cancelled at the provider, and what it had done is charged', async () => {
    const { as, workspaceId } = await open()
    const { body } = await createOf(
      as,
      ['a', 'b'].map((id) => chatLine(id, 'hi')),
    )
    const held = await provider.created()
    await call(as, 'POST', `/batches/${body.id}/cancel`)
    while (!held.isCancelling) await Bun.sleep(20)
    const [first] = held.lines
    provider.end(held, (line) => (line === first ? saysHello(line) : 'cancelled'), { status: 'cancelled' })
    const done = await until(as, body.id, 'cancelled')
    expect(done.request_counts).toEqual({ total: 2, completed: 1, failed: 0 })
    expect(await charged(body.id)).toEqual({ n: 1n, sum: lineCost })
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n - lineCost, held: 0n })
  })

  test('a batch that expires at the provider ends so here', async () => {
    const { as, workspaceId } = await open()
    const { body } = await createOf(
      as,
      ['a', 'b'].map((id) => chatLine(id, 'hi')),
    )
    const held = await provider.created()
    const [first] = held.lines
    provider.end(held, (line) => (line === first ? saysHello(line) : 'expired'), { status: 'expired' })
    const done = await until(as, body.id, 'expired')
    expect((await answersOf(as, done.error_file_id)).map(({ error }) => error.code)).toEqual(['batch_expired'])
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n - lineCost, held: 0n })
  })

  test('a batch that the provider fails or loses costs nothing', async () => {
    const { as, workspaceId } = await open()
    const failing = await createOf(as, [chatLine('a', 'hi')])
    const held = await provider.created()
    held.status = 'failed'
    const failed = await until(as, failing.body.id, 'completed')
    const [line] = await answersOf(as, failed.error_file_id)
    expect(line.response.body.error.message).toContain('(token_limit_exceeded)')
    expect(JSON.stringify(line)).not.toContain('org-secret')

    const losing = await createOf(as, [chatLine('a', 'hi')])
    await provider.created(2)
    provider.batches.splice(0)
    const lost = await until(as, losing.body.id, 'completed')
    const [gone] = await answersOf(as, lost.error_file_id)
    expect(gone.response.body.error.message).toContain('no longer has the batch')
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n, held: 0n })
  })

  test('a batch whose workspace is erased is cancelled at the provider, and its prompts are deleted there', async () => {
    const { as, workspaceId } = await open()
    await createOf(as, [chatLine('a', 'hi')])
    const held = await provider.created()
    expect(provider.files.size).toBe(1)
    await manage(gateway, 'POST', `/api/workspaces/${workspaceId}/erase`, { confirm: 'erase' })
    while (!held.isCancelling || provider.files.size > 0) await Bun.sleep(20)
    while ((await wallet(workspaceId)).held > 0n) await Bun.sleep(20)
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n, held: 0n })
  })

  test('a revoked key stops the batch, and its hold is released', async () => {
    const { as, workspaceId } = await open()
    const { body } = await createOf(as, [chatLine('a', 'hi')])
    const held = await provider.created()
    const { data } = (await manage(gateway, 'GET', `/api/keys?workspace_id=${workspaceId}`)) as {
      data: { id: string }[]
    }
    await manage(gateway, 'POST', `/api/keys/${data[0]?.id}/revoke`)
    while (!held.isCancelling) await Bun.sleep(20)
    provider.end(held, () => 'cancelled', { status: 'cancelled' })
    for (;;) {
      const now = (await manage(gateway, 'GET', `/api/batches/${body.id}`)) as {
        status: string
        errors: { code: string }[]
      }
      if (now.status === 'cancelled') {
        expect(now.errors[0]?.code).toBe('key_refused')
        break
      }
      await Bun.sleep(50)
    }
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n, held: 0n })
  })

  test.each([
    ['401', () => new Response('{"error":{"type":"authentication_error"}}', { status: 401 })],
    ['429', () => new Response('{}', { status: 429, headers: { 'retry-after': '1' } })],
  ])('%s when it is submitted makes the batch wait, and it is tried again', async (_status, answer) => {
    const { as, workspaceId } = await open()
    provider.breakWith((each) => (each === 'POST /v1/files' ? answer() : undefined))
    const { body } = await createOf(as, [chatLine('a', 'hi')])
    for (;;) {
      const now = (await manage(gateway, 'GET', `/api/batches/${body.id}`)) as { waits_for: string | null }
      if (now.waits_for === 'provider') break
      await Bun.sleep(50)
    }
    provider.breakWith(undefined)
    provider.end(await provider.created(), saysHello)
    await until(as, body.id, 'completed')
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n - lineCost, held: 0n })
  })

  test('400 when it is submitted is the error of every line', async () => {
    const { as, workspaceId } = await open()
    provider.breakWith((each) =>
      each === 'POST /v1/batches' ? new Response('{"error":{"code":"invalid_model"}}', { status: 400 }) : undefined,
    )
    const { body } = await createOf(as, [chatLine('a', 'hi')])
    const done = await until(as, body.id, 'completed')
    const [line] = await answersOf(as, done.error_file_id)
    expect(line.response.body.error.message).toContain(
      'refused the batch that this request was in: status 400, invalid_model',
    )
    // What was uploaded for it does not stay there.
    expect(provider.files.size).toBe(0)
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n, held: 0n })
  })

  test('5xx while it is followed and while results are read changes nothing', async () => {
    const { as, workspaceId } = await open()
    const { body } = await createOf(as, [chatLine('a', 'hi')])
    const held = await provider.created()
    let broken = 0
    provider.breakWith((each) => {
      const isMeant = each.startsWith('GET /v1/batches/') || each.endsWith('/content')
      return isMeant && broken++ < 3 ? new Response('oops', { status: 502 }) : undefined
    })
    provider.end(held, saysHello)
    await until(as, body.id, 'completed')
    expect(broken).toBeGreaterThan(3)
    expect(await wallet(workspaceId)).toEqual({ posted: 1_000_000_000n - lineCost, held: 0n })
  })

  test('lines that ask for a tier, or for providers, run live', async () => {
    const { as } = await open()
    const { body } = await createOf(as, [
      chatLine('a', 'hi', { service_tier: 'auto' }),
      chatLine('b', 'hi', { provider: { only: ['chatty'] } }),
    ])
    const shown = (await manage(gateway, 'GET', `/api/batches/${body.id}`)) as Record<string, unknown>
    expect(shown.provider).toBeNull()
    await until(as, body.id, 'completed')
    expect(provider.batches).toHaveLength(0)
  })
})
