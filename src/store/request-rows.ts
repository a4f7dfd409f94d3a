// Rows of the request log and the sums over them. Both are written in one transaction: with the charge of a request (by the
// ledger), or on their own for requests that were not charged. So the sums are exact at any moment, also after a crash.

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
  'requests',
  'errors',
  'input_tokens',
  'output_tokens',
  'charge',
  ...firstEventColumns,
]
const keyColumns = ['grain', 'series', 'workspace_id', 'start_at', 'subject']
export const sumColumns: readonly string[] = [...keyColumns, ...figureColumns]

/** Ends an INSERT into `request_sums`: adds to the row that exists. */
export const addToSum = ` ON CONFLICT (${keyColumns.join(', ')}) DO UPDATE SET ${figureColumns
  .map((name) => `${name} = request_sums.${name} + excluded.${name}`)
  .join(', ')}`

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

/** Requests of one hour, key and model; a key belongs to one project and workspace. */
interface Bucket extends Pick<CountedRequest, 'workspaceId' | 'projectId' | 'keyId' | 'model'> {
  readonly hour: number
  readonly figures: Figures
}

/** Adds up the requests of a batch, so that each sum is written once. */
export class RequestSums {
  readonly #buckets = new Map<string, Bucket>()

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

  #bucketOf({ startedAt, workspaceId, projectId, keyId, model }: CountedRequest): Bucket {
    const hour = startedAt - (startedAt % grainMs.hour)
    const name = `${hour} ${keyId} ${model}`
    const known = this.#buckets.get(name)
    if (known) return known
    const fresh = { hour, workspaceId, projectId, keyId, model, figures: noFigures() }
    this.#buckets.set(name, fresh)
    return fresh
  }

  /** The values of each row in the order of `sumColumns`, always in the same order of rows, so that replicas do not deadlock. */
  rows(): readonly (readonly SqlValue[])[] {
    const sums = new Map<string, { readonly key: readonly SqlValue[]; readonly figures: Figures }>()
    for (const { hour, workspaceId, projectId, keyId, model, figures } of this.#buckets.values()) {
      const subjects: Readonly<Record<Series, string>> = { total: '', model, project: projectId, key: keyId }
      for (const grain of grains) {
        const startAt = hour - (hour % grainMs[grain])
        for (const [series, subject] of Object.entries(subjects)) {
          for (const workspace of [workspaceId, allWorkspaces]) {
            const name = `${grain} ${series} ${workspace} ${startAt} ${subject}`
            const sum = sums.get(name)
            if (sum) addFigures(sum.figures, figures)
            else sums.set(name, { key: [grain, series, workspace, BigInt(startAt), subject], figures: copyOf(figures) })
          }
        }
      }
    }
    return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, { key, figures }]) => [...key, ...valuesOf(figures)])
  }
}

function copyOf(figures: Figures): Figures {
  return { ...figures, firstEvents: [...figures.firstEvents] }
}

function valuesOf({ requests, errors, inputTokens, outputTokens, charge, firstEvents }: Figures): readonly bigint[] {
  return [requests, errors, inputTokens, outputTokens, charge, ...firstEvents]
}

/** Comes last in a transaction: every replica adds to the sums over all workspaces, and waits for the commit of the one before. */
export async function writeSums(sql: Sql, engine: Engine, sums: RequestSums): Promise<void> {
  const rows = sums
    .rows()
    .map((values) => Object.fromEntries(sumColumns.map((name, at) => [name, values[at] ?? null] as const)))
  if (engine === 'postgres') return await insertList(sql, 'request_sums', rows, addToSum)
  for (const portion of portionsOf(rows)) {
    await sql(templateOf(['INSERT INTO request_sums ', addToSum]), sql(portion))
  }
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
  const sums = new RequestSums()
  for (const { columns, counted } of rows) {
    if (inserted.delete(columns.id)) {
      sums.add(counted)
      continue
    }
    const { id, status, code, reason, notes } = columns
    const [before] = await sql<{ code: string | null }>`SELECT code FROM requests WHERE id = ${id}`
    await sql`UPDATE requests SET status = ${status}, code = ${code}, reason = ${reason}, notes = ${notes} WHERE id = ${id}`
    const wasError = before?.code != null
    if (wasError !== counted.isError) sums.correctErrors(counted, wasError ? -1n : 1n)
  }
  await writeSums(sql, engine, sums)
}
