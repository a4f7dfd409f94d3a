// Brings the tables to what this program expects, forward only. Every migration is one transaction under a lock that
// all starting processes share; whatever is not exactly as expected stops the start and leaves the tables untouched.

import { createHash } from 'node:crypto'
import type { Clock } from '../kernel/clock.ts'
import type { Database, RunScript } from './database.ts'
import { allMigrations, type Migration } from './migrations/registry.ts'
import { type Sql, timeToSql } from './sql.ts'
import { causeText, StartRefusal } from './start-refusal.ts'

const lockPollMs = 200
const firstProgressMs = 1000
const nextProgressMs = 5000

interface MigrateOptions {
  readonly database: Database
  readonly clock: Clock
  readonly migrations?: readonly Migration[]
  /** Gets a line for the operator if the wait is long. */
  readonly onProgress?: (line: string) => void
}

/** Returns the names of the migrations it applied; throws a StartRefusal that names the one that failed. */
export async function migrate(options: MigrateOptions): Promise<readonly string[]> {
  const applied: string[] = []
  for (;;) {
    const name = await applyNext(options, applied.length)
    if (name === undefined) return applied
    applied.push(name)
  }
}

/** The name of the migration it applied; undefined when there is none left. */
async function applyNext(options: MigrateOptions, appliedNow: number): Promise<string | undefined> {
  const { database, clock, migrations = allMigrations, onProgress = () => {} } = options
  const startedMs = clock.monotonicMs()
  let progressAtMs = startedMs + firstProgressMs
  for (;;) {
    const outcome = await database.schemaTransaction(async (sql, runScript) => {
      const records = await readRecords(sql)
      assertKnown(records, migrations)
      const next = migrations[records.length]
      if (next === undefined) return undefined
      // Do not announce an upgrade for a new database.
      if (records.length > appliedNow) onProgress(`Upgrading the database: ${next.name}`)
      await apply(next, database.engine, runScript)
      const row = { name: next.name, checksum: checksum(next.text), applied_at: timeToSql(clock.now()) }
      await sql`INSERT INTO schema_migrations ${sql([row])}`
      return next.name
    })
    if (outcome !== 'busy') return outcome.result
    const nowMs = clock.monotonicMs()
    if (nowMs >= progressAtMs) {
      progressAtMs = nowMs + nextProgressMs
      const waited = Math.round((nowMs - startedMs) / 1000)
      onProgress(`Waiting for another Tollgate to finish upgrading the database (${waited} s)`)
    }
    await Bun.sleep(lockPollMs)
  }
}

interface MigrationRecord {
  readonly name: string
  readonly checksum: string
}

async function readRecords(sql: Sql): Promise<readonly MigrationRecord[]> {
  await sql`CREATE TABLE IF NOT EXISTS schema_migrations (
    name TEXT PRIMARY KEY, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)`
  // Sorted here, because the two engines may collate names differently.
  const records = await sql<MigrationRecord>`SELECT name, checksum FROM schema_migrations`
  return records.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The applied migrations must be an exact prefix of our list. */
function assertKnown(records: readonly MigrationRecord[], migrations: readonly Migration[]): void {
  const known = new Map(migrations.map((migration) => [migration.name, checksum(migration.text)]))
  for (const record of records) {
    const expected = known.get(record.name)
    if (expected === undefined) {
      throw new StartRefusal(
        `The database was upgraded by a newer Tollgate: its migration ${record.name} is unknown here. Start that version, or restore the backup made before the upgrade.`,
      )
    }
    if (expected !== record.checksum) {
      throw new StartRefusal(
        `Migration ${record.name} differs from the one this database went through. Start an unmodified Tollgate.`,
      )
    }
  }
  const missing = migrations.slice(0, records.length).find((migration, at) => records[at]?.name !== migration.name)
  if (missing === undefined) return
  throw new StartRefusal(
    `The database went through later migrations but not through ${missing.name}. Start the Tollgate it was last used with.`,
  )
}

async function apply(migration: Migration, engine: Database['engine'], runScript: RunScript): Promise<void> {
  try {
    await runScript(textForEngine(migration.text, engine))
  } catch (thrown) {
    throw new StartRefusal(
      `Migration ${migration.name} failed and was undone: ${causeText(thrown)}. The database is as it was before; the previous version still runs on it.`,
      { cause: thrown },
    )
  }
}

/** Leaves out the sections that are marked for the other engine. */
export function textForEngine(text: string, engine: Database['engine']): string {
  let section = 'both'
  const kept: string[] = []
  for (const line of text.split(/\r?\n/)) {
    const marker = /^-- (sqlite|postgres|both):$/.exec(line)?.[1]
    if (marker !== undefined) section = marker
    else if (section === 'both' || section === engine) kept.push(line)
  }
  return kept.join('\n')
}

/** Line ends are not content: a checkout may have changed them. */
function checksum(text: string): string {
  return createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('hex')
}

// How far a database has come, read without changing it.

interface MigrationState {
  readonly applied: number
  /** Migrations that the next start of this program would apply. */
  readonly pending: number
  /** Migrations that only another version knows. */
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
