// The embedded engine. Bun's SQLite client is one connection on which a statement from anywhere falls into whatever
// transaction is open, and is rolled back with it; so reads have a connection of their own, and writes go only
// through the queue of `begin`.

import { join } from 'node:path'
import { SQL } from 'bun'
import { ensurePrivateFile } from './data-folder.ts'
import type { Database } from './database.ts'
import type { Sql } from './sql.ts'
import { isSqliteBusy } from './sql-error.ts'
import { causeText, StartRefusal } from './start-refusal.ts'

/** Long enough for another thread's commit on a slow disk, checkpoint included. The wait blocks this thread. */
const busyTimeoutMs = 5000

/** FULL syncs the log at every commit; fullfsync makes that reach the disk on macOS too, and is ignored elsewhere. */
const writerSettings = `PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA foreign_keys = ON;
  PRAGMA busy_timeout = ${busyTimeoutMs};`
const readerSettings = `PRAGMA query_only = ON; PRAGMA busy_timeout = ${busyTimeoutMs};`

export async function openSqlite(dataFolder: string, report?: (line: string) => void): Promise<Database> {
  const file = join(dataFolder, 'tollgate.db')
  // Bun reads what follows a question mark as options and would open another file than the one named.
  if (file.includes('?')) throw new StartRefusal(`The data folder ${dataFolder} has a "?" in its path. Choose another.`)
  let clients: SQL[] = []
  try {
    // SQLite gives the -wal and -shm files beside it the same permissions.
    ensurePrivateFile(file, report)
    const writer = connect(file)
    clients = [writer]
    await enableWriteAheadLog(writer, file)
    await writer.unsafe(writerSettings)
    const reader = connect(file)
    clients.push(reader)
    await reader.unsafe(readerSettings)
    return sqliteDatabase(writer, reader)
  } catch (thrown) {
    await Promise.all(clients.map((client) => client.close()))
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

async function enableWriteAheadLog(writer: SQL, file: string): Promise<void> {
  const [mode] = await writer<{ journal_mode: string }[]>`PRAGMA journal_mode = WAL`
  if (mode?.journal_mode === 'wal') return
  throw new StartRefusal(
    `The file system of ${file} does not support SQLite's write-ahead log (a network share?). Set TOLLGATE_DATA to a folder on a local disk, or use PostgreSQL with DATABASE_URL.`,
  )
}

function sqliteDatabase(writer: SQL, reader: SQL): Database {
  return {
    engine: 'sqlite',
    sql: reader as Sql,
    transaction: async <T>(work: (sql: Sql) => Promise<T>) =>
      (await writer.begin('immediate', (transaction) => work(transaction as Sql))) as T,
    schemaTransaction: async (work) => {
      let began = false
      // Waiting inside SQLite would stop this thread; the caller waits and tries again instead.
      await writer.unsafe('PRAGMA busy_timeout = 0')
      try {
        const result = await writer.begin('immediate', async (transaction) => {
          began = true
          return { result: await work(transaction as Sql, async (text) => void (await transaction.unsafe(text))) }
        })
        return result
      } catch (thrown) {
        if (!began && isSqliteBusy(thrown)) return 'busy'
        throw thrown
      } finally {
        await writer.unsafe(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
      }
    },
    close: async () => {
      await writer.close()
      await reader.close()
    },
  }
}
