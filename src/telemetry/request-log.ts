// The request log: who asked for what, where it went, and what it cost. A charged request is written with its charge;
// the others here, in the background and in batches, because nothing waits for them and losing the last second of them
// in a crash loses no money.

import type { KeyId, RequestId, WorkspaceId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { insertNewRows } from '../store/insert-rows.ts'
import type { NewRow } from '../store/write-batch.ts'
import type { RequestRecord } from './request-record.ts'
import { type LoggedRequest, requestFromRow, requestRow, type StoredRow } from './request-row.ts'

export interface RequestQuery {
  readonly workspaceId?: WorkspaceId
  readonly keyId?: KeyId
  readonly limit: number
  /** The id of the last one of the page before. */
  readonly before?: RequestId
}

export interface RequestLog {
  /** Queues the record of a request that was not charged. */
  write(record: RequestRecord): void
  /** Newest first. */
  list(query: RequestQuery): Promise<readonly LoggedRequest[]>
  find(id: RequestId): Promise<LoggedRequest | undefined>
  /** Writes what is queued. */
  close(): Promise<void>
}

export interface RequestLogOptions {
  readonly database: Database
  /** Told once per batch that could not be written, and what was given up. */
  onLost(count: number, error: unknown): void
}

const flushMs = 200
/** About 1 KB each. Beyond it the newest are dropped: a flood of refusals must not become a flood of memory. */
const queueMax = 10_000

export function createRequestLog({ database, onLost }: RequestLogOptions): RequestLog {
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
      await database.transaction((sql) => insertNewRows(sql, rows))
    } catch (error) {
      onLost(rows.length, error)
    }
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
    async list({ workspaceId, keyId, limit, before = 'req_~' as RequestId }) {
      const { sql } = database
      const rows = BigInt(limit)
      const found = await (keyId !== undefined
        ? sql<StoredRow>`SELECT * FROM requests WHERE key_id = ${keyId} AND id < ${before} ORDER BY id DESC LIMIT ${rows}`
        : workspaceId !== undefined
          ? sql<StoredRow>`SELECT * FROM requests WHERE workspace_id = ${workspaceId} AND id < ${before}
              ORDER BY id DESC LIMIT ${rows}`
          : sql<StoredRow>`SELECT * FROM requests WHERE id < ${before} ORDER BY id DESC LIMIT ${rows}`)
      return found.map(requestFromRow)
    },
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
