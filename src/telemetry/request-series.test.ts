import { expect } from 'bun:test'
import { storeRequests } from '../../test/observe/stored-requests.ts'
import { forEachEngine } from '../../test/parts/engines.ts'
import type { KeyId, WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import type { Database } from '../store/database.ts'
import { type Figures, foldHours, grainMs } from '../store/request-rows.ts'
import { countFacets, readSeries, readTopSeries, type SeriesQuery } from './request-series.ts'

const hourMs = grainMs.hour
const noon = Date.UTC(2026, 10, 15, 12)
const usage = {
  ...{ inputTokens: 2, cacheReadTokens: 1, cacheWriteTokens: 0, cacheWriteLongTokens: 0, outputTokens: 5 },
  source: 'reported',
} as const

/** At 9:50, 10:10, 10:20 (refused), 11:30 and 12:05; each with 3 input tokens, of them one cached, and 5 output tokens. */
async function fill(database: Database): Promise<void> {
  const rows = [
    { at: noon - 130 * 60_000, charge: 1n, model: 'acme/large', key: 'key_1' },
    { at: noon - 110 * 60_000, charge: 10n, model: 'acme/large', key: 'key_1', tags: ['team=web'], session: 's1' },
    { at: noon - 100 * 60_000, code: 'NOT_FOUND', cause: 'unknown_model', key: 'key_2', tags: ['team=Web'] },
    { at: noon - 30 * 60_000, charge: 100n, model: 'acme/small', key: 'key_2', tags: ['job=x', 'team=web'] },
    { at: noon + 5 * 60_000, charge: 1000n, model: 'acme/small', key: 'key_1', agent: 'codex' },
  ] as const
  await storeRequests(
    database,
    rows.map((row) => ({
      startedAt: row.at,
      model: 'model' in row ? row.model : undefined,
      code: 'code' in row ? row.code : undefined,
      cause: 'cause' in row ? row.cause : undefined,
      charge: ('charge' in row ? row.charge : undefined) as Nano | undefined,
      tags: 'tags' in row ? row.tags : [],
      session: 'session' in row ? row.session : undefined,
      agent: 'agent' in row ? row.agent : undefined,
      firstEventMs: 'charge' in row ? 40 : undefined,
      caller: { workspaceId: 'ws_1' as WorkspaceId, projectId: 'prj_1' as const, keyId: row.key as KeyId },
      usage,
    })),
  )
}

const gist = ({ requests, errors, cacheReadTokens, charge, firstEvents }: Figures) =>
  `${requests} requests, ${errors} errors, ${cacheReadTokens} cached, ${charge} nano, ${firstEvents[1]} within 50 ms`

const window: SeriesQuery = {
  from: noon - 2 * hourMs,
  to: noon + 10 * 60_000,
  stepMs: hourMs,
  offsetMs: 0,
  group: 'none',
}

async function shown(database: Database, more: Partial<SeriesQuery>) {
  const series = await readSeries(database, { ...window, ...more })
  return series.map(({ value, total }) => `${value}: ${gist(total)}`)
}

forEachEngine((_, storeTest) => {
  storeTest('sums up the same from the hourly sums and from the log, within the exact window', async ({ database }) => {
    await fill(database)
    const expected = ['null: 4 requests, 1 errors, 4 cached, 1110 nano, 3 within 50 ms']
    expect(await shown(database, {})).toEqual(expected)
    await database.transaction((sql) => foldHours(sql, database.engine, noon + 24 * hourMs))
    expect(await shown(database, {})).toEqual(expected)
    // The filter keeps everything, and makes it read the log.
    const logged = await shown(database, { keyIds: ['key_1', 'key_2'] })
    expect(logged).toEqual(expected)
    // From 10:15: the request of 10:10 is out although its hour is in the sums.
    expect(await shown(database, { from: noon - 105 * 60_000, to: noon })).toEqual([
      'null: 2 requests, 1 errors, 2 cached, 100 nano, 1 within 50 ms',
    ])
    const [series] = await readSeries(database, { ...window, stepMs: 24 * hourMs, offsetMs: -12 * hourMs })
    expect([...(series?.buckets ?? [])].map(([start, { charge }]) => [start - noon, charge])).toEqual([
      [-24 * hourMs, 110n],
      [0, 1000n],
    ])
  })

  storeTest('counts requests by their time to the first event', async ({ database }) => {
    const times = [undefined, 0, 25, 26, 350, 351, 351, 30_000, 30_001, 90_000]
    await storeRequests(
      database,
      times.map((firstEventMs) => ({ startedAt: noon, firstEventMs })),
    )
    // Within 25, 50, 100, 200, 350, 500, 750 ms, 1, 1.5, 2.5, 5, 10, 30 s, and later.
    const expected = [2n, 1n, 0n, 0n, 1n, 2n, 0n, 0n, 0n, 0n, 0n, 0n, 1n, 2n]
    const [logged] = await readSeries(database, { ...window, group: 'agent' })
    expect(logged?.total.firstEvents).toEqual(expected)
    const [hourly] = await readSeries(database, { ...window, to: noon + hourMs })
    expect(hourly?.total.firstEvents).toEqual(expected)
  })

  storeTest('groups and filters by model, key, tag, session, agent and cause', async ({ database }) => {
    await fill(database)
    const costs = async (more: Partial<SeriesQuery>) =>
      (await readSeries(database, { ...window, ...more })).map(
        ({ value, total }) => `${value} ${total.requests} ${total.charge}`,
      )
    expect(await costs({ group: 'model' })).toEqual(['acme/small 2 1100', 'acme/large 1 10', 'null 1 0'])
    expect(await costs({ group: 'key' })).toEqual(['key_1 2 1010', 'key_2 2 100'])
    expect(await costs({ group: 'tag:team' })).toEqual(['null 1 1000', 'web 2 110', 'Web 1 0'])
    expect(await costs({ group: 'cause' })).toEqual(['ok 3 1110', 'unknown_model 1 0'])
    expect(await costs({ group: 'key', tag: 'team=web' })).toEqual(['key_2 1 100', 'key_1 1 10'])
    expect(await costs({ group: 'agent', outcome: 'ok', keyId: 'key_1' })).toEqual(['codex 1 1000', 'null 1 10'])
    expect(await costs({ session: 's1' })).toEqual(['null 1 10'])
    expect(await costs({ cause: 'unknown_model', workspaceId: 'ws_1' })).toEqual(['null 1 0'])
    expect(await costs({ workspaceId: 'ws_2' })).toEqual([])
    expect(await costs({ keyIds: [] })).toEqual([])
  })

  storeTest('adds up the series of one person before the highest are chosen', async ({ database }) => {
    await fill(database)
    const top = async (regroup: (key: string | null) => readonly (string | null)[], max: number) => {
      const { shown, others } = await readTopSeries(database, { ...window, group: 'key', regroup }, max)
      const list = shown.map(
        ({ value, total, buckets }) => `${value} ${total.requests} ${total.charge} ${buckets.size}`,
      )
      return [...list, others ? `${others.count} more ${others.total.charge}` : 'all']
    }
    // Both keys are Ada's: 1010 + 100, from the hours that begin at 10, 11 and 12.
    expect(await top(() => ['ada'], 1)).toEqual(['ada 4 1110 3', 'all'])
    // The other key belongs to nobody.
    expect(await top((key) => [key === 'key_2' ? 'ada' : null], 1)).toEqual(['null 2 1010 2', '1 more 100'])
  })

  storeTest('counts the values of each facet', async ({ database }) => {
    await fill(database)
    const { total, facets } = await countFacets(database, { from: window.from, to: window.to })
    expect(total).toBe(4)
    expect(Object.fromEntries(facets.cause)).toEqual({ ok: 3, unknown_model: 1 })
    expect(Object.fromEntries(facets.model)).toEqual({ 'acme/large': 1, 'acme/small': 2 })
    expect(Object.fromEntries(facets.agent)).toEqual({ codex: 1 })
  })
})
