// Keeps the counts of the request log, and its lists, in the background and in small portions. Every request is counted once,
// whichever replica does it: a portion is added only together with the step of its cursor.

import type { Clock } from '../../kernel/clock.ts'
import { type Every, onTimer } from '../../kernel/every.ts'
import type { RequestId } from '../../kernel/ids.ts'
import type { Database } from '../../store/database.ts'
import type { Sql, SqlValue } from '../../store/sql.ts'
import { storeNow } from '../../store/store-now.ts'
import { firstIdAt } from '../id-at.ts'
import { type PlacedRow, placesOf } from '../request-lists.ts'
import { type Bucket, countRequests } from './count-requests.ts'
import { firstEventColumns } from './first-event.ts'
import { type SumRow, sumsOf } from './grains.ts'
import { type CursorName, cursorNames, readCursor, readUncounted, settledBefore } from './uncounted.ts'

export interface RollupOptions {
  readonly database: Database
  readonly clock: Clock
  /** For tests: what time it is to all replicas. */
  readonly now?: () => Promise<number>
  /** A round failed; the next one tries again. */
  onFault(error: unknown): void
  /** Rows of the log could not be read, in whole or in part, and are missing from the sums: how many, and the first. */
  readonly onUnreadable?: (count: number, first: RequestId) => void
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
/** Reading and adding up takes a few milliseconds, in which no generation moves. */
const portionMax = 500
/** Many requests add to the same few sums, so that writing once for many portions is most of what can be saved. */
const portionsPerWrite = 10
const pauseMs = 50
/** × 24 columns = 768 parameters, and × 3 = 192; both below what either engine takes. */
const sumsPerStatement = 32
const placesPerStatement = 64
/** Longer than the longest wait of a cursor. */
const restMs = 7 * 3_600_000

export function createRollups(options: RollupOptions): Rollups {
  const { database, clock, every = onTimer, pause = (milliseconds) => Bun.sleep(milliseconds) } = options
  // Of one that is ahead, what the others write afterwards would come behind the cursor, and never be counted.
  const { now = () => storeNow(database, clock) } = options
  let isClosed = false
  let running: Promise<number> = Promise.resolve(0)

  async function round(): Promise<number> {
    let counted = 0
    for (const name of cursorNames) {
      while (!isClosed) {
        const stretch = await readStretch(name)
        if (!stretch) break
        await writePlaces(stretch.rows)
        if (await writeSums(database, stretch)) {
          counted += stretch.rows.length
          const [first] = stretch.unreadable
          if (first) options.onUnreadable?.(stretch.unreadable.length, first)
        }
        if (stretch.rows.length < portionMax * portionsPerWrite) break
      }
    }
    return counted
  }

  /** undefined = there is nothing to do. */
  async function readStretch(name: CursorName): Promise<Stretch | undefined> {
    const nowMs = await now()
    const before = settledBefore(name, nowMs)
    const after = await readCursor(database.sql, name)
    const rows: PlacedRow[] = []
    const buckets: Bucket[] = []
    const unreadable: RequestId[] = []
    let last = after
    for (let portion = 0; portion < portionsPerWrite && !isClosed; portion++) {
      const read = await readUncounted(database.sql, name, { after: last, before, limit: portionMax })
      last = read.at(-1)?.id ?? last
      rows.push(...read)
      buckets.push(...countRequests(read, (id) => unreadable.push(id)))
      if (read.length < portionMax) break
      await pause(pauseMs)
    }
    if (rows.length === 0) last = restingPlace(after, before, nowMs) ?? after
    return last === after ? undefined : { name, after, last, rows, buckets, unreadable }
  }

  /** Ahead of the counts: a list that finds a request twice shows it once, and a second writing of them changes nothing. */
  async function writePlaces(rows: readonly PlacedRow[]): Promise<void> {
    const places = placesOf(rows)
    for (let from = 0; from < places.length; from += portionMax) {
      const portion = places.slice(from, from + portionMax)
      await database.transaction(async (sql) => {
        for (const some of inSizes(portion, placesPerStatement)) {
          await sql`INSERT INTO request_lists ${sql(some)} ON CONFLICT DO NOTHING`
        }
      })
      if (places.length > portionMax) await pause(pauseMs)
    }
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

/** What is to be counted at once. */
interface Stretch {
  readonly name: CursorName
  readonly after: string
  readonly last: string
  readonly rows: readonly PlacedRow[]
  readonly buckets: readonly Bucket[]
  readonly unreadable: readonly RequestId[]
}

/** False: another replica was faster, and has counted them. */
async function writeSums(database: Database, { name, after, last, buckets }: Stretch): Promise<boolean> {
  const sums = sumsOf(buckets).map(rowOf)
  return await database.transaction(async (sql) => {
    const stepped = await sql`UPDATE rollup_cursors SET last_id = ${last}
      WHERE name = ${name} AND last_id = ${after} RETURNING 1 AS stepped`
    if (stepped.length === 0) return false
    for (const some of inSizes(sums, sumsPerStatement)) await addSums(sql, some)
    return true
  })
}

/** Portions of that size and then single ones: PostgreSQL keeps every text it has prepared. */
function* inSizes<Item>(items: readonly Item[], size: number): Generator<readonly Item[]> {
  let from = 0
  while (from < items.length) {
    const count = items.length - from >= size ? size : 1
    yield items.slice(from, from + count)
    from += count
  }
}

/** Where there was nothing to count the cursor follows by the hour, so that nobody has to look there again. */
function restingPlace(after: string, before: string, now: number): string | undefined {
  const isFarBehind = after < firstIdAt(Math.max(0, Math.floor(now - restMs)))
  return isFarBehind && after < before ? before : undefined
}

function rowOf({ grain, series, workspaceId, startAt, subject, figures }: SumRow): Readonly<Record<string, SqlValue>> {
  const places = firstEventColumns.map((column, at): [string, SqlValue] => [column, figures.firstEvents[at] ?? 0n])
  return {
    grain,
    series,
    workspace_id: workspaceId,
    start_at: startAt,
    subject,
    requests: figures.requests,
    errors: figures.errors,
    input_tokens: figures.inputTokens,
    output_tokens: figures.outputTokens,
    charge: figures.charge,
    ...Object.fromEntries(places),
  }
}

async function addSums(sql: Sql, rows: readonly Readonly<Record<string, SqlValue>>[]): Promise<void> {
  await sql`INSERT INTO request_sums ${sql(rows)}
    ON CONFLICT (grain, series, workspace_id, start_at, subject) DO UPDATE SET
      requests = request_sums.requests + excluded.requests,
      errors = request_sums.errors + excluded.errors,
      input_tokens = request_sums.input_tokens + excluded.input_tokens,
      output_tokens = request_sums.output_tokens + excluded.output_tokens,
      charge = request_sums.charge + excluded.charge,
      first_25 = request_sums.first_25 + excluded.first_25,
      first_50 = request_sums.first_50 + excluded.first_50,
      first_100 = request_sums.first_100 + excluded.first_100,
      first_200 = request_sums.first_200 + excluded.first_200,
      first_350 = request_sums.first_350 + excluded.first_350,
      first_500 = request_sums.first_500 + excluded.first_500,
      first_750 = request_sums.first_750 + excluded.first_750,
      first_1000 = request_sums.first_1000 + excluded.first_1000,
      first_1500 = request_sums.first_1500 + excluded.first_1500,
      first_2500 = request_sums.first_2500 + excluded.first_2500,
      first_5000 = request_sums.first_5000 + excluded.first_5000,
      first_10000 = request_sums.first_10000 + excluded.first_10000,
      first_30000 = request_sums.first_30000 + excluded.first_30000,
      first_later = request_sums.first_later + excluded.first_later`
}
