// Requests summed up by time and by group, for charts, histograms and facets. Windows are exact to the millisecond: see
// read-log.ts for what comes from the sums and what from the rows. The database adds up portions, so a longer log needs no more
// memory and does not block the event loop for longer.

import { endUserHashLength, tagsFromText } from '../kernel/attribution.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import {
  addFigures,
  chartColumns,
  type Figures,
  figuresFromRow,
  firstEventBounds,
  grainMs,
  noFigures,
} from '../store/request-rows.ts'
import type { Engine } from '../store/sql.ts'
import {
  causeColumn,
  isOneOf,
  type LogDatabase,
  marginMs,
  oldestRequest,
  type Period,
  type Piece,
  type RequestFilters,
  readPortions,
  readSums,
  type Source,
  type SourceQuery,
  type SumsSelect,
  sourceOf,
} from './read-log.ts'

const columns = {
  none: "''",
  model: 'model',
  project: 'project_id',
  key: 'key_id',
  workspace: 'workspace_id',
  provider: 'provider',
  route: "provider || ' ' || upstream_model",
  agent: 'agent',
  session: 'session',
  // The id that was sent, if it was recorded behind the hash.
  user: `COALESCE(NULLIF(SUBSTR(end_user, ${endUserHashLength + 2}), ''), end_user)`,
  cause: causeColumn,
} as const

/** `tag:NAME`: by the value of that tag. */
export type SeriesGroup = keyof typeof columns | `tag:${string}`

export interface SeriesQuery extends RequestFilters, Period {
  readonly stepMs: number
  /** How far local time is ahead of UTC: days begin at local midnight. */
  readonly offsetMs: number
  readonly group: SeriesGroup
}

export interface SeriesSum {
  readonly total: Figures
  /** By the start of the bucket, which may be before `from`. */
  readonly buckets: ReadonlyMap<number, Figures>
}

export interface Series extends SeriesSum {
  /** null = the requests have none. */
  readonly value: string | null
}

/** The highest cost first, then the most requests. */
export async function readSeries(database: LogDatabase, query: SeriesQuery): Promise<readonly Series[]> {
  const { named } = await sumSeries(database, query, undefined)
  return named
}

export interface TopSeries {
  /** Of all requests, each once. */
  readonly total: SeriesSum
  /** The highest cost first, then the most requests. */
  readonly shown: readonly Series[]
  /** All others as one. */
  readonly others: (SeriesSum & { readonly count: number }) | undefined
}

export interface TopQuery extends SeriesQuery {
  /** The values under which a series counts instead, such as the groups of a key; those of the same value are added up. */
  regroup?(value: string | null): readonly (string | null)[]
}

/** May have hundreds of values and more: sessions are as many as a tenth of the requests. */
const rankedGroups: ReadonlySet<SeriesGroup> = new Set(['model', 'route', 'key', 'session', 'user'])

/**
 * At most `max` series. Groups of many values are first ranked by cost, and then the other figures are only read of those that
 * are shown, and of everything.
 */
export async function readTopSeries(
  database: LogDatabase,
  { regroup, ...query }: TopQuery,
  max: number,
): Promise<TopSeries> {
  if (regroup || !rankedGroups.has(query.group) || query.session !== undefined) {
    const read = await readSeries(database, query)
    const all = regroup ? regrouped(read, regroup) : read
    const rest = all.slice(max)
    const others = rest.length === 0 ? undefined : { count: rest.length, ...joined(rest) }
    return { total: joined(read), shown: all.slice(0, max), others }
  }
  const ranked = await rankSubjects(database, query)
  const kept = ranked.slice(0, max)
  const { named, all } = await sumTop(database, query, kept)
  const rest = joined([all], named)
  // At least one: another may have begun since they were ranked.
  const count = Math.max(1, ranked.length - kept.length)
  const others = rest.total.requests === 0n ? undefined : { count, ...rest }
  return { total: joined(others ? [...named, others] : named), shown: named, others }
}

function regrouped(series: readonly Series[], valuesOf: NonNullable<TopQuery['regroup']>): readonly Series[] {
  const parts = series.flatMap((part) => valuesOf(part.value).map((value) => ({ value, part })))
  const groups = Map.groupBy(parts, ({ value }) => value)
  return [...groups].map(([value, found]) => ({ value, ...joined(found.map(({ part }) => part)) })).sort(byCost)
}

/** The highest cost first, then the most requests. */
function byCost({ total: a }: SeriesSum, { total: b }: SeriesSum): number {
  return Number(b.charge - a.charge || b.requests - a.requests)
}

/** In the order of `readSeries`. */
async function rankSubjects(database: LogDatabase, query: SeriesQuery): Promise<readonly (string | null)[]> {
  const found = new Map<string | null, { requests: bigint; charge: bigint }>()
  const add = ({ subject, requests, charge }: RankedRow): void => {
    const sum = found.get(subject || null)
    if (!sum) return void found.set(subject || null, { requests, charge })
    sum.requests += requests
    sum.charge += charge
  }
  const wanted = seriesSource(query)
  const { sums, logged } = sourceOf(wanted)
  if (sums) {
    const select: SumsSelect = {
      groups: (subject) => [['subject', subject]],
      figures: [
        ['requests', 'requests'],
        ['charge', 'charge'],
      ],
    }
    for await (const rows of readSums<RankedRow>(database, wanted, sums, select)) for (const row of rows) add(row)
  }
  for (const period of logged) {
    const select = `SELECT ${columnOf(query.group)} AS subject, COUNT(*) AS requests,
      CAST(COALESCE(SUM(charge), 0) AS BIGINT) AS charge`
    const portions = readPortions<RankedRow>(database, { ...query, ...period }, select, [' GROUP BY 1'])
    for await (const rows of portions) for (const row of rows) add(row)
  }
  return [...found]
    .filter(([, { requests }]) => requests !== 0n)
    .sort(([, a], [, b]) => Number(b.charge - a.charge || b.requests - a.requests))
    .map(([subject]) => subject)
}

interface RankedRow {
  readonly subject: string | null
  readonly requests: bigint
  readonly charge: bigint
}

interface NamedAndAll {
  readonly named: readonly Series[]
  readonly all: SeriesSum
}

/**
 * Groups that only the rows have, such as end users: if the sums have everything, the figures of all other rows are not added up.
 */
async function sumTop(
  database: LogDatabase,
  query: SeriesQuery,
  kept: readonly (string | null)[],
): Promise<NamedAndAll> {
  const everything = { ...query, group: 'none' } as const
  const source = sourceOf(seriesSource(everything))
  if (!source.sums || sourceOf(seriesSource(query)).sums) return await sumSeries(database, query, kept)
  const start = await wholeHoursFrom(database, query.workspaceId)
  const { named } = await sumSeries(database, query, kept, { isAllNeeded: false })
  // Read last: a request that was recorded in between is one of the others.
  const read = await sumSeries(database, everything, undefined, { source: sourceSince(source, query, start) })
  return { named, all: joined(read.named) }
}

/** The first hour of which the log has all requests: retention keeps the sums of those that it removes. */
async function wholeHoursFrom(database: LogDatabase, workspaceId: WorkspaceId | undefined): Promise<number> {
  const oldest = await oldestRequest(database, workspaceId)
  return oldest === undefined ? Number.POSITIVE_INFINITY : Math.ceil((oldest + marginMs) / grainMs.hour) * grainMs.hour
}

/** With the rows instead of the sums before an hour. */
function sourceSince({ sums, logged }: Source, { from, to }: Period, start: number): Source {
  if (!sums || start <= sums.span[0]) return { sums, logged }
  const [, end] = sums.span
  if (start >= end) return { sums: undefined, logged: [{ from, to }] }
  const later = logged.filter((period) => period.from >= start)
  return { sums: { ...sums, span: [start, end] }, logged: [{ from, to: start }, ...later] }
}

interface SumOptions {
  readonly source?: Source
  /** Of `onlySubjects`: whether `all` is needed. */
  readonly isAllNeeded?: boolean
}

/** `onlySubjects`: only these series, and the sum of everything in `all`, which is empty without it. */
async function sumSeries(
  database: LogDatabase,
  query: SeriesQuery,
  onlySubjects: readonly (string | null)[] | undefined,
  { source, isAllNeeded = true }: SumOptions = {},
): Promise<NamedAndAll> {
  const found = new Map<string | null, Buckets>()
  const all: Buckets = new Map()
  const addTo = (buckets: Buckets, row: SummedRow, figures: Figures): void => {
    const start = Number(row.place) * query.stepMs - query.offsetMs
    const bucket = buckets.get(start)
    if (bucket) addFigures(bucket, figures)
    else buckets.set(start, figures)
  }
  const add = (value: string | null, row: SummedRow, figures: Figures): void => {
    if (onlySubjects && !onlySubjects.includes(value)) return
    const buckets = found.get(value) ?? new Map<number, Figures>()
    found.set(value, buckets)
    addTo(buckets, row, figures)
  }
  const wanted: SourceQuery = { ...seriesSource(query), onlySubjects }
  const { sums, logged } = source ?? sourceOf(wanted)
  if (sums) {
    const select: SumsSelect = {
      groups: (subject) => [
        ['subject', groupOfSums(query.group, subject, database.engine)],
        ['place', placeOf(query)],
      ],
      figures: chartColumns.map((name) => [name, name]),
    }
    for await (const rows of readSums<SummedRow>(database, wanted, sums, select)) {
      for (const row of rows) {
        const figures = figuresFromRow(row)
        if (onlySubjects && row.subject === null) {
          addTo(all, row, figuresFromRow(row))
          // Requests without a session have no sum of their own.
          if (sums.series !== 'session') continue
        }
        add(row.subject || null, row, figures)
      }
    }
  }
  for (const period of logged) {
    for await (const rows of readLogged(database, { ...query, ...period }, onlySubjects, isAllNeeded)) {
      for (const row of rows) {
        const figures = figuresOfLogged(row)
        if (onlySubjects && isAllNeeded) addTo(all, row, figuresOfLogged(row))
        if (onlySubjects && row.subject === null) continue
        add(shownValue(query.group, row.subject), row, figures)
      }
    }
  }
  const named = [...found]
    .map(([value, buckets]) => ({ value, ...sumOf(buckets) }))
    .filter(({ total }) => total.requests !== 0n)
    .sort(byCost)
  return { named, all: sumOf(all) }
}

type Buckets = Map<number, Figures>

function sumOf(buckets: Buckets): SeriesSum {
  const total = noFigures()
  for (const figures of buckets.values()) addFigures(total, figures)
  return { total, buckets: withRequests(buckets) }
}

/** The sum of series, less others. */
export function joined(more: readonly SeriesSum[], less: readonly SeriesSum[] = []): SeriesSum {
  const total = noFigures()
  const buckets = new Map<number, Figures>()
  for (const [list, sign] of [
    [more, 1n],
    [less, -1n],
  ] as const) {
    for (const series of list) {
      addFigures(total, series.total, sign)
      for (const [start, figures] of series.buckets) {
        const bucket = buckets.get(start) ?? noFigures()
        buckets.set(start, bucket)
        addFigures(bucket, figures, sign)
      }
    }
  }
  return { total, buckets: withRequests(buckets) }
}

/** A request that was moved to another group leaves zeros in its first one. */
function withRequests(buckets: ReadonlyMap<number, Figures>): ReadonlyMap<number, Figures> {
  return new Map([...buckets].filter(([, { requests }]) => requests !== 0n))
}

/** Where the figures of a series come from. */
export function seriesSource({ stepMs, offsetMs, group, ...query }: SeriesQuery): SourceQuery {
  const isIn = (grain: keyof typeof grainMs) => stepMs % grainMs[grain] === 0 && offsetMs % grainMs[grain] === 0
  if (isIn('day')) return { ...query, groups: [group], grain: 'day' }
  if (isIn('hour')) return { ...query, groups: [group], grain: 'hour' }
  // Intervals of an hour would all be cut.
  const isOfHours = stepMs > grainMs.hour && stepMs % grainMs.hour === 0
  return {
    ...query,
    groups: [group],
    ...(isOfHours ? { grain: 'hour', cut: { stepMs, offsetMs } } : { grain: undefined }),
  }
}

function shownValue(group: SeriesGroup, raw: string | null): string | null {
  return group.startsWith('tag:') ? (tagsFromText(raw)[group.slice('tag:'.length)] ?? null) : raw || null
}

/** The expression of a group in the sums, where workspaces have a column of their own. */
export function groupOfSums(group: string, subject: string, engine: Engine): string {
  if (group === 'workspace') return 'workspace_id'
  if (group === 'provider') return providerOfRoute(subject, engine)
  return group === 'none' ? "''" : subject
}

/** The first word. */
function providerOfRoute(route: string, engine: Engine): string {
  if (engine === 'postgres') return `SPLIT_PART(${route}, ' ', 1)`
  return `SUBSTR(${route}, 1, INSTR(${route} || ' ', ' ') - 1)`
}

function columnOf(group: SeriesGroup): string {
  return group.startsWith('tag:') ? 'tags' : columns[group as keyof typeof columns]
}

type SummedRow = { readonly subject: string | null; readonly place: bigint } & Readonly<Record<string, bigint>>

const placeOf = ({ stepMs, offsetMs }: SeriesQuery, time = 'start_at') => `(${time} + ${offsetMs}) / ${stepMs}`

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
  ...['input_tokens', 'cache_read_tokens', 'output_tokens', 'charge', 'cache_saved'].map(
    (name) => `CAST(COALESCE(SUM(${name}), 0) AS BIGINT) AS ${name}`,
  ),
  ...firstEventSums.map(({ name, sql }) => `${sql} AS ${name}`),
].join(', ')

/** `onlySubjects`: all others together have NULL as their subject, or are not read. */
function readLogged(
  database: LogDatabase,
  query: SeriesQuery,
  onlySubjects: readonly (string | null)[] | undefined,
  isAllNeeded: boolean,
): AsyncGenerator<readonly SummedRow[]> {
  const { stepMs: _step, offsetMs: _offset, group, ...filters } = query
  const shown = onlySubjects ? `COALESCE(${columnOf(group)}, '')` : columnOf(group)
  const [isNamed, ...values] = isOneOf(shown, onlySubjects?.map((name) => name ?? '') ?? [])
  const sums = `${placeOf(query, 'started_at')} AS place, COUNT(*) AS requests, COUNT(code) AS errors, ${loggedSums}`
  const end: Piece = !onlySubjects
    ? [`) SELECT ${shown} AS subject, ${sums} FROM found GROUP BY 1, 2`]
    : isAllNeeded
      ? [`) SELECT CASE WHEN ${isNamed} THEN ${shown} END AS subject, ${sums} FROM found GROUP BY 1, 2`, ...values]
      : [`) SELECT ${shown} AS subject, ${sums} FROM found WHERE ${isNamed} GROUP BY 1, 2`, ...values]
  return readPortions<SummedRow>(database, filters, 'WITH found AS (SELECT *', end)
}

function figuresOfLogged(row: SummedRow): Figures {
  const firstEvents = firstEventConditions.map(() => 0n)
  for (const { first, name } of firstEventSums) {
    for (let place = first, left = row[name] ?? 0n; left > 0n; place++, left >>= countBits) {
      firstEvents[place] = left & countMask
    }
  }
  return figuresFromRow(row, firstEvents)
}

export const facetNames = ['cause', 'model', 'provider', 'key', 'agent', 'project'] as const
export type FacetName = (typeof facetNames)[number]
export type Facets = Readonly<Record<FacetName, ReadonlyMap<string, number>>>

/**
 * What facets are read from: the sums of each if all have them, and the rest of the period from the rows. Every sum counts its
 * failed requests, so the outcome needs no filter.
 */
export function facetsSource({ outcome, ...filters }: RequestFilters & Period) {
  const each = facetNames.map((name) => {
    const wanted: SourceQuery = { ...filters, groups: [name], grain: 'day' }
    return { name, wanted, source: sourceOf(wanted) }
  })
  const summed = each.flatMap(({ name, wanted, source: { sums } }) => (sums ? [{ name, wanted, sums }] : []))
  const isSummed = summed.length === each.length
  const count = { ok: 'requests - errors', failed: 'errors', all: 'requests' }[outcome ?? 'all']
  return { summed: isSummed ? summed : [], count, logged: (isSummed ? each[0]?.source.logged : undefined) ?? [filters] }
}

/** Reads each row once, whose columns are then counted one by one: grouping by all at once gives many more rows. */
const facetColumns = `WITH found AS MATERIALIZED (SELECT ${facetNames.map((name) => `${columns[name]} AS f_${name}`).join(', ')}`
const facetCounts = `) ${facetNames
  .map((name) => `SELECT '${name}' AS facet, f_${name} AS value, COUNT(*) AS requests FROM found GROUP BY f_${name}`)
  .join(' UNION ALL ')}`

/** Counts the requests of each value. Requests without a value are left out. */
export async function countFacets(
  database: LogDatabase,
  query: RequestFilters & Period,
): Promise<{ readonly total: number; readonly facets: Facets }> {
  const facets = Object.fromEntries(facetNames.map((name) => [name, new Map<string, number>()])) as Record<
    FacetName,
    Map<string, number>
  >
  let total = 0
  const add = (name: FacetName, value: string | null | undefined, count: number) => {
    if (value != null && count !== 0) facets[name].set(value, (facets[name].get(value) ?? 0) + count)
  }
  const { summed, count: figure, logged } = facetsSource(query)
  for (const { name, wanted, sums } of summed) {
    const select: SumsSelect = {
      groups: (subject) => [['subject', groupOfSums(name, subject, database.engine)]],
      figures: [['requests', figure]],
    }
    type Row = { readonly subject: string; readonly requests: bigint }
    for await (const rows of readSums<Row>(database, wanted, sums, select)) {
      for (const { subject, requests } of rows) {
        const count = Number(requests)
        // Every request has a cause, which is `ok` for most.
        if (name === 'cause') total += count
        add(name, subject || null, count)
      }
    }
  }
  type Row = { readonly facet: FacetName; readonly value: string | null; readonly requests: bigint }
  for (const period of logged) {
    for await (const rows of readPortions<Row>(database, { ...query, ...period }, facetColumns, [facetCounts])) {
      for (const { facet, value, requests } of rows) {
        const count = Number(requests)
        if (facet === 'cause') total += count
        add(facet, value, count)
      }
    }
  }
  return { total, facets }
}

/** Longer than any window, and whole days: gives one sum per group. */
export const wholeStepMs = 10_000 * grainMs.day
