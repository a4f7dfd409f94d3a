// Deletes rows of the request log: those older than the operator wants to keep, in the background, and those of a workspace
// on request. Always in small portions, because charges wait behind a write on the embedded engine. Charges are archived. Sums
// stay, except those by agent and session, which are names that clients chose.

import type { Clock } from '../kernel/clock.ts'
import { firstIdAt, type WorkspaceId } from '../kernel/ids.ts'
import { createRounds, type Every } from '../kernel/timers.ts'
import type { Database } from '../store/database.ts'
import { templateOf } from '../store/insert-rows.ts'
import { clientSeries, foldHours, foldMax, grainMs } from '../store/request-rows.ts'
import { type Sql, type SqlValue, timeToSql } from '../store/sql.ts'

export interface RetentionOptions {
  readonly database: Database
  readonly clock: Clock
  /** 0 = for ever. Read in every round, because the configuration may change. */
  days(): number
  /** A round failed; the next one tries again. */
  onFault(error: unknown): void
  readonly every?: Every
  readonly pause?: (milliseconds: number) => Promise<void>
}

const roundMs = 10 * 60_000
const dayMs = 24 * 60 * 60_000
/** A few milliseconds of writing. */
const portionMax = 500
const pauseMs = 100

/** A round returns the number of deleted requests; undefined = it failed. */
export function createRetention(options: RetentionOptions) {
  const { database, clock, every, onFault, pause = (milliseconds) => Bun.sleep(milliseconds) } = options
  return createRounds({ milliseconds: roundMs, every, onFault }, async (isClosed) => {
    const days = options.days()
    const before = Math.floor(clock.now() - days * dayMs)
    let removed = 0
    if (days <= 0 || before <= 0) return removed
    // The id has an index. The time decides, in case a clock was wrong.
    const where = ['id < ', ' AND started_at < ']
    const values = [firstIdAt(before), timeToSql(before)]
    while (!isClosed()) {
      const portion = await database.transaction((sql) => removePortion(sql, where, values))
      removed += portion
      if (portion < portionMax) break
      await pause(pauseMs)
    }
    for (const [grain, lengthMs] of Object.entries(grainMs)) {
      for (let portion = portionMax; portion === portionMax && !isClosed(); ) {
        portion = await database.transaction((sql) => removeNamedSums(sql, { grain, endedBefore: before - lengthMs }))
        if (portion === portionMax) await pause(pauseMs)
      }
    }
    return removed
  })
}

/** Deletes the log of a workspace and returns the number of rows. Requests that end meanwhile may remain. */
export async function forgetRequests(database: Database, workspaceId: WorkspaceId): Promise<number> {
  let forgotten = 0
  for (let portion = portionMax; portion === portionMax; ) {
    portion = await database.transaction((sql) => removePortion(sql, ['workspace_id = '], [workspaceId]))
    forgotten += portion
  }
  // Hours that were not moved yet have agents too.
  for (let moved = foldMax; moved === foldMax; ) {
    moved = await database.transaction((sql) => foldHours(sql, database.engine, Number.MAX_SAFE_INTEGER))
  }
  for (const grain of Object.keys(grainMs)) {
    for (let portion = portionMax; portion === portionMax; ) {
      portion = await database.transaction((sql) => removeNamedSums(sql, { grain, workspaceId }))
    }
  }
  return forgotten
}

interface NamedSums {
  readonly grain: string
  /** Only what began at or before this time. */
  readonly endedBefore?: number
  readonly workspaceId?: WorkspaceId
}

/** The condition names all columns of the primary key, so that no other sum is read. */
async function removeNamedSums(
  sql: Sql,
  { grain, endedBefore = Number.MAX_SAFE_INTEGER, workspaceId }: NamedSums,
): Promise<number> {
  let removed = 0
  for (const series of clientSeries) {
    const rows = await sql`DELETE FROM request_sums
      WHERE (grain, series, workspace_id, start_at, subject) IN (SELECT grain, series, workspace_id, start_at, subject
        FROM request_sums WHERE grain = ${grain} AND series = ${series}
          AND workspace_id IN (SELECT id FROM workspaces WHERE CAST(${workspaceId ?? ''} AS TEXT) IN ('', id))
          AND start_at <= ${timeToSql(endedBefore)} LIMIT ${BigInt(portionMax - removed)}) RETURNING 1 AS removed`
    removed += rows.length
  }
  return removed
}

const archived = 'id, workspace_id, charge, written_off, price_version, usage, estimated, budgets'

/** Charges are kept for ever: they move to the archive. Each text of `where` is followed by a value. */
async function removePortion(sql: Sql, where: readonly string[], values: readonly SqlValue[]): Promise<number> {
  const [first = '', ...more] = where
  const run = (before: string, after: string) =>
    sql(
      templateOf([
        `${before} id IN (SELECT id FROM requests WHERE ${first}`,
        ...more,
        ` ORDER BY id LIMIT ${portionMax})${after}`,
      ]),
      ...values,
    )
  await run(
    `INSERT INTO archived_charges (created_at, ${archived})
      SELECT started_at + total_ms, ${archived} FROM requests WHERE charge IS NOT NULL AND`,
    ' ON CONFLICT DO NOTHING',
  )
  const removed = await run('DELETE FROM requests WHERE', ' RETURNING 1 AS removed')
  return removed.length
}
