import { describe, expect, test } from 'bun:test'
import { answeredRequest } from '../../test/observe/observed-records.ts'
import { storeRecords, storeRequests } from '../../test/observe/stored-requests.ts'
import { forEachEngine } from '../../test/parts/engines.ts'
import { holdOf, openFunded, settlementOf } from '../../test/parts/ledger.ts'
import type { Clock } from '../kernel/clock.ts'
import type { KeyId, WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import type { Charge } from '../ledger/ledger.ts'
import type { Database } from '../store/database.ts'
import { type Figures, grainMs } from '../store/request-rows.ts'
import { daysAndHours } from './read-log.ts'
import { createRequestLog } from './request-log.ts'
import { chargedRequestRow } from './request-record.ts'
import { createFolding, firstEventsOf, readStats, type StatGroup, type StatsQuery } from './request-stats.ts'

const hourMs = grainMs.hour
/** The start of an hour. */
const noon = Date.UTC(2026, 10, 15, 12)

const clockAt = (now: number): Clock => ({ now: () => now, monotonicMs: () => 0 })

const usage = {
  ...{ inputTokens: 2, cacheReadTokens: 1, cacheWriteTokens: 0, cacheWriteLongTokens: 0, outputTokens: 5 },
  source: 'reported',
} as const

interface Sketch {
  readonly at: number
  readonly charge?: bigint
  readonly code?: string
  readonly firstMs?: number
  readonly key?: string
  readonly workspace?: string
  readonly model?: string | null
}

/** Each with 3 input tokens, of them one from a cache, and 5 output tokens. */
async function write(database: Database, sketches: readonly Sketch[]): Promise<void> {
  await storeRequests(
    database,
    sketches.map(({ at, charge, code, firstMs, key = 'key_1', workspace = 'ws_1', model = 'acme/large' }) => ({
      startedAt: at,
      charge: charge as Nano | undefined,
      code,
      firstEventMs: firstMs,
      caller: { workspaceId: workspace as WorkspaceId, projectId: 'prj_1', keyId: key as KeyId },
      model: model ?? undefined,
      usage,
    })),
  )
}

const gist = ({ requests, errors, inputTokens, outputTokens, charge }: Figures) =>
  `${requests} requests, ${errors} errors, ${inputTokens} in, ${outputTokens} out, ${charge} nano`

async function statsOf(
  database: Database,
  more: Partial<Pick<StatsQuery, 'workspaceId' | 'group' | 'groupsMax'>> = {},
  now = noon,
) {
  const span = { from: noon - 24 * hourMs, to: noon + hourMs }
  return await readStats(database, clockAt(now), { ...span, group: 'model', groupsMax: 50, ...more })
}

async function fold(database: Database, now = noon + 48 * hourMs): Promise<void> {
  const onFault = (error: unknown) => {
    throw error
  }
  const folding = createFolding({ database, now: async () => now, onFault, every: () => () => {} })
  await folding.run()
  await folding.close()
}

async function rowsOf({ sql }: Database): Promise<readonly number[]> {
  const [hours, sums] = [await sql`SELECT 1 FROM request_hours`, await sql`SELECT 1 FROM request_sums`]
  return [hours.length, sums.length]
}

forEachEngine((_, storeTest) => {
  storeTest(
    'stats are the same before, while and after hours are moved to the sums, and count late requests',
    async ({ database }) => {
      await write(database, [
        { at: noon - 3 * hourMs, charge: 1n },
        { at: noon - 2 * hourMs, charge: 10n, key: 'key_2', code: 'PROVIDER_ERROR' },
        { at: noon, charge: 100n, model: 'acme/small' },
      ])
      const read = async () => {
        const byKey = await statsOf(database, { group: 'key' })
        const byModel = await statsOf(database, { group: 'model', workspaceId: 'ws_1' })
        return [byKey.total, byKey.hours, byKey.groups, byModel.total, byModel.hours, byModel.groups]
      }
      const before = await read()
      expect(await rowsOf(database)).toEqual([3, 0])
      await fold(database, noon + 5_000)
      // The running hour stays. The others are in the total, a model, project, key, route and cause of each of two hours, and in
      // the total, model, project, route, two keys and two causes of a day: twice each; and in an agent of the three, once.
      expect(await rowsOf(database)).toEqual([1, 2 * (2 * 6 + 4 + 2 + 2) + 3])
      expect(await read()).toEqual(before)
      await Promise.all([fold(database), fold(database)])
      expect((await rowsOf(database))[0]).toBe(0)
      expect(await read()).toEqual(before)
      // A long stream that ends after its hour was moved.
      const late = answeredRequest({ id: 'req_late', startedAt: noon - 3 * hourMs, charge: 1000n as Nano, usage })
      await storeRecords(database, [late])
      const sum = '4 requests, 1 errors, 12 in, 20 out, 1111 nano'
      expect(gist((await statsOf(database)).total)).toBe(sum)
      await fold(database)
      expect(gist((await statsOf(database)).total)).toBe(sum)
      expect((await statsOf(database)).groups.map(({ id, figures }) => `${id} ${figures.charge}`)).toEqual([
        'acme/large 1011',
        'acme/small 100',
      ])
    },
  )

  storeTest('more hours than one portion are moved in one round', async ({ database }) => {
    await write(
      database,
      Array.from({ length: 230 }, (_, at) => ({ at: noon - hourMs, charge: 1n, key: `key_${at}` })),
    )
    await fold(database)
    expect((await rowsOf(database))[0]).toBe(0)
    expect(gist((await statsOf(database)).total)).toBe('230 requests, 0 errors, 690 in, 1150 out, 230 nano')
  })

  storeTest('sums contain every request as soon as it is written', async ({ database }) => {
    expect(gist((await statsOf(database)).total)).toBe('0 requests, 0 errors, 0 in, 0 out, 0 nano')
    await write(database, [
      { at: noon - 2 * hourMs, charge: 28n, firstMs: 25 },
      { at: noon - 2 * hourMs + 1, charge: 1n, code: 'STREAM_INTERRUPTED', firstMs: 26 },
    ])
    await write(database, [
      { at: noon - 2 * hourMs + 2, charge: 400n, firstMs: 30_001 },
      { at: noon + 5_000, charge: 3000n },
    ])
    const { total, hours, countedUntil } = await statsOf(database, {}, noon + 6_000)
    expect(gist(total)).toBe('4 requests, 1 errors, 12 in, 20 out, 3429 nano')
    // Up to 25 ms, up to 50 ms, and beyond the last bound.
    expect(total.firstEvents.map(Number)).toEqual([1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    expect(hours.map(({ start, figures }) => [start, Number(figures.charge)])).toEqual([
      [noon - 2 * hourMs, 429],
      [noon, 3000],
    ])
    expect(countedUntil).toBe(noon + 6_000)
  })

  storeTest('a charged request is counted once, and its correction changes only the errors', async ({ database }) => {
    await using books = await openFunded(database, 100n)
    const { workspaceId } = books
    const request = holdOf(workspaceId, 10n)
    await books.ledger.hold(request)
    const caller = { workspaceId, projectId: 'prj_1', keyId: 'key_1' } as const
    const record = answeredRequest({ id: request.requestId, startedAt: noon, caller, usage })
    const row = (charge: Charge) => chargedRequestRow(record, charge)
    await books.ledger.settle({ ...settlementOf(request.requestId, 7n), row })
    const sum = async () => gist((await statsOf(database, { workspaceId })).total)
    expect(await sum()).toBe('1 requests, 0 errors, 3 in, 5 out, 7 nano')
    const correct = async (code: string | undefined) => {
      const log = createRequestLog({ database, onLost: (_count, error) => expect(error).toBeUndefined() })
      log.write({ ...record, code, charge: undefined, usage: undefined })
      await log.close()
    }
    // Twice the same correction is one; and the request may turn out to be no failure after all.
    await correct('OVERLOADED')
    await correct('OVERLOADED')
    expect(await sum()).toBe('1 requests, 1 errors, 3 in, 5 out, 7 nano')
    await correct(undefined)
    expect(await sum()).toBe('1 requests, 0 errors, 3 in, 5 out, 7 nano')
  })

  storeTest('a request and its correction in one batch of the log are one request', async ({ database }) => {
    const record = answeredRequest({ startedAt: noon, charge: undefined, usage })
    const log = createRequestLog({ database, onLost: () => {} })
    log.write(record)
    log.write({ ...record, code: 'OVERLOADED' })
    await log.close()
    expect(gist((await statsOf(database)).total)).toBe('1 requests, 1 errors, 3 in, 5 out, 0 nano')
  })

  storeTest('writers that add to the same sums at the same time lose nothing', async ({ database }) => {
    const logs = Array.from({ length: 8 }, () => createRequestLog({ database, onLost: () => {} }))
    for (const [writer, log] of logs.entries()) {
      for (let at = 0; at < 30; at++) {
        const id = `req_${writer}_${at}` as const
        const keyId = `key_${(at + writer) % 4}` as const
        const caller = { workspaceId: 'ws_1', projectId: 'prj_1', keyId } as const
        log.write(answeredRequest({ id, startedAt: noon, caller, usage }))
      }
    }
    await Promise.all(logs.map((log) => log.close()))
    const { total, groups } = await statsOf(database, { group: 'key' })
    expect(gist(total)).toBe('240 requests, 0 errors, 720 in, 1200 out, 0 nano')
    expect(groups.reduce((sum, { figures }) => sum + figures.outputTokens, 0n)).toBe(1200n)
  })

  storeTest('groups are by model, project or key, of one workspace or of all', async ({ database }) => {
    await write(database, [
      { at: noon - hourMs, charge: 5n, key: 'key_1' },
      { at: noon - hourMs, charge: 6n, key: 'key_2', model: null },
      { at: noon, charge: 9n, key: 'key_2', model: 'acme/small' },
      { at: noon, charge: 100n, key: 'key_3', workspace: 'ws_2' },
    ])
    await fold(database, noon)
    const groups = async (group: StatGroup, workspaceId?: WorkspaceId) =>
      (await statsOf(database, { group, ...(workspaceId && { workspaceId }) })).groups.map(
        ({ id, figures }) => `${id} ${figures.charge}`,
      )
    expect(await groups('key')).toEqual(['key_3 100', 'key_2 15', 'key_1 5'])
    expect(await groups('key', 'ws_1')).toEqual(['key_2 15', 'key_1 5'])
    expect(await groups('model', 'ws_1')).toEqual(['acme/small 9', ' 6', 'acme/large 5'])
    expect(await groups('project')).toEqual(['prj_1 120'])
    const { groups: most, groupsLeftOff } = await statsOf(database, { group: 'key', groupsMax: 1 })
    expect([most.map(({ id }) => id), groupsLeftOff]).toEqual([['key_3'], 2])
  })

  storeTest('a span of days with hours around them has every request once', async ({ database }) => {
    // One every six hours from two days before, each worth one digit: 00:00, 06:00, 12:00 and so on.
    const charges = [1n, 10n, 100n, 1000n, 10_000n, 100_000n, 1_000_000n, 10_000_000n, 100_000_000n]
    await write(
      database,
      charges.map((charge, at) => ({ at: noon - 48 * hourMs + at * 6 * hourMs, charge })),
    )
    await fold(database)
    const read = async (fromHours: number, toHours: number) => {
      const span = { from: noon + fromHours * hourMs, to: noon + toHours * hourMs }
      const { total, groups } = await readStats(database, clockAt(noon + 24 * hourMs), {
        ...span,
        group: 'key',
        groupsMax: 50,
      })
      return [Number(total.charge), Number(groups[0]?.figures.charge ?? 0)]
    }
    expect(await read(-48, 1)).toEqual([111_111_111, 111_111_111])
    // From 13:00 of the first day, before which only one started, to 12:00 of the last, which is not in it.
    expect(await read(-47, 0)).toEqual([11_111_110, 11_111_110])
    // Whole days alone, and hours of one day alone.
    expect(await read(-36, 12)).toEqual([111_111_100, 111_111_100])
    expect(await read(-6, 6)).toEqual([110_000_000, 110_000_000])
  })
})

test('a quantile lies between the bounds of its count, in proportion', () => {
  // Ten up to 25 ms, ten more up to 50 ms: the half is at 25; 95 % is nine tenths of the way from there to 50.
  const counts = [10n, 10n, ...Array.from({ length: 12 }, () => 0n)]
  expect(firstEventsOf(counts)).toEqual({ count: 20, p50: 25, p95: 48 })
  expect(firstEventsOf([0n, 0n])).toBeNull()
  // Beyond the last bound only that is known.
  const late = [...Array.from({ length: 13 }, () => 0n), 4n]
  expect(firstEventsOf(late)).toEqual({ count: 4, p50: 30_000, p95: 30_000 })
})

describe('a span is read as whole days and the hours around them', () => {
  const midnight = Date.UTC(2026, 10, 12)
  const at = (hours: number) => midnight + hours * hourMs
  const lengths = (from: number, to: number) =>
    daysAndHours(at(from), at(to)).map(([start, end]) => (end - start) / hourMs)

  test.each([
    // From and to in hours after midnight; the hours read by the day, before the days and after them.
    [14, 61, [24, 10, 13]],
    [14, 72, [48, 10, 0]],
    [0, 48, [48, 0, 0]],
    [11, 12, [0, 1, 0]],
    [11, 36, [0, 25, 0]],
  ])('from %d to %d', (from, to, expected) => {
    expect(lengths(from, to)).toEqual(expected)
  })

  test('and every hour counts once, wherever the span begins and ends', () => {
    for (let from = 0; from < 24 * 5; from += 7) {
      for (let to = from + 1; to <= 24 * 8; to += 5) {
        const [days, before, after] = daysAndHours(at(from), at(to))
        const pieces = [before, days, after].filter(([start, end]) => start < end)
        expect(pieces[0]?.[0]).toBe(at(from))
        expect(pieces.at(-1)?.[1]).toBe(at(to))
        for (const [place, [start]] of pieces.entries()) if (place > 0) expect(start).toBe(pieces[place - 1]?.[1] ?? 0)
        expect([days[0] % grainMs.day, days[1] % grainMs.day]).toEqual([0, 0])
      }
    }
  })
})
