// The least that makes a request's row durable before its answer ends: one thread that writes to SQLite, one commit and
// sync for everything that queued up during the last one. Two rows per request, as a charge and its record are.

import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'

/** Resolves when the row is on the disk. */
export type WriteRow = (row: readonly (string | number)[]) => Promise<void>

const schema = `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE requests (id TEXT PRIMARY KEY, at TEXT, key TEXT, model TEXT, status TEXT, usage TEXT) WITHOUT ROWID;
  CREATE TABLE transfers (id TEXT PRIMARY KEY, debit TEXT, credit TEXT, amount TEXT, price TEXT, usage TEXT) WITHOUT ROWID;
  CREATE TABLE balances (account TEXT PRIMARY KEY, posted BIGINT); INSERT INTO balances VALUES ('wallet', 0)`

export function openDurableRows(folder: string): WriteRow {
  const worker = new Worker(import.meta.url)
  worker.postMessage(join(folder, 'bare-durable.db'))
  let queue: { readonly row: readonly (string | number)[]; done(): void }[] = []
  let isBusy = false
  const commit = () => {
    const batch = queue
    queue = []
    isBusy = batch.length > 0
    if (!isBusy) return
    worker.onmessage = () => {
      for (const { done } of batch) done()
      commit()
    }
    worker.postMessage(JSON.stringify(batch.map(({ row }) => row)))
  }
  return (row) =>
    new Promise((done) => {
      queue.push({ row, done })
      if (!isBusy) queueMicrotask(() => isBusy || commit())
    })
}

function serveWrites(scope: Worker): void {
  let write: ((rows: readonly (readonly (string | number)[])[]) => void) | undefined
  scope.onmessage = ({ data }: MessageEvent<string>) => {
    if (write) {
      write(JSON.parse(data))
      scope.postMessage('durable')
    } else {
      write = openFile(data)
    }
  }
}

function openFile(file: string) {
  const database = new Database(file, { create: true })
  database.run(schema)
  const request = database.prepare('INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?)')
  const transfer = database.prepare('INSERT INTO transfers VALUES (?, ?, ?, ?, ?, ?)')
  const balance = database.prepare("UPDATE balances SET posted = posted - ? WHERE account = 'wallet'")
  return database.transaction((rows: readonly (readonly (string | number)[])[]) => {
    for (const row of rows) {
      request.run(...row)
      transfer.run(...row)
    }
    balance.run(rows.length)
  })
}

declare const self: Worker
if (!isMainThread) serveWrites(self)
