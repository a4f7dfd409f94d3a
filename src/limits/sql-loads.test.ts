import { describe, expect } from 'bun:test'
import { testWith } from '../../test/parts/engines.ts'
import { findPostgresPrograms } from '../../test/parts/postgres.ts'
import { openPostgresStore } from '../../test/replicas/postgres-store.ts'
import { systemClock } from '../kernel/clock.ts'
import type { Database } from '../store/database.ts'
import type { RateLimits, RateScope } from './limiter.ts'
import { SharedLimiter } from './shared-limiter.ts'
import { clearDrained, createLiveReplicas, createSqlLoads } from './sql-loads.ts'

const key = (limits: RateLimits, id = '1'): RateScope => ({ kind: 'key', id: `key_${id}`, name: 'ci', limits })

const createLimiter = (database: Database) =>
  new SharedLimiter({
    store: createSqlLoads(database),
    clock: systemClock,
    liveReplicas: () => 2,
    timeoutMs: 60_000,
  })

function counted(database: Database): Database & { transactions: number } {
  const counter: Database & { transactions: number } = {
    ...database,
    transactions: 0,
    transaction(work) {
      counter.transactions++
      return database.transaction(work)
    },
  }
  return counter
}

const rowIds = async ({ sql }: Database) =>
  (await sql<{ scope_id: string }>`SELECT scope_id FROM limit_loads ORDER BY scope_id`).map(({ scope_id }) => scope_id)

const storeTest = testWith(openPostgresStore)

describe.skipIf(findPostgresPrograms() === undefined)('limits in postgres', () => {
  storeTest('a busy key does not cost a transaction per request', async (store) => {
    const database = counted(store.database)
    const limiter = createLimiter(database)
    const asked = Array.from({ length: 1000 }, () => limiter.admit([key({ concurrentRequests: 400 })], 0))
    const verdicts = await Promise.all(asked)
    expect(verdicts.filter(({ kind }) => kind === 'admitted')).toHaveLength(400)
    // 128 at a time.
    expect(database.transactions).toBe(8)
    await limiter.close()
  })

  storeTest('replicas that lock the same scopes in different orders do not deadlock', async ({ database }) => {
    const limiters = [1, 2, 3].map(() => createLimiter(database))
    const scopes = Array.from({ length: 20 }, (_, at) => key({ concurrentRequests: 1000 }, String(at)))
    const asked = limiters.flatMap((limiter, at) =>
      Array.from({ length: 100 }, (_, n) => limiter.admit([scopes, scopes.toReversed()][(at + n) % 2] ?? [], 0)),
    )
    const verdicts = await Promise.all(asked)
    expect(verdicts.filter(({ kind }) => kind === 'admitted')).toHaveLength(300)
    expect(limiters.map(({ mode }) => mode.kind)).toEqual(['shared', 'shared', 'shared'])
    for (const limiter of limiters) await limiter.close()
  })

  storeTest('drained rows are deleted, the others stay', async ({ database }) => {
    const limiter = createLimiter(database)
    const idle = await limiter.admit([key({ concurrentRequests: 5 }, 'idle')], 0)
    await limiter.admit([key({ requestsPerMinute: 1 }, 'used')], 0)
    if (idle.kind === 'admitted') idle.end(0)
    await limiter.settled()
    await Bun.sleep(5)
    expect(await clearDrained(database)).toBe(1)
    expect(await rowIds(database)).toEqual(['key_used'])
    await limiter.close()
  })

  storeTest(
    'without the table each process uses its share, and counts together again when it is back',
    async ({ database }) => {
      const limiter = createLimiter(database)
      const script = (text: string) => database.schemaTransaction((_, runScript) => runScript(text))
      await script('ALTER TABLE limit_loads RENAME TO away')
      const asked = Array.from({ length: 20 }, () => limiter.admit([key({ requestsPerMinute: 10 })], 0))
      const verdicts = await Promise.all(asked)
      expect(verdicts.filter(({ kind }) => kind === 'admitted')).toHaveLength(5)
      await script('ALTER TABLE away RENAME TO limit_loads')
      while (limiter.mode.kind !== 'shared') await Bun.sleep(5)
      await limiter.close()
    },
  )

  storeTest('live replicas are those with a recent heartbeat, and at least one', async ({ database }) => {
    const live = createLiveReplicas(database)
    await live.refresh()
    expect(live.count()).toBe(1)
    await database.transaction(async (sql) => {
      for (const [id, ageMs] of [
        ['a', 0n],
        ['b', 19_000n],
        ['c', 0n],
        ['dead', 21_000n],
      ] as const) {
        await sql`INSERT INTO replicas (id, epoch, heartbeat_at)
          VALUES (${id}, 1, CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) - ${ageMs})`
      }
    })
    await live.refresh()
    expect(live.count()).toBe(3)
    live.close()
  })
})
