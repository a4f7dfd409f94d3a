// A gateway that is killed while a batch runs at its provider: the batch is submitted there once, and each line is charged once.

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../src/store/open-database.ts'
import type { Sql } from '../../src/store/sql.ts'
import { createWallets } from '../money/wallets.ts'
import { type CrashGateway, startCrashGateway } from '../parts/crash-gateway.ts'
import { createEngine, createThrowAwayFolder, forEachEngine, type Place } from '../parts/engines.ts'
import { batchesOn, call, chatLine, createOf, until, uploadLines } from './parts.ts'
import { batchConfig, saysHello, startBatchProvider } from './provider-fakes.ts'

/** 10 × $0.50 + 20 × $1.00 per million, in nano-dollars. */
const lineCost = 25_000n
const opening = 5_000_000_000n
const lines = 40

async function inDatabase<T>(place: Place, work: (sql: Sql) => Promise<T>): Promise<T> {
  const database = await openDatabase(place)
  try {
    return await database.transaction(work)
  } finally {
    await database.close()
  }
}

/** The silence has passed after which others take a process for dead, and the time in which a submission may be on its way. */
const passTime = (place: Place) =>
  inDatabase(place, async (sql) => {
    await sql`UPDATE replicas SET heartbeat_at = heartbeat_at - 60000`
    await sql`UPDATE batches SET claimed_until = 0`
    await sql`UPDATE batch_jobs SET created_at = created_at - 60000`
  })

async function ended(gateway: CrashGateway, key: string, id: string) {
  while (gateway.isAlive()) {
    const { body } = await call({ url: gateway.url, key }, 'GET', `/batches/${id}`).catch(() => ({ body: undefined }))
    if (body?.status === 'completed') return body
    await Bun.sleep(50)
  }
  throw new Error(gateway.lastLines())
}

/** What a gateway starts on, with the provider in its file. */
function dataOf(place: Place, providerUrl: string) {
  const configPath = join(place.dataFolder, 'tollgate.yaml')
  writeFileSync(configPath, batchConfig(providerUrl))
  return { dataFolder: place.dataFolder, databaseUrl: place.url, configPath }
}

/** By plain SQL. */
async function expectExact(place: Place, id: string): Promise<void> {
  const sums = await inDatabase(place, async (sql) => {
    const rows = await sql<Record<string, bigint>>`SELECT
      (SELECT COUNT(*) FROM batch_lines WHERE batch_id = ${id} AND state = 'done' AND outcome = 'succeeded') AS done,
      (SELECT COUNT(*) FROM requests WHERE batch_id = ${id} AND charge IS NOT NULL) AS charged,
      (SELECT CAST(SUM(charge) AS BIGINT) FROM requests WHERE batch_id = ${id}) AS cost,
      (SELECT CAST(SUM(${opening} - posted) AS BIGINT) FROM balances) AS paid,
      (SELECT CAST(SUM(held) AS BIGINT) FROM balances) AS held,
      (SELECT COUNT(*) FROM holds WHERE state = 'open') AS open,
      (SELECT cost FROM batches WHERE id = ${id}) AS stated`
    return rows[0]
  })
  const [count, cost] = [BigInt(lines), BigInt(lines) * lineCost]
  expect(sums).toEqual({ done: count, charged: count, cost, paid: cost, held: 0n, open: 0n, stated: cost })
}

const input = (model: string) => Array.from({ length: lines }, (_, at) => chatLine(`line-${at}`, 'hi', { model }))

forEachEngine((engine) => {
  test.each(['test/chat', 'test/messages'])(
    '%s is submitted once and charged once, whenever the process dies',
    async (model) => {
      using place = await engine.createPlace()
      using provider = startBatchProvider()
      const data = dataOf(place, provider.url)
      const start = (failpoints?: string) =>
        startCrashGateway(data, { env: batchesOn, ...(failpoints !== undefined && { failpoints }) })

      // After it was written down; after the provider has it, before its id is stored.
      let gateway = await start('batch_intended=kill:1:0')
      const { key } = gateway
      const { id } = (await createOf(gateway, input(model))).body
      await gateway.ended
      expect(provider.batches).toHaveLength(0)
      await passTime(place)
      gateway = await start('batch_created=kill:1:0')
      await gateway.ended
      const held = await provider.created()
      await passTime(place)
      // Anthropic's batches have no name of ours: one of the same size is looked at once it has ended.
      if (model === 'test/messages') provider.end(held, saysHello)
      gateway = await start()
      while (
        (await inDatabase(place, (sql) => sql`SELECT 1 FROM batch_jobs WHERE upstream_id = ${held.id}`)).length === 0
      )
        await Bun.sleep(50)
      await gateway.kill()
      await passTime(place)
      // In the middle of the results.
      provider.end(held, saysHello)
      for (const death of ['before_settle=kill:1:8', 'after_commit=kill:1:8']) {
        gateway = await start(death)
        await gateway.ended
        await passTime(place)
      }
      gateway = await start()
      const done = await ended(gateway, key, id)
      expect(done.request_counts).toEqual({ total: lines, completed: lines, failed: 0 })
      // The hold of a line that a dead process was at may be reaped after the batch has ended.
      while ((await inDatabase(place, (sql) => sql`SELECT 1 FROM holds WHERE state = 'open'`)).length > 0)
        await Bun.sleep(50)
      await gateway.stop()
      expect(
        provider.calls.filter((each) => each === 'POST /v1/batches' || each === 'POST /v1/messages/batches'),
      ).toHaveLength(1)
      await expectExact(place, id)
    },
  )
})

/** On SQLite, whose holds die with the process; on PostgreSQL, the reaper must leave it alone. */
forEachEngine((engine) => {
  test('what is held for a batch at its provider is held after a restart', async () => {
    using place = await engine.createPlace()
    using provider = startBatchProvider()
    const data = dataOf(place, provider.url)
    let gateway = await startCrashGateway(data, { env: batchesOn })
    const { key } = gateway
    // Each holds at least 4,096 tokens of output at $1.00 per million: $0.16 of $5.00 for the batch.
    const costly = Array.from({ length: lines }, (_, at) => chatLine(`line-${at}`, 'hi', { max_tokens: 4096 }))
    const { id } = (await createOf(gateway, costly)).body
    const held = await provider.created()
    await gateway.kill()
    await passTime(place)
    gateway = await startCrashGateway(data, { env: batchesOn })
    // 610 × 8,000 tokens of output: $4.88, and little input. It would fit into $5.00.
    const more = Array.from({ length: 610 }, (_, at) => chatLine(`line-${at}`, 'hi', { max_tokens: 8000 }))
    const refused = await createOf({ url: gateway.url, key }, more)
    expect(refused.status).toBe(402)
    expect(Number(refused.body.error.metadata.needed)).toBeLessThan(5)
    expect(Number(refused.body.error.metadata.balance)).toBeLessThanOrEqual(5 - 0.16)
    provider.end(held, saysHello)
    await ended(gateway, key, id)
    await gateway.stop()
    await expectExact(place, id)
  })
})

forEachEngine((engine) => {
  test('a batch that waits for its wallet waits after a restart, and holds nothing until it can hold everything', async () => {
    using place = await engine.createPlace()
    using provider = startBatchProvider()
    const data = dataOf(place, provider.url)
    let gateway = await startCrashGateway(data, { env: batchesOn })
    const { key } = gateway
    // 400 × 8,000 tokens of output: $3.20 of $5.00 for each of them.
    const costly = Array.from({ length: 400 }, (_, at) => chatLine(`line-${at}`, 'hi', { max_tokens: 8000 }))
    const file = await uploadLines(gateway, costly)
    const order = { input_file_id: file, endpoint: '/v1/chat/completions', completion_window: '24h' }
    // Nothing is held when a batch is created: both are, and the second one has to wait.
    const created = await Promise.all([order, order].map((body) => call(gateway, 'POST', '/batches', { body })))
    expect(created.map(({ status }) => status)).toEqual([200, 200])
    await provider.created()
    const waiting = () => inDatabase(place, (sql) => sql`SELECT id FROM batches WHERE waits_for = 'balance'`)
    while ((await waiting()).length === 0) await Bun.sleep(50)
    await gateway.kill()
    await passTime(place)
    await inDatabase(place, (sql) => sql`UPDATE batches SET waits_for = NULL`)
    gateway = await startCrashGateway(data, { env: batchesOn })
    while ((await waiting()).length === 0 && provider.batches.length === 1) await Bun.sleep(50)
    expect(provider.batches).toHaveLength(1)
    const { held } = await createWallets({ url: gateway.url, dataFolder: place.dataFolder }).read()
    expect(held).toBeLessThan(3_300_000_000n)
    // What the first one gives back is enough for the second.
    for (const at of [1, 2]) provider.end(await provider.created(at), saysHello)
    for (const { body } of created) await ended(gateway, key, body.id)
    await gateway.stop()
    const paid = 2n * 400n * lineCost
    const rows = await inDatabase(place, (sql) => sql`SELECT posted, held FROM balances`)
    expect(rows).toEqual([{ posted: opening - paid, held: 0n }])
  })
})

forEachEngine((engine) => {
  test('a gateway that stops leaves a cancelled batch to the next one', async () => {
    using place = await engine.createPlace()
    using provider = startBatchProvider()
    const data = dataOf(place, provider.url)
    let gateway = await startCrashGateway(data, { env: batchesOn })
    const { key } = gateway
    const { id } = (await createOf(gateway, input('test/chat'))).body
    const held = await provider.created()
    await call({ url: gateway.url, key }, 'POST', `/batches/${id}/cancel`)
    while (!held.isCancelling) await Bun.sleep(50)
    // Its provider takes its time.
    await gateway.stop()
    provider.end(held, (line) => (line === held.lines[0] ? saysHello(line) : 'cancelled'), { status: 'cancelled' })
    gateway = await startCrashGateway(data, { env: batchesOn })
    const done = await until({ url: gateway.url, key }, id, 'cancelled')
    expect(done.request_counts).toEqual({ total: lines, completed: 1, failed: 0 })
    await gateway.stop()
    const rows = await inDatabase(place, (sql) => sql`SELECT posted, held FROM balances`)
    expect(rows).toEqual([{ posted: opening - lineCost, held: 0n }])
  })
})

test('a gateway that stops cancels nothing, and waits for no call to the provider', async () => {
  using place = await createEngine('sqlite').createPlace()
  using provider = startBatchProvider()
  const data = dataOf(place, provider.url)
  const notices: string[] = []
  const onLine = (line: string) => void (line.includes('cannot be used now') && notices.push(line))
  let gateway = await startCrashGateway(data, { env: batchesOn, onLine })
  const { key } = gateway
  // More than 10,000 lines are two batches at the provider.
  const many = Array.from({ length: 10_001 }, (_, at) => chatLine(`line-${at}`, 'hi'))
  const { id } = (await createOf(gateway, many)).body
  const jobs = [await provider.created(1), await provider.created(2)]
  const from = provider.calls.length
  const silence = () => new Response(new ReadableStream({ pull: () => new Promise(() => {}) }))
  provider.breakWith((each) => (each.startsWith('GET /v1/batches/') ? silence() : undefined))
  while (!provider.calls.slice(from).some((each) => each.startsWith('GET /v1/batches/'))) await Bun.sleep(20)
  await gateway.stop()
  expect(jobs.map(({ isCancelling }) => isCancelling)).toEqual([false, false])
  // The time for such a call is not over.
  expect(notices).toEqual([])
  provider.breakWith(undefined)
  for (const job of jobs) provider.end(job, saysHello)
  gateway = await startCrashGateway(data, { env: batchesOn })
  const done = await ended(gateway, key, id)
  expect(done.request_counts).toEqual({ total: 10_001, completed: 10_001, failed: 0 })
  await gateway.stop()
})

test('a batch that was submitted while the clock was hours ahead is found, and not submitted again', async () => {
  using place = await createEngine('sqlite').createPlace()
  using provider = startBatchProvider()
  const data = dataOf(place, provider.url)
  let gateway = await startCrashGateway(data, { env: batchesOn, failpoints: 'batch_created=kill:1:0' })
  const { key } = gateway
  const { id } = (await createOf(gateway, input('test/chat'))).body
  await gateway.ended
  const held = await provider.created()
  await inDatabase(place, (sql) => sql`UPDATE batch_jobs SET created_at = created_at + 18000000`)
  provider.end(held, saysHello)
  gateway = await startCrashGateway(data, { env: batchesOn })
  await ended(gateway, key, id)
  await gateway.stop()
  expect(provider.calls.filter((each) => each === 'POST /v1/batches')).toHaveLength(1)
  await expectExact(place, id)
})

test('of two replicas one polls, and the other goes on when it dies', async () => {
  using place = await createEngine('postgres').createPlace()
  using folder = createThrowAwayFolder()
  using provider = startBatchProvider()
  const configPath = join(place.dataFolder, 'tollgate.yaml')
  writeFileSync(configPath, batchConfig(provider.url))
  const start = (dataFolder: string) =>
    startCrashGateway({ dataFolder, databaseUrl: place.url, configPath }, { env: batchesOn })
  const first = await start(place.dataFolder)
  const { key } = first
  const { id } = (await createOf(first, input('test/chat'))).body
  const held = await provider.created()
  const second = await start(folder.path)
  const [row] = await inDatabase(place, (sql) => sql<{ epoch: bigint }>`SELECT epoch FROM batches`)
  expect(row?.epoch).toBe(1n)
  await first.kill()
  await passTime(place)
  provider.end(held, saysHello)
  const done = await ended(second, key, id)
  expect(done.request_counts.completed).toBe(lines)
  await second.stop()
  expect(provider.calls.filter((each) => each === 'POST /v1/batches')).toHaveLength(1)
  await expectExact(place, id)
})
