// A reason not to start that the operator can fix. The message is complete: what is wrong, what was tried, what to do. The
// entry point prints it without a stack trace and exits. Never used while serving.

import { statfsSync } from 'node:fs'

export class StartRefusal extends Error {
  override readonly name: string = 'StartRefusal'
}

/** The message of a thrown value, for the middle of a sentence. */
export function causeText(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

/** The refusal if a start failed because the disk of the data folder is full; undefined = it failed for another reason. */
export function fullDiskRefusal(thrown: unknown, dataFolder: string): StartRefusal | undefined {
  if (!isFullDisk(thrown, dataFolder)) return undefined
  return new StartRefusal(
    `The disk that holds ${dataFolder} is full. Free some space, or set TOLLGATE_DATA to a folder on another disk. Then start Tollgate again.`,
    { cause: thrown },
  )
}

export function isFullDisk(thrown: unknown, dataFolder: string): boolean {
  if (!(thrown instanceof Error)) return false
  const code = 'code' in thrown ? String(thrown.code) : ''
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'SQLITE_FULL') return true
  // SQLite cannot map its shared memory then, and does not say why.
  if (code.startsWith('SQLITE_IOERR') && hasNoRoom(dataFolder)) return true
  return isFullDisk(thrown.cause, dataFolder)
}

/** What SQLite maps at once. */
const mappedBytes = 32 * 1024

function hasNoRoom(folder: string): boolean {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize < mappedBytes
}
