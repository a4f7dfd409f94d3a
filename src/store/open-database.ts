// Opens whichever engine the configuration names; everything after that is the same handle.

import type { Database } from './database.ts'
import { openPostgres } from './postgres.ts'
import { openSqlite } from './sqlite.ts'

export interface DatabaseOptions {
  /** `postgres://…`; undefined = SQLite in the data folder. */
  readonly url: string | undefined
  readonly dataFolder: string
  /** Gets a line when the database file was open to other users. */
  readonly report?: (line: string) => void
  /** For tests: see PostgresOptions. */
  readonly timeoutFactor?: number
  readonly poolSize?: number
}

/** Throws a StartRefusal when the database cannot be opened or reached. Takes no lock on the folder: folder-lock.ts. */
export function openDatabase({ url, dataFolder, report, ...options }: DatabaseOptions): Promise<Database> {
  return url === undefined ? openSqlite(dataFolder, report) : openPostgres(url, options)
}
