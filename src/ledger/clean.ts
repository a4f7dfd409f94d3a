// Deletes expired rows in the background, in small portions: idempotency keys older than a day, stored responses and
// counters of past windows. Transfers and prices are never deleted.

import type { Clock } from '../kernel/clock.ts'
import { minuteAt } from '../kernel/spend-limit.ts'
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
/** An upload that is not complete after so long was interrupted. */
const uploadMaxMs = 24 * 60 * 60 * 1000
/** Counters of rolling windows whose first minute is older belong to nobody any more: the longest window and a day. */
const idleMinutes = 32n * 24n * 60n
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
  await removeBatches(options, now)
  await removePastBudgets(options, now)
  await removePastMinutes(options, BigInt(minuteAt(now)))
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

/** What has expired: inputs and uploads, results, and then the batches themselves. What a running batch reads stays. */
async function removeBatches(options: CleanOptions, now: number): Promise<void> {
  const at = timeToSql(now)
  await cleanPortions(
    options,
    async (sql) => {
      const rows = await sql`DELETE FROM batch_file_parts WHERE (file_id, part) IN (SELECT p.file_id, p.part
        FROM batch_file_parts p JOIN batch_files f ON f.id = p.file_id
        WHERE f.expires_at > 0 AND f.expires_at <= ${at}
          AND NOT EXISTS (SELECT 1 FROM batches b WHERE b.input_file_id = f.id AND b.state <> 'ended')
        LIMIT ${BigInt(responsesMax)}) RETURNING 1 AS removed`
      return rows.length
    },
    responsesMax,
  )
  // Uploads that were interrupted, too.
  await cleanPortions(
    options,
    async (sql) => {
      const rows = await sql`DELETE FROM batch_files WHERE id IN (SELECT f.id FROM batch_files f
      WHERE (f.expires_at > 0 AND f.expires_at <= ${at} OR f.expires_at = 0 AND f.created_at <= ${timeToSql(now - uploadMaxMs)})
        AND NOT EXISTS (SELECT 1 FROM batches b WHERE b.input_file_id = f.id AND b.state <> 'ended')
      LIMIT ${BigInt(responsesMax)}) RETURNING 1 AS removed`
      return rows.length
    },
    responsesMax,
  )
  await cleanPortions(options, async (sql) => {
    const rows =
      await sql`DELETE FROM batch_lines WHERE (batch_id, line) IN (SELECT l.batch_id, l.line FROM batch_lines l
      JOIN batches b ON b.id = l.batch_id WHERE b.erase_at <= ${at} LIMIT ${BigInt(portionMax)}) RETURNING 1 AS removed`
    return rows.length
  })
  await cleanPortions(options, async (sql) => {
    const rows = await sql`DELETE FROM batches WHERE id IN (SELECT b.id FROM batches b WHERE b.erase_at <= ${at}
      AND NOT EXISTS (SELECT 1 FROM batch_lines l WHERE l.batch_id = b.id) LIMIT ${BigInt(portionMax)})
      RETURNING 1 AS removed`
    return rows.length
  })
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

/** A day after they have left their window. */
async function removePastMinutes(options: CleanOptions, minute: bigint): Promise<void> {
  await cleanPortions(options, async (sql) => {
    const rows = await sql<{
      scope_id: string
      time_window: string
      minute: bigint
    }>`SELECT scope_id, time_window, minute
      FROM budget_minutes WHERE kept_until < ${minute} ORDER BY kept_until, scope_id, time_window LIMIT ${BigInt(portionMax)}`
    const counters = Map.groupBy(rows, (row) => `${row.scope_id} ${row.time_window}`)
    for (const [, own] of [...counters].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const { scope_id: scope, time_window: window } = own[0] as (typeof rows)[number]
      const last = own.reduce((max, row) => (row.minute > max ? row.minute : max), 0n)
      // A counter that nobody has used since still has them in its sum. The next hold makes it again.
      await sql`DELETE FROM budgets WHERE scope_id = ${scope} AND time_window = ${window} AND held = 0
        AND (counted_from IS NULL OR counted_from <= ${last})`
      await sql`UPDATE budgets SET spent = 0, counted_from = NULL
        WHERE scope_id = ${scope} AND time_window = ${window} AND counted_from <= ${last}`
      await sql`DELETE FROM budget_minutes WHERE scope_id = ${scope} AND time_window = ${window} AND minute <= ${last}
        AND kept_until < ${minute}`
    }
    return rows.length
  })
  // Those that were never charged.
  await cleanPortions(options, async (sql) => {
    const rows =
      await sql`DELETE FROM budgets WHERE (scope_id, time_window) IN (SELECT scope_id, time_window FROM budgets
      WHERE counted_from < ${minute - idleMinutes} AND held = 0 ORDER BY counted_from LIMIT ${BigInt(portionMax)})
      AND held = 0 RETURNING 1 AS removed`
    return rows.length
  })
}
