// Opens the gateway's database read-only, also while a gateway is running: no lock on the folder, no migration, and a
// connection on which SQLite refuses writes.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { readRecomputeCharge } from '../catalog/price-versions.ts'
import { systemClock } from '../kernel/clock.ts'
import { type Verification, verify } from '../ledger/verify.ts'
import type { Database } from '../store/database.ts'
import { readMigrationState } from '../store/migrate.ts'
import { openPostgres } from '../store/postgres.ts'
import type { Sql } from '../store/sql.ts'
import { StartRefusal } from '../store/start-refusal.ts'
import type { CommandContext } from './command.ts'
import { exitCodes, Refusal } from './refusal.ts'
import { shownCount } from './values.ts'

/** Long enough for a checkpoint on a slow disk. */
const busyTimeoutMs = 5000

/** Throws a StartRefusal if it does not exist or cannot be opened. */
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
    journal: undefined,
    transaction: refuse,
    schemaTransaction: refuse,
    snapshot: async <T>(work: (sql: Sql) => Promise<T>) =>
      (await connection.begin('deferred', (transaction) => work(transaction as Sql))) as T,
    close: () => connection.close(),
  }
}

/** Advice if the database is the wrong one or cannot be opened. */
export const otherDatabase = 'TOLLGATE_DATA=FOLDER or DATABASE_URL=postgres://… of the gateway'

/** Throws errors of the database or the data folder as refusals; `what` introduces an unexpected one. */
export async function orRefuse<T>(work: () => Promise<T>, what: string, attempt?: string): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    if (thrown instanceof Refusal) throw thrown
    const message = thrown instanceof Error ? thrown.message : String(thrown)
    throw new Refusal(exitCodes.failed, thrown instanceof StartRefusal ? message : `${what}: ${message}`, attempt)
  }
}

/** Closes the database after the work. */
export async function withDatabase<T>(
  opening: Promise<Database>,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const database = await opening
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

/** Tables of another version cannot be checked by this version's rules. */
async function refuseOtherVersion(database: Database, whole: string): Promise<void> {
  const { pending, fault } = await readMigrationState(database)
  if (fault) throw new Refusal(exitCodes.failed, `${whole} cannot be checked. ${fault.what}. ${fault.advice}.`)
  if (pending === 0) return
  const what = `${whole} are of an older Tollgate; they can be checked once this one has started on them.`
  throw new Refusal(exitCodes.failed, what, 'tollgate serve')
}

export type OnProgress = (done: number, total: number) => void

/** Runs a check over the database, with progress on a terminal. */
export async function goThrough<T>(
  { settings: { databaseUrl, dataFolder }, terminal }: CommandContext,
  names: { readonly whole: string; readonly parts: string },
  work: (database: Database, onProgress: OnProgress) => Promise<T>,
): Promise<T> {
  const onProgress: OnProgress = (done, total) => {
    terminal.showProgress(`checking ${names.parts}: ${shownCount(done)} of ${shownCount(total)}`)
  }
  const check = async (database: Database): Promise<T> => {
    await refuseOtherVersion(database, names.whole)
    return await work(database, onProgress).finally(() => terminal.showProgress(''))
  }
  const checked = () => withDatabase(openReadOnly(databaseUrl?.reveal(), dataFolder), check)
  return await orRefuse(checked, `${names.whole} cannot be read`, otherDatabase)
}

/** Recomputes the books. */
export function verifyBooks(database: Database, onProgress?: OnProgress): Promise<Verification> {
  return verify(database, { readPrice: readRecomputeCharge, now: systemClock.now(), ...(onProgress && { onProgress }) })
}
