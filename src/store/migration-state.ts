// How far a database has come, told without changing it: for people who look before they start.

import { allMigrations } from './migrations/registry.ts'
import type { Sql } from './sql.ts'

export interface MigrationState {
  readonly applied: number
  /** What the next start of this program would apply. */
  readonly pending: number
  /** What only another version knows. */
  readonly unknown: readonly string[]
}

/** Rejects where there is no table of migrations: then it is no database of ours, or an empty one. */
export async function readMigrationState(sql: Sql): Promise<MigrationState> {
  const records = await sql<{ name: string }>`SELECT name FROM schema_migrations`
  const known = new Set(allMigrations.map(({ name }) => name))
  const unknown = records.map(({ name }) => name).filter((name) => !known.has(name))
  const applied = records.length - unknown.length
  return { applied, pending: allMigrations.length - applied, unknown }
}
