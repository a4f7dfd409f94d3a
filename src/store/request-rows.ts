// Rows of `requests` and the sums over them. A request is added to its hour (of its key, model, route, cause and agent) and to
// its session in the transaction that writes its row: that of its charge, or of the log for a request that was not charged.
// So the sums are exact at any moment, also after a crash. Hours that are over are moved to the sums that reports read;
// readers add up both.

import { insertList, portionsOf, templateOf } from './insert-rows.ts'
import type { Engine, Sql, SqlValue } from './sql.ts'

/** A request and its charge, as in the schema; `?` = it may be NULL. The values of a row are written in this order. */
const columns = {
  id: 'text',
  started_at: 'integer',
  workspace_id: 'text',
  project_id: 'text',
  key_id: 'text',
  path: 'text',
  stream: 'integer',
  model: 'text?',
  status: 'integer',
  code: 'text?',
  cause: 'text?',
  reason: 'text?',
  provider: 'text?',
  upstream_model: 'text?',
  lane: 'text?',
  attempt_start_ms: 'integer?',
  attempt_ms: 'integer?',
  first_event_ms: 'integer?',
  total_ms: 'integer',
  client: 'text?',
  session: 'text?',
  agent: 'text?',
  end_user: 'text?',
  tags: 'text?',
  details: 'text?',
  held: 'integer?',
  charge: 'integer?',
  written_off: 'integer?',
  upstream_cost: 'integer?',
  price_version: 'text?',
  input_tokens: 'integer?',
  cache_read_tokens: 'integer?',
  cache_write_tokens: 'integer?',
  cache_write_1h_tokens: 'integer?',
  output_tokens: 'integer?',
  cache_saved: 'integer?',
  usage: 'text?',
  estimated: 'integer',
  budgets: 'text?',
  cost_version: 'text?',
  failed_cost: 'integer?',
  batch_id: 'text?',
} as const

interface ColumnValues {
  readonly text: string
  readonly 'text?': string | null
  /** Below 2^53: an amount is at most 10^15 nano-dollars. */
  readonly integer: number
  readonly 'integer?': number | null
}

export type RequestRow = {
  readonly [Name in keyof typeof columns]: ColumnValues[(typeof columns)[Name]]
}

export const requestColumns = Object.keys(columns) as readonly (keyof RequestRow)[]

export type RowValue = string | number | null
export type RequestValues = readonly RowValue[]

export function requestValues(row: RequestRow): RequestValues {
  const values: RowValue[] = []
  for (const name of requestColumns) values.push(row[name])
  return values
}

/** What charts show. */
export interface Figures {
  requests: bigint
  errors: bigint
  /** Cached tokens included. */
  inputTokens: bigint
  cacheReadTokens: bigint
  outputTokens: bigint
  charge: bigint
  /** By prompt caches; negative if writing to them cost more. */
  cacheSaved: bigint
  /** Counts by time to the first event, in the order of `firstEventColumns`. */
  readonly firstEvents: bigint[]
}

/** Upper bounds in milliseconds. Slower requests are counted in `first_later`. */
export const firstEventBounds = [25, 50, 100, 200, 350, 500, 750, 1000, 1500, 2500, 5000, 10_000, 30_000] as const

const firstEventColumns: readonly string[] = [...firstEventBounds.map((bound) => `first_${bound}`), 'first_later']
export const chartColumns: readonly string[] = [
  ...['requests', 'errors', 'input_tokens', 'cache_read_tokens', 'output_tokens', 'charge', 'cache_saved'],
  ...firstEventColumns,
]
/** In the order of `figuresOf`. */
const figureColumns: readonly string[] = [
  ...['requests', 'errors', 'estimated'],
  ...['input_tokens', 'cache_read_tokens', 'cache_write_tokens', 'cache_write_1h_tokens', 'output_tokens'],
  ...['charge', 'cache_saved', 'upstream_cost', 'uncosted', 'uncosted_charges', 'failed_cost'],
  ...firstEventColumns,
]

/** Ends an INSERT: adds the figures to the row that exists. */
const addFiguresTo = (table: string, key: readonly string[]) =>
  ` ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${figureColumns
    .map((name) => `${name} = ${table}.${name} + excluded.${name}`)
    .join(', ')}`

const hourKey = ['start_at', 'key_id', 'model', 'route', 'cause', 'agent']
const sumKey = ['grain', 'series', 'workspace_id', 'start_at', 'subject']

export interface AddedTable {
  readonly table: string
  readonly columns: readonly string[]
  readonly onConflict: string
}

/** The tables that requests are added to. */
export const hourTable: AddedTable = {
  table: 'request_hours',
  columns: [...hourKey, 'workspace_id', 'project_id', ...figureColumns],
  onConflict: addFiguresTo('request_hours', hourKey),
}
export const sumTable: AddedTable = {
  table: 'request_sums',
  columns: [...sumKey, ...figureColumns],
  onConflict: addFiguresTo('request_sums', sumKey),
}

export const grainMs = { hour: 3_600_000, day: 86_400_000 } as const
const grains = ['hour', 'day'] as const
export type Series = 'total' | 'model' | 'project' | 'key' | 'route' | 'cause' | ClientSeries

/**
 * Series by a name that the client chose. They have no sums over all workspaces, so that those of an erased workspace can be
 * deleted. A session is over after some hours, so a sum by day would save nothing, and each request is added to its session directly.
 */
export const clientSeries = ['agent', 'session'] as const
type ClientSeries = (typeof clientSeries)[number]

/** In the column of the workspace: the sum over all of them. */
export const allWorkspaces = ''

export function noFigures(): Figures {
  const firstEvents = firstEventColumns.map(() => 0n)
  return {
    ...{ requests: 0n, errors: 0n, inputTokens: 0n, cacheReadTokens: 0n, outputTokens: 0n },
    ...{ charge: 0n, cacheSaved: 0n, firstEvents },
  }
}

export function addFigures(sum: Figures, more: Figures, sign: 1n | -1n = 1n): void {
  sum.requests += sign * more.requests
  sum.errors += sign * more.errors
  sum.inputTokens += sign * more.inputTokens
  sum.cacheReadTokens += sign * more.cacheReadTokens
  sum.outputTokens += sign * more.outputTokens
  sum.charge += sign * more.charge
  sum.cacheSaved += sign * more.cacheSaved
  for (let index = 0; index < more.firstEvents.length; index++) {
    const count = more.firstEvents[index] ?? 0n
    if (count !== 0n) sum.firstEvents[index] = (sum.firstEvents[index] ?? 0n) + sign * count
  }
}

export function figuresFromRow(
  row: Readonly<Record<string, bigint>>,
  firstEvents = firstEventColumns.map((column) => row[column] ?? 0n),
): Figures {
  return {
    requests: row.requests ?? 0n,
    errors: row.errors ?? 0n,
    inputTokens: row.input_tokens ?? 0n,
    cacheReadTokens: row.cache_read_tokens ?? 0n,
    outputTokens: row.output_tokens ?? 0n,
    charge: row.charge ?? 0n,
    cacheSaved: row.cache_saved ?? 0n,
    firstEvents,
  }
}

/** The index of each value in a row. */
const at = Object.fromEntries(requestColumns.map((name, index) => [name, index])) as Record<keyof RequestRow, number>
type SummedValue = RowValue | bigint

/** A row of a table of sums. */
interface SumRow {
  readonly key: readonly RowValue[]
  /** Columns that follow from the key. */
  readonly more: readonly RowValue[]
  /** In the order of `figureColumns`. */
  readonly figures: (number | bigint)[]
}

/** `ok`, or the cause, or else the code in lower case. */
function causeOf(request: RequestValues): string {
  return String(request[at.cause] ?? request[at.code] ?? 'ok').toLowerCase()
}

/** What one request adds, in the order of `figureColumns`. */
function figuresOf(request: RequestValues): readonly number[] {
  const charge = request[at.charge] ?? null
  const isUncosted = charge !== null && request[at.upstream_cost] === null
  const firstEventMs = request[at.first_event_ms] ?? null
  const place = firstEventBounds.findIndex((bound) => Number(firstEventMs) <= bound)
  return [
    1,
    request[at.code] === null ? 0 : 1,
    Number(request[at.estimated]),
    Number(request[at.input_tokens]),
    Number(request[at.cache_read_tokens]),
    Number(request[at.cache_write_tokens]),
    Number(request[at.cache_write_1h_tokens]),
    Number(request[at.output_tokens]),
    Number(charge),
    Number(request[at.cache_saved]),
    Number(request[at.upstream_cost]),
    isUncosted ? 1 : 0,
    isUncosted ? Number(charge) : 0,
    Number(request[at.failed_cost]),
    ...firstEventColumns.map((_, index) =>
      firstEventMs !== null && index === (place < 0 ? firstEventBounds.length : place) ? 1 : 0,
    ),
  ]
}

/** The sum of a batch may be more than 2^53. */
function exactSum(sum: number | bigint, more: number): number | bigint {
  if (typeof sum === 'bigint') return sum + BigInt(more)
  return Number.isSafeInteger(sum + more) ? sum + more : BigInt(sum) + BigInt(more)
}

/** Adds up the requests of a batch, so that each row of `request_hours`, and each session's sum, is written once. */
export class HourSums {
  readonly #hours = new Map<string, SumRow>()
  readonly #sessions = new Map<string, SumRow>()

  /** `sign`: -1 takes a request away that was added before. */
  add(request: RequestValues, sign: 1 | -1 = 1): void {
    const figures = figuresOf(request)
    const startedAt = Number(request[at.started_at])
    const startAt = startedAt - (startedAt % grainMs.hour)
    const workspaceId = request[at.workspace_id] ?? ''
    const [keyId, model, agent] = [request[at.key_id] ?? '', request[at.model] ?? '', request[at.agent] ?? '']
    const hour = [startAt, keyId, model, routeOf(request), causeOf(request), agent]
    addTo(this.#hours, { key: hour, more: [workspaceId, request[at.project_id] ?? ''] }, figures, sign)
    const session = request[at.session] ?? null
    if (session === null) return
    addTo(this.#sessions, { key: ['hour', 'session', workspaceId, startAt, session], more: [] }, figures, sign)
  }

  /** Moves a request that was added before to the code and cause that it is corrected to. */
  correct(before: RequestValues, correction: RequestValues): void {
    if (before[at.code] === correction[at.code] && before[at.cause] === correction[at.cause]) return
    this.add(before, -1)
    this.add(
      before.map((value, index) => (index === at.code || index === at.cause ? (correction[index] ?? null) : value)),
    )
  }

  /** In the order of the columns of `hourTable`, sorted, so that replicas which add to the same rows do not deadlock. */
  hours(): readonly (readonly SummedValue[])[] {
    return sortedRows(this.#hours)
  }

  /** In the order of the columns of `sumTable`, sorted. */
  sessions(): readonly (readonly SummedValue[])[] {
    return sortedRows(this.#sessions)
  }
}

/** As reports show it; empty = no route was tried. */
function routeOf(request: RequestValues): string {
  const provider = request[at.provider] ?? null
  return provider === null ? '' : `${provider} ${request[at.upstream_model] ?? ''}`
}

function addTo(
  rows: Map<string, SumRow>,
  { key, more }: Pick<SumRow, 'key' | 'more'>,
  figures: readonly number[],
  sign: 1 | -1,
): void {
  // No text of a row contains NUL.
  const name = key.join('\0')
  let row = rows.get(name)
  if (!row) {
    row = { key, more, figures: figures.map(() => 0) }
    rows.set(name, row)
  }
  for (const [index, figure] of figures.entries()) {
    if (figure !== 0) row.figures[index] = exactSum(row.figures[index] ?? 0, sign * figure)
  }
}

function sortedRows(rows: ReadonlyMap<string, SumRow>): readonly (readonly SummedValue[])[] {
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1))
  return sorted.map(([, { key, more, figures }]) => [...key, ...more, ...figures])
}

/** Hours before sessions in every transaction, so that replicas do not deadlock. */
export async function writeHours(sql: Sql, engine: Engine, sums: HourSums): Promise<void> {
  await addRows(sql, engine, hourTable, sums.hours())
  await addRows(sql, engine, sumTable, sums.sessions())
}

/** Requests of one hour with the same key, model, route, cause and agent. A key belongs to one project and one workspace. */
interface HourBucket {
  readonly startAt: number
  readonly workspaceId: string
  readonly subjects: Readonly<Record<Exclude<Series, 'session'>, string>>
  /** In the order of `figureColumns`. */
  readonly figures: readonly bigint[]
}

/** Adds hours to the sums that charts read: by hour and day, for each series, of their workspace and of all workspaces. */
async function writeSums(sql: Sql, engine: Engine, hours: Iterable<HourBucket>): Promise<void> {
  const sums = new Map<string, { readonly key: readonly SqlValue[]; readonly figures: bigint[] }>()
  for (const { startAt, workspaceId, subjects, figures } of hours) {
    for (const grain of grains) {
      const start = startAt - (startAt % grainMs[grain])
      for (const [series, subject] of Object.entries(subjects)) {
        for (const workspace of series === 'agent' ? [workspaceId] : [workspaceId, allWorkspaces]) {
          const name = `${grain} ${series} ${workspace} ${start} ${subject}`
          const sum = sums.get(name) ?? {
            key: [grain, series, workspace, BigInt(start), subject],
            figures: figures.map(() => 0n),
          }
          for (const [index, figure] of figures.entries()) sum.figures[index] = (sum.figures[index] ?? 0n) + figure
          sums.set(name, sum)
        }
      }
    }
  }
  const rows = [...sums].sort(([a], [b]) => (a < b ? -1 : 1))
  const values = rows.map(([, { key, figures }]) => [...key, ...figures])
  await addRows(sql, engine, sumTable, values)
}

async function addRows(
  sql: Sql,
  engine: Engine,
  { table, columns, onConflict }: AddedTable,
  values: readonly (readonly (SqlValue | number)[])[],
): Promise<void> {
  const rows = values.map((row) =>
    Object.fromEntries(columns.map((name, at) => [name, toSql(row[at] ?? null)] as const)),
  )
  if (engine === 'postgres') return await insertList(sql, table, rows, onConflict)
  for (const portion of portionsOf(rows)) {
    await sql(templateOf([`INSERT INTO ${table} `, onConflict]), sql(portion))
  }
}

type HourRow = Readonly<Record<string, bigint>> &
  Readonly<Record<'key_id' | 'model' | 'route' | 'cause' | 'agent' | 'workspace_id' | 'project_id', string>>

/** How many hours are moved in one transaction: a few milliseconds of writing. */
export const foldMax = 100

/**
 * Moves hours that are over from `request_hours` to the sums, and returns how many. A request that ends later starts its
 * hour again and is moved by the next call. Any number of replicas may do this at the same time.
 */
export async function foldHours(sql: Sql, engine: Engine, before: number, max = foldMax): Promise<number> {
  const rows = await sql<HourRow>`
    DELETE FROM request_hours WHERE (start_at, key_id, model, route, cause, agent) IN
      (SELECT start_at, key_id, model, route, cause, agent FROM request_hours
        WHERE start_at < ${BigInt(before)} ORDER BY start_at, key_id, model, route, cause, agent LIMIT ${BigInt(max)})
      RETURNING *`
  const hours = rows.map((row) => ({
    startAt: Number(row.start_at),
    workspaceId: row.workspace_id,
    subjects: {
      ...{ total: '', model: row.model, project: row.project_id, key: row.key_id },
      ...{ route: row.route, cause: row.cause, agent: row.agent },
    },
    figures: figureColumns.map((name) => row[name] ?? 0n),
  }))
  await writeSums(sql, engine, hours)
  return rows.length
}

/** Integers cross `Sql` as bigints. */
function toSql(value: SqlValue | number): SqlValue {
  return typeof value === 'number' ? BigInt(value) : value
}

/** What a request without a charge changes in the row that its charge has written. */
export const correctedColumns = ['status', 'code', 'cause', 'reason', 'details'] as const

/**
 * Writes requests that have no charge. A row that its charge has written already keeps its amounts and its duration, and
 * takes the status, code, cause, reason and details.
 */
export async function writeRequests(sql: Sql, engine: Engine, rows: readonly RequestRow[]): Promise<void> {
  const inserted = new Set<SqlValue>()
  for (const portion of portionsOf(rows)) {
    const columns = portion.map((row) => Object.fromEntries(requestColumns.map((name) => [name, toSql(row[name])])))
    const ids = await sql<{ id: string }>`INSERT INTO requests ${sql(columns)} ON CONFLICT (id) DO NOTHING RETURNING id`
    for (const { id } of ids) inserted.add(id)
  }
  const sums = new HourSums()
  for (const row of rows) {
    if (inserted.delete(row.id)) {
      sums.add(requestValues(row))
      continue
    }
    const { id, status, code, cause, reason, details } = row
    const [before] = await sql<RequestRow>`SELECT * FROM requests WHERE id = ${id}`
    await sql`UPDATE requests SET status = ${BigInt(status)}, code = ${code}, cause = ${cause}, reason = ${reason},
      details = ${details} WHERE id = ${id}`
    if (before) sums.correct(requestValues(before), requestValues(row))
  }
  await writeHours(sql, engine, sums)
}
