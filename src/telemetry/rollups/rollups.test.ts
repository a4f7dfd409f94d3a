import { describe, expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { findPostgresPrograms } from '../../../test/parts/postgres.ts'
import { openPostgresStore } from '../../../test/replicas/postgres-store.ts'
import { type Clock, systemClock } from '../../kernel/clock.ts'
import type { KeyId, WorkspaceId } from '../../kernel/ids.ts'
import type { Database } from '../../store/database.ts'
import { insertRows } from '../../store/insert-rows.ts'
import type { SqlValue } from '../../store/sql.ts'
import { firstIdAt } from '../id-at.ts'
import { type Figures, hourMs } from './count-requests.ts'
import { firstEventsOf } from './first-event.ts'
import { readStats, type StatGroup } from './read-stats.ts'
import { partsOf } from './read-sums.ts'
import { createRollups, type RollupOptions } from './rollups.ts'

/** The beginning of an hour. */
const noon = Date.UTC(2026, 10, 15, 12)

interface Sketch {
  readonly at: number
  readonly charge?: bigint
  readonly totalMs?: number
  readonly code?: string
  readonly firstMs?: number
  readonly key?: string
  readonly workspace?: string
  readonly model?: string | null
  /** As it is stored. */
  readonly usage?: string
}

/** Each 3 tokens in, of them one from a cache, and 5 out. */
function row(sketch: Sketch, at: number): Record<string, SqlValue> {
  const usage = { inputTokens: 2, cacheReadTokens: 1, cacheWriteTokens: 0, cacheWriteLongTokens: 0, outputTokens: 5 }
  return {
    // Two that began at the same moment differ in the last digits.
    id: `${firstIdAt(sketch.at).slice(0, -3)}${String(at).padStart(3, '0')}`,
    started_at: BigInt(sketch.at),
    workspace_id: sketch.workspace ?? 'ws_1',
    project_id: 'prj_1',
    key_id: sketch.key ?? 'key_1',
    path: '/v1/messages',
    stream: 0n,
    model: sketch.model === undefined ? 'acme/large' : sketch.model,
    status: 200n,
    code: sketch.code ?? null,
    candidates: '[]',
    attempts: '[]',
    warnings: '[]',
    notes: '[]',
    usage: sketch.usage ?? JSON.stringify({ ...usage, source: 'reported' }),
    charge: sketch.charge ?? null,
    first_event_ms: sketch.firstMs === undefined ? null : BigInt(sketch.firstMs),
    total_ms: BigInt(sketch.totalMs ?? 100),
  }
}

let written = 0
async function write(database: Database, sketches: readonly Sketch[]): Promise<void> {
  const rows = sketches.map((sketch) => row(sketch, written++ % 1000))
  await database.transaction((sql) => insertRows(sql, 'requests', rows))
}

function rollupsAt(database: Database, clock: Clock, onUnreadable?: RollupOptions['onUnreadable']) {
  const onFault = (error: unknown) => {
    throw error
  }
  const now = async () => clock.now()
  const quietly = { every: () => () => {}, pause: async () => {} }
  return createRollups({ database, clock, now, onFault, ...quietly, ...(onUnreadable && { onUnreadable }) })
}

function standing(now: number): Clock & { now(): number; at: number } {
  const clock = { at: now, now: () => clock.at, monotonicMs: () => 0 }
  return clock
}

const gist = ({ requests, errors, inputTokens, outputTokens, charge }: Figures) =>
  `${requests} requests, ${errors} errors, ${inputTokens} in, ${outputTokens} out, ${charge} nano`

async function totalOf(database: Database, clock: Clock, more: { workspaceId?: WorkspaceId; group?: StatGroup } = {}) {
  return await readStats(database, clock, { from: noon - 24 * hourMs, to: noon + hourMs, group: 'model', ...more })
}

forEachEngine((engine) => {
  test('rows with unreadable usage count without tokens, are reported, and do not stop the others', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const clock = standing(noon + 10_000)
    const at = noon - 2 * hourMs
    await write(database, [
      { at, charge: 1n },
      { at: at + 1, charge: 10n, usage: '{"inputTokens":2,' },
      { at: at + 2, charge: 100n, usage: '{}' },
      { at: at + 3, charge: 1000n, usage: 'null' },
      { at: at + 4, charge: 10_000n },
    ])
    const reported: (readonly [number, string])[] = []
    const rollups = rollupsAt(database, clock, (count, first) => reported.push([count, first]))
    const sum = '5 requests, 0 errors, 6 in, 10 out, 11111 nano'
    expect(gist((await totalOf(database, clock)).total)).toBe(sum)
    expect(await rollups.run()).toBe(5)
    expect(await rollups.run()).toBe(0)
    expect(gist((await totalOf(database, clock)).total)).toBe(sum)
    expect(reported).toEqual([[3, expect.stringMatching(/^req_/)]])
    await rollups.close()
  })

  test('sums are the same before, while and after requests are counted', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const clock = standing(noon + 10_000)
    await write(database, [
      { at: noon - 2 * hourMs, charge: 28n },
      { at: noon - 2 * hourMs + 1, charge: 1n, code: 'STREAM_INTERRUPTED' },
      { at: noon - 2 * hourMs + 2, charge: 400n, totalMs: 600_001 },
      { at: noon + 5_000, charge: 3000n },
    ])
    const sum = '4 requests, 1 errors, 12 in, 20 out, 3429 nano'
    expect(gist((await totalOf(database, clock)).total)).toBe(sum)
    const rollups = rollupsAt(database, clock)
    // The longest can still get company, and the last one is too fresh.
    expect(await rollups.run()).toBe(2)
    expect(gist((await totalOf(database, clock)).total)).toBe(sum)
    clock.at += 7 * hourMs
    expect(await rollups.run()).toBe(2)
    expect(await rollups.run()).toBe(0)
    const { total, hours } = await totalOf(database, clock)
    expect(gist(total)).toBe(sum)
    expect(hours.map(({ start, figures }) => [start, Number(figures.charge)])).toEqual([
      [noon - 2 * hourMs, 429],
      [noon, 3000],
    ])
    await rollups.close()
  })

  test('a long request that is written late is not missed', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const clock = standing(noon + 3 * hourMs)
    const rollups = rollupsAt(database, clock)
    await write(database, [{ at: noon + 2 * hourMs, charge: 1n }])
    await rollups.run()
    // Began long before what is counted already.
    await write(database, [{ at: noon, charge: 10n, totalMs: 3 * hourMs }])
    await rollups.run()
    const read = () => readStats(database, clock, { from: noon, to: noon + 3 * hourMs, group: 'model' })
    expect(Number((await read()).total.charge)).toBe(11)
    clock.at += 12 * hourMs
    await rollups.run()
    expect(Number((await read()).total.charge)).toBe(11)
    await rollups.close()
  })

  test('two replicas count a request once', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const clock = standing(noon)
    await write(
      database,
      Array.from({ length: 30 }, (_, at) => ({ at: noon - hourMs + at, charge: 7n })),
    )
    const [one, two] = [rollupsAt(database, clock), rollupsAt(database, clock)]
    const counted = await Promise.all([one.run(), two.run()])
    expect(counted.reduce((sum, each) => sum + each, 0)).toBe(30)
    expect(Number((await totalOf(database, clock)).total.charge)).toBe(210)
    await one.close()
    await two.close()
  })

  test('groups are by model, project or key, of one workspace where it is asked for', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const clock = standing(noon + 30_000)
    await write(database, [
      { at: noon - hourMs, charge: 5n, key: 'key_1' },
      { at: noon - hourMs, charge: 6n, key: 'key_2', model: null },
      { at: noon, charge: 9n, key: 'key_2', model: 'acme/small' },
      { at: noon, charge: 100n, key: 'key_3' as KeyId, workspace: 'ws_2' },
    ])
    await rollupsAt(database, clock).run()
    const groups = async (group: StatGroup, workspaceId?: WorkspaceId) =>
      (await totalOf(database, clock, { group, ...(workspaceId && { workspaceId }) })).groups.map(
        ({ id, figures }) => `${id} ${figures.charge}`,
      )
    expect(await groups('key')).toEqual(['key_3 100', 'key_2 15', 'key_1 5'])
    expect(await groups('key', 'ws_1')).toEqual(['key_2 15', 'key_1 5'])
    expect(await groups('model', 'ws_1')).toEqual(['acme/small 9', ' 6', 'acme/large 5'])
    expect(await groups('project')).toEqual(['prj_1 120'])
  })

  test('a span of days with hours around them has every request once', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const clock = standing(noon + 24 * hourMs)
    // One every six hours from two days before, each worth a digit of its own: 00:00, 06:00, 12:00 and so on.
    const charges = [1n, 10n, 100n, 1000n, 10_000n, 100_000n, 1_000_000n, 10_000_000n, 100_000_000n]
    await write(
      database,
      charges.map((charge, at) => ({ at: noon - 48 * hourMs + at * 6 * hourMs, charge })),
    )
    await rollupsAt(database, clock).run()
    const read = async (fromHours: number, toHours: number) => {
      const span = { from: noon + fromHours * hourMs, to: noon + toHours * hourMs }
      const { total, groups } = await readStats(database, clock, { ...span, group: 'key' })
      return [Number(total.charge), Number(groups[0]?.figures.charge ?? 0)]
    }
    expect(await read(-48, 1)).toEqual([111_111_111, 111_111_111])
    // From 13:00 of the first day, before which only one began, to 12:00 of the last, which is not in it.
    expect(await read(-47, 0)).toEqual([11_111_110, 11_111_110])
    // Whole days alone, and hours of one day alone.
    expect(await read(-36, 12)).toEqual([111_111_100, 111_111_100])
    expect(await read(-6, 6)).toEqual([110_000_000, 110_000_000])
  })

  test('more than can be added up on the spot is left to the counting, and the answer says so', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const clock = standing(noon + 10_000)
    const many = Array.from({ length: 3001 }, (_, at) => ({ at: noon + at, charge: 1n }))
    await write(database, many)
    const before = await totalOf(database, clock)
    expect([Number(before.total.requests), before.countedUntil]).toEqual([0, noon])
    clock.at += 200_000
    await rollupsAt(database, clock).run()
    const after = await totalOf(database, clock)
    expect([Number(after.total.requests), after.countedUntil]).toEqual([3001, noon + 210_000])
  })
})

describe.skipIf(findPostgresPrograms() === undefined)('on postgres', () => {
  test('a replica whose clock is ahead counts no more than the others would', async () => {
    await using store = await openPostgresStore()
    const { database } = store
    const now = systemClock.now()
    const onFault = (error: unknown) => {
      throw error
    }
    const rollups = createRollups({
      ...{ database, onFault, every: () => () => {}, pause: async () => {} },
      clock: standing(now + hourMs),
    })
    // What began a minute ago may still get company.
    await write(database, [
      { at: now - 120_000, charge: 1n },
      { at: now - 60_000, charge: 1n },
    ])
    expect(await rollups.run()).toBe(1)
    await rollups.close()
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

describe('a span is read in the longest pieces that fit', () => {
  // Noon of a Sunday, 15 November 2026; weeks begin on Thursdays, the 15th of October and so on.
  const at = (day: number, hour: number) => Date.UTC(2026, 9, day, hour)
  const now = noon + hourMs
  const pieces = (from: number, to: number, end: number) => partsOf({ from, to, end, workspaceId: '' })
  const told = (from: number, to: number, end: number) =>
    pieces(from, to, end).map(
      ({ grain, from: start, to: stop, sign }) => `${sign * BigInt((stop - start) / hourMs)} h by ${grain}`,
    )

  test('with what is too much taken away', () => {
    // Five weeks from the 15th, of which the first 38 hours are not meant: two days without ten hours. Nor is what comes
    // after now: eleven hours of today and the whole of tomorrow, the last day with requests.
    expect(told(at(16, 14), now, now + 24 * hourMs)).toEqual([
      '840 h by week',
      '-48 h by day',
      '10 h by hour',
      '-24 h by day',
      '-11 h by hour',
    ])
    // Two days and thirteen hours are less than half of the week that begins on the 12th: it is left out.
    expect(told(at(22, 0), now - 24 * hourMs, now + 24 * hourMs)).toEqual([
      '504 h by week',
      '72 h by day',
      '-11 h by hour',
    ])
  })

  test('to the end of what nothing follows', () => {
    expect(told(at(16, 14), now, now)).toEqual(['840 h by week', '-48 h by day', '10 h by hour'])
  })

  test('and by the hour where they are few', () => {
    expect(told(noon - hourMs, noon, now)).toEqual(['1 h by hour'])
  })

  test('so that every hour counts once, wherever it begins and ends', () => {
    const [start, hours] = [at(12, 0), 24 * 40]
    for (let from = 0; from < hours; from += 7) {
      for (let to = from + 1; to <= hours; to += 31) {
        for (const end of [to, to + 5, hours + 100]) {
          const counts = new Map<number, number>()
          for (const piece of pieces(start + from * hourMs, start + to * hourMs, start + end * hourMs)) {
            for (let hour = piece.from; hour < Math.min(piece.to, start + end * hourMs); hour += hourMs) {
              counts.set(hour, (counts.get(hour) ?? 0) + Number(piece.sign))
            }
          }
          const wrong = [...counts].filter(([hour, count]) => {
            const isMeant = hour >= start + from * hourMs && hour < start + to * hourMs
            return count !== (isMeant ? 1 : 0)
          })
          const missing = to - from - [...counts.values()].filter((count) => count === 1).length
          expect({ from, to, end, wrong, missing }).toEqual({ from, to, end, wrong: [], missing: 0 })
        }
      }
    }
  })
})
