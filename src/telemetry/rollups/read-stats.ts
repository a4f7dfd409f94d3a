// Sums over requests for charts: the hourly counts, and on top of them what was not counted yet, so that a figure is
// either true up to now or says up to when it is.

import type { Clock } from '../../kernel/clock.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Database } from '../../store/database.ts'
import { type Sql, timeToSql } from '../../store/sql.ts'
import {
  addFigures,
  type Bucket,
  type CountedRow,
  countRequests,
  type Figures,
  hourMs,
  noFigures,
} from './count-requests.ts'
import { firstEventColumns } from './first-event.ts'
import { dayMs, type Grain } from './grains.ts'
import { cursorNames, readCursor, readUncounted } from './uncounted.ts'

export const statGroups = ['model', 'project', 'key'] as const
export type StatGroup = (typeof statGroups)[number]

export interface StatsQuery {
  /** Widened to whole hours, epoch milliseconds. */
  readonly from: number
  readonly to: number
  readonly workspaceId?: WorkspaceId
  readonly group: StatGroup
}

export interface Stats {
  readonly from: number
  readonly to: number
  /** Requests that began later are not in the sums, should there be any; never after `to`. */
  readonly countedUntil: number
  readonly total: Figures
  /** Of hours with requests, ascending. */
  readonly hours: readonly { readonly start: number; readonly figures: Figures }[]
  /** What cost most first, then what was asked for most. */
  readonly groups: readonly { readonly id: string; readonly figures: Figures }[]
}

/** More are left to the next round of counting: reading them would hold up generations. */
const uncountedMax = 3_000

export async function readStats(database: Database, clock: Clock, query: StatsQuery): Promise<Stats> {
  const from = Math.floor(query.from / hourMs) * hourMs
  const to = Math.ceil(query.to / hourMs) * hourMs
  const span = { ...query, from, to }
  return await database.snapshot(async (sql) => {
    const hours: Sums = new Map()
    await addSums(hours, sql, 'start_at', { grain: 'total', ...span })
    const groups: Sums = new Map()
    for (const part of partsOf(span)) await addSums(groups, sql, groupColumns[query.group], part)
    const { buckets, cutAt } = await readRest(sql)
    for (const bucket of buckets) {
      if (bucket.hour < timeToSql(from) || bucket.hour >= timeToSql(to)) continue
      if (query.workspaceId !== undefined && bucket.workspaceId !== query.workspaceId) continue
      add(hours, String(bucket.hour), bucket)
      add(groups, groupOf(bucket, query.group), bucket)
    }
    const total = noFigures()
    for (const figures of hours.values()) addFigures(total, figures)
    return {
      from,
      to,
      countedUntil: Math.min(to, cutAt ?? clock.now()),
      total,
      hours: [...hours]
        .map(([start, figures]) => ({ start: Number(start), figures }))
        .sort((a, b) => a.start - b.start),
      groups: [...groups].map(([id, figures]) => ({ id, figures })).sort(byWeight),
    }
  })
}

type Sums = Map<string, Figures>
type Column = 'start_at' | 'model' | 'project_id' | 'key_id'

const groupColumns = { model: 'model', project: 'project_id', key: 'key_id' } as const satisfies Record<
  StatGroup,
  Column
>

interface Part extends Pick<StatsQuery, 'from' | 'to' | 'workspaceId'> {
  readonly grain: Grain
}

/** Whole days where there are any, and the hours before and after them. */
function partsOf(span: StatsQuery): readonly Part[] {
  const firstDay = Math.ceil(span.from / dayMs) * dayMs
  const lastDay = Math.floor(span.to / dayMs) * dayMs
  if (firstDay >= lastDay) return [{ ...span, grain: 'hour' }]
  const parts: readonly Part[] = [
    { ...span, grain: 'hour', to: firstDay },
    { ...span, grain: 'day', from: firstDay, to: lastDay },
    { ...span, grain: 'hour', from: lastDay },
  ]
  return parts.filter(({ from, to }) => from < to)
}

function groupOf({ model, projectId, keyId }: Bucket, group: StatGroup): string {
  return { model, project: projectId, key: keyId }[group]
}

function add(sums: Sums, id: string, figures: Figures): void {
  const sum = sums.get(id) ?? noFigures()
  addFigures(sum, figures)
  sums.set(id, sum)
}

function byWeight(a: { readonly figures: Figures }, b: { readonly figures: Figures }): number {
  const difference = b.figures.charge - a.figures.charge || b.figures.requests - a.figures.requests
  return Number(difference)
}

/** What no rollup has counted; where that is too much, nothing of it and since when. */
async function readRest(sql: Sql): Promise<{ readonly buckets: readonly Bucket[]; readonly cutAt?: number }> {
  const rows: CountedRow[] = []
  let cutAt: number | undefined
  for (const name of cursorNames) {
    const after = await readCursor(sql, name)
    const isTooMuch = (await readUncounted(sql, name, { after, limit: 1, offset: uncountedMax })).length > 0
    const found = await readUncounted(sql, name, { after, limit: isTooMuch ? 1 : uncountedMax })
    rows.push(...found)
    if (isTooMuch) cutAt = Math.min(cutAt ?? Number.POSITIVE_INFINITY, Number(found[0]?.started_at ?? 0))
  }
  return cutAt === undefined ? { buckets: countRequests(rows) } : { buckets: [], cutAt }
}

type SumRow = { readonly id: string | bigint } & Readonly<Record<string, bigint>>

async function addSums(sums: Sums, sql: Sql, name: Column, { grain, from, to, workspaceId }: Part): Promise<void> {
  const workspace = workspaceId ?? null
  const column = sql(name)
  const rows = await sql<SumRow>`SELECT ${column} AS id, CAST(SUM(requests) AS BIGINT) AS requests,
      CAST(SUM(errors) AS BIGINT) AS errors, CAST(SUM(input_tokens) AS BIGINT) AS input_tokens,
      CAST(SUM(output_tokens) AS BIGINT) AS output_tokens, CAST(SUM(charge) AS BIGINT) AS charge,
      CAST(SUM(first_25) AS BIGINT) AS first_25, CAST(SUM(first_50) AS BIGINT) AS first_50,
      CAST(SUM(first_100) AS BIGINT) AS first_100, CAST(SUM(first_200) AS BIGINT) AS first_200,
      CAST(SUM(first_350) AS BIGINT) AS first_350, CAST(SUM(first_500) AS BIGINT) AS first_500,
      CAST(SUM(first_750) AS BIGINT) AS first_750, CAST(SUM(first_1000) AS BIGINT) AS first_1000,
      CAST(SUM(first_1500) AS BIGINT) AS first_1500, CAST(SUM(first_2500) AS BIGINT) AS first_2500,
      CAST(SUM(first_5000) AS BIGINT) AS first_5000, CAST(SUM(first_10000) AS BIGINT) AS first_10000,
      CAST(SUM(first_30000) AS BIGINT) AS first_30000, CAST(SUM(first_later) AS BIGINT) AS first_later
    FROM request_rollups WHERE grain = ${grain} AND start_at >= ${timeToSql(from)}
      AND start_at < ${timeToSql(to)}
      AND (CAST(${workspace} AS TEXT) IS NULL OR workspace_id = ${workspace})
    GROUP BY ${column}`
  for (const row of rows) add(sums, String(row.id), figuresOf(row))
}

function figuresOf(row: Readonly<Record<string, bigint>>): Figures {
  return {
    requests: row.requests ?? 0n,
    errors: row.errors ?? 0n,
    inputTokens: row.input_tokens ?? 0n,
    outputTokens: row.output_tokens ?? 0n,
    charge: row.charge ?? 0n,
    firstEvents: firstEventColumns.map((column) => row[column] ?? 0n),
  }
}
