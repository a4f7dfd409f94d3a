// The part of the request log that no rollup has counted yet. Requests that took long are written long after their id was
// made, so they have a cursor of their own: whatever is behind a cursor can get no company any more.

import { type Sql, timeFromSql } from '../../store/sql.ts'
import { endOfLog, firstIdAt } from '../id-at.ts'
import type { CountedRow } from './count-requests.ts'

export const cursorNames = ['short', 'long', 'longest'] as const
export type CursorName = (typeof cursorNames)[number]

/**
 * How old a request must be to be counted for good: what it may have taken (60 s, ten minutes, and nothing takes six
 * hours), and 40 s: nearly every request is written within 30 s of its end, and clocks differ by a little. One whose commit
 * took longer, because the disk or the database stood still, may be missing in the counts; its charge is in the ledger.
 */
const settledMs: Readonly<Record<CursorName, number>> = { short: 100_000, long: 640_000, longest: 6 * 3_600_000 }

export function settledBefore(name: CursorName, now: number): string {
  return firstIdAt(Math.max(0, Math.floor(now - settledMs[name])))
}

export async function readCursor(sql: Sql, name: CursorName): Promise<string> {
  const [row] = await sql<{ last_id: string }>`SELECT last_id FROM rollup_cursors WHERE name = ${name}`
  return row?.last_id ?? ''
}

/** The last request that was counted, of each kind. */
export type Cursors = Readonly<Record<CursorName, string>>

export async function readCursors(sql: Sql): Promise<Cursors> {
  const rows = await sql<{ name: CursorName; last_id: string }>`SELECT name, last_id FROM rollup_cursors`
  const found = new Map(rows.map(({ name, last_id }) => [name, last_id]))
  return { short: found.get('short') ?? '', long: found.get('long') ?? '', longest: found.get('longest') ?? '' }
}

export interface Stretch {
  readonly after: string
  /** Absent = to the end of the log. */
  readonly before?: string
  readonly limit: number
}

/** By id, ascending. */
export function readUncounted(sql: Sql, name: CursorName, stretch: Stretch): Promise<CountedRow[]> {
  const { after, before = endOfLog } = stretch
  const limit = BigInt(stretch.limit)
  if (name === 'short') {
    return sql`SELECT id, started_at, workspace_id, project_id, key_id, model, code, usage, charge, first_event_ms
      FROM requests WHERE id > ${after} AND id < ${before} AND total_ms <= 60000 ORDER BY id LIMIT ${limit}`
  }
  // The first bound is the index's, word for word.
  return name === 'long'
    ? sql`SELECT id, started_at, workspace_id, project_id, key_id, model, code, usage, charge, first_event_ms
        FROM requests WHERE id > ${after} AND id < ${before} AND total_ms > 60000 AND total_ms <= 600000
        ORDER BY id LIMIT ${limit}`
    : sql`SELECT id, started_at, workspace_id, project_id, key_id, model, code, usage, charge, first_event_ms
        FROM requests WHERE id > ${after} AND id < ${before} AND total_ms > 60000 AND total_ms > 600000
        ORDER BY id LIMIT ${limit}`
}

/** When the first one began, should there be more than `limit`; undefined = there are not. No more than that are looked at. */
export async function findFirstOfMany(sql: Sql, name: CursorName, stretch: Stretch): Promise<number | undefined> {
  const { after, before = endOfLog } = stretch
  const offset = BigInt(stretch.limit)
  const [next] =
    name === 'short'
      ? await sql`SELECT id FROM requests WHERE id > ${after} AND id < ${before} AND total_ms <= 60000
          ORDER BY id LIMIT 1 OFFSET ${offset}`
      : name === 'long'
        ? await sql`SELECT id FROM requests WHERE id > ${after} AND id < ${before}
            AND total_ms > 60000 AND total_ms <= 600000 ORDER BY id LIMIT 1 OFFSET ${offset}`
        : await sql`SELECT id FROM requests WHERE id > ${after} AND id < ${before}
            AND total_ms > 60000 AND total_ms > 600000 ORDER BY id LIMIT 1 OFFSET ${offset}`
  if (!next) return undefined
  const [first] = await readUncounted(sql, name, { ...stretch, limit: 1 })
  return first && timeFromSql(first.started_at)
}
