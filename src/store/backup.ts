// Backs up the embedded database into one consistent file while the gateway serves, and checks it before renaming it into
// place. Secrets are in the data folder, not in the database; they are included only if requested.

import { Database } from 'bun:sqlite'
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { type DataFolder, ensurePrivateFile } from './data-folder.ts'
import { JournalTable } from './journal.ts'
import { findSchemaFault, type MigrationRecord, noTables, type SchemaFault } from './migrate.ts'
import { allMigrations } from './migrations/registry.ts'
import { causeText, StartRefusal } from './start-refusal.ts'

/** In a backup only: a restore takes it out again. */
const secretsTable = 'backup_secrets'

/** Long enough for a checkpoint on a slow disk. */
const busyTimeoutMs = 5000

interface BackUpOptions {
  readonly dataFolder: string
  /** Absolute; must not exist. */
  readonly file: string
  /** Files of the data folder to include; missing ones are skipped. */
  readonly secretFiles: readonly string[]
}

interface BackUpOutcome {
  readonly bytes: number
  /** Why this program could not restore it: the database is of another version. */
  readonly fault: SchemaFault | undefined
  readonly secretFiles: readonly string[]
}

/** Blocks until the file is on the disk. Throws a StartRefusal where there is nothing to back up, or no place for it. */
export function backUp({ dataFolder, file, secretFiles }: BackUpOptions): BackUpOutcome {
  const database = join(dataFolder, 'tollgate.db')
  if (!existsSync(database)) throw new StartRefusal(`There is no database ${database}.`)
  if (existsSync(file)) throw new StartRefusal(`${file} already exists and is not overwritten.`)
  const draft = `${file}.${crypto.randomUUID()}.draft`
  try {
    ensurePrivateFile(draft)
    vacuumInto(database, draft)
    const taken = secretFiles.filter((name) => existsSync(join(dataFolder, name)))
    check(draft)
    const fault = applyJournal(draft)
    addSecrets(draft, dataFolder, taken)
    // SQLite does not sync what it writes there.
    sync(draft)
    renameSync(draft, file)
    sync(dirname(file))
    return { bytes: statSync(file).size, fault, secretFiles: taken }
  } finally {
    for (const rest of [draft, `${draft}-journal`]) rmSync(rest, { force: true })
  }
}

/** One read transaction: concurrent writes continue and are not included. */
function vacuumInto(database: string, draft: string): void {
  using source = new Database(database, { readonly: true })
  source.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
  source.run('VACUUM INTO ?', [draft])
}

function check(draft: string): void {
  using copy = new Database(draft, { readonly: true })
  const [result] = copy.query<{ integrity_check: string }, []>('PRAGMA integrity_check(1)').all()
  if (result?.integrity_check === 'ok') return
  throw new StartRefusal(`The database is damaged: ${result?.integrity_check}. Restore the last good backup.`)
}

/** So that the tables of a backup have every charge. The journal of another version is applied by its next start. */
function applyJournal(draft: string): SchemaFault | undefined {
  using copy = new Database(draft, { readwrite: true, safeIntegers: true })
  const applied = migrationsOf(copy)
  const fault = findSchemaFault(applied)
  if (fault || applied.length < allMigrations.length) return fault
  const journal = new JournalTable((text) => copy.prepare(text))
  journal.apply()
  journal.finalize()
  return undefined
}

function migrationsOf(copy: Database): readonly MigrationRecord[] {
  const [table] = copy.query("SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'").all()
  if (!table) throw new StartRefusal(`${noTables.what}. ${noTables.advice}.`)
  return copy.query<MigrationRecord, []>('SELECT name, checksum FROM schema_migrations').all()
}

function addSecrets(draft: string, dataFolder: string, names: readonly string[]): void {
  if (names.length === 0) return
  using copy = new Database(draft, { readwrite: true })
  copy.run(`CREATE TABLE ${secretsTable} (name TEXT PRIMARY KEY, content TEXT NOT NULL)`)
  const insert = copy.prepare(`INSERT INTO ${secretsTable} VALUES (?, ?)`)
  for (const name of names) insert.run(name, readFileSync(join(dataFolder, name), 'utf8'))
  insert.finalize()
}

/** A file or a folder. */
export function sync(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

// A restore overwrites nothing. The database gets its name last, so that a restore which was cut off can be run again.

interface RestoreOptions {
  /** The caller holds its lock. */
  readonly folder: DataFolder
  /** Absolute. */
  readonly file: string
}

interface RestoreOutcome {
  /** Files that came with the backup. */
  readonly secretFiles: readonly string[]
}

/** Throws a StartRefusal if the backup or the folder is unusable; the folder then still has no database. */
export function restore({ folder, file }: RestoreOptions): RestoreOutcome {
  if (!existsSync(file)) throw new StartRefusal(`There is no file ${file}.`)
  // SQLite would replay the log of another database into the restored one.
  const present = readdirSync(folder.path)
    .sort()
    .find((name) => /^tollgate\.db(-wal|-shm|-journal)?$/.test(name))
  if (present !== undefined) {
    throw new StartRefusal(`${folder.file(present)} already exists. Restore into a folder without a database.`)
  }
  const draft = folder.file(`tollgate.db.${crypto.randomUUID()}.draft`)
  try {
    copyFileSync(file, draft)
    chmodSync(draft, 0o600)
    const secretFiles = inspect(draft, file, folder)
    sync(draft)
    renameSync(draft, folder.file('tollgate.db'))
    sync(folder.path)
    return { secretFiles }
  } finally {
    for (const rest of [draft, `${draft}-journal`]) rmSync(rest, { force: true })
  }
}

function inspect(draft: string, file: string, folder: DataFolder): readonly string[] {
  using copy = openDraft(draft, file)
  const fault = findSchemaFault(migrationsOf(copy))
  if (fault) throw new StartRefusal(`${file} cannot be restored by this Tollgate. ${fault.what}. ${fault.advice}.`)
  const [table] = copy.query('SELECT 1 FROM sqlite_master WHERE name = ?').all(secretsTable)
  return table ? takeSecrets(copy, folder) : []
}

function openDraft(draft: string, file: string): Database {
  let copy: Database | undefined
  try {
    copy = new Database(draft, { readwrite: true })
    const [result] = copy.query<{ integrity_check: string }, []>('PRAGMA integrity_check(1)').all()
    if (result?.integrity_check !== 'ok') throw new Error(result?.integrity_check)
    copy.query('SELECT 1 FROM schema_migrations LIMIT 1').all()
    return copy
  } catch (thrown) {
    copy?.close()
    throw new StartRefusal(`${file} is not a whole backup of Tollgate: ${causeText(thrown)}.`, { cause: thrown })
  }
}

function takeSecrets(copy: Database, folder: DataFolder): readonly string[] {
  const rows = copy.query<{ name: string; content: string }, []>(`SELECT name, content FROM ${secretsTable}`).all()
  for (const { name, content } of rows) {
    // The name comes from the file: do not let it contain a path.
    if (!/^[a-z][a-z-]*$/.test(name)) throw new StartRefusal(`The backup has a secret with the odd name "${name}".`)
    const path = folder.file(name)
    if (existsSync(path) && readFileSync(path, 'utf8') !== content) {
      throw new StartRefusal(
        `${path} differs from the one in the backup. Move it away, or restore into another folder.`,
      )
    }
  }
  for (const { name, content } of rows) folder.write(name, content)
  // Dropped rows must not stay readable in free pages.
  copy.run('PRAGMA secure_delete = ON')
  copy.run(`DROP TABLE ${secretsTable}`)
  return rows.map(({ name }) => name)
}
