// Edits a JSON settings file of another program: keeps the original beside it, writes the whole file at once, and later
// removes exactly its own members, so that other changes stay. A file with comments is not touched.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { valueAt } from '../config/document.ts'

/** A member of a JSON file by its path, and the value it gets. */
export interface Member {
  readonly path: readonly string[]
  readonly value: unknown
  /** For a member that people also set themselves: whether this value was written by `connect`. Absent = always. */
  isOurs?(value: unknown): boolean
}

type JsonObject = Readonly<Record<string, unknown>>

/** Empty = there was no file before. */
export function backupOf(file: string): string {
  return `${file}.before-tollgate`
}

/** The target of a symbolic link, so that a link into a dotfiles folder stays a link. */
export function realFile(file: string): string {
  return existsSync(file) ? realpathSync(file) : file
}

/** The repository that contains the file; undefined = none. Does not check whether the file is ignored there. */
export function repositoryOf(file: string): string | undefined {
  for (let folder = dirname(realFile(file)); ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.git'))) return folder
    if (dirname(folder) === folder) return undefined
  }
}

/** The content of the file, an empty object if it does not exist, undefined if it is not plain JSON. */
export function readSettings(text: string | undefined): JsonObject | undefined {
  if (text === undefined || text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined
  } catch {
    return undefined
  }
}

export function readText(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

/** Readable by this user only, because it contains a key. */
export function writeText(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  const draft = `${file}.${crypto.randomUUID()}.draft`
  writeFileSync(draft, text, { mode: 0o600 })
  renameSync(draft, file)
  chmodSync(file, 0o600)
}

/** Keeps the first original: a file that `connect` wrote needs no backup. */
export function keepBackup(file: string): void {
  if (!existsSync(backupOf(file))) writeText(backupOf(file), readText(file) ?? '')
}

export function withMembers(settings: JsonObject, members: readonly Member[]): JsonObject {
  return members.reduce((root, { path, value }) => setAt(root, path, value), settings)
}

/** Restores each member; removes containers that were created for them and are empty now. */
export function withoutMembers(settings: JsonObject, members: readonly Member[], before: JsonObject): JsonObject {
  return members.reduce((root, { path, isOurs }) => {
    return isOurs?.(valueAt(root, path)) === false ? root : setAt(root, path, valueAt(before, path))
  }, settings)
}

/** Restores the original if nothing else was changed; otherwise removes only our members. */
export function restore(
  file: string,
  members: readonly Member[],
): 'restored' | 'taken out' | 'no backup' | 'not plain' {
  const original = readText(backupOf(file))
  if (original === undefined) return 'no backup'
  const [now, before] = [readSettings(readText(file)), readSettings(original)]
  if (now === undefined || before === undefined) return 'not plain'
  const cleaned = withoutMembers(now, members, before)
  const isSame = Bun.deepEquals(cleaned, before)
  if (isSame && original === '') rmSync(file, { force: true })
  else writeText(file, isSame ? original : renderSettings(cleaned))
  rmSync(backupOf(file))
  return isSame ? 'restored' : 'taken out'
}

export function renderSettings(settings: JsonObject): string {
  return `${JSON.stringify(settings, null, 2)}\n`
}

/** undefined removes the member, and its container if that is empty then. */
function setAt(settings: JsonObject, path: readonly string[], value: unknown): JsonObject {
  const [name, ...rest] = path
  if (name === undefined) return settings
  const inner = settings[name]
  const container = typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? (inner as JsonObject) : {}
  const changed = rest.length === 0 ? value : emptyAsAbsent(setAt(container, rest, value), value)
  if (changed !== undefined) return { ...settings, [name]: changed }
  const { [name]: _removed, ...others } = settings
  return others
}

function emptyAsAbsent(container: JsonObject, value: unknown): JsonObject | undefined {
  return value === undefined && Object.keys(container).length === 0 ? undefined : container
}
