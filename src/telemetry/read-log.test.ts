import { expect } from 'bun:test'
import { answeredRequest, usageOf } from '../../test/observe/observed-records.ts'
import { storeRecords, storeRequests } from '../../test/observe/stored-requests.ts'
import { forEachEngine } from '../../test/parts/engines.ts'
import { readingOf } from '../../test/parts/row-counts.ts'
import { firstIdAt, type KeyId, type ProjectId, type RequestId, type WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import type { Database } from '../store/database.ts'
import { templateOf } from '../store/insert-rows.ts'
import { foldHours, grainMs } from '../store/request-rows.ts'
import { countRowsToRead, type Period, ReadCancelled, type RequestFilters, sourceOf } from './read-log.ts'
import {
  countFacets,
  facetNames,
  facetsSource,
  joined,
  readSeries,
  readTopSeries,
  seriesSource,
} from './request-series.ts'
import { createRetention, forgetRequests } from './retention.ts'
import { exportUsage, sumUsage, type UsageGroup, usageSource } from './usage-export.ts'

const hourMs = grainMs.hour
const dayMs = grainMs.day
const noon = Date.UTC(2026, 10, 15, 12)
/** Neither begins nor ends with an hour. */
const period = { from: noon - 3 * dayMs - 25 * 60_000, to: noon + 35 * 60_000 }

/** Some at the edges: at the first and the last millisecond of the period, just outside it, and at the bounds of whole hours. */
const times = [
  ...[period.from - 1, period.from, noon - 3 * dayMs - 1, noon - 3 * dayMs],
  ...Array.from({ length: 40 }, (_, at) => noon - 3 * dayMs + at * 6_517_031),
  ...[noon - 1, noon, period.to - 1, period.to],
]

/** Every combination of keys, models, routes, outcomes, sessions and costs, in turn. */
async function fill(database: Database): Promise<void> {
  await storeRequests(
    database,
    times.map((startedAt, at) => {
      const isFailed = at % 7 === 3
      const [workspace, key] = [at % 2, at % 6]
      return {
        startedAt,
        caller: {
          workspaceId: `ws_${workspace}` as WorkspaceId,
          projectId: `prj_${workspace}` as ProjectId,
          keyId: `key_${key}` as KeyId,
        },
        model: at % 5 === 4 ? undefined : `acme/model-${at % 3}`,
        attempts:
          at % 11 === 10
            ? []
            : [{ provider: `host${at % 3}`, upstreamModel: `m${at % 4}`, outcome: 'ok', startMs: 0, ms: 1 }],
        ...(isFailed && {
          code: at % 2 === 1 ? 'NOT_FOUND' : 'PROVIDER_ERROR',
          cause: at % 2 === 1 ? 'unknown_model' : undefined,
        }),
        session: at % 4 === 0 ? undefined : `s${at % 9}`,
        agent: at % 5 === 0 ? undefined : `agent/${at % 3}`,
        // One of them with the id that was sent.
        endUser: at % 6 === 0 ? undefined : at % 7 === 0 ? `eu_${'0'.repeat(20)} ada@example.com` : `eu_${at % 7}`,
        tags: at % 3 === 0 ? [] : [`team=t${at % 4}`],
        // Their sum does not fit into a double: 2^53 is about 9 × 10^15.
        charge: (at % 4 === 2 ? undefined : 999_999_999_999_000n + BigInt(at)) as Nano,
        upstreamCost: (at % 3 === 0 ? undefined : BigInt(at) * 7n) as Nano,
        cacheSaved: BigInt(at) - 20n,
        firstEventMs: at % 6 === 5 ? undefined : at * 97,
        usage: {
          ...usageOf(at, 2 * at),
          ...{ cacheReadTokens: 3 * at, cacheWriteTokens: at, cacheWriteLongTokens: 1 },
          source: at % 8 === 0 ? ('estimated' as const) : ('reported' as const),
        },
      } as const as Parameters<typeof storeRequests>[1][number]
    }),
  )
}

const groupSql: Readonly<Record<string, string>> = {
  ...{ day: `CAST(started_at / ${dayMs} AS TEXT)`, workspace: 'workspace_id', project: 'project_id', key: 'key_id' },
  ...{ model: 'model', provider: 'provider', route: "provider || ' ' || upstream_model", session: 'session' },
  ...{ user: "CASE WHEN end_user LIKE '% %' THEN 'ada@example.com' ELSE end_user END" },
  'tag:team': "REPLACE(tags, 'team=', '')",
  ...{ agent: 'agent', cause: "COALESCE(cause, LOWER(code), 'ok')", none: "''" },
}

/** The same figures from the rows, by plain SQL, a line per group. */
async function bySql(
  { sql }: Database,
  group: string,
  where: string,
  { from, to }: Period,
): Promise<readonly string[]> {
  const rows = await sql<Readonly<Record<string, unknown>>>(
    templateOf([
      `SELECT ${groupSql[group]} AS g, COUNT(*) AS n, COUNT(code) AS failed, SUM(estimated) AS estimated,
        SUM(input_tokens - cache_read_tokens - cache_write_tokens - cache_write_1h_tokens) AS plain,
        SUM(cache_read_tokens) AS c, SUM(cache_write_tokens) AS w, SUM(cache_write_1h_tokens) AS w1, SUM(output_tokens) AS o,
        COALESCE(SUM(charge), 0) AS cost, COALESCE(SUM(cache_saved), 0) AS saved,
        COALESCE(SUM(upstream_cost), 0) AS upstream,
        SUM(CASE WHEN charge IS NOT NULL AND upstream_cost IS NULL THEN 1 ELSE 0 END) AS uncosted,
        COALESCE(SUM(CASE WHEN upstream_cost IS NULL THEN charge END), 0) AS uncosted_charges,
        COALESCE(SUM(failed_cost), 0) AS failed_cost
      FROM requests WHERE started_at >= ${from} AND started_at < ${to} AND ${where} GROUP BY 1`,
    ]),
  )
  return rows.map(({ g, ...figures }) => `${g}: ${Object.values(figures).map(Number).join(' ')} ${figures.cost}`).sort()
}

async function reported(
  database: Database,
  group: UsageGroup,
  filters: RequestFilters,
  within: Period,
): Promise<readonly string[]> {
  const sums = await sumUsage({ database, groupBy: [group], withProviderCosts: true, ...filters, ...within })
  return sums
    .list()
    .map(
      ({
        groups: [value],
        requests,
        failed,
        estimated,
        tokens,
        cost,
        saved,
        upstreamCost,
        uncosted,
        uncostedCharges,
        failedCost,
      }) => {
        const day = value != null && group === 'day' ? String(Date.parse(value) / dayMs) : value
        const counts = [
          requests,
          failed,
          estimated,
          ...Object.values(tokens),
          cost,
          saved,
          upstreamCost,
          uncosted,
          uncostedCharges,
          failedCost,
        ]
        return `${day}: ${counts.map(Number).join(' ')} ${cost}`
      },
    )
    .sort()
}

const cases: readonly (readonly [UsageGroup, RequestFilters, where: string])[] = [
  ...(['day', 'workspace', 'project', 'key', 'model', 'provider', 'route', 'session', 'agent'] as const).flatMap(
    (group) =>
      [
        [group, {}, '1 = 1'],
        [group, { workspaceId: 'ws_1' as WorkspaceId }, "workspace_id = 'ws_1'"],
      ] as const,
  ),
  ['day', { session: 's2' }, "session = 's2'"],
  ['day', { keyId: 'key_3' }, "key_id = 'key_3'"],
  ['day', { keyIds: ['key_3', 'key_4'] }, "key_id IN ('key_3', 'key_4')"],
  ['day', { projectId: 'prj_1' }, "project_id = 'prj_1'"],
  ['workspace', { provider: 'host1' }, "provider = 'host1'"],
  ['route', { provider: 'host1' }, "provider = 'host1'"],
  ['day', { outcome: 'failed' }, 'code IS NOT NULL'],
  ['workspace', { outcome: 'ok' }, 'code IS NULL'],
  ['day', { cause: 'unknown_model' }, "cause = 'unknown_model'"],
]

/** Which no sums have. */
const loggedCases: typeof cases = [
  ['tag:team', {}, '1 = 1'],
  ['tag:team', { workspaceId: 'ws_1' as WorkspaceId }, "workspace_id = 'ws_1'"],
  ['user', {}, '1 = 1'],
  ['model', { tag: 'team=t2' }, "tags = 'team=t2'"],
  ['model', { endUser: 'eu_3' }, "end_user = 'eu_3'"],
  ['key', { session: 's2', outcome: 'ok' }, "session = 's2' AND code IS NULL"],
]

const fold = (database: Database, before = Number.MAX_SAFE_INTEGER) =>
  database.transaction((sql) => foldHours(sql, database.engine, before, 10_000))

async function expectExact(database: Database): Promise<void> {
  for (const each of [...cases, ...loggedCases]) {
    const [group, filters, where] = each
    const { sums } = sourceOf(usageSource({ ...period, ...filters, groupBy: [group] }))
    expect([group, sums !== undefined]).toEqual([group, cases.includes(each)])
    expect([group, filters, await reported(database, group, filters, period)]).toEqual([
      group,
      filters,
      await bySql(database, group, where, period),
    ])
  }
}

const portions = { sqlite: 2_000, postgres: 25_000 } as const

/** So many requests, each at another millisecond. */
async function fillLog(database: Database, requests: number): Promise<void> {
  await database.transaction(
    (
      sql,
    ) => sql`INSERT INTO requests (id, started_at, workspace_id, project_id, key_id, path, stream, status, total_ms, estimated, tags)
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${BigInt(requests)})
      SELECT CAST(${firstIdAt(noon - dayMs).slice(0, -6)} AS TEXT) || SUBSTR(CAST(1000000 + i AS TEXT), 2),
        CAST(${BigInt(noon - dayMs)} AS BIGINT) + i, 'ws', 'prj', 'key', '/', 0, 200, 1, 0, 'team=t' || i % 8 FROM n`,
  )
}

const topCases = [
  ['session', {}, '1 = 1'],
  ['session', { workspaceId: 'ws_1' as WorkspaceId }, "workspace_id = 'ws_1'"],
  ['model', {}, '1 = 1'],
  ['model', { workspaceId: 'ws_1' as WorkspaceId }, "workspace_id = 'ws_1'"],
  ['model', { model: 'acme/model-1' }, "model = 'acme/model-1'"],
  ['key', { keyIds: ['key_3', 'key_4'] as KeyId[] }, "key_id IN ('key_3', 'key_4')"],
  ['route', {}, '1 = 1'],
  ['route', { provider: 'host1' }, "provider = 'host1'"],
] as const

/** Ranked and read from the rows. */
const loggedTopCases = [
  ['user', {}, '1 = 1'],
  ['user', { projectId: 'prj_1' as ProjectId }, "project_id = 'prj_1'"],
  ['model', { tag: 'team=t2' }, "tags = 'team=t2'"],
] as const

/** With no series shown, some and all, against plain SQL. */
async function expectTopSeries(
  database: Database,
  group: (typeof topCases | typeof loggedTopCases)[number][0],
  filters: RequestFilters,
  where: string,
): Promise<void> {
  const rows = await database.sql<{ g: string | null; start: bigint; n: bigint; e: bigint; c: bigint }>(
    templateOf([
      `SELECT ${groupSql[group]} AS g, started_at / ${dayMs} AS start, COUNT(*) AS n, COUNT(code) AS e,
        CAST(COALESCE(SUM(charge), 0) AS BIGINT) AS c
      FROM requests WHERE started_at >= ${period.from} AND started_at < ${period.to} AND ${where} GROUP BY 1, 2`,
    ]),
  )
  const costs = new Map<string | null, bigint>()
  for (const { g, c } of rows) costs.set(g, (costs.get(g) ?? 0n) + c)
  const ranked = [...costs.values()].sort((a, b) => Number(b - a))
  const expectedFor = (shown: readonly (string | null)[]) => {
    const sums = new Map<string, readonly bigint[]>()
    for (const { g, start, n, e, c } of rows) {
      const key = `${shown.includes(g) ? g : 'others'} ${start}`
      const [requests = 0n, errors = 0n, charge = 0n] = sums.get(key) ?? []
      sums.set(key, [requests + n, errors + e, charge + c])
    }
    return [...sums].map(([key, figures]) => `${key} ${figures.join(' ')}`).sort()
  }
  const query = { ...period, ...filters, group, stepMs: dayMs, offsetMs: 0 }
  const isSummed = topCases.some((each) => each[0] === group && each[2] === where)
  expect([group, filters, sourceOf(seriesSource(query)).sums !== undefined]).toEqual([group, filters, isSummed])
  for (const max of new Set([0, 1, 4, ranked.length - 1, ranked.length, 50])) {
    const { shown, others } = await readTopSeries(database, query, max)
    const values = shown.map(({ value }) => value)
    // Some cost the same.
    expect([group, values.map((value) => costs.get(value))]).toEqual([group, ranked.slice(0, max)])
    expect(others?.count).toBe(max < ranked.length ? ranked.length - max : undefined)
    const lines = [...shown.map(({ value, buckets }) => ({ name: value, buckets })), { name: 'others', ...others }]
      .flatMap(({ name, buckets = new Map() }) =>
        [...buckets].map(
          ([start, { requests, errors, charge }]) => `${name} ${start / dayMs} ${requests} ${errors} ${charge}`,
        ),
      )
      .sort()
    expect([group, filters, max, lines]).toEqual([group, filters, max, expectedFor(values)])
    const all = joined(others ? [...shown, others] : shown).total
    expect([all.requests, all.charge]).toEqual([
      rows.reduce((sum, { n }) => sum + n, 0n),
      rows.reduce((sum, { c }) => sum + c, 0n),
    ])
  }
}

forEachEngine((_, storeTest) => {
  storeTest('reports are exact to the nano-dollar before, while and after hours are moved', async ({ database }) => {
    await fill(database)
    await expectExact(database)
    await fold(database, noon - dayMs)
    await expectExact(database)
    await fold(database)
    await expectExact(database)
  })

  storeTest('series are exact for every group, by day, by hour and in another time zone', async ({ database }) => {
    await fill(database)
    await fold(database, noon - dayMs)
    for (const group of [
      'none',
      'model',
      'key',
      'project',
      'workspace',
      'provider',
      'agent',
      'session',
      'cause',
      'user',
      'tag:team',
    ] as const) {
      for (const [stepMs, offsetMs] of [
        [dayMs, 0],
        [dayMs, -5 * hourMs],
        [dayMs, 5.5 * hourMs],
        [6 * hourMs, -3.5 * hourMs],
        [hourMs, 5.75 * hourMs],
        [hourMs, 0],
      ] as const) {
        const query = { ...period, group, stepMs, offsetMs }
        const found = await readSeries(database, query)
        const lines = found
          .flatMap(({ value, buckets }) =>
            [...buckets].map(
              ([start, { requests, charge, errors }]) => `${value} ${start} ${requests} ${errors} ${charge}`,
            ),
          )
          .sort()
        const rows = await database.sql<{ g: string | null; start: bigint; n: bigint; e: bigint; c: bigint }>(
          templateOf([
            `SELECT ${groupSql[group]} AS g, (started_at + ${offsetMs}) / ${stepMs} AS start, COUNT(*) AS n, COUNT(code) AS e,
              CAST(COALESCE(SUM(charge), 0) AS BIGINT) AS c
            FROM requests WHERE started_at >= ${period.from} AND started_at < ${period.to} GROUP BY 1, 2`,
          ]),
        )
        const expected = rows
          .map(({ g, start, n, e, c }) => `${g || null} ${Number(start) * stepMs - offsetMs} ${n} ${e} ${c}`)
          .sort()
        expect([group, lines]).toEqual([group, expected])
      }
    }
  })

  storeTest('the series that cost most are exact, and so is the sum of all others', async ({ database }) => {
    await fill(database)
    for (const hoursBefore of [0, noon - dayMs, Number.MAX_SAFE_INTEGER]) {
      await fold(database, hoursBefore)
      for (const [group, filters, where] of [...topCases, ...loggedTopCases])
        await expectTopSeries(database, group, filters, where)
    }
  })

  storeTest('facets of an outcome come from the sums and are those of the rows', async ({ database }) => {
    await fill(database)
    await fold(database, noon - dayMs)
    for (const [outcome, where] of [
      ['failed', 'code IS NOT NULL'],
      ['ok', 'code IS NULL'],
    ] as const) {
      expect(facetsSource({ ...period, outcome }).summed.length).toBe(6)
      const { total, facets } = await countFacets(database, { ...period, outcome })
      for (const name of facetNames) {
        const rows = await database.sql<{ g: string; n: bigint }>(
          templateOf([
            `SELECT ${groupSql[name]} AS g, COUNT(*) AS n FROM requests WHERE ${groupSql[name]} IS NOT NULL
              AND started_at >= ${period.from} AND started_at < ${period.to} AND ${where} GROUP BY 1`,
          ]),
        )
        const counted = [...facets[name]].map(([value, count]) => `${value} ${count}`).sort()
        expect([outcome, name, counted]).toEqual([outcome, name, rows.map(({ g, n }) => `${g} ${n}`).sort()])
      }
      expect(total).toBe([...facets.key.values()].reduce((sum, count) => sum + count, 0))
    }
  })

  storeTest('facets are the same from the sums and from the rows', async ({ database }) => {
    await fill(database)
    await fold(database, noon - dayMs)
    expect(facetsSource(period).summed.length).toBe(6)
    const summed = await countFacets(database, period)
    // All of them, which only the rows have.
    const all = Array.from({ length: 6 }, (_, key) => `key_${key}` as KeyId)
    const logged = await countFacets(database, { ...period, keyIds: all })
    expect(facetsSource({ ...period, keyIds: all }).summed).toEqual([])
    const shown = ({ total, facets }: typeof summed) => [
      total,
      Object.entries(facets).map(([name, values]) => [name, [...values].sort()]),
    ]
    expect(shown(summed)).toEqual(shown(logged))
    expect(summed.total).toBe(times.filter((at) => at >= period.from && at < period.to).length)
  })

  storeTest('a correction moves a request to its new outcome, also after its hour was moved', async ({ database }) => {
    const id = 'req_corrected' as RequestId
    const record = { id, startedAt: noon - 5 * hourMs, charge: 700n as Nano, session: 's1', agent: 'codex' }
    const at = { ...period, groupBy: ['day'] as const }
    for (const isFolded of [false, true]) {
      await storeRecords(database, [answeredRequest({ ...record, id: `${id}${isFolded}` as RequestId })])
      if (isFolded) await fold(database)
      const failed = { status: 502, code: 'PROVIDER_ERROR' as const, charge: undefined }
      await storeRecords(database, [answeredRequest({ ...record, ...failed, id: `${id}${isFolded}` as RequestId })])
    }
    await fold(database)
    // Both keep their charges.
    expect((await sumUsage({ database, ...at })).total).toMatchObject({ requests: 2, failed: 2, cost: 1400n })
    expect((await sumUsage({ database, ...at, outcome: 'ok' })).list()).toEqual([])
    const { facets } = await countFacets(database, period)
    expect([...facets.cause]).toEqual([['provider_error', 2]])
    const [session] = await readSeries(database, { ...period, group: 'session', stepMs: dayMs, offsetMs: 0 })
    expect(session).toMatchObject({ value: 's1', total: { requests: 2n, errors: 2n, charge: 1400n } })
  })

  storeTest(
    'retention keeps the sums, except by agent and session, which go with their requests',
    async ({ database }) => {
      await fill(database)
      await fold(database)
      const models = await reported(database, 'model', {}, period)
      const clock = { now: () => noon, monotonicMs: () => 0 }
      const onFault = (error: unknown) => {
        throw error
      }
      const options = { database, clock, days: () => 1, onFault, every: () => () => {}, pause: async () => {} }
      const removed = await createRetention(options).run()
      expect(removed).toBe(times.filter((at) => at < noon - dayMs).length)
      const whole = { from: noon - 3 * dayMs, to: noon }
      const before = await sumUsage({ database, ...whole, groupBy: ['model'] })
      expect(before.total.requests).toBe(times.filter((at) => at >= whole.from && at < whole.to).length)
      // Only the rows of the first, partial hour are gone.
      expect(models.length).toBe((await reported(database, 'model', {}, period)).length)
      // The total of end users is of the rows too, not of the sums that are kept.
      for (const [group, filters, where] of loggedTopCases) await expectTopSeries(database, group, filters, where)
      const kept = { from: noon - dayMs, to: period.to }
      for (const group of ['agent', 'session'] as const) {
        const where = { agent: 'agent', session: 'session' }[group]
        expect(await reported(database, group, {}, kept)).toEqual(await bySql(database, where, '1 = 1', kept))
        const names =
          await database.sql`SELECT 1 FROM request_sums WHERE series = ${group} AND start_at < ${BigInt(noon - 2 * dayMs)}`
        expect(names.length).toBe(0)
      }
    },
  )

  storeTest('erasing a workspace deletes its agents and sessions, and nobody else’s', async ({ database }) => {
    await fill(database)
    await fold(database, noon - dayMs)
    const other = { workspaceId: 'ws_0' as WorkspaceId }
    const before = [
      await reported(database, 'session', other, period),
      await reported(database, 'agent', other, period),
    ]
    await forgetRequests(database, 'ws_1' as WorkspaceId)
    expect([
      await reported(database, 'session', other, period),
      await reported(database, 'agent', other, period),
    ]).toEqual(before)
    const left = await database.sql`SELECT 1 FROM request_sums
      WHERE workspace_id = ${'ws_1'} AND series IN ('agent', 'session')`
    expect(left.length).toBe(0)
    expect((await database.sql`SELECT 1 FROM request_hours WHERE agent <> ''`).length).toBe(0)
  })

  storeTest('the groups that the console offers do not read the rows of whole hours', async ({ database }) => {
    const minutes = Array.from({ length: 3 * 24 * 20 }, (_, at) => noon - 3 * dayMs + at * 3 * 60_000)
    await storeRequests(
      database,
      minutes.map((startedAt) => ({ startedAt, session: `s${startedAt % 7}` })),
    )
    await fold(database)
    const edges = { from: noon - 3 * dayMs + 90 * 60_000, to: noon - 30 * 60_000 }
    // Half an hour at each end, and a request every three minutes.
    const rowsAtEdges = 20
    const rowsOf = async (work: (database: Database) => Promise<unknown>) => {
      const { rows, scans } = await readingOf(database, work, ['requests'])
      expect(scans).toEqual([])
      return rows
    }
    const groups = ['day', 'workspace', 'project', 'key', 'model', 'provider', 'route', 'session', 'agent'] as const
    for (const group of groups) {
      const rows = await rowsOf((recorded) =>
        sumUsage({ database: recorded, groupBy: [group], withProviderCosts: true, ...edges }),
      )
      // Each row is looked at in the index and in the table; ids begin a minute before and end a minute after.
      expect([group, rows <= 3 * rowsAtEdges]).toEqual([group, true])
      const exported = await rowsOf(async (recorded) => {
        const wanted = {
          database: recorded,
          groupBy: [group],
          format: 'csv',
          nameOf: async () => null,
          ...edges,
        } as const
        for await (const _ of exportUsage(wanted));
      })
      expect([group, exported]).toEqual([group, rows])
    }
    // Three local midnights in India cut an hour each.
    for (const [offsetMs, rowsCut] of [
      [0, 0],
      [5.5 * hourMs, 3 * 20],
    ] as const) {
      for (const group of [
        'model',
        'key',
        'project',
        'provider',
        'route',
        'agent',
        'session',
        'cause',
        'workspace',
      ] as const) {
        const query = { ...edges, group, stepMs: dayMs, offsetMs }
        const rows = await rowsOf((recorded) => readTopSeries(recorded, query, 20))
        // Groups of many values are read twice: to rank them, and for their figures.
        const times = ['model', 'route', 'key', 'session'].includes(group) ? 2 : 1
        expect([group, offsetMs, rows <= times * 3 * (rowsAtEdges + rowsCut)]).toEqual([group, offsetMs, true])
      }
    }
    expect(await rowsOf((recorded) => countFacets(recorded, edges))).toBeLessThanOrEqual(6 * rowsAtEdges)
    const filtered = { ...edges, tag: 'team=web' }
    const counted = await countRowsToRead(
      database,
      filtered,
      sourceOf({ ...filtered, groups: ['model'], grain: 'day' }).logged,
    )
    expect(counted).toBe(minutes.filter((at) => at >= edges.from - 30 * 60_000 && at < edges.to + 30 * 60_000).length)
    expect(await countRowsToRead(database, {}, [])).toBe(0)
  })

  storeTest(
    'the sessions of a day are read without those of other days, whatever the number of workspaces',
    async ({ database }) => {
      const old = Array.from({ length: 400 }, (_, at) => ({ workspace: at, startedAt: noon - 9 * dayMs }))
      const wanted = Array.from({ length: 5 }, (_, at) => ({ workspace: at, startedAt: noon - 2 * dayMs }))
      await storeRequests(
        database,
        [...old, ...wanted].map(({ workspace, startedAt }) => ({
          startedAt,
          session: `s${workspace}`,
          caller: {
            workspaceId: `ws_${workspace}` as WorkspaceId,
            projectId: 'prj' as ProjectId,
            keyId: 'key' as KeyId,
          },
        })),
      )
      await fold(database)
      await database.schemaTransaction((_, run) => run('ANALYZE request_sums'))
      const day = { from: noon - 2 * dayMs - 12 * hourMs, to: noon - dayMs - 12 * hourMs }
      const report = (recorded: Database) => sumUsage({ database: recorded, groupBy: ['session'], ...day })
      expect((await report(database)).list().map(({ requests }) => requests)).toEqual([1, 1, 1, 1, 1])
      const { rows, scans } = await readingOf(database, report, ['request_sums', 'workspaces'])
      expect(scans).toEqual([])
      // Sessions are read twice, by name and as what is not without one; the sum of everything is one row.
      expect(rows).toBeLessThanOrEqual(2 * 5 + 1)
    },
  )

  storeTest('a series sums up a whole portion of the log without sorting its rows', async ({ database }) => {
    // SQLite sorts, in portions that fit into its cache.
    if (database.engine === 'sqlite') return
    await fillLog(database, portions.postgres)
    await database.schemaTransaction((_, run) => run('ANALYZE requests'))
    const query = { ...period, group: 'tag:team', stepMs: dayMs, offsetMs: 0 } as const
    const { steps } = await readingOf(database, (recorded) => readTopSeries(recorded, query, 20))
    // Of the whole portion; what is behind it is nothing, and may be sorted.
    const whole = steps.indexOf('Aggregate')
    expect(whole).toBeGreaterThan(-1)
    expect(steps[whole + 1]).not.toBe('Sort')
  })

  storeTest('a report stops reading when its client leaves', async ({ database }) => {
    await fillLog(database, 2 * portions[database.engine])
    const signal = { aborted: false }
    let statements = 0
    const counting = ((text: TemplateStringsArray, ...values: []) => {
      statements++
      signal.aborted = true
      return database.sql(text, ...values)
    }) as Database['sql']
    const report = sumUsage({ database: { ...database, sql: counting, signal }, ...period, groupBy: ['tag:team'] })
    expect(await report.catch((thrown: unknown) => thrown)).toBeInstanceOf(ReadCancelled)
    // The end of the first portion and its sums, of three portions.
    expect(statements).toBe(2)
  })
})
