// Brings the tables to what this program expects, forward only. Every migration is one transaction under a lock that
// all starting processes share; whatever is not exactly as expected stops the start and leaves the tables untouched.

import { createHash } from 'node:crypto'
import type { Clock } from '../kernel/clock.ts'
import type { Database, RunScript } from './database.ts'
import { allMigrations, type Migration } from './migrations/registry.ts'
import { type Sql, timeToSql } from './sql.ts'
import { causeText, StartRefusal } from './start-refusal.ts'

const lockPollMs = 200
/** Between two attempts at tables that others use, which wait during each of them. */
const attemptPauseMs = 1000
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
  let isAttempted = false
  for (;;) {
    const outcome = await database.schemaTransaction(async (sql, runScript) => {
      const records = await readRecords(sql)
      const fault = findSchemaFault(records, migrations)
      if (fault) throw new StartRefusal(`${fault.what}. ${fault.advice}.`)
      const next = migrations[records.length]
      if (next === undefined) return undefined
      // Do not announce an upgrade for a new database.
      if (records.length > appliedNow && !isAttempted) onProgress(`Upgrading the database: ${next.name}`)
      isAttempted = true
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
      onProgress(`Waiting for another program that upgrades, copies or reads the database (${waited} s)`)
    }
    await Bun.sleep(isAttempted ? attemptPauseMs : lockPollMs)
  }
}

export interface MigrationRecord {
  readonly name: string
  readonly checksum: string
}

async function readRecords(sql: Sql): Promise<readonly MigrationRecord[]> {
  await sql`CREATE TABLE IF NOT EXISTS schema_migrations (
    name TEXT PRIMARY KEY, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)`
  return await sql<MigrationRecord>`SELECT name, checksum FROM schema_migrations`
}

/** Why this program does not work on a database. */
export interface SchemaFault {
  readonly what: string
  readonly advice: string
}

/** The applied migrations must be an exact prefix of our list. The start and every check of a database ask this. */
export function findSchemaFault(
  records: readonly MigrationRecord[],
  migrations: readonly Migration[] = allMigrations,
): SchemaFault | undefined {
  const known = new Map(migrations.map((migration) => [migration.name, checksum(migration.text)]))
  for (const record of records) {
    const expected = known.get(record.name)
    if (expected === undefined) {
      return {
        what: `The database was upgraded by a newer Tollgate: its migration ${record.name} is unknown here`,
        advice: 'Start that version, or restore the backup made before the upgrade',
      }
    }
    if (expected !== record.checksum) {
      return {
        what: `Migration ${record.name} differs from the one this database went through`,
        advice: 'Start the Tollgate it was last used with; this one can only upgrade the data of releases',
      }
    }
  }
  const applied = new Set(records.map(({ name }) => name))
  const missing = migrations.slice(0, records.length).find(({ name }) => !applied.has(name))
  if (missing === undefined) return undefined
  return {
    what: `The database went through later migrations but not through ${missing.name}`,
    advice: 'Start the Tollgate it was last used with',
  }
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
export function checksum(text: string): string {
  return createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('hex')
}

// How far a database has come, read without changing it.

interface MigrationState {
  readonly applied: number
  /** Migrations that the next start of this program would apply. */
  readonly pending: number
  /** The start would refuse, or there is nothing of ours. */
  readonly fault: SchemaFault | undefined
}

export const noTables: SchemaFault = {
  what: "The database has no tables of Tollgate's",
  advice: 'Start the gateway on it once, or choose another database',
}

export async function readMigrationState({ engine, sql }: Pick<Database, 'engine' | 'sql'>): Promise<MigrationState> {
  const found =
    engine === 'sqlite'
      ? await sql`SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'`
      : await sql`SELECT 1 WHERE to_regclass('schema_migrations') IS NOT NULL`
  if (found.length === 0) return { applied: 0, pending: allMigrations.length, fault: noTables }
  const records = await sql<MigrationRecord>`SELECT name, checksum FROM schema_migrations`
  const pending = Math.max(0, allMigrations.length - records.length)
  return { applied: records.length, pending, fault: findSchemaFault(records) }
}
