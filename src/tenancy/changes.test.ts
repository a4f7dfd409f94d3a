import { describe, expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { findPostgresPrograms } from '../../test/parts/postgres.ts'
import { findRedisProgram, startRedis } from '../../test/parts/redis.ts'
import { openPostgresStore } from '../../test/replicas/postgres-store.ts'
import type { Database } from '../store/database.ts'
import { openRedis } from '../store/redis.ts'
import {
  type Change,
  type Changes,
  type ChangesOptions,
  changeOf,
  clearOldChanges,
  createChanges,
  parseChange,
  renderChange,
} from './changes.ts'

test('the kind of a change follows from the id prefix', () => {
  expect(changeOf('key_1')).toEqual({ kind: 'key', id: 'key_1' })
  expect(changeOf('prj_1')).toEqual({ kind: 'project', id: 'prj_1' })
  expect(changeOf('ws_1')).toEqual({ kind: 'workspace', id: 'ws_1' })
})

test('a rendered change parses to the same change', () => {
  const sent = { change: { kind: 'credential', id: 'ws_1' }, sequence: 9_007_199_254_740_993n } as const
  expect(parseChange(renderChange(sent))).toEqual(sent)
  const alone = { change: { kind: 'price', id: 'acme/large' } } as const
  expect(parseChange(renderChange(alone))).toEqual(alone)
})

const strange = [
  '',
  'null',
  '[]',
  '{"kind":"key"}',
  '{"kind":"key","id":"prj_1"}',
  '{"kind":"credential","id":"key_1"}',
  '{"kind":"weather","id":"ws_1"}',
  '{"kind":"key","id":5}',
]

test.each(strange)('an unknown message is ignored: %p', (text) => {
  expect(parseChange(text)).toBeUndefined()
})

test('an invalid number does not hide the change', () => {
  expect(parseChange('{"kind":"key","id":"key_1","sequence":"x"}')).toEqual({ change: { kind: 'key', id: 'key_1' } })
})

const revoked: Change = { kind: 'key', id: 'key_1' }
const replaced: Change = { kind: 'credential', id: 'ws_1' }

interface Replica {
  readonly changes: Changes
  readonly received: Change[]
  readonly faults: unknown[]
  gaps: number
  hereMs: number
}

/** Polls only when the test says so. */
async function join(database: Database, options: Partial<ChangesOptions> = {}): Promise<Replica> {
  const replica = { received: [] as Change[], faults: [] as unknown[], gaps: 0, hereMs: 0 }
  const changes = createChanges({
    database,
    clock: { now: () => 0, monotonicMs: () => replica.hereMs },
    onChange: (change) => void replica.received.push(change),
    onGap: () => void replica.gaps++,
    onFault: (error) => void replica.faults.push(error),
    pollMs: 0,
    ...options,
  })
  await changes.poll()
  return Object.assign(replica, { changes })
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(5)
}

describe.skipIf(findPostgresPrograms() === undefined)('through postgres', () => {
  test('every other replica gets a change once, the sender never', async () => {
    await using store = await openPostgresStore()
    const [sender, ...others] = [await join(store.database), await join(store.database), await join(store.database)]
    await sender?.changes.announce(revoked)
    await sender?.changes.announce(replaced)
    for (const replica of [sender, ...others]) {
      await replica?.changes.poll()
      await replica?.changes.poll()
    }
    expect(sender?.received).toEqual([])
    for (const other of others) expect(other.received).toEqual([revoked, replaced])
    for (const replica of [sender, ...others]) replica?.changes.close()
  })

  test('a replica that joins later clears its cache once and gets no old changes', async () => {
    await using store = await openPostgresStore()
    const first = await join(store.database)
    await first.changes.announce(revoked)
    const late = await join(store.database)
    await late.changes.poll()
    expect([late.gaps, late.received]).toEqual([1, []])
    first.changes.close()
    late.changes.close()
  })

  test('a recorded change arrives with its commit, even if the sender died; after a rollback never', async () => {
    await using store = await openPostgresStore()
    const { database } = store
    const [sender, other] = [await join(database), await join(database)]
    const undone = database.transaction(async (sql) => {
      await sender.changes.record(sql, replaced)
      throw new Error('undone')
    })
    await expect(undone).rejects.toThrow('undone')
    const recorded = await database.transaction((sql) => sender.changes.record(sql, revoked))
    await other.changes.poll()
    expect(other.received).toEqual([revoked])
    // After `tell` the sender knows the change as its own.
    await sender.changes.tell(recorded)
    await sender.changes.poll()
    expect(sender.received).toEqual([])
    sender.changes.close()
    other.changes.close()
  })

  test('a change that becomes visible after a later one arrives too', async () => {
    await using store = await openPostgresStore()
    const { database } = store
    const [sender, other] = [await join(database), await join(database)]
    const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>()
    const { promise: written, resolve: noteWritten } = Promise.withResolvers<void>()
    const slow = database.transaction(async (sql) => {
      await sql`INSERT INTO changes (kind, object, at)
        VALUES ('project', 'prj_1', CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT))`
      noteWritten()
      await mayCommit
    })
    await written
    await sender.changes.announce(revoked)
    await other.changes.poll()
    expect(other.received).toEqual([revoked])
    commit()
    await slow
    await other.changes.poll()
    expect(other.received).toEqual([revoked, { kind: 'project', id: 'prj_1' }])
    sender.changes.close()
    other.changes.close()
  })

  test('a replica that could not poll for a while clears its cache', async () => {
    await using store = await openPostgresStore()
    let isAway = false
    const sql = ((...args: Parameters<Database['sql']>) =>
      isAway ? Promise.reject(new Error('away')) : store.database.sql(...args)) as Database['sql']
    const [sender, other] = [await join(store.database), await join({ ...store.database, sql })]
    isAway = true
    other.hereMs += 9000
    await other.changes.poll()
    await sender.changes.announce(revoked)
    isAway = false
    await other.changes.poll()
    // Nothing can have been missed yet.
    expect([other.gaps, other.received]).toEqual([1, [revoked]])
    other.hereMs += 10_001
    await other.changes.poll()
    expect(other.gaps).toBe(2)
    sender.changes.close()
    other.changes.close()
  })

  test('a change that cannot be announced is reported and does not throw', async () => {
    await using store = await openPostgresStore()
    const transaction = () => Promise.reject(new Error('away'))
    const replica = await join({ ...store.database, transaction })
    await replica.changes.announce(revoked)
    expect(replica.faults).toEqual([new Error('away')])
    replica.changes.close()
  })

  test('changes of unknown kinds are ignored', async () => {
    await using store = await openPostgresStore()
    const replica = await join(store.database)
    await store.database.transaction(
      (sql) => sql`INSERT INTO changes (kind, object, at)
        VALUES ('weather', 'sun', CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT))`,
    )
    await replica.changes.poll()
    expect([replica.received, replica.gaps]).toEqual([[], 1])
    replica.changes.close()
  })

  test('rows older than an hour are deleted', async () => {
    await using store = await openPostgresStore()
    const replica = await join(store.database)
    await replica.changes.announce(revoked)
    await store.database.transaction((sql) => sql`UPDATE changes SET at = at - 3600001`)
    await replica.changes.announce(replaced)
    expect(await clearOldChanges(store.database)).toBe(1)
    const rows = await store.database.sql<{ object: string }>`SELECT object FROM changes`
    expect(rows).toEqual([{ object: 'ws_1' }])
    replica.changes.close()
  })

  describe.skipIf(findRedisProgram() === undefined)('and redis', () => {
    test('others are notified through redis before they poll, and once', async () => {
      await using store = await openPostgresStore()
      await using server = await startRedis()
      const clients = [openRedis({ url: server.url }), openRedis({ url: server.url })]
      await until(() => clients.every(({ connected }) => connected))
      const [sender, other] = [
        await join(store.database, { redis: clients[0] }),
        await join(store.database, { redis: clients[1] }),
      ]
      // A replica that is not subscribed yet gets the next announcement.
      while (!other.received.length) {
        await sender.changes.announce(revoked)
        await Bun.sleep(20)
      }
      const { length } = other.received
      await sender.changes.announce(replaced)
      await until(() => other.received.length > length)
      await other.changes.poll()
      expect(other.received.filter(({ kind }) => kind === 'credential')).toEqual([replaced])
      expect(sender.received).toEqual([])
      for (const { changes } of [sender, other]) changes.close()
      for (const client of clients) client.close()
    })

    test('while redis is unreachable the table is used', async () => {
      await using store = await openPostgresStore()
      await using server = await startRedis()
      const redis = openRedis({ url: server.url })
      await until(() => redis.connected)
      await server.kill()
      const [sender, other] = [await join(store.database, { redis }), await join(store.database, { redis })]
      await sender.changes.announce(revoked)
      await other.changes.poll()
      expect([other.received, sender.faults]).toEqual([[revoked], []])
      for (const { changes } of [sender, other]) changes.close()
      redis.close()
      await server.start()
    })
  })
})

forEachEngine((engine, storeTest) => {
  storeTest('a polling replica is notified within seconds; the embedded engine does nothing', async ({ database }) => {
    const [sender, other] = [await join(database), await join(database, { pollMs: 10 })]
    await sender.changes.announce(revoked)
    if (engine.name === 'postgres') await until(() => other.received.length > 0)
    const rows = await database.sql<{ object: string }>`SELECT object FROM changes`
    expect(rows).toEqual(engine.name === 'postgres' ? [{ object: 'key_1' }] : [])
    sender.changes.close()
    other.changes.close()
  })
})
