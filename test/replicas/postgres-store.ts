// An open, migrated PostgreSQL database for tests of what only several processes need.

import { systemClock } from '../../src/kernel/clock.ts'
import type { Database } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrate.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import { sharedPostgres } from '../parts/postgres.ts'

export interface PostgresStore extends AsyncDisposable {
  readonly url: string
  readonly database: Database
}

export async function openPostgresStore(): Promise<PostgresStore> {
  const url = await (await sharedPostgres()).createDatabase()
  const database = await openPostgres(url)
  await migrate({ database, clock: systemClock })
  return { url, database, [Symbol.asyncDispose]: () => database.close() }
}
