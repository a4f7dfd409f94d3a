// One process per data folder: each of two processes on one embedded database would believe it is the only writer. The lock is
// an open exclusive transaction on a tiny SQLite file, because the kernel ends it with the process, kill -9 included;
// a pid file alone would outlive its writer. As somebody may delete that file, the folder itself is locked as well, where
// the system can do that.

import { dlopen, FFIType, type Pointer, read } from 'bun:ffi'
import { Database } from 'bun:sqlite'
import { closeSync, constants, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type DataFolder, ensurePrivateFile } from './data-folder.ts'
import { causeText, StartRefusal } from './start-refusal.ts'

/** Another process has the folder. */
export class FolderInUse extends StartRefusal {
  override readonly name = 'FolderInUse'
}

interface FolderLock {
  release(): void
}

export function lockDataFolder(folder: string): FolderLock {
  const lockFile = join(folder, 'lock')
  // For people. It is a separate file because other processes cannot read the lock file while it is held.
  const holderFile = join(folder, 'lock-holder')
  let connection: Database | undefined
  let handle: number | undefined
  try {
    handle = openSync(folder, constants.O_RDONLY)
    if (isLockedByAnother(handle)) throw inUse(folder, holderFile)
    ensurePrivateFile(lockFile)
    connection = new Database(lockFile, { readwrite: true })
    // In memory, or a killed process would leave a journal beside the lock.
    connection.run('PRAGMA journal_mode = MEMORY')
    connection.run('BEGIN EXCLUSIVE')
    ensurePrivateFile(holderFile)
    writeFileSync(holderFile, `${process.pid}\n`)
    assertNotFenced(folder)
  } catch (thrown) {
    connection?.close()
    if (handle !== undefined) closeSync(handle)
    if (thrown instanceof StartRefusal) throw thrown
    throw isBusy(thrown) ? inUse(folder, holderFile) : cannotLock(folder, thrown)
  }
  const held = connection
  return {
    release() {
      held.close()
      // Once: the number may belong to another file by now.
      if (handle !== undefined) closeSync(handle)
      handle = undefined
    },
  }
}

/** `flock` is in no API of Bun's. Where it cannot be called, the lock file has to do. */
const system =
  process.platform === 'darwin'
    ? { libraries: ['libSystem.dylib'], errorSymbol: '__error', wouldBlock: 35 }
    : {
        libraries: ['libc.so.6', 'libc.musl-x86_64.so.1', 'libc.musl-aarch64.so.1'],
        errorSymbol: '__errno_location',
        wouldBlock: 11,
      }
/** LOCK_EX | LOCK_NB */
const exclusiveAtOnce = 6

/** Locks the open folder until it is closed, or returns true. Where folders cannot be locked, it does nothing. */
function isLockedByAnother(handle: number): boolean {
  const symbols = findSymbols()
  if (!symbols || symbols.flock(handle, exclusiveAtOnce) === 0) return false
  const error = symbols.errorAt()
  return error !== null && read.i32(error, 0) === system.wouldBlock
}

function findSymbols() {
  const { libraries, errorSymbol } = system
  for (const library of libraries) {
    try {
      const { symbols } = dlopen(library, {
        flock: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 },
        [errorSymbol]: { returns: FFIType.ptr },
      } as { flock: { args: [FFIType.i32, FFIType.i32]; returns: FFIType.i32 } })
      const errorAt = (symbols as unknown as Record<string, () => Pointer | null>)[errorSymbol]
      if (errorAt) return { flock: symbols.flock, errorAt }
    } catch {
      // Another C library, or none that can be loaded.
    }
  }
  return undefined
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

// The mark in a data folder whose database was moved to PostgreSQL. Two gateways, one on each copy, would spend every balance
// twice, so the embedded database is not served while the mark exists. Only a person removes it.

const fenceFile = 'moved-to-postgres'

/** `target` without a password; `at` for people. On return it is on the disk. */
export function writeFence(folder: DataFolder, target: string, at: string): void {
  folder.write(fenceFile, `${target} on ${at}\n`)
}

/** Throws a StartRefusal if the folder's database was moved. */
function assertNotFenced(folder: string): void {
  const file = join(folder, fenceFile)
  if (!existsSync(file)) return
  throw new StartRefusal(
    `The database in ${folder} was moved to ${readFileSync(file, 'utf8').trim()}; served from here as well, its wallets would be spent twice. Set DATABASE_URL to where it is now. Only if nothing was ever served from there: delete ${file}`,
  )
}
