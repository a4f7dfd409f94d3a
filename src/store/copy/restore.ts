// A backup put back into a data folder that has no database. It overwrites nothing: what is there stays, and the
// database gets its name last, so that a restore which was cut off can be run again.

import { Database } from 'bun:sqlite'
import { chmodSync, copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import type { DataFolder } from '../data-folder.ts'
import { allMigrations } from '../migrations/registry.ts'
import { causeText, StartRefusal } from '../start-refusal.ts'
import { secretsTable, sync } from './back-up.ts'

export interface RestoreOptions {
  /** Whoever calls holds its lock. */
  readonly folder: DataFolder
  /** Absolute. */
  readonly file: string
}

export interface RestoreOutcome {
  /** Files that came with the backup. */
  readonly secretFiles: readonly string[]
}

/** Throws a StartRefusal, with the folder's database still missing, where the backup or the folder is not fit. */
export function restore({ folder, file }: RestoreOptions): RestoreOutcome {
  if (!existsSync(file)) throw new StartRefusal(`There is no file ${file}.`)
  // The log of another database beside a restored one would be played into it.
  const present = readdirSync(folder.path)
    .sort()
    .find((name) => /^tollgate\.db(-wal|-shm|-journal)?$/.test(name))
  if (present !== undefined) {
    throw new StartRefusal(`${folder.file(present)} is there already. Restore into a folder without a database.`)
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
  const known = new Set(allMigrations.map(({ name }) => name))
  const applied = copy.query<{ name: string }, []>('SELECT name FROM schema_migrations').all()
  const newer = applied.find(({ name }) => !known.has(name))
  if (newer) {
    throw new StartRefusal(`${file} was made by a newer Tollgate (${newer.name}). Restore it with that version.`)
  }
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
    // A name from a file is not to be trusted with a path.
    if (!/^[a-z][a-z-]*$/.test(name)) throw new StartRefusal(`The backup has a secret with the odd name "${name}".`)
    const path = folder.file(name)
    if (existsSync(path) && readFileSync(path, 'utf8') !== content) {
      throw new StartRefusal(`${path} is not the one of the backup. Move one of the two away.`)
    }
  }
  for (const { name, content } of rows) folder.write(name, content)
  // What is dropped must not stay readable in free pages of the database.
  copy.run('PRAGMA secure_delete = ON')
  copy.run(`DROP TABLE ${secretsTable}`)
  return rows.map(({ name }) => name)
}
