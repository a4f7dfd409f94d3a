// An open, migrated PostgreSQL database for tests of what only several processes need.

import type { Database } from '../../src/store/database.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import { sharedPostgres } from '../parts/postgres.ts'

export interface PostgresStore extends AsyncDisposable {
  readonly url: string
  readonly database: Database
}

export async function openPostgresStore(): Promise<PostgresStore> {
  const url = await (await sharedPostgres()).createMigrated()
  const database = await openPostgres(url, { timeoutFactor: 30 })
  return { url, database, [Symbol.asyncDispose]: () => database.close() }
}
