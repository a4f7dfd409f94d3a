// The least that makes a request's row durable before its answer ends: one thread that writes to SQLite, one commit and
// sync for everything that queued up during the last one. Two rows per request, as a charge and its record are.
//
// `journal`: a prototype of the other design. The batch is appended to a preallocated file and synced, the answer is sent,
// and the rows reach SQLite a quarter of a second later, many in one transaction. It cannot recover: it only shows the cost.

import { Database } from 'bun:sqlite'
import { fdatasyncSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'

/** Resolves when the row is on the disk. */
export type WriteRow = (row: readonly (string | number)[]) => Promise<void>

const schema = `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE requests (id TEXT PRIMARY KEY, at TEXT, key TEXT, model TEXT, status TEXT, usage TEXT) WITHOUT ROWID;
  CREATE TABLE transfers (id TEXT PRIMARY KEY, debit TEXT, credit TEXT, amount TEXT, price TEXT, usage TEXT) WITHOUT ROWID;
  CREATE TABLE balances (account TEXT PRIMARY KEY, posted BIGINT); INSERT INTO balances VALUES ('wallet', 0)`

export type Durability = 'commit' | 'journal'

export function openDurableRows(folder: string, durability: Durability = 'commit'): WriteRow {
  const worker = new Worker(import.meta.url)
  worker.postMessage(join(folder, `bare-${durability}.db`))
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
  let write: ((batch: string) => void) | undefined
  scope.onmessage = ({ data }: MessageEvent<string>) => {
    if (write) {
      write(data)
      scope.postMessage('durable')
    } else {
      const commit = openFile(data)
      write = data.endsWith('bare-journal.db') ? openJournal(data, commit) : (batch) => commit(JSON.parse(batch))
    }
  }
}

const journalBytes = 8 * 1024 * 1024
const applyMs = 250
const headerBytes = 16

/** Length, sequence number and checksum before each batch. The file is written from its start again once all is applied. */
function openJournal(file: string, commit: ReturnType<typeof openFile>): (batch: string) => void {
  const journal = openSync(`${file}.journal`, 'w')
  writeSync(journal, Buffer.alloc(journalBytes))
  fdatasyncSync(journal)
  let sequence = 0
  let end = 0
  let unapplied: string[] = []
  const apply = () => {
    if (unapplied.length > 0) commit(unapplied.flatMap((batch) => JSON.parse(batch)))
    unapplied = []
    end = 0
  }
  setInterval(apply, applyMs)
  return (batch) => {
    const record = Buffer.allocUnsafe(headerBytes + Buffer.byteLength(batch))
    record.writeUInt32LE(record.length - headerBytes, 0)
    record.writeUInt32LE(sequence++, 4)
    record.write(batch, headerBytes)
    record.writeBigUInt64LE(Bun.hash.wyhash(record.subarray(headerBytes)), 8)
    if (end + record.length > journalBytes) apply()
    writeSync(journal, record, 0, record.length, end)
    fdatasyncSync(journal)
    end += record.length
    unapplied.push(batch)
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
