// Where reports get their figures from: whole hours from the sums, if these have the groups and the filter, and the rest from
// the rows of the log. The rows are read in portions, between which other requests are served and a client that has left is
// noticed.

import type { AttributionFilters } from '../kernel/attribution.ts'
import { type BatchId, firstIdAt, type KeyId, type ProjectId, type WorkspaceId } from '../kernel/ids.ts'
import { giveWay } from '../kernel/timers.ts'
import type { Database } from '../store/database.ts'
import { templateOf } from '../store/insert-rows.ts'
import { allWorkspaces, clientSeries, grainMs, type Series } from '../store/request-rows.ts'
import { type Sql, type SqlValue, timeFromSql, timeToSql } from '../store/sql.ts'

export interface RequestFilters extends AttributionFilters {
  readonly workspaceId?: WorkspaceId
  readonly projectId?: ProjectId
  readonly keyId?: KeyId
  /** Only requests with one of these keys. */
  readonly keyIds?: readonly KeyId[]
  readonly model?: string
  readonly provider?: string
  /** Only the lines of this batch. */
  readonly batchId?: BatchId
  /** `failed`: with a code, also of a failure inside a stream. */
  readonly outcome?: 'ok' | 'failed'
  /** A value of `causeColumn`. */
  readonly cause?: string
}

export interface Period {
  /** Epoch milliseconds; `to` is exclusive. */
  readonly from: number
  readonly to: number
}

export type LogDatabase = Pick<Database, 'sql' | 'engine'> & {
  /** Of the client that waits for the report. */
  readonly signal?: { readonly aborted: boolean }
}

/** The client left before the log was read to the end. */
export class ReadCancelled extends Error {}

/** `ok`, or the cause, or else the code in lower case. */
export const causeColumn = "COALESCE(cause, LOWER(code), 'ok')"

export type Span = readonly [from: number, to: number]
const noSpan: Span = [0, 0]

/** A part of a statement, with a `?` for every value. */
export type Piece = readonly [text: string, ...values: readonly SqlValue[]]

export function run<Row>(sql: Sql, pieces: readonly Piece[]): Promise<Row[]> {
  const text = pieces.map(([piece]) => piece).join('')
  return sql<Row>(templateOf(text.split('?')), ...pieces.flatMap(([, ...values]) => values))
}

const and: Piece = [' AND ']

// The sums.

/** The series that has a group. */
const seriesOfGroup: ReadonlyMap<string, Series> = new Map([
  ...(['none', 'day', 'workspace'] as const).map((group) => [group, 'total'] as const),
  ...(['provider', 'route'] as const).map((group) => [group, 'route'] as const),
  ...(['model', 'project', 'key', 'cause', 'agent', 'session'] as const).map((group) => [group, group] as const),
  ...(['person', 'group'] as const).map((group) => [group, 'key'] as const),
])

type FilterName = Exclude<keyof RequestFilters, 'workspaceId'>

/** The series that a filter selects from; undefined = only the rows have the answer. */
const seriesOfFilter: Readonly<Record<FilterName, Series | undefined>> = {
  ...{ model: 'model', projectId: 'project', keyId: 'key', keyIds: 'key', provider: 'route' },
  ...{ cause: 'cause', outcome: 'cause', agent: 'agent', session: 'session', endUser: undefined, tag: undefined },
  batchId: undefined,
}
const filterNames = Object.keys(seriesOfFilter) as readonly FilterName[]

/** The column of `request_hours` that becomes the subject. */
const hourColumnOf: Readonly<Record<Exclude<Series, 'session'>, string>> = {
  ...{ total: "''", model: 'model', project: 'project_id', key: 'key_id', route: 'route', cause: 'cause' },
  agent: 'agent',
}

export interface SourceQuery extends RequestFilters, Period {
  readonly groups: readonly string[]
  /** What the figures are needed by; undefined = by less than an hour, which only the rows have. */
  readonly grain: keyof typeof grainMs | undefined
  /** Intervals that begin inside an hour, as days do in India: the hours that they cut are read from the rows. */
  readonly cut?: Cut | undefined
  /** Only the sums of these subjects, and the sum of everything, whose subject is NULL; null = requests without one. */
  readonly onlySubjects?: readonly (string | null)[] | undefined
}

/** Intervals of several hours, and how far their starts are ahead of UTC, which is not by whole hours. */
interface Cut {
  readonly stepMs: number
  readonly offsetMs: number
}

export interface SumsPart {
  readonly series: Series
  /** Whole hours. */
  readonly span: Span
}

export interface Source {
  /** undefined = the sums have nothing of it. */
  readonly sums: SumsPart | undefined
  /** What has to be read from the rows of the log. */
  readonly logged: readonly Period[]
}

export function sourceOf(query: SourceQuery): Source {
  const { grain, cut, from, to } = query
  const series = grain && seriesOf(query)
  const first = Math.ceil(from / grainMs.hour) * grainMs.hour
  const last = Math.floor(to / grainMs.hour) * grainMs.hour
  if (series === undefined || first >= last) return { sums: undefined, logged: [{ from, to }] }
  const edges = [{ from, to: first }, ...(cut ? cutHours(cut, first, last) : []), { from: last, to }]
  return { sums: { series, span: [first, last] }, logged: edges.filter((edge) => edge.from < edge.to) }
}

function cutHours({ stepMs, offsetMs }: Cut, first: number, last: number): readonly Period[] {
  const hours: Period[] = []
  for (let start = Math.ceil((first + offsetMs) / stepMs) * stepMs - offsetMs; start < last; start += stepMs) {
    const from = start - (start % grainMs.hour)
    hours.push({ from, to: from + grainMs.hour })
  }
  return hours
}

/** More values than a statement should have; the rows are then read key by key. */
const keysMax = 500

function seriesOf({ groups, ...filters }: SourceQuery): Series | undefined {
  const given = filterNames.filter((name) => filters[name] !== undefined)
  const needed = [...groups.map((group) => seriesOfGroup.get(group)), ...given.map((name) => seriesOfFilter[name])]
  const [series = 'total', more] = new Set(needed.filter((name) => name !== 'total'))
  return needed.includes(undefined) || more !== undefined || (filters.keyIds?.length ?? 0) > keysMax
    ? undefined
    : series
}

function subjectConditions(subject: string, query: RequestFilters): readonly Piece[] {
  const { projectId, keyId, keyIds, model, provider, cause, outcome, agent, session } = query
  const wanted = keyId ?? projectId ?? model ?? agent ?? session
  const pieces: (Piece | false)[] = [
    wanted !== undefined && [`${subject} = ?`, wanted],
    cause !== undefined && [`${subject} = ?`, cause],
    outcome !== undefined && [`${subject} ${outcome === 'ok' ? '=' : '<>'} 'ok'`],
    keyIds !== undefined && isOneOf(subject, keyIds),
    provider !== undefined && [`SUBSTR(${subject}, 1, ${[...provider].length + 1}) = ?`, `${provider} `],
  ]
  return pieces.filter((piece) => piece !== false)
}

/** Whether retention removes the sums of a series when it removes the requests. */
export function isRemovedWithLog(series: Series): boolean {
  return clientSeries.some((name) => name === series)
}

export interface SumsSelect {
  /** The expressions to group by, each with its name, over `start_at`, `workspace_id` and the given subject. */
  groups(subject: string): readonly (readonly [name: string, expression: string])[]
  /** Names and expressions over the columns of the sums, each of which is added up. */
  readonly figures: readonly (readonly [name: string, expression: string])[]
}

/**
 * Reads the sums of whole hours. Both tables in one statement, because hours move from one to the other. Sessions are read a
 * day at a time: there may be as many as a tenth of the requests.
 */
export async function* readSums<Row>(
  { sql, signal }: LogDatabase,
  query: SourceQuery,
  { series, span: [from, to] }: SumsPart,
  select: SumsSelect,
): AsyncGenerator<readonly Row[]> {
  const step = series === 'session' ? grainMs.day : to - from
  for (let start = from; start < to; start += step) {
    if (signal?.aborted) throw new ReadCancelled()
    const parts = partsOf(query, series, [start, Math.min(start + step, to)], select)
    yield await run<Row>(
      sql,
      parts.flatMap((part, at): Piece[] => (at === 0 ? [...part] : [[' UNION ALL '], ...part])),
    )
    if (start + step < to) await giveWay()
  }
}

function partsOf(query: SourceQuery, series: Series, span: Span, select: SumsSelect): readonly (readonly Piece[])[] {
  const { session, onlySubjects } = query
  const everything: SumsSelect = { ...select, groups: () => select.groups('CAST(NULL AS TEXT)') }
  if (series !== 'session') {
    if (onlySubjects === undefined) return partsOfSeries(query, series, span, select, subjectConditions)
    const named = onlySubjects.map((subject) => subject ?? '')
    const wanted: Where = (subject, filters) => [...subjectConditions(subject, filters), isOneOf(subject, named)]
    // Without a filter the totals have it.
    const all = seriesOf({ ...query, groups: [] }) === 'total' ? 'total' : series
    return [
      ...partsOfSeries(query, series, span, select, wanted),
      ...partsOfSeries(query, all, span, everything, subjectConditions),
    ]
  }
  const sessions = (shown: string, sign: '' | '-', where: Where) =>
    part({ query, series, select, table: 'request_sums', span, grain: 'hour', shown, sign, where })
  if (session !== undefined) return [sessions('subject', '', subjectConditions)]
  const hourly: SourceQuery = { ...query, grain: 'hour' }
  // Requests without a session: all of them, less those that have one.
  if (onlySubjects === undefined) {
    const all = partsOfSeries(hourly, 'total', span, select, unconditional)
    return [sessions('subject', '', unconditional), sessions("''", '-', unconditional), ...all]
  }
  const named = onlySubjects.filter((name) => name !== null)
  return [
    ...(named.length === 0 ? [] : [sessions('subject', '', () => [isOneOf('subject', named)])]),
    ...(onlySubjects.includes(null) ? [sessions("''", '-', unconditional)] : []),
    ...partsOfSeries(hourly, 'total', span, everything, unconditional),
  ]
}

export function isOneOf(expression: string, values: readonly string[]): Piece {
  return values.length === 0 ? ['1 = 0'] : [`${expression} IN (${values.map(() => '?').join(', ')})`, ...values]
}

const unconditional = (): readonly Piece[] => []
type Where = (subject: string, query: RequestFilters) => readonly Piece[]

function partsOfSeries(
  query: SourceQuery,
  series: Exclude<Series, 'session'>,
  span: Span,
  select: SumsSelect,
  where: Where,
): readonly (readonly Piece[])[] {
  const [days, before, after] = query.grain === 'day' ? daysAndHours(...span) : [noSpan, span, noSpan]
  const shared = { query, series, select, sign: '', where } as const
  const ofSums = (grain: keyof typeof grainMs, within: Span) =>
    part({ ...shared, table: 'request_sums', grain, span: within, shown: 'subject' })
  return [
    ...(days[0] < days[1] ? [ofSums('day', days)] : []),
    ...[before, after].filter(([start, end]) => start < end).map((hours) => ofSums('hour', hours)),
    part({ ...shared, table: 'request_hours', grain: undefined, span, shown: hourColumnOf[series] }),
  ]
}

interface Part {
  readonly query: SourceQuery
  readonly series: Series
  readonly select: SumsSelect
  readonly table: 'request_sums' | 'request_hours'
  /** undefined = of `request_hours`. */
  readonly grain: keyof typeof grainMs | undefined
  readonly span: Span
  /** The expression of the subject. */
  readonly shown: string
  readonly sign: '' | '-'
  readonly where: Where
}

function part({ query, series, select, table, grain, span, shown, sign, where }: Part): readonly Piece[] {
  const groups = select.groups(shown)
  const figures = select.figures.map(([name, expression]) => `CAST(${sign}SUM(${expression}) AS BIGINT) AS ${name}`)
  const texts = [...groups.map(([name, expression]) => `${expression} AS ${name}`), ...figures]
  const place: readonly Piece[] = grain === undefined ? [] : placeOfSums(query, series, grain)
  const workspace: Piece[] =
    grain === undefined && query.workspaceId !== undefined ? [['workspace_id = ?', query.workspaceId], and] : []
  const subject = table === 'request_sums' ? 'subject' : shown
  const { cut } = query
  const uncut: readonly Piece[] = cut
    ? [and, [`(start_at + ${cut.offsetMs}) % ${cut.stepMs} <= ${cut.stepMs - grainMs.hour}`]]
    : []
  return [
    [`SELECT ${texts.join(', ')} FROM ${table} WHERE `],
    ...place,
    ...workspace,
    ['start_at >= ? AND start_at < ?', timeToSql(span[0]), timeToSql(span[1])],
    ...uncut,
    ...where(subject, query).flatMap((piece) => [and, piece]),
    [groups.length === 0 ? ' HAVING COUNT(*) > 0' : ` GROUP BY ${groups.map((_, at) => at + 1).join(', ')}`],
  ]
}

/** All workspaces have sums of their own, except those by what clients name. */
function placeOfSums(
  { workspaceId, groups }: SourceQuery,
  series: Series,
  grain: keyof typeof grainMs,
): readonly Piece[] {
  // The index of sessions, which are only summed by the hour, has no grain: with it SQLite takes the primary key.
  if (series === 'session' && workspaceId === undefined) return [["series = 'session'"], and]
  const place: Piece = [`grain = '${grain}' AND series = '${series}'`]
  if (workspaceId !== undefined) return [place, and, ['workspace_id = ?', workspaceId], and]
  const isByWorkspace = groups.includes('workspace') || isRemovedWithLog(series)
  const all: Piece = isByWorkspace
    ? ['workspace_id IN (SELECT id FROM workspaces)']
    : ['workspace_id = ?', allWorkspaces]
  return [place, and, all, and]
}

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

// The rows.

/**
 * SQLite is read on the thread that serves requests, so a portion takes only a few milliseconds. It also fits into the
 * page cache of 2 MB: the pages that were read to find its end are not read again.
 */
const portions = { sqlite: 2_000n, postgres: 25_000n } as const
/** An id is created a moment before the start time of its request is taken. */
export const marginMs = 60_000

/** `isSearched`: the rows are found by something else, so no index of these columns may be used. */
export function conditionsOf(query: RequestFilters, isSearched = false): readonly Piece[] {
  const { workspaceId, projectId, keyId, model, provider, session, agent, batchId, endUser, tag, outcome, cause } =
    query
  const equal = Object.entries({
    workspace_id: workspaceId,
    key_id: keyId,
    project_id: projectId,
    model,
    provider,
    session,
    agent,
    batch_id: batchId,
    [causeColumn]: cause,
  }).flatMap(([column, value]): Piece[] =>
    value === undefined ? [] : [[`${column}${isSearched ? " || ''" : ''} = ?`, value]],
  )
  const others: (Piece | false)[] = [
    endUser !== undefined && ['? IN (end_user, SUBSTR(end_user, 1, 23), SUBSTR(end_user, 25))', endUser],
    // Not LIKE, which ignores case on one of the engines.
    tag !== undefined && [`REPLACE(',' || tags || ',', ?, '') <> ',' || tags || ','`, `,${tag},`],
    isFailedOnly(query) ? ['code IS NOT NULL'] : outcome === 'ok' && ['code IS NULL'],
  ]
  return [...equal, ...others.filter((piece) => piece !== false)]
}

/** Only failed requests have a cause. */
export function isFailedOnly({ outcome, cause }: RequestFilters): boolean {
  return outcome === 'failed' || (cause !== undefined && cause !== 'ok')
}

/** The part of a filter that an index with the id has. */
function indexedPart(filters: Omit<RequestFilters, 'keyIds'>): RequestFilters {
  const indexed = (['batchId', 'keyId', 'workspaceId', 'model'] as const).find((name) => filters[name] !== undefined)
  return { ...(indexed && { [indexed]: filters[indexed] }), ...(isFailedOnly(filters) && { outcome: 'failed' }) }
}

/** Yields the rows of each portion of the log, key by key if several are given. `select` ends before FROM; `end` follows the conditions. */
export async function* readPortions<Row>(
  database: LogDatabase,
  { keyIds, ...query }: RequestFilters & Period,
  select: string,
  end: Piece,
): AsyncGenerator<readonly Row[]> {
  if (keyIds) {
    const wanted = query.keyId === undefined ? keyIds : keyIds.filter((id) => id === query.keyId)
    for (const keyId of wanted) yield* readPortions<Row>(database, { ...query, keyId }, select, end)
    return
  }
  const { sql, engine, signal } = database
  const { from, to, ...filters } = query
  const conditions = conditionsOf(filters).flatMap((piece) => [piece, and])
  const along = conditionsOf(indexedPart(filters)).flatMap((piece) => [piece, and])
  const last = firstIdAt(to + marginMs)
  let after: string = firstIdAt(Math.max(0, Math.floor(from) - marginMs))
  for (;;) {
    if (signal?.aborted) throw new ReadCancelled()
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
      end,
    ])
    if (!upper) return
    after = upper.id
    await giveWay()
  }
}

/** When the oldest request in the log started; undefined = the log is empty. */
export async function oldestRequest(
  { sql }: Pick<Database, 'sql'>,
  workspaceId?: WorkspaceId,
): Promise<number | undefined> {
  const [row] = await (workspaceId === undefined
    ? sql<{ started_at: bigint }>`SELECT started_at FROM requests ORDER BY id LIMIT 1`
    : sql<{
        started_at: bigint
      }>`SELECT started_at FROM requests WHERE workspace_id = ${workspaceId} ORDER BY id LIMIT 1`)
  return row && timeFromSql(row.started_at)
}

/**
 * How many rows of the log are read for these periods, counted by the sums: those that the filter's index has, in whole hours
 * and as far back as the log reaches.
 */
export async function countRowsToRead(
  database: LogDatabase,
  filters: RequestFilters,
  periods: readonly Period[],
): Promise<number> {
  const oldest = await oldestRequest(database)
  if (oldest === undefined) return 0
  const { keyIds, workspaceId } = filters
  const { outcome, ...indexed } = indexedPart(filters)
  // No series has the failures of a key or a model: all of its requests are counted.
  const byKey = keyIds ? { keyIds: keyIds.slice(0, keysMax) } : (indexed.keyId ?? indexed.model) ? indexed : undefined
  const along = { ...(byKey ?? (outcome && { outcome })), ...(workspaceId !== undefined && { workspaceId }) }
  const select = { groups: () => [], figures: [['requests', 'requests']] } as const
  let rows = 0
  for (const period of periods) {
    const from = Math.floor(Math.max(period.from, oldest) / grainMs.hour) * grainMs.hour
    const to = Math.ceil(period.to / grainMs.hour) * grainMs.hour
    const counted: SourceQuery = { ...along, from, to, groups: [], grain: 'day' }
    const { sums } = sourceOf(counted)
    if (!sums) continue
    for await (const found of readSums<{ readonly requests: bigint }>(database, counted, sums, select)) {
      for (const { requests } of found) rows += Number(requests)
    }
  }
  return rows
}
