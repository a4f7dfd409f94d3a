// The data folder and its private files: the folder 0700, every file 0600, writes that survive a power cut. Used at
// start only, so it may block. It never prints a file's content and does not know what the files mean.

import {
  chmodSync,
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { causeText, StartRefusal } from './start-refusal.ts'

const folderMode = 0o700
const fileMode = 0o600
/** Any permission of the group or of everyone. */
const othersMask = 0o077

export interface DataFolder {
  readonly path: string
  /** The path of a file in it. */
  file(name: string): string
  /** Base64url text of this many random bytes, created once; later calls and other processes read the same text. */
  readOrCreateSecret(name: string, bytes: number): { readonly text: string; readonly created: boolean }
  /** Replaces the file as a whole; on return it is on the disk. */
  write(name: string, text: string): void
}

/** Creates the folder where it is missing. `report` gets a line for every permission that had to be tightened. */
export function openDataFolder(path: string, report: (line: string) => void): DataFolder {
  try {
    mkdirSync(path, { recursive: true, mode: folderMode })
    if (!statSync(path).isDirectory()) throw new Error('it is not a folder')
  } catch (thrown) {
    throw new StartRefusal(
      `Cannot use ${path} as the data folder: ${causeText(thrown)}. Set TOLLGATE_DATA to a folder that can be written.`,
      { cause: thrown },
    )
  }
  tightenFolder(path, report)
  return {
    path,
    file: (name) => join(path, name),
    readOrCreateSecret(name, bytes) {
      try {
        return readOrCreateSecret(join(path, name), bytes, report)
      } catch (thrown) {
        if (thrown instanceof StartRefusal) throw thrown
        throw new StartRefusal(
          `Tollgate cannot read or create ${join(path, name)}: ${causeText(thrown)}. Make it a file that the user running Tollgate can read and write: chown it to that user, then chmod 600.`,
          { cause: thrown },
        )
      }
    },
    write: (name, text) => replaceFile(join(path, name), text),
  }
}

/** Makes sure that the file exists and is private, without opening one that is there: closing it would drop its locks. */
export function ensurePrivateFile(path: string, report: (line: string) => void = () => {}): void {
  try {
    closeSync(openSync(path, 'wx', fileMode))
  } catch (thrown) {
    if (!hasCode(thrown, 'EEXIST')) throw thrown
    tightenFile(path, report)
  }
}

/** A folder that belongs to someone else (a mounted volume) cannot be tightened; its files still are. */
function tightenFolder(path: string, report: (line: string) => void): void {
  const mode = statSync(path).mode & 0o777
  if ((mode & othersMask) === 0) return
  try {
    chmodSync(path, folderMode)
    report(`${path} was open to other users (${octal(mode)}); it is now ${octal(folderMode)}.`)
  } catch {
    report(`${path} is open to other users (${octal(mode)}) and cannot be changed. Try: chmod 700 ${path}`)
  }
}

function tightenFile(path: string, report: (line: string) => void): void {
  const mode = statSync(path).mode & 0o777
  if ((mode & othersMask) === 0) return
  try {
    chmodSync(path, fileMode)
  } catch (thrown) {
    throw new StartRefusal(`${path} can be read by other users (${octal(mode)}). Try: chmod 600 ${path}`, {
      cause: thrown,
    })
  }
  report(`${path} was open to other users (${octal(mode)}); it is now ${octal(fileMode)}.`)
}

function readOrCreateSecret(path: string, bytes: number, report: (line: string) => void) {
  const fresh = Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('base64url')
  const created = createFile(path, `${fresh}\n`)
  if (created) return { text: fresh, created }
  tightenFile(path, report)
  const text = readFileSync(path, 'utf8').trim()
  if (text !== '') return { text, created }
  throw new StartRefusal(`${path} is empty. Restore it from a backup, or delete it if this Tollgate was never used.`)
}

/** False if the file is there already. It appears with its content or not at all, also after a crash. */
function createFile(path: string, text: string): boolean {
  const draft = writeDraft(path, text)
  try {
    linkSync(draft, path)
  } catch (thrown) {
    if (hasCode(thrown, 'EEXIST')) return false
    throw thrown
  } finally {
    rmSync(draft)
  }
  syncFolder(path)
  return true
}

function replaceFile(path: string, text: string): void {
  renameSync(writeDraft(path, text), path)
  syncFolder(path)
}

/** A unique name per draft: replicas may share the folder. */
function writeDraft(path: string, text: string): string {
  const draft = `${path}.${crypto.randomUUID()}.draft`
  const descriptor = openSync(draft, 'wx', fileMode)
  try {
    writeFileSync(descriptor, text)
    fsyncSync(descriptor)
  } catch (thrown) {
    rmSync(draft)
    throw thrown
  } finally {
    closeSync(descriptor)
  }
  return draft
}

/** A new name is durable only when its folder is. */
function syncFolder(path: string): void {
  const descriptor = openSync(dirname(path), 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0')
}

function hasCode(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === code
}
