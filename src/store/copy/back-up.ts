// A backup of the embedded database: one file, of one moment, made beside a serving gateway and checked before it gets
// its name. Secrets are in the data folder and not in the database; they come along only when asked for by name.

import { Database } from 'bun:sqlite'
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ensurePrivateFile } from '../data-folder.ts'
import { StartRefusal } from '../start-refusal.ts'

/** In a backup only: a restore takes it out again. */
export const secretsTable = 'backup_secrets'

/** Long enough for a checkpoint on a slow disk. */
const busyTimeoutMs = 5000

export interface BackUpOptions {
  readonly dataFolder: string
  /** Absolute; must not exist. */
  readonly file: string
  /** Files of the data folder to take along; those that are not there are left out. */
  readonly secretFiles: readonly string[]
}

export interface BackUpOutcome {
  readonly bytes: number
  readonly secretFiles: readonly string[]
}

/** Blocks until the file is on the disk. Throws a StartRefusal where there is nothing to back up, or no place for it. */
export function backUp({ dataFolder, file, secretFiles }: BackUpOptions): BackUpOutcome {
  const database = join(dataFolder, 'tollgate.db')
  if (!existsSync(database)) throw new StartRefusal(`There is no database ${database}.`)
  if (existsSync(file)) throw new StartRefusal(`${file} is there already, and is not overwritten.`)
  const draft = `${file}.${crypto.randomUUID()}.draft`
  try {
    ensurePrivateFile(draft)
    vacuumInto(database, draft)
    const taken = secretFiles.filter((name) => existsSync(join(dataFolder, name)))
    check(draft)
    addSecrets(draft, dataFolder, taken)
    // SQLite does not sync what it writes there.
    sync(draft)
    renameSync(draft, file)
    sync(dirname(file))
    return { bytes: statSync(file).size, secretFiles: taken }
  } finally {
    for (const rest of [draft, `${draft}-journal`]) rmSync(rest, { force: true })
  }
}

/** One read transaction: a writer goes on beside it, and is not in it. */
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
