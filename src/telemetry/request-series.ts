// Requests summed up by time and by group, for charts, histograms and facets. Windows are exact to the millisecond: whole
// hours and days come from the sums if those have the group, the rest from the log. The database adds up portions of the
// log, so a longer log needs no more memory and does not block the event loop for longer.

import { type AttributionFilters, shownEndUser, tagsFromText } from '../kernel/attribution.ts'
import { firstIdAt, type KeyId, type ProjectId, type WorkspaceId } from '../kernel/ids.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'
import type { Database } from '../store/database.ts'
import { templateOf } from '../store/insert-rows.ts'
import {
  addFigures,
  allWorkspaces,
  type Figures,
  figureColumns,
  figuresFromRow,
  firstEventBounds,
  grainMs,
  noFigures,
} from '../store/request-rows.ts'
import { type Sql, type SqlValue, timeToSql } from '../store/sql.ts'

export interface RequestFilters extends AttributionFilters {
  readonly workspaceId?: WorkspaceId
  readonly projectId?: ProjectId
  readonly keyId?: KeyId
  /** Only requests with one of these keys. */
  readonly keyIds?: readonly KeyId[]
  readonly model?: string
  readonly provider?: string
  /** `failed`: with a code, also of a failure inside a stream. */
  readonly outcome?: 'ok' | 'failed'
  /** A value of `causeColumn`. */
  readonly cause?: string
}

const hourlyGroups = { none: 'total', model: 'model', project: 'project', key: 'key' } as const

/** `ok`, or the cause, or else the code in lower case. */
export const causeColumn = "COALESCE(cause, LOWER(code), 'ok')"

const columns = {
  none: "''",
  model: 'model',
  project: 'project_id',
  key: 'key_id',
  workspace: 'workspace_id',
  provider: 'provider',
  agent: 'agent',
  session: 'session',
  user: 'end_user',
  cause: causeColumn,
} as const

/** `tag:NAME`: by the value of that tag. */
export type SeriesGroup = keyof typeof columns | `tag:${string}`

export interface SeriesQuery extends RequestFilters {
  /** Epoch milliseconds; `to` is exclusive. */
  readonly from: number
  readonly to: number
  readonly stepMs: number
  /** How far local time is ahead of UTC: days begin at local midnight. */
  readonly offsetMs: number
  readonly group: SeriesGroup
}

export interface Series {
  /** null = the requests have none. */
  readonly value: string | null
  readonly total: Figures
  /** By the start of the bucket, which may be before `from`. */
  readonly buckets: ReadonlyMap<number, Figures>
}

/** The highest cost first, then the most requests. */
export async function readSeries(database: LogDatabase, query: SeriesQuery): Promise<readonly Series[]> {
  const found = new Map<string | null, { total: Figures; buckets: Map<number, Figures> }>()
  const sumsOf: SumsOf = (raw, place) => {
    const value = shownValue(query.group, raw)
    const series = found.get(value) ?? { total: noFigures(), buckets: new Map<number, Figures>() }
    found.set(value, series)
    const start = place * query.stepMs - query.offsetMs
    const bucket = series.buckets.get(start) ?? noFigures()
    series.buckets.set(start, bucket)
    return [bucket, series.total]
  }
  const [first, last] = hoursWithin(query)
  if (first < last) await addHours(database, query, [first, last], sumsOf)
  if (query.from < first) await addLogged(database, { ...query, to: first }, sumsOf)
  if (last < query.to) await addLogged(database, { ...query, from: last }, sumsOf)
  return [...found]
    .map(([value, series]) => ({ value, ...series }))
    .sort((a, b) => Number(b.total.charge - a.total.charge || b.total.requests - a.total.requests))
}

export type LogDatabase = Pick<Database, 'sql' | 'engine'>

/** The sums that a row is added to: that of its bucket, and the total of its series. */
type SumsOf = (raw: string | null, place: number) => readonly Figures[]
type Span = readonly [from: number, to: number]

function shownValue(group: SeriesGroup, raw: string | null): string | null {
  if (group.startsWith('tag:')) return tagsFromText(raw)[group.slice('tag:'.length)] ?? null
  return group === 'user' && raw !== null ? shownEndUser(raw) : raw || null
}

/** The whole hours for which the sums have the answer. `[from, from]` = none. */
function hoursWithin({ from, to, stepMs, offsetMs, group, workspaceId: _, ...rest }: SeriesQuery): Span {
  const isFiltered = Object.values(rest).some((value) => value !== undefined)
  const isWhole = stepMs % grainMs.hour === 0 && offsetMs % grainMs.hour === 0
  const first = Math.ceil(from / grainMs.hour) * grainMs.hour
  const last = Math.floor(to / grainMs.hour) * grainMs.hour
  const hasSums = !isFiltered && isWhole && group in hourlyGroups && first < last
  return hasSums ? [first, last] : [from, from]
}

const sums = figureColumns.map((name) => `CAST(SUM(${name}) AS BIGINT) AS ${name}`).join(', ')

/** Reads both tables in one statement, because hours move from one to the other. */
async function addHours({ sql }: LogDatabase, query: SeriesQuery, [from, to]: Span, sumsOf: SumsOf): Promise<void> {
  const { stepMs, offsetMs, workspaceId = allWorkspaces } = query
  const group = query.group as keyof typeof hourlyGroups
  const place = `(start_at + ${offsetMs}) / ${stepMs} AS place`
  const isDaily = stepMs % grainMs.day === 0 && offsetMs % grainMs.day === 0
  const [days, before, after] = isDaily ? daysAndHours(from, to) : [noSpan, [from, to] as const, noSpan]
  const ofSums = (grain: keyof typeof grainMs, [start, end]: Span): Piece => [
    `SELECT ${place}, subject, ${sums} FROM request_sums WHERE grain = '${grain}' AND series = '${hourlyGroups[group]}'
      AND workspace_id = ? AND start_at >= ? AND start_at < ? GROUP BY 1, 2 UNION ALL `,
    ...[workspaceId, timeToSql(start), timeToSql(end)],
  ]
  const rows = await run<SummedRow>(sql, [
    ...[ofSums('day', days), ofSums('hour', before), ofSums('hour', after)],
    [
      `SELECT ${place}, ${columns[group]} AS subject, ${sums} FROM request_hours
        WHERE CAST(? AS TEXT) IN ('', workspace_id) AND start_at >= ? AND start_at < ? GROUP BY 1, 2`,
      ...[workspaceId, timeToSql(from), timeToSql(to)],
    ],
  ])
  for (const row of rows) {
    const figures = figuresFromRow(row)
    for (const sum of sumsOf(row.subject, Number(row.place))) addFigures(sum, figures)
  }
}

const noSpan: Span = [0, 0]

/** The whole days of a span of hours, and the hours before and after them. */
export function daysAndHours(from: number, to: number): readonly [days: Span, before: Span, after: Span] {
  const firstDay = Math.ceil(from / grainMs.day) * grainMs.day
  const lastDay = Math.floor(to / grainMs.day) * grainMs.day
  if (firstDay >= lastDay) return [noSpan, [from, to], noSpan]
  return [
    [firstDay, lastDay],
    [from, firstDay],
    [lastDay, to],
  ]
}

type SummedRow = { readonly subject: string | null; readonly place: bigint } & Readonly<Record<string, bigint>>

/**
 * SQLite is read on the thread that serves requests, so a portion takes only a few milliseconds. It also fits into the
 * page cache of 2 MB: the pages that were read to find its end are not read again.
 */
const portions = { sqlite: 2_000n, postgres: 25_000n } as const
/** An id is created a moment before the start time of its request is taken. */
const marginMs = 60_000

/** Enough to count the requests of a portion. */
const countBits = 15n
const countMask = (1n << countBits) - 1n
const countsPerSum = 4
/** The bounds of the hourly sums. A request without a first event meets none of them. */
const firstEventConditions = [
  ...firstEventBounds.map((most) => `first_event_ms <= ${most}`),
  `first_event_ms > ${firstEventBounds.at(-1)}`,
]
/** Packs four counts into each SUM. Grouping by the time to the first event as well takes a quarter longer. */
const firstEventSums = firstEventConditions
  .flatMap((_, first) => (first % countsPerSum === 0 ? [first] : []))
  .map((first) => {
    const faster = first === 0 ? '' : `WHEN ${firstEventConditions[first - 1]} THEN 0 `
    const cases = firstEventConditions
      .slice(first, first + countsPerSum)
      .map((condition, place) => `WHEN ${condition} THEN ${1n << (countBits * BigInt(place))}`)
    return { first, name: `counts_${first}`, sql: `CAST(SUM(CASE ${faster}${cases.join(' ')} END) AS BIGINT)` }
  })
const loggedSums = [
  ...['input_tokens', 'cache_read_tokens', 'output_tokens', 'charge'].map(
    (name) => `CAST(COALESCE(SUM(${name}), 0) AS BIGINT) AS ${name}`,
  ),
  ...firstEventSums.map(({ name, sql }) => `${sql} AS ${name}`),
].join(', ')

async function addLogged(database: LogDatabase, query: SeriesQuery, sumsOf: SumsOf): Promise<void> {
  const { stepMs, offsetMs, group } = query
  const column = group.startsWith('tag:') ? 'tags' : columns[group as keyof typeof columns]
  const select = `${column} AS subject, (started_at + ${offsetMs}) / ${stepMs} AS place,
    COUNT(*) AS requests, COUNT(code) AS errors, ${loggedSums}`
  for await (const rows of readPortions<SummedRow>(database, query, `SELECT ${select}`, ' GROUP BY 1, 2')) {
    for (const row of rows) {
      const figures = figuresFromRow(row)
      for (const { first, name } of firstEventSums) {
        for (let place = first, left = row[name] ?? 0n; left > 0n; place++, left >>= countBits) {
          figures.firstEvents[place] = left & countMask
        }
      }
      for (const sum of sumsOf(row.subject, Number(row.place))) addFigures(sum, figures)
    }
  }
}

/** A part of a statement, with a `?` for every value. */
type Piece = readonly [text: string, ...values: readonly SqlValue[]]

function run<Row>(sql: Sql, pieces: readonly Piece[]): Promise<Row[]> {
  const text = pieces.map(([piece]) => piece).join('')
  return sql<Row>(templateOf(text.split('?')), ...pieces.flatMap(([, ...values]) => values))
}

const and: Piece = [' AND ']

function conditionsOf(query: RequestFilters): readonly Piece[] {
  const { workspaceId, projectId, keyId, model, provider, session, agent, endUser, tag, outcome, cause } = query
  const equal = Object.entries({
    workspace_id: workspaceId,
    key_id: keyId,
    project_id: projectId,
    model,
    provider,
    session,
    agent,
    [causeColumn]: cause,
  }).flatMap(([column, value]): Piece[] => (value === undefined ? [] : [[`${column} = ?`, value]]))
  const others: (Piece | false)[] = [
    endUser !== undefined && ['? IN (end_user, SUBSTR(end_user, 1, 23), SUBSTR(end_user, 25))', endUser],
    // Not LIKE, which ignores case on one of the engines.
    tag !== undefined && [`REPLACE(',' || tags || ',', ?, '') <> ',' || tags || ','`, `,${tag},`],
    outcome !== undefined && [`code IS ${outcome === 'ok' ? '' : 'NOT '}NULL`],
  ]
  return [...equal, ...others.filter((piece) => piece !== false)]
}

/** Yields the rows of each portion of the log, key by key if several are given. `select` ends before FROM; `end` follows the conditions. */
export async function* readPortions<Row>(
  database: LogDatabase,
  { keyIds, ...query }: RequestFilters & { readonly from: number; readonly to: number },
  select: string,
  end: string,
): AsyncGenerator<readonly Row[]> {
  if (keyIds) {
    const wanted = query.keyId === undefined ? keyIds : keyIds.filter((id) => id === query.keyId)
    for (const keyId of wanted) yield* readPortions<Row>(database, { ...query, keyId }, select, end)
    return
  }
  const { sql, engine } = database
  const { from, to, ...filters } = query
  const conditions = conditionsOf(filters).flatMap((piece) => [piece, and])
  // Each has an index with the id.
  const indexed = (['keyId', 'workspaceId', 'model'] as const).find((name) => filters[name] !== undefined)
  const along = conditionsOf(indexed ? { [indexed]: filters[indexed] } : {}).flatMap((piece) => [piece, and])
  const last = firstIdAt(to + marginMs)
  let after: string = firstIdAt(Math.max(0, Math.floor(from) - marginMs))
  for (;;) {
    // Reads only the index.
    const [upper] = await run<{ id: string }>(sql, [
      ['SELECT id FROM requests WHERE '],
      ...along,
      ['id > ? AND id < ? ORDER BY id LIMIT 1 OFFSET ?', after, last, portions[engine] - 1n],
    ])
    yield await run<Row>(sql, [
      [`${select} FROM requests WHERE `],
      ...conditions,
      [
        'id > ? AND id <= ? AND started_at >= ? AND started_at < ?',
        after,
        upper?.id ?? last,
        timeToSql(from),
        timeToSql(to),
      ],
      [end],
    ])
    if (!upper) return
    after = upper.id
    await yieldToEventLoop()
  }
}

export const facetNames = ['cause', 'model', 'provider', 'key', 'agent', 'project'] as const
export type FacetName = (typeof facetNames)[number]
export type Facets = Readonly<Record<FacetName, ReadonlyMap<string, number>>>

/** Counts the requests of each value. Requests without a value are left out. */
export async function countFacets(
  database: LogDatabase,
  query: RequestFilters & { readonly from: number; readonly to: number },
): Promise<{ readonly total: number; readonly facets: Facets }> {
  const facets = Object.fromEntries(facetNames.map((name) => [name, new Map<string, number>()])) as Record<
    FacetName,
    Map<string, number>
  >
  let total = 0
  const { from, to, workspaceId, ...filters } = query
  const isFiltered = Object.values(filters).some((value) => value !== undefined)
  // Two passes, because grouping by all columns at once gives many more rows. A key belongs to one project.
  const passes = [
    { names: ['cause', 'provider', 'agent'], more: '' },
    ...(isFiltered ? [{ names: ['model', 'key'], more: ', MIN(project_id) AS f_project' } as const] : []),
  ] as const
  type Row = Readonly<Partial<Record<`f_${FacetName}`, string | null>>> & { readonly requests: bigint }
  for (const [pass, { names, more }] of passes.entries()) {
    const select = names.map((name) => `${columns[name]} AS f_${name}`).join(', ')
    const groupBy = ` GROUP BY ${names.map((_, place) => place + 1).join(', ')}`
    for await (const rows of readPortions<Row>(
      database,
      query,
      `SELECT ${select}${more}, COUNT(*) AS requests`,
      groupBy,
    )) {
      for (const row of rows) {
        const count = Number(row.requests)
        if (pass === 0) total += count
        for (const name of facetNames) {
          const value = row[`f_${name}`]
          if (value != null) facets[name].set(value, (facets[name].get(value) ?? 0) + count)
        }
      }
    }
  }
  // Without filters, the hourly sums have these counts.
  for (const group of isFiltered ? [] : (['model', 'key', 'project'] as const)) {
    const span = { from, to, ...(workspaceId && { workspaceId }), stepMs: wholeStepMs, offsetMs: 0 }
    for (const { value, total: sum } of await readSeries(database, { ...span, group })) {
      if (value !== null) facets[group].set(value, Number(sum.requests))
    }
  }
  return { total, facets }
}

/** Longer than any window, and whole days: gives one sum per group. */
export const wholeStepMs = 10_000 * grainMs.day
