// Usage and charges summed up by the requested groups, for reports, a spreadsheet or a warehouse. The log is read page by
// page, so only the sums are in memory. Money adds up exactly; token buckets never overlap. What retention has removed from
// the log is not included.

import { type AttributionFilters, passesAttribution, shownEndUser } from '../kernel/attribution.ts'
import { isoTime } from '../kernel/clock.ts'
import { firstIdAt, type KeyId, type ProjectId, type WorkspaceId } from '../kernel/ids.ts'
import { formatUsd, type Nano, zeroNano } from '../kernel/money.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'
import type { Usage } from '../kernel/usage.ts'
import type { Database } from '../store/database.ts'
import { timeFromSql, timeToSql } from '../store/sql.ts'
import { csvLine as csvCells } from '../wire/csv.ts'
import { type LoggedRequest, requestFromRow, type StoredRow } from './request-row.ts'

/** Savings by the prompt cache on a request, in nano-dollars; undefined = it has no known price. */
export type SavedBy = (request: LoggedRequest) => bigint | undefined

export interface UsageQuery extends AttributionFilters {
  readonly database: Database
  /** Epoch milliseconds; `to` is exclusive. */
  readonly from: number
  readonly to: number
  readonly groupBy: readonly UsageGroup[]
  readonly workspaceId?: WorkspaceId
  /** Only requests with one of these keys. */
  readonly keyIds?: readonly KeyId[]
  readonly projectId?: ProjectId
  readonly keyId?: KeyId
  readonly model?: string
  /** For one page of requests; prices are in the catalog. */
  savings(page: readonly LoggedRequest[]): Promise<SavedBy>
}

export interface UsageExport extends UsageQuery {
  readonly format: 'csv' | 'jsonl'
}

/** A few milliseconds: the embedded database is read on the thread that serves requests, which go first between pages. */
const pageMax = 200
/** An id is made a moment before its request's time is taken. */
const marginMs = 60_000

/** Yields the text in pieces. */
export async function* exportUsage(options: UsageExport): AsyncGenerator<string, void, undefined> {
  const render = options.format === 'csv' ? csvLine : jsonLine
  const sums = await sumUsage(options)
  if (options.format === 'csv') yield csvHeader(sums.columns)
  for (const sum of sums.list()) yield render(sums.columns, sum)
}

/** The sums by group, sorted by their groups, and over all of them. */
export async function sumUsage(options: UsageQuery): Promise<UsageSums> {
  const sums = sumRequests(options.groupBy)
  for await (const page of readPages(options)) {
    const requests = page.filter((request) => passes(request, options))
    const savedBy = await options.savings(requests)
    for (const request of requests) sums.add(request, savedBy(request) ?? 0n)
  }
  return sums
}

function passes(request: LoggedRequest, filters: UsageQuery): boolean {
  const { projectId, keyId, keyIds, model } = filters
  return (
    (keyIds === undefined || keyIds.includes(request.keyId)) &&
    (projectId === undefined || request.projectId === projectId) &&
    (keyId === undefined || request.keyId === keyId) &&
    (model === undefined || request.model === model) &&
    passesAttribution(request, filters)
  )
}

/** When the oldest request started that is in the log; undefined = there is none. */
export async function oldestRequest({ sql }: Database, workspaceId?: WorkspaceId): Promise<number | undefined> {
  const [row] = await (workspaceId === undefined
    ? sql<{ started_at: bigint }>`SELECT started_at FROM requests ORDER BY id LIMIT 1`
    : sql<{
        started_at: bigint
      }>`SELECT started_at FROM requests WHERE workspace_id = ${workspaceId} ORDER BY id LIMIT 1`)
  return row && timeFromSql(row.started_at)
}

async function* readPages({ database, from, to, workspaceId }: UsageQuery): AsyncGenerator<readonly LoggedRequest[]> {
  const { sql } = database
  const count = BigInt(pageMax)
  const [since, until] = [timeToSql(from), timeToSql(to)]
  const end = firstIdAt(to + marginMs)
  let after = firstIdAt(Math.max(0, from - marginMs))
  for (;;) {
    const rows = await (workspaceId === undefined
      ? sql<StoredRow>`SELECT * FROM requests WHERE id > ${after} AND id < ${end}
          AND started_at >= ${since} AND started_at < ${until} ORDER BY id LIMIT ${count}`
      : sql<StoredRow>`SELECT * FROM requests WHERE workspace_id = ${workspaceId} AND id > ${after} AND id < ${end}
          AND started_at >= ${since} AND started_at < ${until} ORDER BY id LIMIT ${count}`)
    if (rows.length > 0) yield rows.map(requestFromRow)
    const last = rows.at(-1)
    if (!last || rows.length < pageMax) return
    after = last.id
    await yieldToEventLoop()
  }
}

function csvHeader(columns: readonly ExportColumn<never>[]): string {
  return `${columns.map(({ name }) => name).join(',')}\n`
}

function csvLine<Item>(columns: readonly ExportColumn<Item>[], item: Item): string {
  return `${csvCells(columns.map(({ value }) => value(item)))}\n`
}

function jsonLine<Item>(columns: readonly ExportColumn<Item>[], item: Item): string {
  return `${JSON.stringify(Object.fromEntries(columns.map(({ name, value }) => [name, value(item)])))}\n`
}

interface ExportColumn<Item> {
  readonly name: string
  /** null = not known. */
  value(item: Item): string | number | null
}

interface GroupColumn {
  readonly name: string
  /** null = the request has none. */
  value(request: LoggedRequest): string | null
}

/** `tag:NAME`: by the value of that tag. */
export type UsageGroup = keyof typeof groupColumns | `tag:${string}`

const tokenColumns = {
  input_tokens: 'inputTokens',
  cache_read_tokens: 'cacheReadTokens',
  cache_write_tokens: 'cacheWriteTokens',
  cache_write_1h_tokens: 'cacheWriteLongTokens',
  output_tokens: 'outputTokens',
} as const satisfies Record<string, keyof Usage>

const tokenNames = Object.entries(tokenColumns)

const groupColumns = {
  day: { name: 'day', value: ({ startedAt }) => isoTime(startedAt).slice(0, 10) },
  workspace: { name: 'workspace_id', value: ({ workspaceId }) => workspaceId },
  project: { name: 'project_id', value: ({ projectId }) => projectId },
  key: { name: 'key_id', value: ({ keyId }) => keyId },
  model: { name: 'model', value: ({ model }) => model ?? null },
  provider: { name: 'provider', value: ({ provider }) => provider ?? null },
  route: {
    name: 'route',
    value: ({ provider, upstreamModel }) => (provider === undefined ? null : `${provider} ${upstreamModel}`),
  },
  session: { name: 'session', value: ({ session }) => session ?? null },
  agent: { name: 'agent', value: ({ agent }) => agent ?? null },
  user: { name: 'end_user', value: ({ endUser }) => (endUser === undefined ? null : shownEndUser(endUser)) },
} as const satisfies Readonly<Record<string, GroupColumn>>

function columnOf(group: UsageGroup): GroupColumn {
  if (group in groupColumns) return groupColumns[group as keyof typeof groupColumns]
  const tag = group.slice('tag:'.length)
  return { name: group, value: ({ tags }) => tags[tag] ?? null }
}

/** Sum over the requests with the same values in all groups. */
export interface UsageSum {
  /** null = the request has none. */
  readonly groups: readonly (string | null)[]
  requests: number
  /** With a code, also of a failure inside a stream. */
  failed: number
  /** Charged by estimated usage. */
  estimated: number
  /** In the order of `tokenColumns`. */
  readonly tokens: number[]
  cost: Nano
  /** Savings by the prompt cache; negative if writing to it cost more. */
  saved: bigint
  /** The providers' bill to the operator, as far as it is known. */
  upstreamCost: Nano
  /** Charged requests for which it is not known, and their charges. */
  uncosted: number
  uncostedCharges: Nano
}

export interface UsageSums {
  readonly columns: readonly ExportColumn<UsageSum>[]
  readonly total: UsageSum
  add(request: LoggedRequest, saved: bigint): void
  /** Sorted by their groups. */
  list(): readonly UsageSum[]
}

/** All input, and the part of it that was read from a cache or written to one. */
export function inputOf({ tokens: [input = 0, read = 0, write = 0, writeLong = 0, output = 0] }: UsageSum) {
  return { input: input + read + write + writeLong, cacheRead: read, cacheWrite: write + writeLong, output }
}

function sumRequests(groupBy: readonly UsageGroup[]): UsageSums {
  const sums = new Map<string, UsageSum>()
  const groups = groupBy.map(columnOf)
  const total = emptySum([])
  return {
    total,
    columns: [
      ...groups.map(({ name }, at) => ({ name, value: (sum: UsageSum) => sum.groups[at] ?? null })),
      { name: 'requests', value: (sum) => sum.requests },
      { name: 'failed_requests', value: (sum) => sum.failed },
      { name: 'estimated_requests', value: (sum) => sum.estimated },
      ...tokenNames.map(([name], at) => ({ name, value: (sum: UsageSum) => sum.tokens[at] ?? 0 })),
      { name: 'cost_usd', value: (sum) => formatUsd(sum.cost) },
      { name: 'cache_saved_usd', value: (sum) => formatUsd(sum.saved as Nano) },
    ],
    add(request, saved) {
      const values = groups.map(({ value }) => value(request))
      const name = JSON.stringify(values)
      const sum = sums.get(name) ?? emptySum(values)
      sums.set(name, sum)
      for (const each of [sum, total]) addRequest(each, request, saved)
    },
    list: () =>
      Array.from(sums)
        .sort(byName)
        .map(([, sum]) => sum),
  }
}

function addRequest(sum: UsageSum, { usage, charge, code, upstreamCost }: LoggedRequest, saved: bigint): void {
  sum.requests++
  sum.saved += saved
  if (code !== undefined) sum.failed++
  if (charge !== undefined) {
    sum.cost = (sum.cost + charge) as Nano
    if (upstreamCost !== undefined) sum.upstreamCost = (sum.upstreamCost + upstreamCost) as Nano
    else {
      sum.uncosted++
      sum.uncostedCharges = (sum.uncostedCharges + charge) as Nano
    }
  }
  if (!usage) return
  if (usage.source === 'estimated') sum.estimated++
  for (const [at, [, bucket]] of tokenNames.entries()) sum.tokens[at] = (sum.tokens[at] ?? 0) + usage[bucket]
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

function emptySum(groups: UsageSum['groups']): UsageSum {
  return {
    groups,
    requests: 0,
    failed: 0,
    estimated: 0,
    tokens: tokenNames.map(() => 0),
    cost: zeroNano,
    saved: 0n,
    upstreamCost: zeroNano,
    uncosted: 0,
    uncostedCharges: zeroNano,
  }
}
