// The embedded engine. Bun's SQLite client is one connection on which a statement from anywhere falls into whatever
// transaction is open, and is rolled back with it; so reads have a connection of their own, and all writes go through
// the one thread that owns the writing connection.

import { join } from 'node:path'
import { SQL } from 'bun'
import { ensurePrivateFile } from './data-folder.ts'
import type { Database } from './database.ts'
import type { Sql } from './sql.ts'
import { isSqliteBusy } from './sql-error.ts'
import { openSqliteWriter, type SqliteWriter } from './sqlite-writer.ts'
import { causeText, StartRefusal } from './start-refusal.ts'

/** Long enough for a checkpoint on a slow disk. The wait of a reader blocks this thread, a writer's does not. */
const busyTimeoutMs = 5000

/** FULL syncs the log at every commit; fullfsync makes that reach the disk on macOS too, and is ignored elsewhere. */
const writerSettings = `PRAGMA busy_timeout = ${busyTimeoutMs}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  PRAGMA fullfsync = ON; PRAGMA foreign_keys = ON;`
const readerSettings = `PRAGMA query_only = ON; PRAGMA busy_timeout = ${busyTimeoutMs};`

export async function openSqlite(dataFolder: string, report?: (line: string) => void): Promise<Database> {
  const file = join(dataFolder, 'tollgate.db')
  // Bun reads what follows a question mark as options and would open another file than the one named.
  if (file.includes('?')) throw new StartRefusal(`The data folder ${dataFolder} has a "?" in its path. Choose another.`)
  let writer: SqliteWriter | undefined
  let reader: SQL | undefined
  try {
    // SQLite gives the -wal and -shm files beside it the same permissions.
    ensurePrivateFile(file, report)
    writer = await openSqliteWriter(file, writerSettings)
    reader = connect(file)
    await reader.unsafe(readerSettings)
    await assertWriteAheadLog(reader, file)
    return sqliteDatabase(writer, reader, file)
  } catch (thrown) {
    await reader?.close()
    await writer?.close()
    if (thrown instanceof StartRefusal) throw thrown
    throw new StartRefusal(
      `Cannot open the database ${file}: ${causeText(thrown)}. Check the disk and the folder's owner, or set TOLLGATE_DATA to another folder.`,
      { cause: thrown },
    )
  }
}

function connect(file: string): SQL {
  return new SQL({ adapter: 'sqlite', filename: file, bigint: true })
}

async function assertWriteAheadLog(reader: SQL, file: string): Promise<void> {
  const [mode] = await reader<{ journal_mode: string }[]>`PRAGMA journal_mode`
  if (mode?.journal_mode === 'wal') return
  throw new StartRefusal(
    `The file system of ${file} does not support SQLite's write-ahead log (a network share?). Set TOLLGATE_DATA to a folder on a local disk, or use PostgreSQL with DATABASE_URL.`,
  )
}

function sqliteDatabase(writer: SqliteWriter, reader: SQL, file: string): Database {
  return {
    engine: 'sqlite',
    sql: reader as Sql,
    batches: writer,
    transaction: (work) => writer.transaction(busyTimeoutMs, work),
    schemaTransaction: async (work) => {
      let began = false
      try {
        return await writer.transaction(0, async (sql, runScript) => {
          began = true
          return { result: await work(sql, runScript) }
        })
      } catch (thrown) {
        if (!began && isSqliteBusy(thrown)) return 'busy'
        throw thrown
      }
    },
    snapshot: (work) => readSnapshot(file, work),
    close: async () => {
      await writer.close()
      await reader.close()
    },
  }
}

/** On a connection of its own: the reads of everyone else must not fall into it. */
async function readSnapshot<T>(file: string, work: (sql: Sql) => Promise<T>): Promise<T> {
  const connection = connect(file)
  try {
    await connection.unsafe(readerSettings)
    return (await connection.begin('deferred', (transaction) => work(transaction as Sql))) as T
  } finally {
    await connection.close()
  }
}
