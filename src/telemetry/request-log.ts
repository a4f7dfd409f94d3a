// The request log: who asked for what, where it went, and what it cost. A charged request is written with its charge;
// the others here, in the background and in batches, because nothing waits for them and losing the last second of them
// in a crash loses no money.

import type { RequestId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { portionsOf } from '../store/insert-rows.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import type { NewRow } from '../store/write-batch.ts'
import { listRequests, type RequestQuery } from './list-requests.ts'
import type { RequestRecord } from './request-record.ts'
import { type LoggedRequest, requestFromRow, requestRow, type StoredRow } from './request-row.ts'

export interface RequestLog {
  /**
   * Queues the record of a request that was not charged, or a correction of one that was: a row that the charge has written
   * keeps its amounts and takes the status, code, reason and notes of this record.
   */
  write(record: RequestRecord): void
  /** Newest first. */
  list(query: RequestQuery): Promise<readonly LoggedRequest[]>
  find(id: RequestId): Promise<LoggedRequest | undefined>
  /** Writes what is queued. */
  close(): Promise<void>
}

export interface RequestLogOptions {
  readonly database: Database
  /** How long a record may wait for others; absent = 200. */
  readonly flushMs?: number | undefined
  /** Told once per batch that could not be written, and what was given up. */
  onLost(count: number, error: unknown): void
}

const usualFlushMs = 200
/** About 1 KB each. Beyond it the newest are dropped: a flood of refusals must not become a flood of memory. */
const queueMax = 10_000

export function createRequestLog({ database, flushMs = usualFlushMs, onLost }: RequestLogOptions): RequestLog {
  let queue: NewRow[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let writing: Promise<void> = Promise.resolve()
  let dropped = 0

  async function flush(): Promise<void> {
    const rows = queue
    queue = []
    if (dropped > 0) onLost(dropped, new Error('the queue of the request log was full'))
    dropped = 0
    if (rows.length === 0) return
    try {
      await insert(rows)
    } catch (error) {
      if (isStoreUnavailable(error)) onLost(rows.length, error)
      else await insertEach(rows)
    }
  }

  const insert = (rows: readonly NewRow[]) =>
    database.transaction(async (sql) => {
      for (const portion of portionsOf(rows)) {
        // `total_ms` stays as it is: by it the row may have been counted already (rollups).
        await sql`INSERT INTO requests ${sql(portion.map(({ columns }) => columns))} ON CONFLICT (id) DO UPDATE SET
          status = excluded.status, code = excluded.code, reason = excluded.reason, notes = excluded.notes`
      }
    })

  /** A row that the database refuses must not take the others with it: they are other people's. */
  async function insertEach(rows: readonly NewRow[]): Promise<void> {
    let lost = 0
    let fault: unknown
    for (const row of rows) {
      try {
        await insert([row])
      } catch (error) {
        lost++
        fault = error
      }
    }
    if (lost > 0) onLost(lost, fault)
  }

  function flushSoon(): void {
    timer ??= setTimeout(() => {
      timer = undefined
      writing = writing.then(flush)
    }, flushMs)
  }

  return {
    write(record) {
      const row = requestRow(record)
      if (!row) return
      if (queue.length >= queueMax) dropped++
      else queue.push(row)
      flushSoon()
    },
    list: (query) => listRequests(database.sql, query),
    async find(id) {
      const [row] = await database.sql<StoredRow>`SELECT * FROM requests WHERE id = ${id}`
      return row && requestFromRow(row)
    },
    async close() {
      clearTimeout(timer)
      timer = undefined
      await writing
      await flush()
    },
  }
}
