// Usage and charges summed up by the requested groups, for a spreadsheet or a warehouse. The log is read page by page, so
// only the sums are in memory. Money is a decimal string in USD and adds up exactly; token buckets never overlap.

import { isoTime } from '../kernel/clock.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import { formatUsd, type Nano, zeroNano } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import type { Database } from '../store/database.ts'
import { timeToSql } from '../store/sql.ts'
import { csvLine as csvCells } from '../wire/csv.ts'
import { firstIdAt, type LoggedRequest, requestFromRow, type StoredRow } from './request-row.ts'

export interface UsageExport {
  readonly database: Database
  /** Epoch milliseconds; `to` is exclusive. */
  readonly from: number
  readonly to: number
  readonly format: 'csv' | 'jsonl'
  readonly groupBy: readonly UsageGroup[]
  readonly workspaceId?: WorkspaceId
}

const pageMax = 500
/** An id is made a moment before its request's time is taken. */
const marginMs = 60_000

/** Yields the text in pieces. */
export async function* exportUsage(options: UsageExport): AsyncGenerator<string, void, undefined> {
  const render = options.format === 'csv' ? csvLine : jsonLine
  const sums = sumRequests(options.groupBy)
  for await (const page of readPages(options)) for (const request of page) sums.add(request)
  if (options.format === 'csv') yield csvHeader(sums.columns)
  for (const sum of sums.list()) yield render(sums.columns, sum)
}

async function* readPages({ database, from, to, workspaceId }: UsageExport): AsyncGenerator<readonly LoggedRequest[]> {
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
  value(item: Item): string | number | boolean | null
}

export const usageGroups = ['day', 'workspace', 'project', 'key', 'model', 'provider'] as const
export type UsageGroup = (typeof usageGroups)[number]

const tokenColumns = {
  input_tokens: 'inputTokens',
  cache_read_tokens: 'cacheReadTokens',
  cache_write_tokens: 'cacheWriteTokens',
  cache_write_1h_tokens: 'cacheWriteLongTokens',
  output_tokens: 'outputTokens',
} as const satisfies Record<string, keyof Usage>

const tokenNames = Object.entries(tokenColumns)

const groupColumns: Readonly<Record<UsageGroup, ExportColumn<LoggedRequest>>> = {
  day: { name: 'day', value: ({ startedAt }) => isoTime(startedAt).slice(0, 10) },
  workspace: { name: 'workspace_id', value: ({ workspaceId }) => workspaceId },
  project: { name: 'project_id', value: ({ projectId }) => projectId },
  key: { name: 'key_id', value: ({ keyId }) => keyId },
  model: { name: 'model', value: ({ model }) => model ?? null },
  provider: { name: 'provider', value: ({ provider }) => provider ?? null },
}

/** Of the requests with the same values in all groups. */
interface UsageSum {
  readonly groups: readonly (string | number | boolean | null)[]
  requests: number
  /** With a code, also of a failure inside a stream. */
  failed: number
  /** Charged by estimated usage. */
  estimated: number
  readonly tokens: number[]
  cost: Nano
}

interface UsageSums {
  readonly columns: readonly ExportColumn<UsageSum>[]
  add(request: LoggedRequest): void
  /** Sorted by their groups. */
  list(): readonly UsageSum[]
}

function sumRequests(groupBy: readonly UsageGroup[]): UsageSums {
  const sums = new Map<string, UsageSum>()
  const groups = groupBy.map((group) => groupColumns[group])
  return {
    columns: [
      ...groups.map(({ name }, at) => ({ name, value: (sum: UsageSum) => sum.groups[at] ?? null })),
      { name: 'requests', value: (sum) => sum.requests },
      { name: 'failed_requests', value: (sum) => sum.failed },
      { name: 'estimated_requests', value: (sum) => sum.estimated },
      ...tokenNames.map(([name], at) => ({ name, value: (sum: UsageSum) => sum.tokens[at] ?? 0 })),
      { name: 'cost_usd', value: (sum) => formatUsd(sum.cost) },
    ],
    add(request) {
      const values = groups.map(({ value }) => value(request))
      const name = JSON.stringify(values)
      const sum = sums.get(name) ?? emptySum(values)
      sums.set(name, sum)
      const { usage, charge, code } = request
      sum.requests++
      if (code !== undefined) sum.failed++
      if (charge !== undefined) sum.cost = (sum.cost + charge) as Nano
      if (!usage) return
      if (usage.source === 'estimated') sum.estimated++
      for (const [at, [, bucket]] of tokenNames.entries()) sum.tokens[at] = (sum.tokens[at] ?? 0) + usage[bucket]
    },
    list: () =>
      Array.from(sums)
        .sort(byName)
        .map(([, sum]) => sum),
  }
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

function emptySum(groups: UsageSum['groups']): UsageSum {
  return { groups, requests: 0, failed: 0, estimated: 0, tokens: tokenNames.map(() => 0), cost: zeroNano }
}
