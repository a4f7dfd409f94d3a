// A gateway that is killed again and again while it runs a batch: every line has one answer, and the wallet has paid each once.

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../src/store/open-database.ts'
import { type CrashGateway, startCrashGateway } from '../parts/crash-gateway.ts'
import { createEngine, createThrowAwayFolder, forEachEngine, type Place } from '../parts/engines.ts'
import { batchesOn, call, chatLine, createOf, linesIn } from './parts.ts'

const lines = 150
/** An answer is kept, and charged, and its line is final: between each two of these. */
const deaths = ['before_settle=kill:1:20', 'after_commit=kill:1:20', 'after_send=kill:1:20']

/** The silence after which others take a process for dead has passed. */
async function passSilence(place: Place): Promise<void> {
  const database = await openDatabase(place)
  try {
    await database.transaction(async (sql) => {
      await sql`UPDATE replicas SET heartbeat_at = heartbeat_at - 60000`
      await sql`UPDATE batches SET claimed_until = 0`
    })
  } finally {
    await database.close()
  }
}

/** undefined = the gateway died meanwhile. */
async function ended(gateway: CrashGateway, id: string, key = gateway.key) {
  while (gateway.isAlive()) {
    const { body } = await call({ url: gateway.url, key }, 'GET', `/batches/${id}`).catch(() => ({ body: undefined }))
    if (body?.status === 'completed') return body
    await Bun.sleep(50)
  }
  return undefined
}

/** By plain SQL: each line is done once and charged once, and the wallet has paid exactly that. */
async function expectExact(place: Place, id: string, lines: number): Promise<void> {
  const database = await openDatabase(place)
  try {
    const [sums] = await database.sql<Record<string, bigint>>`SELECT
      (SELECT COUNT(*) FROM batch_lines WHERE batch_id = ${id} AND state = 'done') AS done,
      (SELECT COUNT(*) FROM requests WHERE batch_id = ${id} AND charge IS NOT NULL) AS charged,
      (SELECT COUNT(*) FROM batch_lines l JOIN requests r ON r.id = l.request_id
        WHERE l.batch_id = ${id} AND r.charge IS NOT NULL) AS answered,
      (SELECT CAST(SUM(charge) AS BIGINT) FROM requests WHERE batch_id = ${id}) AS cost,
      (SELECT cost FROM batches WHERE id = ${id}) AS stated,
      (SELECT CAST(SUM(5000000000 - posted) AS BIGINT) FROM balances) AS paid`
    const count = BigInt(lines)
    expect(sums).toMatchObject({ done: count, charged: count, answered: count })
    expect(sums?.paid).toBe(sums?.cost as bigint)
    expect(sums?.stated).toBe(sums?.cost as bigint)
  } finally {
    await database.close()
  }
}

forEachEngine((engine) => {
  test('every line has one answer and one charge, however often the process dies', async () => {
    using place = await engine.createPlace()
    const configPath = join(place.dataFolder, 'tollgate.yaml')
    writeFileSync(configPath, '')
    const data = { dataFolder: place.dataFolder, databaseUrl: place.url, configPath }
    const start = (failpoints?: string) =>
      startCrashGateway(data, { env: batchesOn, ...(failpoints !== undefined && { failpoints }) })

    let gateway = await start(deaths[0])
    const input = Array.from({ length: lines }, (_, at) =>
      chatLine(`line-${at}`, `say ${at}`, { model: 'sandbox/echo' }),
    )
    const { id } = (await createOf(gateway, input)).body
    for (const death of deaths.slice(1)) {
      await gateway.ended
      await passSilence(place)
      gateway = await start(death)
    }
    await gateway.ended
    await passSilence(place)
    gateway = await start()
    const done = await ended(gateway, id)
    expect(done.request_counts).toEqual({ total: lines, completed: lines, failed: 0 })
    const answers = linesIn((await call(gateway, 'GET', `/files/${done.output_file_id}/content`)).text)
    expect(answers.map(({ custom_id }) => custom_id)).toEqual(input.map((line) => JSON.parse(line).custom_id))
    await gateway.stop()

    await expectExact(place, id, lines)
  })
})

/** On PostgreSQL alone: the embedded engine has one process. */
test('with two replicas, of which the one that runs it dies again and again, every line has one answer and one charge', async () => {
  using place = await createEngine('postgres').createPlace()
  using otherFolder = createThrowAwayFolder()
  const configPath = join(place.dataFolder, 'tollgate.yaml')
  writeFileSync(configPath, '')
  const database = await openDatabase(place)
  const known = new Set<string>()
  /** The one that was not there before. */
  const newReplica = async () => {
    const rows = await database.sql<{ id: string }>`SELECT id FROM replicas`
    const found = rows.map(({ id }) => id).find((id) => !known.has(id))
    if (found !== undefined) known.add(found)
    return found
  }
  const owner = async () => (await database.sql<{ owner: string | null }>`SELECT owner FROM batches`)[0]?.owner
  const start = async (dataFolder: string, failpoints?: string) => {
    const data = { dataFolder, databaseUrl: place.url, configPath }
    const gateway = await startCrashGateway(data, { env: batchesOn, ...(failpoints !== undefined && { failpoints }) })
    return { dataFolder, gateway, replica: await newReplica() }
  }
  const first = await start(place.dataFolder, deaths[0])
  let alive = [first, await start(otherFolder.path, deaths[1])]
  const { key } = first.gateway
  const input = Array.from({ length: lines }, (_, at) => chatLine(`line-${at}`, `say ${at}`, { model: 'sandbox/echo' }))
  const { id } = (await createOf({ url: first.gateway.url, key }, input)).body
  const died = new Set<string>()
  for (const death of [deaths[2], deaths[0], undefined, undefined]) {
    const dead = await Promise.race(alive.map((one) => one.gateway.ended.then(() => one)))
    died.add(dead.dataFolder)
    // Its silence has passed; the other one lives, and goes on.
    const before = await owner()
    await database.transaction(async (sql) => {
      await sql`UPDATE replicas SET heartbeat_at = heartbeat_at - 60000 WHERE id = ${dead.replica ?? ''}`
      await sql`UPDATE batches SET claimed_until = 0`
    })
    while ((await owner()) === before) await Bun.sleep(50)
    alive = [...alive.filter((one) => one !== dead), await start(dead.dataFolder, death)]
  }
  expect(died.size).toBe(2)
  const [{ gateway } = first] = alive
  const done = await ended(gateway, id, key)
  expect(done.request_counts).toEqual({ total: lines, completed: lines, failed: 0 })
  for (const one of alive) await one.gateway.stop()
  await database.close()
  await expectExact(place, id, lines)
})
