// The thread that owns the only connection which writes to the embedded database, so that the event loop never waits for
// the disk. It answers one question of the event loop after the other and decides nothing.

import { Database, SQLiteError } from 'bun:sqlite'
import { applyMin, JournalTable } from './journal.ts'
import type { SqlValue } from './sql.ts'

declare const self: Worker

/** Questions are answered in order, one at a time. */
export type WriterQuestion =
  | { readonly kind: 'open'; readonly file: string; readonly settings: string }
  | { readonly kind: 'run'; readonly text: string; readonly values: readonly SqlValue[] }
  | { readonly kind: 'script'; readonly text: string }
  /** `text`: made by `encodeRequests`. */
  | { readonly kind: 'append'; readonly text: string; readonly count: number }
  | { readonly kind: 'apply' }
  | { readonly kind: 'close' }

export type WriterAnswer =
  | { readonly kind: 'rows'; readonly rows: unknown[] }
  | { readonly kind: 'appended' }
  | { readonly kind: 'done' }
  /** To `close` after a failed checkpoint: closing the last connection would be another one. The thread must not end either. */
  | { readonly kind: 'left open' }
  | { readonly kind: 'fault'; readonly fault: WriterFault }

/** Not an answer: a line for the gateway's log. */
export interface WriterNotice {
  readonly kind: 'notice'
  readonly line: string
}

/** The parts of an error that cross threads. */
export interface WriterFault {
  readonly message: string
  readonly code: string
  /** SQLite's extended result code; 0 for anything else. */
  readonly errno: number
}

const sqliteBusy = 5
const sqliteIoError = 10
const openTriesMax = 100
const openPauseMs = 10

/**
 * The log of a process that was killed may have commits whose sync failed: readable now, but never written to the disk. They
 * are moved to the database and synced before anything is committed behind them. Fails if that cannot be synced. A program
 * that uses the database just now prevents it: it is not waited for, because a command may be opening that of a gateway.
 */
const emptyLog = 'PRAGMA busy_timeout = 0; PRAGMA fullfsync = ON; PRAGMA wal_checkpoint(TRUNCATE)'

let connection: Database | undefined
const journal = new JournalTable((text) => opened().prepare(text))
/** Requests in the journal, of this process. */
let unapplied = 0
/** When the journal is applied if nothing else needs it: the longest delay for programs that read the file directly. */
const applyAfterMs = 250
let applyTimer: Timer | undefined

function opened(): Database {
  if (connection) return connection
  throw Object.assign(new Error('The database is closed'), { code: 'ERR_SQLITE_CONNECTION_CLOSED' })
}

/** Two processes that open a new file at once can meet while it switches to the write-ahead log; SQLite does not wait there. */
function retryWhileBusy(work: () => void): void {
  for (let tries = 1; ; tries++) {
    try {
      return work()
    } catch (thrown) {
      if (tries === openTriesMax || !(thrown instanceof SQLiteError) || (thrown.errno & 0xff) !== sqliteBusy)
        throw thrown
      Bun.sleepSync(openPauseMs)
    }
  }
}

function answer(question: WriterQuestion): WriterAnswer {
  switch (question.kind) {
    case 'open':
      connection = new Database(question.file, { readwrite: true, safeIntegers: true })
      retryWhileBusy(() => connection?.run(emptyLog))
      retryWhileBusy(() => connection?.run(question.settings))
      return { kind: 'done' }
    case 'run': {
      using once = opened().prepare(question.text)
      return { kind: 'rows', rows: once.all(...question.values) }
    }
    case 'script':
      journal.forget()
      opened().run(question.text)
      return { kind: 'done' }
    case 'append':
      journal.append(question.text)
      unapplied += question.count
      return { kind: 'appended' }
    case 'apply':
      apply()
      return { kind: 'done' }
    case 'close':
      applyIfPossible()
      if (!mayMoveLog) return { kind: 'left open' }
      journal.finalize()
      // The last connection that closes moves the log to the database and deletes it.
      connection?.close()
      connection = undefined
      return { kind: 'done' }
  }
}

/**
 * Synced like every commit, although the requests are durable in the journal: if a later sync failed, the kernel could drop
 * what was written here, and every charge behind it in the log would be lost in a power cut.
 */
function apply(): void {
  // Before the migrations of a new database there is none.
  if (!hasJournal(opened())) return
  for (const { requestId, isCharged, message } of journal.apply()) {
    const line = isCharged
      ? `The database refused the charge of ${requestId}: ${message}. It stays in the table journal, and "tollgate ledger verify" reports it. Please report this.`
      : `The database refused ${requestId}: ${message}. It has no charge, and is not in the request log. Please report this.`
    self.postMessage({ kind: 'notice', line } satisfies WriterNotice)
  }
  unapplied = 0
}

function hasJournal(database: Database): boolean {
  if (unapplied > 0) return true
  using table = database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'journal'")
  return table.get() !== null
}

/** Between two questions. */
function applyIfPossible(): void {
  if (unapplied === 0 || !connection || connection.inTransaction) return
  try {
    apply()
  } catch {
    // A full or broken disk also fails the next commit, which reports it to its caller.
  }
}

function applyLater(): void {
  if (unapplied >= applyMin) applyIfPossible()
  if (unapplied === 0 || applyTimer) return
  applyTimer = setTimeout(() => {
    applyTimer = undefined
    applyIfPossible()
    applyLater()
  }, applyAfterMs)
  // A process that has nothing else to do ends by closing the database.
  applyTimer.unref()
}

function toFault(thrown: unknown): WriterFault {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  if (thrown instanceof SQLiteError) return { message, code: thrown.code ?? 'SQLITE_ERROR', errno: thrown.errno }
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : 'ERR_SQLITE_WRITER'
  return { message, code, errno: 0 }
}

/**
 * 16 MB. Pages that changed often since the last checkpoint are copied once. The index of the log has blocks of 4,062 pages,
 * and a reader searches each, so a longer log would slow reads down. SQLite's own checkpoint would run inside COMMIT, before
 * the answer.
 */
const checkpointPages = 4000n
/** The length of the log is checked after this many answers. A commit writes about three pages. */
const checkpointEvery = 16
let answeredSince = 0
/**
 * False once a checkpoint has failed: pages that it or an earlier one wrote to the database may be lost, and SQLite would
 * not write all of them again before it reuses the log. The next start reads the log from its beginning.
 */
let mayMoveLog = true

/** Moves pages from the log to the database. Readers can block a part of it, which the next checkpoint moves. */
function checkpoint(): void {
  if (!mayMoveLog || ++answeredSince < checkpointEvery || !connection || connection.inTransaction) return
  answeredSince = 0
  try {
    using length = connection.prepare<{ log: bigint }, []>('PRAGMA wal_checkpoint(NOOP)')
    if ((length.get()?.log ?? 0n) >= checkpointPages) connection.run('PRAGMA wal_checkpoint(PASSIVE)')
  } catch (thrown) {
    // A full disk loses nothing, and the next round tries again.
    if (!(thrown instanceof SQLiteError) || (thrown.errno & 0xff) !== sqliteIoError) return
    mayMoveLog = false
    const line = `The write-ahead log could not be moved to the database: ${toFault(thrown).message}. Charges are safe in the log, which grows until the gateway is restarted. Check the disk, then restart.`
    self.postMessage({ kind: 'notice', line } satisfies WriterNotice)
  }
}

self.onmessage = ({ data }: MessageEvent<WriterQuestion>) => {
  try {
    self.postMessage(answer(data))
  } catch (thrown) {
    self.postMessage({ kind: 'fault', fault: toFault(thrown) } satisfies WriterAnswer)
  }
  if (data.kind === 'append') applyLater()
  checkpoint()
}
