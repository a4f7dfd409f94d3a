// What was used and charged, added up by whatever is asked for, for a spreadsheet or a warehouse. The log is read page by
// page, so that a year of requests never stands in memory; only the sums do.

import type { WorkspaceId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { timeToSql } from '../store/sql.ts'
import { csvLine as csvCells } from '../wire/csv.ts'
import { firstIdAt } from './id-at.ts'
import { type LoggedRequest, requestFromRow, type StoredRow } from './request-row.ts'
import { type ExportColumn, sumRequests, type UsageGroup } from './usage-sums.ts'

export interface UsageExport {
  readonly database: Database
  /** Epoch milliseconds; `from` is in it, `to` is not. */
  readonly from: number
  readonly to: number
  readonly format: 'csv' | 'jsonl'
  readonly groupBy: readonly UsageGroup[]
  readonly workspaceId?: WorkspaceId
}

const pageMax = 500
/** An id is made a moment before its request's time is taken. */
const marginMs = 60_000

/** Pieces of the text, in order. */
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
