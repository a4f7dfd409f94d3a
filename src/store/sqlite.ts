// The embedded engine. A connection of SQLite has one transaction: a statement from anywhere joins the one that is open
// and is rolled back with it. So reads have their own connection, and all writes go through the one
// thread that owns the writing connection, where transactions and commits of charges take turns.

import { Database as Connection, SQLiteError, type Statement } from 'bun:sqlite'
import { join } from 'node:path'
import { SQL } from 'bun'
import { withinTime } from '../kernel/timers.ts'
import { ensurePrivateFile } from './data-folder.ts'
import type { Database, RunScript } from './database.ts'
import { appliedTables, encodeRequests } from './journal.ts'
import type { Sql, SqlPart, SqlValue } from './sql.ts'
import { isSqliteBusy } from './sql-error.ts'
import type { WriterAnswer, WriterNotice, WriterQuestion } from './sqlite-worker.ts'
import { causeText, StartRefusal } from './start-refusal.ts'

/** Long enough for a checkpoint on a slow disk. A waiting reader blocks the event loop, a waiting writer does not. */
const busyTimeoutMs = 5000
const catchUpMaxMs = 1000

/**
 * FULL syncs the log at every commit; fullfsync makes that reach the disk on macOS too, and is ignored elsewhere. The
 * thread that writes makes the checkpoints itself, between commits.
 */
const writerSettings = `PRAGMA busy_timeout = ${busyTimeoutMs}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  PRAGMA fullfsync = ON; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 0;`
const readerSettings = `PRAGMA query_only = ON; PRAGMA busy_timeout = ${busyTimeoutMs};`

export async function openSqlite(dataFolder: string, report?: (line: string) => void): Promise<Database> {
  const file = join(dataFolder, 'tollgate.db')
  // Bun reads what follows a question mark as options and would open another file than the one named.
  if (file.includes('?')) throw new StartRefusal(`The data folder ${dataFolder} has a "?" in its path. Choose another.`)
  let thread: Thread | undefined
  let reader: Reader | undefined
  try {
    // SQLite gives the -wal and -shm files beside it the same permissions.
    ensurePrivateFile(file, report)
    thread = startThread(report)
    await thread.ask({ kind: 'open', file, settings: writerSettings })
    reader = openReader(file)
    assertWriteAheadLog(reader, file)
    return sqliteDatabase(thread, reader, file)
  } catch (thrown) {
    reader?.close()
    thread?.end()
    if (thrown instanceof StartRefusal) throw thrown
    throw new StartRefusal(
      `Cannot open the database ${file}: ${causeText(thrown)}. Check the disk and the folder's owner, or set TOLLGATE_DATA to another folder.`,
      { cause: thrown },
    )
  }
}

/** Reads on the event loop. */
interface Reader {
  all(text: string, values: readonly SqlValue[]): unknown[]
  close(): void
}

/** More than the texts that are read all the time. */
const preparedMax = 100

/** Statements stay prepared: to prepare the one that finds a key takes four times as long as to run it. */
function openReader(file: string): Reader {
  const connection = new Connection(file, { readwrite: true, safeIntegers: true })
  /** The one that was not used for longest is the first. */
  const prepared = new Map<string, Statement<unknown, SqlValue[]>>()
  let isClosed = false

  function prepare(text: string): Statement<unknown, SqlValue[]> {
    const statement = prepared.get(text) ?? connection.prepare(text)
    prepared.delete(text)
    prepared.set(text, statement)
    if (prepared.size <= preparedMax) return statement
    const [oldest] = prepared
    if (!oldest) return statement
    prepared.delete(oldest[0])
    oldest[1].finalize()
    return statement
  }
  connection.run(readerSettings)
  return {
    all(text, values) {
      if (isClosed) throw closedError('the database is closed')
      try {
        return prepare(text).all(...values)
      } catch (thrown) {
        if (!(thrown instanceof SQLiteError)) throw thrown
        throw new SQL.SQLiteError(thrown.message, { code: thrown.code ?? 'SQLITE_ERROR', errno: thrown.errno })
      }
    },
    close() {
      isClosed = true
      for (const statement of prepared.values()) statement.finalize()
      prepared.clear()
      connection.close()
    },
  }
}

function closedError(message: string): SQL.SQLiteError {
  return new SQL.SQLiteError(message, { code: 'ERR_SQLITE_CONNECTION_CLOSED', errno: 0 })
}

function assertWriteAheadLog(reader: Reader, file: string): void {
  const [mode] = reader.all('PRAGMA journal_mode', []) as { readonly journal_mode: string }[]
  if (mode?.journal_mode === 'wal') return
  throw new StartRefusal(
    `The file system of ${file} does not support SQLite's write-ahead log (a network share?). Set TOLLGATE_DATA to a folder on a local disk, or use PostgreSQL with DATABASE_URL.`,
  )
}

function sqliteDatabase(thread: Thread, reader: Reader, file: string): Database {
  const takeTurn = createTurns()
  let closed: Promise<void> | undefined

  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    const endTurn = await takeTurn()
    try {
      return await work()
    } finally {
      endTurn()
    }
  }
  /** Whether the journal may have something, also of a process that was killed. The thread may have applied it by itself. */
  let isBehind = true
  const apply = async () => {
    if (!isBehind) return
    await thread.ask({ kind: 'apply' })
    isBehind = false
  }
  /** `whenBusyMs`: how long to wait for other processes. */
  const transact = <T>(
    whenBusyMs: number,
    work: (sql: Sql, runScript: RunScript) => Promise<T>,
    before = async () => {},
  ): Promise<T> =>
    inTurn(async () => {
      await before()
      await thread.ask({ kind: 'script', text: `PRAGMA busy_timeout = ${whenBusyMs}; BEGIN IMMEDIATE` })
      return await untilCommit(thread, work)
    })

  /** A disk that fails or hangs must not take the console with it: after a second, reads show what the tables have. */
  const catchUp = async () => {
    if (isBehind) await withinTime(catchUpMaxMs, inTurn(apply)).catch(() => {})
  }
  const sql = sqlOver(async (text, values) => {
    if (isBehind && appliedTables.test(text)) await catchUp()
    return reader.all(text, values)
  })

  return {
    engine: 'sqlite',
    sql,
    journal: {
      append: (requests) =>
        inTurn(async () => {
          isBehind = true
          await thread.ask({ kind: 'append', text: encodeRequests(requests), count: requests.length })
        }),
      apply: () => inTurn(apply),
    },
    transaction: (work, shape) => transact(busyTimeoutMs, work, shape === 'beside_charges' ? undefined : apply),
    schemaTransaction: async (work) => {
      let began = false
      try {
        // The journal is not applied before: it may be of an older version, and be waiting for this very change of tables.
        return await transact(0, async (sql, runScript) => {
          began = true
          isBehind = true
          return { result: await work(sql, runScript) }
        })
      } catch (thrown) {
        if (!began && isSqliteBusy(thrown)) return 'busy'
        throw thrown
      }
    },
    async snapshot(work) {
      await catchUp()
      return await readSnapshot(file, work)
    },
    close() {
      closed ??= inTurn(async () => {
        let keepsRunning = false
        try {
          keepsRunning = (await thread.ask({ kind: 'close' })).kind === 'left open'
        } finally {
          thread.end(keepsRunning)
        }
      }).finally(() => reader.close())
      return closed
    },
  }
}

/** On its own connection, so that the reads of everyone else do not fall into it. */
async function readSnapshot<T>(file: string, work: (sql: Sql) => Promise<T>): Promise<T> {
  const reader = openReader(file)
  try {
    reader.all('BEGIN', [])
    return await work(sqlOver(async (text, values) => reader.all(text, values)))
  } finally {
    reader.close()
  }
}

async function untilCommit<T>(thread: Thread, work: (sql: Sql, runScript: RunScript) => Promise<T>): Promise<T> {
  let ended = false
  const sql = sqlOver(async (text, values) => {
    // A statement that was not awaited would otherwise fall into the transaction of another caller.
    if (ended) throw new Error('a statement came after the end of its transaction')
    const answer = await thread.ask({ kind: 'run', text, values })
    return answer.kind === 'rows' ? answer.rows : []
  })
  try {
    const result = await work(sql, async (text) => void (await thread.ask({ kind: 'script', text })))
    ended = true
    await thread.ask({ kind: 'script', text: 'COMMIT' })
    return result
  } catch (thrown) {
    ended = true
    // SQLite ends the transaction by itself after some errors; the first error is the one that counts.
    await thread.ask({ kind: 'script', text: 'ROLLBACK' }).catch(() => {})
    throw thrown
  }
}

/** Returns a function that waits for its turn and resolves with the end of the turn. Turns come in the order of the calls. */
export function createTurns(): () => Promise<() => void> {
  let last = Promise.resolve()
  return async () => {
    const before = last
    let end = () => {}
    last = new Promise((resolve) => {
      end = resolve
    })
    await before
    return end
  }
}

interface Thread {
  ask(question: WriterQuestion): Promise<WriterAnswer>
  end(keepsRunning?: boolean): void
}

interface Waiting {
  resolve(answer: WriterAnswer): void
  reject(thrown: unknown): void
}

function startThread(report: (line: string) => void = () => {}): Thread {
  const worker = new Worker(new URL('./sqlite-worker.ts', import.meta.url))
  const waiting: Waiting[] = []
  let gone: SQL.SQLiteError | undefined

  const endNext = (end: (next: Waiting) => void) => {
    const next = waiting.shift()
    // An idle thread must not keep the process alive, a running commit must.
    if (waiting.length === 0) worker.unref()
    if (next) end(next)
  }
  const lose = (message: string) => {
    gone ??= closedError(message)
    while (waiting.length > 0) endNext((next) => next.reject(gone))
  }
  const receive = (answer: WriterAnswer) =>
    endNext((next) => {
      if (answer.kind === 'fault') next.reject(new SQL.SQLiteError(answer.fault.message, answer.fault))
      else next.resolve(answer)
    })
  worker.onmessage = ({ data }: MessageEvent<WriterAnswer | WriterNotice>) => {
    if (data.kind === 'notice') return report(data.line)
    // Code that awaits a statement must not run inside this handler: `expect(…).rejects` of Bun 1.4 blocks its caller until
    // the promise settles, and no message is delivered meanwhile. Charges are the hot path, and no test blocks in them.
    if (data.kind === 'appended') receive(data)
    else setImmediate(receive, data)
  }
  worker.onerror = ({ message }) => lose(`the writing thread failed: ${message}`)
  worker.addEventListener('close', () => lose('the writing thread ended'))

  return {
    ask: (question) =>
      new Promise((resolve, reject) => {
        if (gone) return reject(gone)
        waiting.push({ resolve, reject })
        worker.ref()
        worker.postMessage(question)
      }),
    end(keepsRunning) {
      lose('the database is closed')
      if (!keepsRunning) worker.terminate()
    },
  }
}

/** Runs one statement elsewhere and returns its rows. */
export type RunStatement = (text: string, values: readonly SqlValue[]) => Promise<unknown[]>

class RowsPart implements SqlPart {
  constructor(readonly value: readonly Readonly<Record<string, SqlValue>>[]) {}
}

class NamePart implements SqlPart {
  constructor(readonly value: readonly [string]) {}
}

const rowLock = ' FOR NO KEY UPDATE'

/** The tagged template of sql.ts for a connection that lives in another thread: it only makes the text and the values. */
export function sqlOver(run: RunStatement): Sql {
  const tag = (
    first: TemplateStringsArray | string | readonly Readonly<Record<string, SqlValue>>[],
    ...rest: unknown[]
  ) => {
    if (typeof first === 'string') return new NamePart([first])
    if (!('raw' in first)) return new RowsPart(first)
    const values: SqlValue[] = []
    let text = first[0] ?? ''
    for (const [at, value] of rest.entries()) text += placeholder(value, values) + (first[at + 1] ?? '')
    return run(text.endsWith(rowLock) ? text.slice(0, -rowLock.length) : text, values)
  }
  return tag as Sql
}

function placeholder(value: unknown, values: SqlValue[]): string {
  if (value instanceof NamePart) return `"${value.value[0].replaceAll('"', '""')}"`
  if (value instanceof RowsPart) return rowsText(value.value, values)
  values.push(value as SqlValue)
  return '?'
}

function rowsText(rows: readonly Readonly<Record<string, SqlValue>>[], values: SqlValue[]): string {
  const names = Object.keys(rows[0] ?? {})
  const marks = rows.map((row) => {
    for (const name of names) values.push(row[name] ?? null)
    return `(${names.map(() => '?').join(', ')})`
  })
  return `(${names.map((name) => `"${name}"`).join(', ')}) VALUES ${marks.join(', ')}`
}
