// Keeps the hourly counts of the request log, in the background and in small portions. Every request is counted once,
// whichever replica does it: a portion is added only together with the step of its cursor.

import type { Clock } from '../../kernel/clock.ts'
import type { Database } from '../../store/database.ts'
import type { Sql, SqlValue } from '../../store/sql.ts'
import { firstIdAt } from '../id-at.ts'
import { type Every, onTimer } from '../metrics/every.ts'
import { countRequests } from './count-requests.ts'
import { firstEventColumns } from './first-event.ts'
import { type GrainBucket, grainsOf } from './grains.ts'
import { type CursorName, cursorNames, readCursor, readUncounted, settledBefore } from './uncounted.ts'

export interface RollupOptions {
  readonly database: Database
  readonly clock: Clock
  /** A round failed; the next one tries again. */
  onFault(error: unknown): void
  readonly every?: Every
  readonly pause?: (milliseconds: number) => Promise<void>
}

export interface Rollups {
  /** One round; answers with how many requests were counted. Runs by itself every few seconds. */
  run(): Promise<number>
  /** Waits for the portion that is being counted, and stops. */
  close(): Promise<void>
}

const roundMs = 10_000
/** Counting takes a few milliseconds, in which no generation moves. */
const portionMax = 500
const pauseMs = 50
/** × 25 columns = 800 parameters, below what either engine takes. */
const statementRows = 32
/** Longer than the longest wait of a cursor. */
const restMs = 7 * 3_600_000

export function createRollups(options: RollupOptions): Rollups {
  const { database, clock, every = onTimer, pause = (milliseconds) => Bun.sleep(milliseconds) } = options
  let isClosed = false
  let running: Promise<number> = Promise.resolve(0)

  async function round(): Promise<number> {
    let counted = 0
    for (const name of cursorNames) {
      while (!isClosed) {
        const portion = await countPortion(database, name, clock.now())
        counted += portion
        if (portion < portionMax) break
        await pause(pauseMs)
      }
    }
    return counted
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

async function countPortion(database: Database, name: CursorName, now: number): Promise<number> {
  const before = settledBefore(name, now)
  const after = await readCursor(database.sql, name)
  const rows = await readUncounted(database.sql, name, { after, before, limit: portionMax })
  const last = rows.at(-1)?.id ?? restingPlace(after, before, now)
  if (last === undefined) return 0
  const buckets = grainsOf(countRequests(rows))
  return await database.transaction(async (sql) => {
    const stepped = await sql`UPDATE rollup_cursors SET last_id = ${last}
      WHERE name = ${name} AND last_id = ${after} RETURNING 1 AS stepped`
    // Another replica was faster, and has counted them.
    if (stepped.length === 0) return 0
    let from = 0
    while (from < buckets.length) {
      // Few different sizes: PostgreSQL keeps every text it has prepared.
      const size = buckets.length - from >= statementRows ? statementRows : 1
      await addBuckets(sql, buckets.slice(from, from + size).map(rowOf))
      from += size
    }
    return rows.length
  })
}

/** Where there was nothing to count the cursor follows by the hour, so that nobody has to look there again. */
function restingPlace(after: string, before: string, now: number): string | undefined {
  const isFarBehind = after < firstIdAt(Math.max(0, Math.floor(now - restMs)))
  return isFarBehind && after < before ? before : undefined
}

function rowOf(bucket: GrainBucket): Readonly<Record<string, SqlValue>> {
  const places = firstEventColumns.map((column, at): [string, SqlValue] => [column, bucket.firstEvents[at] ?? 0n])
  return {
    grain: bucket.grain,
    start_at: bucket.hour,
    workspace_id: bucket.workspaceId,
    project_id: bucket.projectId,
    key_id: bucket.keyId,
    model: bucket.model,
    requests: bucket.requests,
    errors: bucket.errors,
    input_tokens: bucket.inputTokens,
    output_tokens: bucket.outputTokens,
    charge: bucket.charge,
    ...Object.fromEntries(places),
  }
}

async function addBuckets(sql: Sql, rows: readonly Readonly<Record<string, SqlValue>>[]): Promise<void> {
  await sql`INSERT INTO request_rollups ${sql(rows)}
    ON CONFLICT (grain, start_at, workspace_id, key_id, model) DO UPDATE SET
      requests = request_rollups.requests + excluded.requests,
      errors = request_rollups.errors + excluded.errors,
      input_tokens = request_rollups.input_tokens + excluded.input_tokens,
      output_tokens = request_rollups.output_tokens + excluded.output_tokens,
      charge = request_rollups.charge + excluded.charge,
      first_25 = request_rollups.first_25 + excluded.first_25,
      first_50 = request_rollups.first_50 + excluded.first_50,
      first_100 = request_rollups.first_100 + excluded.first_100,
      first_200 = request_rollups.first_200 + excluded.first_200,
      first_350 = request_rollups.first_350 + excluded.first_350,
      first_500 = request_rollups.first_500 + excluded.first_500,
      first_750 = request_rollups.first_750 + excluded.first_750,
      first_1000 = request_rollups.first_1000 + excluded.first_1000,
      first_1500 = request_rollups.first_1500 + excluded.first_1500,
      first_2500 = request_rollups.first_2500 + excluded.first_2500,
      first_5000 = request_rollups.first_5000 + excluded.first_5000,
      first_10000 = request_rollups.first_10000 + excluded.first_10000,
      first_30000 = request_rollups.first_30000 + excluded.first_30000,
      first_later = request_rollups.first_later + excluded.first_later`
}
