// Sums over requests for charts, by the hour and by group. They are read from the sums and from the hours that are not in
// them yet, so the number of rows depends on the span and not on the traffic.

import type { Clock } from '../kernel/clock.ts'
import type { KeyId, WorkspaceId } from '../kernel/ids.ts'
import { type Every, onTimer } from '../kernel/timers.ts'
import type { Database } from '../store/database.ts'
import { templateOf } from '../store/insert-rows.ts'
import {
  addFigures,
  allWorkspaces,
  type Figures,
  figureColumns,
  figuresFromRow,
  firstEventBounds,
  foldHours,
  foldMax,
  grainMs,
  noFigures,
} from '../store/request-rows.ts'
import { type SqlValue, timeToSql } from '../store/sql.ts'

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

export async function readStats({ sql }: Pick<Database, 'sql'>, clock: Clock, query: StatsQuery): Promise<Stats> {
  const now = clock.now()
  const sums = new StatSums(query)
  const { workspaceId = allWorkspaces, group } = query
  const { texts, values } = statementOf({ from: sums.from, to: sums.to, now, workspaceId }, group)
  for (const row of await sql<Row>(templateOf(texts), ...values)) {
    if (row.part === 'hour') sums.addHour(Number(row.id), figuresFromRow(row))
    else sums.addGroup(row.id, figuresFromRow(row))
  }
  return sums.end(now)
}

class StatSums {
  readonly from: number
  readonly to: number
  readonly #total = noFigures()
  readonly #hours = new Map<number, Figures>()
  readonly #groups = new Map<string, Figures>()

  constructor({ from, to }: Pick<StatsQuery, 'from' | 'to'>) {
    this.from = Math.floor(from / grainMs.hour) * grainMs.hour
    this.to = Math.ceil(to / grainMs.hour) * grainMs.hour
  }

  addHour(start: number, figures: Figures): void {
    addFigures(this.#total, figures)
    addTo(this.#hours, start, figures)
  }

  addGroup(id: string, figures: Figures): void {
    addTo(this.#groups, id, figures)
  }

  end(now: number): Stats {
    return {
      from: this.from,
      to: this.to,
      countedUntil: Math.min(this.to, now),
      total: this.#total,
      hours: [...this.#hours].map(([start, figures]) => ({ start, figures })).sort((a, b) => a.start - b.start),
      groups: [...this.#groups].map(([id, figures]) => ({ id, figures })).sort(byCost),
    }
  }
}

interface LoggedFigures {
  readonly id: string
  readonly started_at: bigint
  readonly subject: string | null
  readonly code: string | null
  readonly input_tokens: bigint | null
  readonly cache_read_tokens: bigint | null
  readonly output_tokens: bigint | null
  readonly charge: bigint | null
  readonly first_event_ms: bigint | null
}

const pageMax = 1000n

/** The same for a few keys. The sums do not have models by key, so this reads the log, page by page along each key. */
export async function readStatsOfKeys(
  { sql }: Pick<Database, 'sql'>,
  clock: Clock,
  query: Omit<StatsQuery, 'workspaceId'> & { readonly keyIds: readonly KeyId[] },
): Promise<Stats> {
  const sums = new StatSums(query)
  const texts = [
    `SELECT id, started_at, ${groupColumns[query.group]} AS subject, code, input_tokens, cache_read_tokens, output_tokens, charge,
      first_event_ms FROM requests WHERE key_id = `,
    ...[' AND id > ', ' AND started_at >= ', ' AND started_at < ', ' ORDER BY id LIMIT ', ''],
  ]
  for (const keyId of query.keyIds) {
    for (let after = ''; ; ) {
      const span = [timeToSql(sums.from), timeToSql(sums.to)]
      const rows = await sql<LoggedFigures>(templateOf(texts), keyId, after, ...span, pageMax)
      for (const row of rows) {
        const figures = figuresOf(row)
        sums.addHour(Math.floor(Number(row.started_at) / grainMs.hour) * grainMs.hour, figures)
        sums.addGroup(row.subject ?? '', figures)
      }
      if (BigInt(rows.length) < pageMax) break
      after = rows.at(-1)?.id ?? ''
    }
  }
  return sums.end(clock.now())
}

function addTo<Key>(sums: Map<Key, Figures>, key: Key, figures: Figures): void {
  const sum = sums.get(key) ?? noFigures()
  addFigures(sum, figures)
  sums.set(key, sum)
}

function figuresOf(row: LoggedFigures): Figures {
  const figures = noFigures()
  figures.requests = 1n
  figures.errors = row.code === null ? 0n : 1n
  figures.inputTokens = row.input_tokens ?? 0n
  figures.cacheReadTokens = row.cache_read_tokens ?? 0n
  figures.outputTokens = row.output_tokens ?? 0n
  figures.charge = row.charge ?? 0n
  if (row.first_event_ms === null) return figures
  const place = firstEventBounds.findIndex((most) => Number(row.first_event_ms) <= most)
  figures.firstEvents[place < 0 ? firstEventBounds.length : place] = 1n
  return figures
}

interface Wanted {
  readonly from: number
  readonly to: number
  readonly now: number
  readonly workspaceId: string
}

const sums = figureColumns.map((name) => `CAST(SUM(${name}) AS BIGINT) AS ${name}`).join(', ')
const groupColumns = { model: 'model', project: 'project_id', key: 'key_id' } as const

/** A SELECT: texts that are each followed by a value, and its end. */
interface Leg {
  readonly pieces: readonly (readonly [text: string, value: SqlValue])[]
  readonly end: string
}

/** One statement over both tables, because hours move from one to the other. */
function statementOf({ from, to, now, workspaceId }: Wanted, group: StatGroup) {
  const [days, before, after] = daysAndHours({ from, to, now })
  const fromSums = (select: string, where: string, [start, stop]: Span, groupBy = 'subject'): Leg => ({
    pieces: [
      [`SELECT ${select} FROM request_sums WHERE ${where} AND workspace_id = `, workspaceId],
      [' AND start_at >= ', timeToSql(start)],
      [' AND start_at < ', timeToSql(stop)],
    ],
    end: ` GROUP BY ${groupBy}`,
  })
  const fromHours = (select: string, groupBy: string): Leg => ({
    pieces: [
      [`SELECT ${select} FROM request_hours WHERE CAST(`, workspaceId],
      [` AS TEXT) IN ('', workspace_id) AND start_at >= `, timeToSql(from)],
      [' AND start_at < ', timeToSql(to)],
    ],
    end: ` GROUP BY ${groupBy}`,
  })
  const byHour = `'hour' AS part, CAST(start_at AS TEXT) AS id, ${sums}`
  const bySubject = (subject: string) => `'group' AS part, ${subject} AS id, ${sums}`
  const legs = [
    fromSums(byHour, "grain = 'hour' AND series = 'total'", [from, to], 'start_at'),
    fromSums(bySubject('subject'), `grain = 'day' AND series = '${group}'`, days),
    fromSums(bySubject('subject'), `grain = 'hour' AND series = '${group}'`, before),
    fromSums(bySubject('subject'), `grain = 'hour' AND series = '${group}'`, after),
    fromHours(byHour, 'start_at'),
    fromHours(bySubject(groupColumns[group]), groupColumns[group]),
  ]
  const texts = ['']
  const values: SqlValue[] = []
  for (const [place, { pieces, end }] of legs.entries()) {
    for (const [text, value] of pieces) {
      texts.push(`${texts.pop()}${text}`, '')
      values.push(value)
    }
    texts.push(`${texts.pop()}${end}${place === legs.length - 1 ? '' : ' UNION ALL '}`)
  }
  return { texts, values }
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

export interface FoldOptions {
  readonly database: Database
  /** The time for all replicas: an hour must be over for each of them, or every late request creates its row again. */
  now(): Promise<number>
  /** A round failed; the next one tries again. */
  onFault(error: unknown): void
  readonly every?: Every
}

const foldRoundMs = 60_000

/** Moves hours that are over to the sums, in the background and in small portions. */
export function createFolding({ database, now: readNow, onFault, every = onTimer }: FoldOptions) {
  let isClosed = false
  let running: Promise<unknown> = Promise.resolve()
  const round = async () => {
    const now = await readNow()
    const hour = now - (now % grainMs.hour)
    for (let moved = foldMax; moved === foldMax && !isClosed; ) {
      moved = await database.transaction((sql) => foldHours(sql, database.engine, hour))
    }
  }
  const run = () => {
    running = running.then(round).catch(onFault)
    return running
  }
  const stop = every(foldRoundMs, run)
  return {
    run,
    async close(): Promise<void> {
      isClosed = true
      stop()
      await running
    },
  }
}
