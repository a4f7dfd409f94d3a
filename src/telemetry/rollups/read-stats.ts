// Sums over requests for charts: the hourly counts, and on top of them what was not counted yet, so that a figure is
// either true up to now or says up to when it is.

import type { Clock } from '../../kernel/clock.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Database } from '../../store/database.ts'
import { type Sql, timeToSql } from '../../store/sql.ts'
import { breathe } from '../breathe.ts'
import { addFigures, type Bucket, countRequests, type Figures, hourMs, noFigures } from './count-requests.ts'
import { allWorkspaces } from './grains.ts'
import { addTo, readEnd, readHours, readSubjects } from './read-sums.ts'
import { type CursorName, type Cursors, cursorNames, findFirstOfMany, readCursors, readUncounted } from './uncounted.ts'

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
const uncountedMax = 1_000
/** Read and added up without a breath between them. */
const portionMax = 100
/** How often it is read without a snapshot, which is a connection of its own on the embedded engine. */
const triesMax = 3

export async function readStats(database: Database, clock: Clock, query: StatsQuery): Promise<Stats> {
  for (let tries = 1; tries <= triesMax; tries++) {
    const before = await readCursors(database.sql)
    const stats = await readOnce(database.sql, before, clock, query)
    const after = await readCursors(database.sql)
    // Sums change together with a cursor, so between two looks at the same place nothing was counted.
    if (cursorNames.every((name) => before[name] === after[name])) return stats
  }
  return await database.snapshot(async (sql) => await readOnce(sql, await readCursors(sql), clock, query))
}

async function readOnce(sql: Sql, cursors: Cursors, clock: Clock, query: StatsQuery): Promise<Stats> {
  const from = Math.floor(query.from / hourMs) * hourMs
  const to = Math.ceil(query.to / hourMs) * hourMs
  const span = { from, to, end: await readEnd(sql), workspaceId: query.workspaceId ?? allWorkspaces }
  const hours = await readHours(sql, span)
  await breathe()
  const groups = await readSubjects(sql, query.group, span)
  await breathe()
  const { buckets, cutAt } = await readRest(sql, cursors)
  for (const bucket of buckets) {
    if (bucket.hour < timeToSql(from) || bucket.hour >= timeToSql(to)) continue
    if (query.workspaceId !== undefined && bucket.workspaceId !== query.workspaceId) continue
    addTo(hours, String(bucket.hour), bucket)
    addTo(groups, groupOf(bucket, query.group), bucket)
  }
  const total = noFigures()
  // Every request is in one group; there are fewer of them than hours.
  for (const figures of groups.values()) addFigures(total, figures)
  return {
    from,
    to,
    countedUntil: Math.min(to, cutAt ?? clock.now()),
    total,
    hours: [...hours].map(([start, figures]) => ({ start: Number(start), figures })).sort((a, b) => a.start - b.start),
    groups: [...groups].map(([id, figures]) => ({ id, figures })).sort(byWeight),
  }
}

function groupOf({ model, projectId, keyId }: Bucket, group: StatGroup): string {
  return { model, project: projectId, key: keyId }[group]
}

function byWeight(a: { readonly figures: Figures }, b: { readonly figures: Figures }): number {
  const difference = b.figures.charge - a.figures.charge || b.figures.requests - a.figures.requests
  return Number(difference)
}

/** What no rollup has counted; where that is too much, nothing of it and since when. */
async function readRest(
  sql: Sql,
  cursors: Cursors,
): Promise<{ readonly buckets: readonly Bucket[]; readonly cutAt?: number }> {
  // Asked first and without reading them: of a busy gateway there are too many at every look.
  const cuts: number[] = []
  for (const name of cursorNames) {
    const first = await findFirstOfMany(sql, name, { after: cursors[name], limit: uncountedMax })
    if (first !== undefined) cuts.push(first)
  }
  if (cuts.length > 0) return { buckets: [], cutAt: Math.min(...cuts) }
  const buckets: Bucket[] = []
  for (const name of cursorNames) buckets.push(...(await countRest(sql, name, cursors[name])))
  return { buckets }
}

async function countRest(sql: Sql, name: CursorName, cursor: string): Promise<readonly Bucket[]> {
  const buckets: Bucket[] = []
  let after = cursor
  for (let portions = uncountedMax / portionMax; portions > 0; portions--) {
    const rows = await readUncounted(sql, name, { after, limit: portionMax })
    buckets.push(...countRequests(rows))
    after = rows.at(-1)?.id ?? after
    if (rows.length < portionMax) break
    await breathe()
  }
  return buckets
}
