// Sums over requests by the hour and by group, the time to the first event, and the upkeep of the hourly sums.

import type { Clock } from '../kernel/clock.ts'
import type { KeyId, WorkspaceId } from '../kernel/ids.ts'
import { createRounds, type Every } from '../kernel/timers.ts'
import type { Database } from '../store/database.ts'
import { type Figures, firstEventBounds, foldHours, foldMax, grainMs, noFigures } from '../store/request-rows.ts'
import type { LogDatabase } from './read-log.ts'
import { readSeries, readTopSeries, wholeStepMs } from './request-series.ts'

export const statGroups = ['model', 'project', 'key'] as const
export type StatGroup = (typeof statGroups)[number]

export interface StatsQuery {
  /** Widened to whole hours, epoch milliseconds. */
  readonly from: number
  readonly to: number
  readonly workspaceId?: WorkspaceId
  /** Only requests with one of these keys. By model it reads the log, because the sums have no models by key. */
  readonly keyIds?: readonly KeyId[]
  readonly group: StatGroup
  readonly groupsMax: number
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
  readonly groupsLeftOff: number
}

export async function readStats(
  database: LogDatabase,
  clock: Clock,
  { groupsMax, ...query }: StatsQuery,
): Promise<Stats> {
  const now = clock.now()
  const from = Math.floor(query.from / grainMs.hour) * grainMs.hour
  const to = Math.ceil(query.to / grainMs.hour) * grainMs.hour
  const whole = { ...query, from, to, offsetMs: 0 }
  const [all] = await readSeries(database, { ...whole, stepMs: grainMs.hour, group: 'none' })
  // The current day is read as a whole day, which the sums have: nothing follows it.
  const end = to > now ? Math.ceil(to / grainMs.day) * grainMs.day : to
  const { shown, others } = await readTopSeries(database, { ...whole, to: end, stepMs: wholeStepMs }, groupsMax)
  return {
    from,
    to,
    countedUntil: Math.min(to, now),
    total: all?.total ?? noFigures(),
    hours: [...(all?.buckets ?? [])].map(([start, figures]) => ({ start, figures })).sort((a, b) => a.start - b.start),
    groups: shown.map(({ value, total }) => ({ id: value ?? '', figures: total })),
    groupsLeftOff: others?.count ?? 0,
  }
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

/** Interpolates between the bounds of the bucket. Above the last bound it returns that bound. */
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
  return firstEventBounds.at(-1) ?? 0
}

export interface FoldOptions {
  readonly database: Database
  /** The same time on all replicas. An hour must be over for each of them: a late request would create its row again. */
  now(): Promise<number>
  /** A round failed; the next one tries again. */
  onFault(error: unknown): void
  readonly every?: Every
}

const foldRoundMs = 60_000

/** Moves past hours into the sums, in the background and in small portions. */
export function createFolding({ database, now: readNow, onFault, every }: FoldOptions) {
  return createRounds({ milliseconds: foldRoundMs, every, onFault }, async (isClosed) => {
    const now = await readNow()
    const hour = now - (now % grainMs.hour)
    for (let moved = foldMax; moved === foldMax && !isClosed(); ) {
      moved = await database.transaction((sql) => foldHours(sql, database.engine, hour))
    }
  })
}
