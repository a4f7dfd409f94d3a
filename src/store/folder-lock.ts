// One process per data folder: two on the same embedded database would each believe to be the only writer. The lock is
// an open exclusive transaction on a tiny SQLite file, because the kernel ends it with the process, kill -9 included;
// a pid file alone would outlive its writer.

import { Database } from 'bun:sqlite'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { assertNotFenced } from './copy/fence.ts'
import { ensurePrivateFile } from './data-folder.ts'
import { causeText, StartRefusal } from './start-refusal.ts'

/** Another process has the folder. */
export class FolderInUse extends StartRefusal {
  override readonly name = 'FolderInUse'
}

export interface FolderLock {
  release(): void
}

export function lockDataFolder(folder: string): FolderLock {
  const lockFile = join(folder, 'lock')
  // For people only. It cannot stand in the lock itself, which nobody else can read while it is held.
  const holderFile = join(folder, 'lock-holder')
  let connection: Database | undefined
  try {
    ensurePrivateFile(lockFile)
    connection = new Database(lockFile, { readwrite: true })
    // In memory, or a killed process would leave a journal beside the lock.
    connection.run('PRAGMA journal_mode = MEMORY')
    connection.run('BEGIN EXCLUSIVE')
    ensurePrivateFile(holderFile)
    writeFileSync(holderFile, `${process.pid}\n`)
  } catch (thrown) {
    connection?.close()
    throw isBusy(thrown) ? inUse(folder, holderFile) : cannotLock(folder, thrown)
  }
  const held = connection
  try {
    assertNotFenced(folder)
  } catch (thrown) {
    held.close()
    throw thrown
  }
  return { release: () => held.close() }
}

function isBusy(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === 'SQLITE_BUSY'
}

function inUse(folder: string, holderFile: string): FolderInUse {
  const holder = readHolder(holderFile)
  return new FolderInUse(
    `Another Tollgate${holder === undefined ? '' : ` (process ${holder})`} is using ${folder}. Stop it, or set TOLLGATE_DATA to another folder.`,
  )
}

function cannotLock(folder: string, thrown: unknown): StartRefusal {
  return new StartRefusal(
    `Cannot lock the data folder ${folder}: ${causeText(thrown)}. Check its owner and the disk, or set TOLLGATE_DATA to another folder.`,
    { cause: thrown },
  )
}

/** undefined in the moment between taking the lock and writing the file. */
function readHolder(holderFile: string): string | undefined {
  try {
    return /^[0-9]+/.exec(readFileSync(holderFile, 'utf8'))?.[0]
  } catch {
    return undefined
  }
}
