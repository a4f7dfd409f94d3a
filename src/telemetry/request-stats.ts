// Sums over requests for charts, by the hour and by group. They are read from `request_sums`, so the number of rows depends
// on the span and not on the traffic.

import type { Clock } from '../kernel/clock.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { templateOf } from '../store/insert-rows.ts'
import {
  addFigures,
  allWorkspaces,
  type Figures,
  figureColumns,
  figuresFromRow,
  firstEventBounds,
  grainMs,
  noFigures,
} from '../store/request-rows.ts'
import { timeToSql } from '../store/sql.ts'

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
  /** Now, or `to` if that is earlier: requests that ended before are in the sums. */
  readonly countedUntil: number
  readonly total: Figures
  /** Hours with requests, ascending. */
  readonly hours: readonly { readonly start: number; readonly figures: Figures }[]
  /** The highest cost first, then the most requests. */
  readonly groups: readonly { readonly id: string; readonly figures: Figures }[]
}

type Row = { readonly part: 'hour' | 'group'; readonly id: string } & Readonly<Record<string, bigint>>

const sums = figureColumns.map((name) => `CAST(SUM(${name}) AS BIGINT) AS ${name}`).join(', ')
const groupSums = (grain: 'hour' | 'day') => [
  ` UNION ALL SELECT 'group', subject, ${sums} FROM request_sums WHERE grain = '${grain}' AND series = `,
  ' AND workspace_id = ',
  ' AND start_at >= ',
  ' AND start_at < ',
]
const endOfGroup = ' GROUP BY subject'
const [firstText = '', ...groupTexts] = groupSums('day')
const hourTexts = groupSums('hour')
/** One statement, so that hours and groups are sums of the same requests. */
const statement = templateOf([
  `SELECT 'hour' AS part, CAST(start_at AS TEXT) AS id, ${figureColumns.join(', ')} FROM request_sums
    WHERE grain = 'hour' AND series = 'total' AND workspace_id = `,
  ' AND start_at >= ',
  ' AND start_at < ',
  firstText,
  ...groupTexts,
  ...[`${endOfGroup}${hourTexts[0]}`, ...hourTexts.slice(1)],
  ...[`${endOfGroup}${hourTexts[0]}`, ...hourTexts.slice(1)],
  endOfGroup,
])

export async function readStats({ sql }: Pick<Database, 'sql'>, clock: Clock, query: StatsQuery): Promise<Stats> {
  const { workspaceId = allWorkspaces, group } = query
  const now = clock.now()
  const from = Math.floor(query.from / grainMs.hour) * grainMs.hour
  const to = Math.ceil(query.to / grainMs.hour) * grainMs.hour
  const spans = daysAndHours({ from, to, now }).flatMap(([start, end]) => [
    ...[group, workspaceId, timeToSql(start), timeToSql(end)],
  ])
  const rows = await sql<Row>(statement, workspaceId, timeToSql(from), timeToSql(to), ...spans)
  const hours: { start: number; figures: Figures }[] = []
  const groups = new Map<string, Figures>()
  const total = noFigures()
  for (const row of rows) {
    const figures = figuresFromRow(row)
    if (row.part === 'hour') {
      hours.push({ start: Number(row.id), figures })
      addFigures(total, figures)
      continue
    }
    const known = groups.get(row.id)
    if (known) addFigures(known, figures)
    else groups.set(row.id, figures)
  }
  return {
    from,
    to,
    countedUntil: Math.min(to, now),
    total,
    hours: hours.sort((a, b) => a.start - b.start),
    groups: [...groups].map(([id, figures]) => ({ id, figures })).sort(byCost),
  }
}

type Span = readonly [start: number, end: number]

/** Whole days, and the hours before and after them. The day that is not over yet counts as a whole one: nothing follows. */
export function daysAndHours({ from, to, now }: { readonly from: number; readonly to: number; readonly now: number }) {
  const firstDay = Math.ceil(from / grainMs.day) * grainMs.day
  const lastDay = (to > now ? Math.ceil(to / grainMs.day) : Math.floor(to / grainMs.day)) * grainMs.day
  const none: Span = [0, 0]
  if (firstDay >= lastDay) return [none, [from, to] as Span, none] as const
  return [[firstDay, lastDay] as Span, [from, firstDay] as Span, [lastDay, Math.max(to, lastDay)] as Span] as const
}

function byCost(a: { readonly figures: Figures }, b: { readonly figures: Figures }): number {
  return Number(b.figures.charge - a.figures.charge || b.figures.requests - a.figures.requests)
}

export interface FirstEvents {
  /** How many were measured. */
  readonly count: number
  /** Milliseconds, estimated: counts between fixed bounds can be added up over hours and keys, quantiles cannot. */
  readonly p50: number
  readonly p95: number
}

/** null if nothing was measured. */
export function firstEventsOf(counts: readonly bigint[]): FirstEvents | null {
  const numbers = counts.map(Number)
  const count = numbers.reduce((sum, each) => sum + each, 0)
  return count === 0 ? null : { count, p50: quantile(numbers, count, 0.5), p95: quantile(numbers, count, 0.95) }
}

/** Beyond the last bound, that bound is all that is known. */
function quantile(counts: readonly number[], total: number, share: number): number {
  const wanted = share * total
  let before = 0
  for (let place = 0; place < counts.length; place++) {
    const count = counts[place] ?? 0
    if (count > 0 && before + count >= wanted) {
      const low = firstEventBounds[place - 1] ?? 0
      const high = firstEventBounds[place] ?? low
      return Math.round(low + ((high - low) * (wanted - before)) / count)
    }
    before += count
  }
  return firstEventBounds[firstEventBounds.length - 1] ?? 0
}
