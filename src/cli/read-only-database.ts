// Opens the gateway's database only to read it, beside a gateway that serves: no lock on the folder, no migration, and a
// connection that SQLite itself keeps from writing.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import type { Database } from '../store/database.ts'
import { openPostgres } from '../store/postgres.ts'
import type { Sql } from '../store/sql.ts'
import { StartRefusal } from '../store/start-refusal.ts'

/** Long enough for a checkpoint on a slow disk. */
const busyTimeoutMs = 5000

/** Throws a StartRefusal where there is none, or it cannot be opened. */
export async function openReadOnly(url: string | undefined, dataFolder: string): Promise<Database> {
  if (url !== undefined) return await openPostgres(url)
  const file = join(dataFolder, 'tollgate.db')
  if (!existsSync(file)) throw new StartRefusal(`There is no database ${file}.`)
  const connection = new SQL({ adapter: 'sqlite', filename: file, readonly: true, bigint: true })
  await connection.unsafe(`PRAGMA query_only = ON; PRAGMA busy_timeout = ${busyTimeoutMs};`)
  const refuse = () => Promise.reject(new Error('this database was opened only to read it'))
  return {
    engine: 'sqlite',
    sql: connection as Sql,
    batches: undefined,
    transaction: refuse,
    schemaTransaction: refuse,
    snapshot: async <T>(work: (sql: Sql) => Promise<T>) =>
      (await connection.begin('deferred', (transaction) => work(transaction as Sql))) as T,
    close: () => connection.close(),
  }
}
