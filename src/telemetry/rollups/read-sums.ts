// Reads the sums of a span of time from what was counted: weeks and days where whole ones are meant, hours for the
// rest, so that the rows it reads are bounded by the span and not by the traffic.

import { type Sql, timeToSql } from '../../store/sql.ts'
import { addFigures, type Figures, hourMs, noFigures } from './count-requests.ts'
import { firstEventColumns } from './first-event.ts'
import { type Grain, grainMs, type Series } from './grains.ts'

/** By hour or subject. */
export type Sums = Map<string, Figures>

export interface Span {
  /** Whole hours, epoch milliseconds. */
  readonly from: number
  readonly to: number
  /** Nothing was counted that began at or after it. */
  readonly end: number
  /** Empty = all of them. */
  readonly workspaceId: string
}

export function addTo(sums: Sums, id: string, figures: Figures, sign = 1n): void {
  const sum = sums.get(id) ?? noFigures()
  addFigures(sum, figures, sign)
  sums.set(id, sum)
}

/** Totals of each hour that has any. */
export async function readHours(sql: Sql, span: Span): Promise<Sums> {
  const sums: Sums = new Map()
  // There is one row for each: nothing to add up.
  const rows = await sql<Row>`SELECT start_at AS id, requests, errors, input_tokens, output_tokens, charge,
      first_25, first_50, first_100, first_200, first_350, first_500, first_750, first_1000, first_1500, first_2500,
      first_5000, first_10000, first_30000, first_later
    FROM request_sums WHERE grain = 'hour' AND series = 'total' AND workspace_id = ${span.workspaceId}
      AND start_at >= ${timeToSql(span.from)} AND start_at < ${timeToSql(span.to)}`
  for (const row of rows) sums.set(String(row.id), figuresOf(row))
  return sums
}

/** By model, project or key. */
export async function readSubjects(sql: Sql, series: Series, span: Span): Promise<Sums> {
  const sums: Sums = new Map()
  for (const part of partsOf(span)) {
    for (const row of await readRows(sql, series, part)) addTo(sums, String(row.id), figuresOf(row), part.sign)
  }
  for (const [id, { requests }] of sums) if (requests === 0n) sums.delete(id)
  return sums
}

interface Part extends Span {
  readonly grain: Grain
  /** −1: what is to be taken away again. */
  readonly sign: bigint
}

/**
 * Whole weeks where there are any, around them whole days, and the hours that are left. Where most of a week or day is
 * meant, that is a whole one without the rest.
 */
export function partsOf(span: Span): readonly Part[] {
  return splitBy({ ...span, sign: 1n }, ['week', 'day'])
}

type Piece = Omit<Part, 'grain'>

function splitBy(piece: Piece, [grain, ...finer]: readonly Grain[]): readonly Part[] {
  const { from, to, end, sign } = piece
  if (from >= to) return []
  if (grain === undefined) return [{ ...piece, grain: 'hour' }]
  const length = grainMs[grain]
  const isMost = (part: number) => part > length / 2
  const nextStart = Math.ceil(from / length) * length
  const lastEnd = Math.floor(to / length) * length
  const first = isMost(nextStart - from) ? nextStart - length : nextStart
  // What nothing follows is whole.
  const last = to >= end || isMost(to - lastEnd) ? Math.ceil(to / length) * length : lastEnd
  if (first >= last) return splitBy(piece, finer)
  const edges = [
    from < first ? { ...piece, to: first } : { ...piece, from: first, to: from, sign: -sign },
    to > last ? { ...piece, from: last } : { ...piece, from: Math.min(to, end), to: Math.min(last, end), sign: -sign },
  ]
  return [{ ...piece, from: first, to: last, grain }, ...edges.flatMap((edge) => splitBy(edge, finer))]
}

/** The hour after the last one that was counted. */
export async function readEnd(sql: Sql): Promise<number> {
  const [row] = await sql<{ start_at: bigint }>`SELECT start_at FROM request_sums
    WHERE grain = 'hour' AND series = 'total' AND workspace_id = '' ORDER BY start_at DESC LIMIT 1`
  return row ? Number(row.start_at) + hourMs : 0
}

type Row = { readonly id: string | bigint } & Readonly<Record<string, bigint>>

function readRows(sql: Sql, series: Series, { grain, from, to, workspaceId }: Part): Promise<Row[]> {
  return sql<Row>`SELECT subject AS id, CAST(SUM(requests) AS BIGINT) AS requests,
      CAST(SUM(errors) AS BIGINT) AS errors, CAST(SUM(input_tokens) AS BIGINT) AS input_tokens,
      CAST(SUM(output_tokens) AS BIGINT) AS output_tokens, CAST(SUM(charge) AS BIGINT) AS charge,
      CAST(SUM(first_25) AS BIGINT) AS first_25, CAST(SUM(first_50) AS BIGINT) AS first_50,
      CAST(SUM(first_100) AS BIGINT) AS first_100, CAST(SUM(first_200) AS BIGINT) AS first_200,
      CAST(SUM(first_350) AS BIGINT) AS first_350, CAST(SUM(first_500) AS BIGINT) AS first_500,
      CAST(SUM(first_750) AS BIGINT) AS first_750, CAST(SUM(first_1000) AS BIGINT) AS first_1000,
      CAST(SUM(first_1500) AS BIGINT) AS first_1500, CAST(SUM(first_2500) AS BIGINT) AS first_2500,
      CAST(SUM(first_5000) AS BIGINT) AS first_5000, CAST(SUM(first_10000) AS BIGINT) AS first_10000,
      CAST(SUM(first_30000) AS BIGINT) AS first_30000, CAST(SUM(first_later) AS BIGINT) AS first_later
    FROM request_sums WHERE grain = ${grain} AND series = ${series} AND workspace_id = ${workspaceId}
      AND start_at >= ${timeToSql(from)} AND start_at < ${timeToSql(to)}
    GROUP BY subject`
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
