// The work of a page does not grow with the request log: with ten times the requests the same queries read about as many
// rows, and none scans a whole table.

import { expect, test } from 'bun:test'
import { type Seed, seededModel, seedLog } from '../../bench/seed-log.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import type { KeyId, RequestId, WorkspaceId } from '../../src/kernel/ids.ts'
import { listTransfers, readTransfersOf } from '../../src/ledger/transfer.ts'
import type { Database } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrate.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { createRequestLog, listRequests, type RequestQuery } from '../../src/telemetry/request-log.ts'
import { readStats, type StatsQuery } from '../../src/telemetry/request-stats.ts'
import { forEachEngine, type TestEngine } from '../parts/engines.ts'
import { readingOf } from '../parts/row-counts.ts'

const workspaceId = 'ws_1' as WorkspaceId
const keyId = 'key_1' as KeyId
const model = seededModel(7)
const dayMs = 86_400_000
/** The longest page of a list. */
const longestPage = 200

const tenants = Array.from({ length: 4 }, (_, at) => ({
  workspaceId: `ws_${at >> 1}`,
  projectId: `prj_${at >> 1}`,
  keyId: `key_${at}`,
}))

type Page = readonly [name: string, read: (database: Database) => Promise<unknown>]

const list = (query: Partial<RequestQuery>) => (database: Database) =>
  listRequests(database.sql, { limit: 51, ...query })

const stats = (days: number, query: Pick<StatsQuery, 'group'> & Partial<StatsQuery>) => (database: Database) => {
  const to = systemClock.now()
  return readStats(database, systemClock, { from: to - days * dayMs, to, groupsMax: 50, ...query })
}

const ago = (days: number): number => systemClock.now() - days * dayMs

const pages: readonly Page[] = [
  ['a day by model', stats(1, { group: 'model' })],
  ['a week by key', stats(7, { group: 'key' })],
  ['a month by model', stats(30, { group: 'model' })],
  ['a month by project', stats(30, { group: 'project' })],
  ['a month of a workspace by key', stats(30, { group: 'key', workspaceId })],
  ['requests', list({})],
  ['requests of a workspace', list({ workspaceId })],
  ['requests of a key', list({ keyId })],
  ['requests for a model', list({ model })],
  ['requests for a model without requests', list({ model: 'acme/none' })],
  ['requests for a model of a workspace', list({ model, workspaceId })],
  ['failed requests', list({ outcome: 'failed' })],
  ['failed requests of a workspace', list({ outcome: 'failed', workspaceId })],
  ['failed requests of a key', list({ outcome: 'failed', keyId })],
  ['failed requests for a model', list({ outcome: 'failed', model })],
  ['requests of the middle of the month', list({ from: ago(16), to: ago(15) })],
  ['transfers', ({ sql }) => listTransfers(sql, workspaceId, { limit: 200 })],
  ['older transfers', ({ sql }) => readOlderTransfers(sql)],
  ['a request with its transfers', (database) => readNewest(database)],
]

async function readOlderTransfers(sql: Database['sql']): Promise<void> {
  const { nextCursor } = await listTransfers(sql, workspaceId, { limit: 50 })
  if (nextCursor === undefined) throw new Error('there is no second page to read')
  await listTransfers(sql, workspaceId, { limit: 50, cursor: nextCursor })
}

async function readNewest(database: Database): Promise<void> {
  const [newest] = await listRequests(database.sql, { limit: 1 })
  const id = newest?.id as RequestId
  await createRequestLog({ database, onLost: () => {} }).find(id)
  await readTransfersOf(database.sql, id)
}

async function openSeeded(engine: TestEngine, size: Pick<Seed, 'requests' | 'transfers'>) {
  const place = await engine.createPlace()
  const empty = await openDatabase(place)
  await migrate({ database: empty, clock: systemClock })
  await empty.close()
  await seedLog({ ...size, ...place, tenants, models: 8, progress: () => {} })
  const database = await openDatabase(place)
  const close = async () => {
    await database.close()
    place[Symbol.dispose]()
  }
  return { database, [Symbol.asyncDispose]: close }
}

forEachEngine((engine) => {
  test('a page reads no more rows of a long log than of a short one', async () => {
    await using small = await openSeeded(engine, { requests: 1_000, transfers: 1_000 })
    await using large = await openSeeded(engine, { requests: 10_000, transfers: 10_000 })
    for (const [page, read] of pages) {
      const before = await readingOf(small.database, read)
      const after = await readingOf(large.database, read)
      // At least a page, because the short log may have fewer rows than that.
      const bound = 3 * Math.max(before.rows, longestPage)
      expect({ page, scans: after.scans, fits: after.rows <= bound, rows: after.rows, bound }).toEqual({
        page,
        scans: [],
        fits: true,
        rows: after.rows,
        bound,
      })
    }
  })
})
