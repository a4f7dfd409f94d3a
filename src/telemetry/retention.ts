// Forgets requests that are older than the operator wants to keep, in the background and in small portions. Only the
// request log: transfers are money and stay for ever.

import type { Clock } from '../kernel/clock.ts'
import { type Every, onTimer } from '../kernel/every.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { firstIdAt } from './id-at.ts'
import { lastPlaces, type PlacedRow } from './request-lists.ts'

export interface RetentionOptions {
  readonly database: Database
  readonly clock: Clock
  /** 0 = for ever. Asked every time, because a changed configuration may say otherwise. */
  days(): number
  /** A round failed; the next one tries again. */
  onFault(error: unknown): void
  readonly every?: Every
  readonly pause?: (milliseconds: number) => Promise<void>
}

export interface Retention {
  /** One round; answers with how many requests were forgotten. Runs by itself every few minutes. */
  run(): Promise<number>
  /** Waits for the portion that is being removed, and stops. */
  close(): Promise<void>
}

const roundMs = 10 * 60_000
const dayMs = 24 * 60 * 60_000
/** A few milliseconds of writing: on the embedded engine charges wait behind it. */
const portionMax = 500
const pauseMs = 100

export function createRetention(options: RetentionOptions): Retention {
  const { database, clock, every = onTimer, pause = (milliseconds) => Bun.sleep(milliseconds) } = options
  let isClosed = false
  let running: Promise<number> = Promise.resolve(0)

  async function round(): Promise<number> {
    const days = options.days()
    const before = clock.now() - days * dayMs
    let removed = 0
    if (days <= 0 || before <= 0) return removed
    while (!isClosed) {
      const portion = await database.transaction((sql) => removePortion(sql, Math.floor(before)))
      removed += portion
      if (portion < portionMax) break
      await pause(pauseMs)
    }
    return removed
  }

  const run = (): Promise<number> => {
    running = running.then(round).catch((error) => {
      options.onFault(error)
      return 0
    })
    return running
  }
  const stop = every(roundMs, run)

  return {
    run,
    async close() {
      isClosed = true
      stop()
      await running
    },
  }
}

async function removePortion(sql: Sql, before: number): Promise<number> {
  // The id finds them; the time decides, should a clock ever have been wrong.
  const rows = await sql<PlacedRow>`DELETE FROM requests WHERE id IN (SELECT id FROM requests
    WHERE id < ${firstIdAt(before)} AND started_at < ${timeToSql(before)} ORDER BY id LIMIT ${BigInt(portionMax)})
    RETURNING id, workspace_id, key_id, model, code`
  // The oldest go first, so that of each list none before these is left.
  for (const [list, last] of lastPlaces(rows)) {
    await sql`DELETE FROM request_lists WHERE list = ${list} AND id <= ${last}`
  }
  return rows.length
}
