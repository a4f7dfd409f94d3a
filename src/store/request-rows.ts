// Rows of `requests` and the sums over them. A request is added to its hour (of its key and model) in the transaction that
// writes its row: that of its charge, or of the log for a request that was not charged. So the sums are exact at any
// moment, also after a crash. Hours that are over are moved to the sums that charts read; readers add up both.

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

export interface Figures {
  requests: bigint
  errors: bigint
  /** Cached tokens included. */
  inputTokens: bigint
  cacheReadTokens: bigint
  outputTokens: bigint
  charge: bigint
  /** Counts by time to the first event, in the order of `firstEventColumns`. */
  readonly firstEvents: bigint[]
}

/** Upper bounds in milliseconds. Slower requests are counted in `first_later`. */
export const firstEventBounds = [25, 50, 100, 200, 350, 500, 750, 1000, 1500, 2500, 5000, 10_000, 30_000] as const

const firstEventColumns: readonly string[] = [...firstEventBounds.map((bound) => `first_${bound}`), 'first_later']
export const figureColumns: readonly string[] = [
  ...['requests', 'errors', 'input_tokens', 'cache_read_tokens', 'output_tokens', 'charge'],
  ...firstEventColumns,
]

/** Ends an INSERT: adds the figures to the row that exists. */
const addFiguresTo = (table: string, key: readonly string[]) =>
  ` ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${figureColumns
    .map((name) => `${name} = ${table}.${name} + excluded.${name}`)
    .join(', ')}`

export const hourColumns: readonly string[] = [
  ...['start_at', 'key_id', 'model', 'workspace_id', 'project_id'],
  ...figureColumns,
]
export const addToHour = addFiguresTo('request_hours', ['start_at', 'key_id', 'model'])

const sumKey = ['grain', 'series', 'workspace_id', 'start_at', 'subject']
const sumColumns: readonly string[] = [...sumKey, ...figureColumns]
const addToSum = addFiguresTo('request_sums', sumKey)

export const grainMs = { hour: 3_600_000, day: 86_400_000 } as const
const grains = ['hour', 'day'] as const
export type Series = 'total' | 'model' | 'project' | 'key'

/** In the column of the workspace: the sum over all of them. */
export const allWorkspaces = ''

export function noFigures(): Figures {
  const firstEvents = firstEventColumns.map(() => 0n)
  return { requests: 0n, errors: 0n, inputTokens: 0n, cacheReadTokens: 0n, outputTokens: 0n, charge: 0n, firstEvents }
}

export function addFigures(sum: Figures, more: Figures): void {
  sum.requests += more.requests
  sum.errors += more.errors
  sum.inputTokens += more.inputTokens
  sum.cacheReadTokens += more.cacheReadTokens
  sum.outputTokens += more.outputTokens
  sum.charge += more.charge
  for (const [index, count] of more.firstEvents.entries()) {
    if (count !== 0n) sum.firstEvents[index] = (sum.firstEvents[index] ?? 0n) + count
  }
}

export function figuresFromRow(row: Readonly<Record<string, bigint>>): Figures {
  return {
    requests: row.requests ?? 0n,
    errors: row.errors ?? 0n,
    inputTokens: row.input_tokens ?? 0n,
    cacheReadTokens: row.cache_read_tokens ?? 0n,
    outputTokens: row.output_tokens ?? 0n,
    charge: row.charge ?? 0n,
    firstEvents: firstEventColumns.map((column) => row[column] ?? 0n),
  }
}

/** The index of each value in a row. */
const at = Object.fromEntries(requestColumns.map((name, index) => [name, index])) as Record<keyof RequestRow, number>
const [requestsAt, errorsAt, inputAt, cacheReadAt, outputAt, chargeAt, firstEventsAt] = [5, 6, 7, 8, 9, 10, 11] as const
const noCounts = figureColumns.map(() => 0)

type HourValue = RowValue | bigint

/** Adds up the requests of a batch, so that each row of `request_hours` is written once. */
export class HourSums {
  /** Values in the order of `hourColumns`. */
  readonly #hours = new Map<string, HourValue[]>()

  add(request: RequestValues): void {
    const hour = this.#hourOf(request)
    increase(hour, requestsAt, 1)
    if (request[at.code] !== null) increase(hour, errorsAt, 1)
    increase(hour, inputAt, Number(request[at.input_tokens]))
    increase(hour, cacheReadAt, Number(request[at.cache_read_tokens]))
    increase(hour, outputAt, Number(request[at.output_tokens]))
    // The sum of a batch may be more than 2^53.
    hour[chargeAt] = BigInt(hour[chargeAt] ?? 0) + BigInt(request[at.charge] ?? 0)
    const firstEventMs = request[at.first_event_ms]
    if (typeof firstEventMs !== 'number') return
    const index = firstEventBounds.findIndex((bound) => firstEventMs <= bound)
    increase(hour, firstEventsAt + (index < 0 ? firstEventBounds.length : index), 1)
  }

  /** A request that was added before is an error after all (1), or none (-1). */
  correctErrors(request: RequestValues, by: 1 | -1): void {
    increase(this.#hourOf(request), errorsAt, by)
  }

  /** Sorted, so that replicas which add to the same rows do not deadlock. */
  rows(): readonly (readonly HourValue[])[] {
    return [...this.#hours].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, values]) => values)
  }

  #hourOf(request: RequestValues): HourValue[] {
    const startedAt = Number(request[at.started_at])
    const startAt = startedAt - (startedAt % grainMs.hour)
    const [keyId, model] = [request[at.key_id] ?? '', request[at.model] ?? '']
    const name = `${startAt} ${keyId} ${model}`
    let hour = this.#hours.get(name)
    if (!hour) {
      hour = [startAt, keyId, model, request[at.workspace_id] ?? '', request[at.project_id] ?? '', ...noCounts]
      this.#hours.set(name, hour)
    }
    return hour
  }
}

function increase(hour: HourValue[], index: number, by: number): void {
  hour[index] = Number(hour[index]) + by
}

export async function writeHours(sql: Sql, engine: Engine, sums: HourSums): Promise<void> {
  await addRows(sql, engine, { table: 'request_hours', columns: hourColumns, onConflict: addToHour }, sums.rows())
}

/** Requests of one hour, key and model. A key belongs to one project and one workspace. */
interface HourBucket {
  readonly startAt: number
  readonly keyId: string
  readonly model: string
  readonly workspaceId: string
  readonly projectId: string
  readonly figures: Figures
}

/** Adds hours to the sums that charts read: by hour and day, for each series, of their workspace and of all workspaces. */
async function writeSums(sql: Sql, engine: Engine, hours: Iterable<HourBucket>): Promise<void> {
  const sums = new Map<string, { readonly key: readonly SqlValue[]; readonly figures: Figures }>()
  for (const { startAt, workspaceId, projectId, keyId, model, figures } of hours) {
    const subjects: Readonly<Record<Series, string>> = { total: '', model, project: projectId, key: keyId }
    for (const grain of grains) {
      const start = startAt - (startAt % grainMs[grain])
      for (const [series, subject] of Object.entries(subjects)) {
        for (const workspace of [workspaceId, allWorkspaces]) {
          const name = `${grain} ${series} ${workspace} ${start} ${subject}`
          const sum = sums.get(name) ?? {
            key: [grain, series, workspace, BigInt(start), subject],
            figures: noFigures(),
          }
          addFigures(sum.figures, figures)
          sums.set(name, sum)
        }
      }
    }
  }
  const rows = [...sums].sort(([a], [b]) => (a < b ? -1 : 1))
  const values = rows.map(
    ([
      ,
      {
        key,
        figures: { firstEvents, ...counts },
      },
    ]) => [
      ...key,
      ...[
        counts.requests,
        counts.errors,
        counts.inputTokens,
        counts.cacheReadTokens,
        counts.outputTokens,
        counts.charge,
      ],
      ...firstEvents,
    ],
  )
  await addRows(sql, engine, { table: 'request_sums', columns: sumColumns, onConflict: addToSum }, values)
}

interface AddedTable {
  readonly table: string
  readonly columns: readonly string[]
  readonly onConflict: string
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

/** How many hours are moved in one transaction: a few milliseconds of writing. */
export const foldMax = 100

/**
 * Moves hours that are over from `request_hours` to the sums, and returns how many. A request that ends later starts its
 * hour again and is moved by the next call. Any number of replicas may do this at the same time.
 */
export async function foldHours(sql: Sql, engine: Engine, before: number, max = foldMax): Promise<number> {
  const rows = await sql<Readonly<Record<string, bigint>> & Readonly<Record<'key_id' | 'model', string>>>`
    DELETE FROM request_hours WHERE (start_at, key_id, model) IN (SELECT start_at, key_id, model FROM request_hours
      WHERE start_at < ${BigInt(before)} ORDER BY start_at, key_id, model LIMIT ${BigInt(max)}) RETURNING *`
  const hours = rows.map((row) => ({
    startAt: Number(row.start_at),
    keyId: row.key_id,
    model: row.model,
    workspaceId: String(row.workspace_id),
    projectId: String(row.project_id),
    figures: figuresFromRow(row),
  }))
  await writeSums(sql, engine, hours)
  return rows.length
}

/** Integers cross `Sql` as bigints. */
function toSql(value: SqlValue | number): SqlValue {
  return typeof value === 'number' ? BigInt(value) : value
}

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
    const [before] = await sql<{ code: string | null }>`SELECT code FROM requests WHERE id = ${id}`
    await sql`UPDATE requests SET status = ${BigInt(status)}, code = ${code}, cause = ${cause}, reason = ${reason},
      details = ${details} WHERE id = ${id}`
    const wasError = before?.code != null
    if (wasError !== (code !== null)) sums.correctErrors(requestValues(row), wasError ? -1 : 1)
  }
  await writeHours(sql, engine, sums)
}
