import { expect, test } from 'bun:test'
import { storeRequests } from '../../test/observe/stored-requests.ts'
import { forEachEngine } from '../../test/parts/engines.ts'
import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { listRequests, type RequestQuery } from './list-requests.ts'
import { createRetention } from './retention.ts'
import { createRollups } from './rollups/rollups.ts'

const noon = Date.UTC(2026, 10, 15, 12)
const hourMs = 3_600_000
const never = () => () => {}
const onFault = (error: unknown) => {
  throw error
}

const caller = (at: number) => ({
  workspaceId: `ws_${at}` as WorkspaceId,
  projectId: `prj_${at}` as ProjectId,
  keyId: `key_${at}` as KeyId,
})
const [one, two] = [caller(1), caller(2)]

/** By their minute after noon. */
const requests = [
  { minute: 1, caller: one, model: 'acme/large' },
  { minute: 2, caller: two, model: 'acme/large', code: 'LIMIT_EXCEEDED' },
  { minute: 3, caller: one, model: 'acme/small', code: 'PROVIDER_ERROR', totalMs: 61_000 },
  { minute: 4, caller: one, model: undefined, code: 'INVALID_REQUEST' },
  { minute: 5, caller: two, model: 'acme/large', totalMs: 700_000 },
  { minute: 6, caller: one, model: 'acme/large' },
]

const questions: readonly (readonly [Omit<RequestQuery, 'limit'>, readonly number[]])[] = [
  [{ model: 'acme/large' }, [6, 5, 2, 1]],
  [{ model: 'acme/small' }, [3]],
  [{ model: 'acme/none' }, []],
  [{ model: 'acme/large', outcome: 'ok' }, [6, 5, 1]],
  [{ model: 'acme/large', workspaceId: one.workspaceId }, [6, 1]],
  [{ model: 'acme/large', from: noon + 2 * 60_000, to: noon + 6 * 60_000 }, [5, 2]],
  [{ outcome: 'failed' }, [4, 3, 2]],
  [{ outcome: 'failed', workspaceId: one.workspaceId }, [4, 3]],
  [{ outcome: 'failed', keyId: two.keyId }, [2]],
  [{ outcome: 'failed', model: 'acme/large' }, [2]],
  [{ outcome: 'failed', keyId: one.keyId, model: 'acme/small' }, [3]],
]

async function minutesOf(database: Database, query: Omit<RequestQuery, 'limit'>): Promise<readonly number[]> {
  const found = await listRequests(database.sql, { limit: 10, ...query })
  return found.map(({ startedAt }) => (startedAt - noon) / 60_000)
}

async function answers(database: Database) {
  return await Promise.all(questions.map(async ([query]) => ({ query, found: await minutesOf(database, query) })))
}

const expected = questions.map(([query, found]) => ({ query, found: [...found] }))

forEachEngine((engine) => {
  test('lists are the same before, while and after requests are counted', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const clock = { at: noon + 10_000, now: () => clock.at, monotonicMs: () => 0 }
    await storeRequests(
      database,
      requests.map(({ minute, ...facts }) => ({ startedAt: noon + minute * 60_000, ...facts })),
    )
    const rollups = createRollups({
      database,
      clock,
      now: async () => clock.now(),
      onFault,
      every: never,
      pause: async () => {},
    })
    expect(await answers(database)).toEqual(expected)
    for (const hours of [1, 2, 12]) {
      clock.at = noon + hours * hourMs
      await rollups.run()
      expect(await answers(database)).toEqual(expected)
    }
    const [kept] = await database.sql<{ n: bigint }>`SELECT COUNT(*) AS n FROM request_lists`
    // Five named a model; of the three that failed two did.
    expect(kept?.n).toBe(5n + 3n * 3n + 2n)
    await rollups.close()
  })

  test('a request that is forgotten leaves its lists', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const dayMs = 24 * hourMs
    const clock = { now: () => noon + 31 * dayMs, monotonicMs: () => 0 }
    await storeRequests(database, [
      { startedAt: noon, caller: one, model: 'acme/large', code: 'PROVIDER_ERROR' },
      { startedAt: noon + 30 * dayMs, caller: one, model: 'acme/large', code: 'PROVIDER_ERROR' },
    ])
    const rollups = createRollups({
      database,
      clock,
      now: async () => clock.now(),
      onFault,
      every: never,
      pause: async () => {},
    })
    await rollups.run()
    const retention = createRetention({ database, clock, days: () => 7, onFault, every: never, pause: async () => {} })
    expect(await retention.run()).toBe(1)
    const places = await database.sql<{ list: string }>`SELECT list FROM request_lists ORDER BY list`
    expect(places.map(({ list }) => list)).toEqual([
      'failed',
      'failed of key key_1',
      'failed of model acme/large',
      'failed of workspace ws_1',
      'model acme/large',
    ])
    expect(await minutesOf(database, { outcome: 'failed' })).toEqual([30 * 24 * 60])
    await rollups.close()
    await retention.close()
  })
})
