import { expect, test } from 'bun:test'
import { findPostgresPrograms, sharedPostgres } from '../../test/parts/postgres.ts'
import { type SlowNetwork, startSlowNetwork } from '../../test/parts/slow-network.ts'
import type { Database } from './database.ts'
import { createSilenceWatch, openPostgres } from './postgres.ts'
import { isStoreUnavailable } from './sql-error.ts'
import { StartRefusal } from './start-refusal.ts'

test('a silence is reported once, and only if something waits for too long', async () => {
  let silences = 0
  const { watch } = createSilenceWatch({ turnMs: 5, turnsMax: 2, onSilence: () => void silences++ })
  expect(await watch(Promise.resolve(7))).toBe(7)
  await expect(watch(Promise.reject(new Error('refused')))).rejects.toThrow('refused')
  await Bun.sleep(50)
  expect(silences).toBe(0)
  void watch(new Promise(() => {}))
  while (silences === 0) await Bun.sleep(5)
  void watch(new Promise(() => {}))
  await Bun.sleep(50)
  expect(silences).toBe(1)
})

/** Eight turns are what a statement may wait: two seconds here. */
const turnMs = 250

async function openFar(): Promise<{ database: Database; network: SlowNetwork } & AsyncDisposable> {
  const url = new URL(await (await sharedPostgres()).createDatabase())
  const network = startSlowNetwork(Number(url.port), 0)
  url.port = String(network.port)
  const database = await untilServed(() => openPostgres(url.href, { turnMs }))
  return {
    database,
    network,
    async [Symbol.asyncDispose]() {
      await database.close()
      network[Symbol.dispose]()
    },
  }
}

/** On a slow machine a new connection may take longer than the two seconds. */
async function untilServed<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (thrown) {
      if (!isStoreUnavailable(thrown) && !(thrown instanceof StartRefusal)) throw thrown
    }
  }
}

const fault = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'no fault',
    (thrown: unknown) => (isStoreUnavailable(thrown) ? 'unavailable' : thrown),
  )

test.skipIf(findPostgresPrograms() === undefined)(
  'connections that say nothing any more fail what waits for them, and new ones are made',
  async () => {
    await using far = await openFar()
    const { database, network } = far
    const one = () => database.sql<{ one: number }>`SELECT 1 AS one`
    await untilServed(() => Promise.all([one(), database.transaction((sql) => sql`SELECT 1`)]))
    // The server notices by itself.
    expect([...(await database.sql`SHOW tcp_keepalives_idle`)]).toEqual([{ tcp_keepalives_idle: '60' }])
    network.loseConnections()
    const works = [
      one(),
      database.transaction((sql) => sql`SELECT 1`),
      database.transaction((sql) => sql`SELECT 1`, 'at_once'),
    ]
    expect(await Promise.all(works.map(fault))).toEqual(['unavailable', 'unavailable', 'unavailable'])
    expect(await untilServed(one)).toHaveLength(1)
    expect(await untilServed(() => database.transaction((sql) => sql`SELECT 1`))).toHaveLength(1)
    expect(await untilServed(() => database.transaction((sql) => sql`SELECT 1`, 'at_once'))).toHaveLength(1)
  },
)

test.skipIf(findPostgresPrograms() === undefined)(
  'what has no time limit is not cut, neither for its length nor because others are silent',
  async () => {
    await using far = await openFar()
    const { database, network } = far
    await database.sql`SELECT 1`
    network.loseConnections()
    // Longer than the eight turns, and than what a pool that is given up has left.
    const long = database.snapshot((sql) => sql`SELECT pg_sleep(4)`)
    const schema = database.schemaTransaction((sql) => sql`SELECT pg_sleep(4)`)
    expect(await fault(database.sql`SELECT 1`)).toBe('unavailable')
    expect(await long).toHaveLength(1)
    expect(await schema).not.toBe('busy')
  },
)

test.skipIf(findPostgresPrograms() === undefined)(
  'waiting for a free connection is not a silence, and cuts no connection',
  async () => {
    await using far = await openFar()
    const { database } = far
    // Ten connections, each busy for longer than the eight turns with statements that take far less.
    const busy = Array.from({ length: 10 }, () =>
      database.transaction(async (sql) => {
        for (let n = 0; n < 25; n++) await sql`SELECT pg_sleep(0.1)`
        return 'done'
      }),
    )
    const waiting = database.sql`SELECT 7 AS seven`
    expect(await Promise.all(busy)).toEqual(Array.from({ length: 10 }, () => 'done'))
    expect([...(await waiting)]).toEqual([{ seven: 7 }])
  },
)

test.skipIf(findPostgresPrograms() === undefined)(
  'readings that lost their connections do not stand in the way of the next',
  async () => {
    await using far = await openFar()
    const { database, network } = far
    let begun = 0
    const lost = Array.from({ length: 4 }, () =>
      database.snapshot(async (sql) => {
        await sql`SELECT 1`
        begun++
        return await sql`SELECT pg_sleep(1)`
      }),
    )
    for (const one of lost) one.catch(() => {})
    while (begun < 4) await Bun.sleep(5)
    network.loseConnections()
    expect(await database.snapshot((sql) => sql`SELECT 1`)).toHaveLength(1)
  },
)
