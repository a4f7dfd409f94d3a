import { expect, test } from 'bun:test'
import { storeRequests } from '../../test/observe/stored-requests.ts'
import { forEachEngine } from '../../test/parts/engines.ts'
import { addWorkspace } from '../../test/parts/ledger.ts'
import type { Nano } from '../kernel/money.ts'
import { recordFunding } from '../ledger/fund.ts'
import type { Database } from '../store/database.ts'
import { createRetention } from './retention.ts'

const dayMs = 24 * 60 * 60_000
const now = Date.UTC(2026, 10, 15, 12)
const clock = { now: () => now, monotonicMs: () => 0 }
const never = () => () => {}

async function idsOf({ sql }: Database): Promise<string[]> {
  return (await sql<{ id: string }>`SELECT id FROM requests ORDER BY id`).map(({ id }) => id)
}

function openRetention(database: Database, days: number, pause: () => Promise<void> = async () => {}) {
  const faults: unknown[] = []
  const onFault = (error: unknown) => void faults.push(error)
  return { faults, ...createRetention({ database, clock, days: () => days, onFault, every: never, pause }) }
}

forEachEngine((_, storeTest) => {
  storeTest(
    'deletes exactly the requests that are older than the retention, to the millisecond',
    async ({ database }) => {
      const ages = [91 * dayMs, 90 * dayMs + 1, 90 * dayMs, 90 * dayMs - 1, 0]
      const ids = await storeRequests(
        database,
        ages.map((age) => ({ startedAt: now - age })),
      )
      const { run, faults } = openRetention(database, 90)
      expect(await run()).toBe(2)
      expect(await idsOf(database)).toEqual(ids.slice(2))
      expect(await run()).toBe(0)
      expect(faults).toEqual([])
    },
  )

  storeTest('0 days keep everything', async ({ database }) => {
    const ids = await storeRequests(database, [{ startedAt: now - 5000 * dayMs }])
    expect(await openRetention(database, 0).run()).toBe(0)
    expect(await idsOf(database)).toEqual([...ids])
  })

  storeTest('many are removed in portions with pauses between', async ({ database }) => {
    await storeRequests(
      database,
      Array.from({ length: 1203 }, (_, place) => ({ startedAt: now - 100 * dayMs + place })),
    )
    let pauses = 0
    const { run } = openRetention(database, 30, async () => void pauses++)
    // 500, 500 and 203.
    expect(await run()).toBe(1203)
    expect(pauses).toBe(2)
  })

  storeTest('transfers stay, however old', async ({ database }) => {
    const workspaceId = await addWorkspace(database)
    const funding = { workspaceId, amount: 5n as Nano, kind: 'topup', reference: 'old' } as const
    await database.transaction((sql) => recordFunding(sql, funding, now - 1000 * dayMs))
    const [charged] = await storeRequests(database, [
      { startedAt: now - 1000 * dayMs, charge: 450n as Nano, priceVersion: 'acme/large#1', totalMs: 50 },
      { startedAt: now - 1000 * dayMs, charge: undefined },
    ])
    const transfers = () => database.sql`SELECT * FROM transfers ORDER BY kind`
    const before = [...(await transfers())]
    expect(before).toMatchObject([
      { kind: 'charge', request_id: charged, amount: 450n, price_version: 'acme/large#1' },
      { kind: 'topup', amount: 5n },
    ])
    expect(await openRetention(database, 1).run()).toBe(2)
    expect(await idsOf(database)).toEqual([])
    expect([...(await transfers())]).toEqual(before)
  })

  storeTest('a closed one stops after the portion that it is at', async ({ database }) => {
    await storeRequests(
      database,
      Array.from({ length: 600 }, (_, place) => ({ startedAt: now - 100 * dayMs + place })),
    )
    const retention = openRetention(database, 30, () => {
      void retention.close()
      return Promise.resolve()
    })
    expect(await retention.run()).toBe(500)
    expect((await idsOf(database)).length).toBe(100)
  })
})

test('a store that fails is reported, and the next round tries again', async () => {
  let calls = 0
  const database = {
    transaction: async () => {
      calls++
      throw new Error('disk full')
    },
  } as unknown as Database
  const { run, faults } = openRetention(database, 90)
  expect(await run()).toBeUndefined()
  expect(await run()).toBeUndefined()
  expect(calls).toBe(2)
  expect(faults.length).toBe(2)
})
