// Deletes expired rows in the background, in small portions: idempotency keys older than a day, stored responses and
// counters of past windows. Transfers and prices are never deleted.

import type { Clock } from '../kernel/clock.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { isWindowPast } from './budget.ts'
import type { Timers } from './ledger.ts'

export const cleanMs = 60_000
/** A few milliseconds of writing: on the embedded engine charges wait behind it. */
export const portionMax = 500
/** Stored responses are larger than other rows. */
const responsesMax = 20
const pauseMs = 100
/** So that one round ends: 500,000 rows a minute is more than is written. */
const portionsMax = 1000

export interface CleanOptions {
  readonly database: Database
  readonly clock: Clock
  readonly timers: Timers
}

/** `keysNow`: by a clock that was set, keys would be freed early, and what they were for paid twice. */
export async function clean(options: CleanOptions, keysNow: number): Promise<void> {
  const now = options.clock.now()
  await cleanPortions(options, (sql) => removeExpiredKeys(sql, keysNow))
  await cleanPortions(options, (sql) => removeExpiredResponses(sql, now), responsesMax)
  await removePastBudgets(options, now)
}

/** `remove` takes away at most `most` rows and says how many. */
export async function cleanPortions(
  { database, timers }: CleanOptions,
  remove: (sql: Sql) => Promise<number>,
  max = portionMax,
): Promise<void> {
  for (let portions = 1; portions <= portionsMax; portions++) {
    const removed = await database.transaction(remove)
    if (removed < max) return
    await timers.wait(pauseMs)
  }
}

async function removeExpiredKeys(sql: Sql, now: number): Promise<number> {
  const rows = await sql`DELETE FROM idempotency WHERE (scope, key) IN (SELECT scope, key FROM idempotency
    WHERE expires_at <= ${timeToSql(now)} ORDER BY expires_at LIMIT ${BigInt(portionMax)}) RETURNING 1 AS removed`
  return rows.length
}

async function removeExpiredResponses(sql: Sql, now: number): Promise<number> {
  const rows = await sql`DELETE FROM stored_responses WHERE (workspace_id, id) IN (SELECT workspace_id, id
    FROM stored_responses WHERE expires_at <= ${timeToSql(now)} ORDER BY expires_at LIMIT ${BigInt(responsesMax)})
    RETURNING 1 AS removed`
  return rows.length
}

async function removePastBudgets(options: CleanOptions, now: number): Promise<void> {
  // Which windows are past is decided here and not by the order of texts, which the engines may see differently.
  const windows = await options.database.sql<{ time_window: string }>`SELECT DISTINCT time_window FROM budgets`
  for (const { time_window: window } of windows) {
    if (!isWindowPast(window, now)) continue
    await cleanPortions(options, async (sql) => {
      const rows = await sql`DELETE FROM budgets WHERE (scope_id, time_window) IN (SELECT scope_id, time_window
        FROM budgets WHERE time_window = ${window} AND held = 0 LIMIT ${BigInt(portionMax)}) RETURNING 1 AS removed`
      return rows.length
    })
  }
}
