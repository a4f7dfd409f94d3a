// The request log: who asked for what, where it went, and what it cost. A charged request is written with its charge;
// the others here, in the background and in batches, because nothing waits for them and losing the last second of them
// in a crash loses no money.

import type { RequestId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { insertNewRows } from '../store/insert-rows.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import type { NewRow } from '../store/write-batch.ts'
import { listRequests, type RequestQuery } from './list-requests.ts'
import type { RequestRecord } from './request-record.ts'
import { type LoggedRequest, requestFromRow, requestRow, type StoredRow } from './request-row.ts'

export interface RequestLog {
  /** Queues the record of a request that was not charged. */
  write(record: RequestRecord): void
  /** Queues the notes of a charged request, to be written again: one was made after its row. */
  amendNotes(record: RequestRecord): void
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
  let amended: Pick<RequestRecord, 'id' | 'notes'>[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let writing: Promise<void> = Promise.resolve()
  let dropped = 0

  async function flush(): Promise<void> {
    const rows = queue
    queue = []
    if (dropped > 0) onLost(dropped, new Error('the queue of the request log was full'))
    dropped = 0
    await updateNotes()
    if (rows.length === 0) return
    try {
      await insert(rows)
    } catch (error) {
      if (isStoreUnavailable(error)) onLost(rows.length, error)
      else await insertEach(rows)
    }
  }

  async function updateNotes(): Promise<void> {
    const records = amended
    amended = []
    if (records.length === 0) return
    try {
      await database.transaction(async (sql) => {
        for (const { id, notes } of records)
          await sql`UPDATE requests SET notes = ${JSON.stringify(notes)} WHERE id = ${id}`
      })
    } catch (error) {
      onLost(records.length, error)
    }
  }

  const insert = (rows: readonly NewRow[]) => database.transaction((sql) => insertNewRows(sql, rows))

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
    amendNotes({ id, notes }) {
      if (amended.length >= queueMax) dropped++
      else amended.push({ id, notes })
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
