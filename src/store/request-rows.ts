// Rows of the request log and the sums over them. A request is added to its hour (of its key and model) in the transaction
// that writes its row: that of its charge, or of the log for a request that was not charged. So the sums are exact at any
// moment, also after a crash. Hours that are over are moved to the sums that charts read; readers add up both.

import { insertList, portionsOf, templateOf } from './insert-rows.ts'
import type { Engine, Sql, SqlValue } from './sql.ts'

/** What a request adds to the sums. */
export interface CountedRequest {
  readonly startedAt: number
  readonly workspaceId: string
  readonly projectId: string
  readonly keyId: string
  /** Empty = none was named. */
  readonly model: string
  readonly isError: boolean
  readonly inputTokens: number
  readonly outputTokens: number
  /** Nano-dollars. One transfer moves at most 10^15, which a number holds exactly. */
  readonly charge: number
  readonly firstEventMs: number | undefined
}

export interface RequestRow {
  readonly columns: Readonly<Record<RequestColumn, SqlValue>>
  readonly counted: CountedRequest
}

export const requestColumnNames = [
  ...[
    'id',
    'started_at',
    'workspace_id',
    'project_id',
    'key_id',
    'path',
    'stream',
    'model',
    'status',
    'code',
    'reason',
  ],
  ...['provider', 'upstream_model', 'lane', 'candidates', 'attempts', 'warnings', 'notes', 'usage', 'price_version'],
  ...['held', 'charge', 'first_event_ms', 'total_ms', 'client'],
] as const satisfies readonly string[]
export type RequestColumn = (typeof requestColumnNames)[number]

export interface Figures {
  requests: bigint
  errors: bigint
  /** Cached tokens included. */
  inputTokens: bigint
  outputTokens: bigint
  charge: bigint
  /** Counts by time to the first event, in the order of `firstEventColumns`. */
  readonly firstEvents: bigint[]
}

/** Upper bounds in milliseconds. Slower requests are counted in `first_later`. */
export const firstEventBounds = [25, 50, 100, 200, 350, 500, 750, 1000, 1500, 2500, 5000, 10_000, 30_000] as const

const firstEventColumns: readonly string[] = [...firstEventBounds.map((bound) => `first_${bound}`), 'first_later']
export const figureColumns: readonly string[] = [
  ...['requests', 'errors', 'input_tokens', 'output_tokens', 'charge'],
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
  return { requests: 0n, errors: 0n, inputTokens: 0n, outputTokens: 0n, charge: 0n, firstEvents }
}

export function addFigures(sum: Figures, more: Figures): void {
  sum.requests += more.requests
  sum.errors += more.errors
  sum.inputTokens += more.inputTokens
  sum.outputTokens += more.outputTokens
  sum.charge += more.charge
  for (const [place, count] of more.firstEvents.entries()) {
    if (count !== 0n) sum.firstEvents[place] = (sum.firstEvents[place] ?? 0n) + count
  }
}

export function figuresFromRow(row: Readonly<Record<string, bigint>>): Figures {
  return {
    requests: row.requests ?? 0n,
    errors: row.errors ?? 0n,
    inputTokens: row.input_tokens ?? 0n,
    outputTokens: row.output_tokens ?? 0n,
    charge: row.charge ?? 0n,
    firstEvents: firstEventColumns.map((column) => row[column] ?? 0n),
  }
}

/** Requests of one hour, key and model. A key belongs to one project and one workspace. */
export interface HourBucket {
  readonly startAt: number
  readonly keyId: string
  readonly model: string
  readonly workspaceId: string
  readonly projectId: string
  readonly figures: Figures
}

/** Adds up the requests of a batch, so that each row of `request_hours` is written once. */
export class HourBuckets {
  readonly #buckets = new Map<string, HourBucket>()

  add(request: CountedRequest): void {
    const { figures } = this.#bucketOf(request)
    figures.requests++
    if (request.isError) figures.errors++
    figures.inputTokens += BigInt(request.inputTokens)
    figures.outputTokens += BigInt(request.outputTokens)
    figures.charge += BigInt(request.charge)
    const { firstEventMs } = request
    if (firstEventMs === undefined) return
    const bound = firstEventBounds.findIndex((most) => firstEventMs <= most)
    const place = bound < 0 ? firstEventBounds.length : bound
    figures.firstEvents[place] = (figures.firstEvents[place] ?? 0n) + 1n
  }

  /** A request that was added before is an error after all (1), or none (-1). */
  correctErrors(request: CountedRequest, by: bigint): void {
    this.#bucketOf(request).figures.errors += by
  }

  all(): Iterable<HourBucket> {
    return this.#buckets.values()
  }

  /** Values in the order of `hourColumns`. The rows are sorted, so that replicas which add to the same ones do not deadlock. */
  rows(): readonly (readonly SqlValue[])[] {
    return [...this.#buckets]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { startAt, keyId, model, workspaceId, projectId, figures }]) => [
        ...[BigInt(startAt), keyId, model, workspaceId, projectId],
        ...valuesOf(figures),
      ])
  }

  #bucketOf({ startedAt, workspaceId, projectId, keyId, model }: CountedRequest): HourBucket {
    const startAt = startedAt - (startedAt % grainMs.hour)
    const name = `${startAt} ${keyId} ${model}`
    const known = this.#buckets.get(name)
    if (known) return known
    const fresh = { startAt, workspaceId, projectId, keyId, model, figures: noFigures() }
    this.#buckets.set(name, fresh)
    return fresh
  }
}

function valuesOf({ requests, errors, inputTokens, outputTokens, charge, firstEvents }: Figures): readonly bigint[] {
  return [requests, errors, inputTokens, outputTokens, charge, ...firstEvents]
}

export async function writeHours(sql: Sql, engine: Engine, buckets: HourBuckets): Promise<void> {
  await addRows(sql, engine, { table: 'request_hours', columns: hourColumns, onConflict: addToHour }, buckets.rows())
}

/** Adds hours to the sums that charts read: by hour and day, for each series, of their workspace and of all workspaces. */
export async function writeSums(sql: Sql, engine: Engine, hours: Iterable<HourBucket>): Promise<void> {
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
  const values = rows.map(([, { key, figures }]) => [...key, ...valuesOf(figures)])
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
  values: readonly (readonly SqlValue[])[],
): Promise<void> {
  const rows = values.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at] ?? null] as const)))
  if (engine === 'postgres') return await insertList(sql, table, rows, onConflict)
  for (const portion of portionsOf(rows)) {
    await sql(templateOf([`INSERT INTO ${table} `, onConflict]), sql(portion))
  }
}

/** How many hours are moved in one transaction: a few milliseconds of writing. */
export const foldMax = 100

/**
 * Moves hours that are over from `request_hours` to the sums, and returns how many. A request that ends later starts its
 * hour anew and is moved by the next call. Any number of replicas may do this at the same time.
 */
export async function foldHours(sql: Sql, engine: Engine, before: number): Promise<number> {
  const rows = await sql<Readonly<Record<string, bigint>> & Readonly<Record<'key_id' | 'model', string>>>`
    DELETE FROM request_hours WHERE (start_at, key_id, model) IN (SELECT start_at, key_id, model FROM request_hours
      WHERE start_at < ${BigInt(before)} ORDER BY start_at, key_id, model LIMIT ${BigInt(foldMax)}) RETURNING *`
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

/**
 * Writes requests that have no charge. A row that its charge has written already keeps its amounts and its duration, and
 * takes the status, code, reason and notes.
 */
export async function writeRequests(sql: Sql, engine: Engine, rows: readonly RequestRow[]): Promise<void> {
  const inserted = new Set<SqlValue>()
  for (const portion of portionsOf(rows)) {
    const columns = portion.map((row) => row.columns)
    const ids = await sql<{ id: string }>`INSERT INTO requests ${sql(columns)} ON CONFLICT (id) DO NOTHING RETURNING id`
    for (const { id } of ids) inserted.add(id)
  }
  const hours = new HourBuckets()
  for (const { columns, counted } of rows) {
    if (inserted.delete(columns.id)) {
      hours.add(counted)
      continue
    }
    const { id, status, code, reason, notes } = columns
    const [before] = await sql<{ code: string | null }>`SELECT code FROM requests WHERE id = ${id}`
    await sql`UPDATE requests SET status = ${status}, code = ${code}, reason = ${reason}, notes = ${notes} WHERE id = ${id}`
    const wasError = before?.code != null
    if (wasError !== counted.isError) hours.correctErrors(counted, wasError ? -1n : 1n)
  }
  await writeHours(sql, engine, hours)
}
