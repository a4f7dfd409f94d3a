// The meaning of a failed statement, where the engines report it differently. Only distinctions that code acts on are
// here; everything else is a defect and is rethrown unchanged.

import { SQL } from 'bun'
import { Failure } from '../kernel/failure.ts'

/**
 * SQLSTATE classes and codes: connection lost, resources exhausted, the disk fails, shut down, statement_timeout, lock_timeout,
 * and idle_in_transaction_session_timeout, which ends the connection of a process that was frozen.
 */
const postgresUnavailable = /^(08|53|58|57P|57014$|55P03$|25P03$)/

/** SQLite's primary codes: BUSY, LOCKED, READONLY, IOERR, FULL, CANTOPEN. */
const sqliteUnavailable = new Set([5, 6, 8, 10, 13, 14])

/** COMMIT was sent, and the server ended or the connection was lost: the transaction may have been committed or not. */
export class CommitUnknown extends Error {
  constructor(cause: unknown) {
    super(`the outcome of a commit is unknown: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/** The store cannot answer now, through no fault of the statement: the caller may try again later. */
export function isStoreUnavailable(thrown: unknown): boolean {
  if (thrown instanceof CommitUnknown) return true
  if (thrown instanceof SQL.PostgresError) {
    return thrown.errno === undefined
      ? /_(CONNECTION|IDLE|LIFETIME)_/.test(thrown.code)
      : postgresUnavailable.test(thrown.errno)
  }
  if (!(thrown instanceof SQL.SQLiteError)) return false
  return thrown.code === 'ERR_SQLITE_CONNECTION_CLOSED' || sqliteUnavailable.has(thrown.errno & 0xff)
}

const sqliteIoError = 10
/** A frame of the write-ahead log was not written, so the commit's last one was not either. */
const sqliteWriteError = 778

/**
 * A commit of SQLite that could not be synced, or whose thread was lost, may be in the write-ahead log. This process does
 * not see it, and its next commit overwrites it; but if it crashes before, SQLite finds the commit in the log and keeps it.
 */
export function mayBeWritten(thrown: unknown): boolean {
  if (!(thrown instanceof SQL.SQLiteError)) return false
  if (thrown.code === 'ERR_SQLITE_CONNECTION_CLOSED') return true
  return (thrown.errno & 0xff) === sqliteIoError && thrown.errno !== sqliteWriteError
}

/** The failure of a request that needs it. */
export function storeUnavailable(): Failure {
  return new Failure('OVERLOADED', 'Tollgate cannot reach its database. Retry in a second.', { retryAfterMs: 1000 })
}

/** Another connection holds SQLite's write lock. */
export function isSqliteBusy(thrown: unknown): boolean {
  return thrown instanceof SQL.SQLiteError && (thrown.errno & 0xff) === 5
}

/** Another transaction holds a lock that the statement needs; other rows and the store may be fine. */
export function isRowLocked(thrown: unknown): boolean {
  return thrown instanceof SQL.PostgresError && thrown.errno === '55P03'
}

/** A statement took too long: waiting for a row lock, or because the whole store is slow. */
export function isTimedOut(thrown: unknown): boolean {
  return thrown instanceof SQL.PostgresError && thrown.errno === '57014'
}

/** PostgreSQL rolled this transaction back in favour of another: serialization failure or deadlock. */
export function isContention(thrown: unknown): boolean {
  return thrown instanceof SQL.PostgresError && /^(40001|40P01)$/.test(thrown.errno ?? '')
}
