// Changes providers, models, aliases and disabled providers in the configuration file for the management API. The file stays
// their only source and keeps its comments and order. Nothing is written that the gateway could not load. Keys are stored
// in separate files in the data folder, and entries refer to them.

import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type Document, isMap, isScalar, isSeq, parseDocument } from 'yaml'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import { contentDigest } from './config.ts'
import { type ConfigFault, formatFault, readValue } from './document.ts'

type Entry = Readonly<Record<string, unknown>>

/** In the shape of the management API. */
export interface FileEntries {
  readonly path: string
  /** Why the gateway cannot change the file; null = it can. */
  readonly read_only: string | null
  /** Changes with the content; null = there is no file. */
  readonly digest: string | null
  /** As they are written, except that a key is shown as a reference or as "set". */
  readonly providers: Entry[]
  readonly models: Entry[]
  readonly aliases: Record<string, string>
  readonly disabled_providers: string[]
}

/** By id; null removes the entry. An entry replaces the one with the same id; a provider without `api_key` keeps its key. */
export interface FileChange {
  readonly providers?: Readonly<Record<string, Entry | null>> | undefined
  readonly models?: Readonly<Record<string, Entry | null>> | undefined
  readonly aliases?: Readonly<Record<string, string | null>> | undefined
  /** By provider: whether it is disabled. */
  readonly disabled_providers?: Readonly<Record<string, boolean>> | undefined
  /** The digest of the file that the change was made for. */
  readonly digest?: string | null | undefined
}

export interface ConfigEditorOptions {
  readonly path: string
  readonly dataFolder: string
  /** The faults that a file with this content would have. */
  check(text: string): readonly ConfigFault[]
  /** The file has changed. */
  onWritten(): Promise<void>
}

export interface ConfigEditor {
  read(): FileEntries
  /** Throws a Failure, and then nothing has changed. */
  change(change: FileChange): FileEntries
  /** Resolves when the last change is in effect. */
  applied(): Promise<void>
}

/** The same as in the schema of providers. The id becomes the name of a file. */
const providerId = /^[a-z0-9][a-z0-9-]{0,62}$/

export function createConfigEditor({ path, dataFolder, check, onWritten }: ConfigEditorOptions): ConfigEditor {
  let applying: Promise<void> = Promise.resolve()
  const textNow = () => (existsSync(path) ? readFileSync(path, 'utf8') : undefined)
  const read = (): FileEntries => {
    const text = textNow()
    const found = readValue(text ?? '')
    const { providers, models, aliases, disabled_providers: disabled } = rootOf(found?.value)
    return {
      path,
      read_only: found ? whyReadOnly(path) : 'it is not valid YAML',
      digest: text === undefined ? null : contentDigest(text),
      providers: listOf(providers).map(withoutKey),
      models: listOf(models),
      aliases: (aliases ?? {}) as FileEntries['aliases'],
      disabled_providers: Array.isArray(disabled) ? disabled.map(String) : [],
    }
  }
  const change = (wanted: FileChange): FileEntries => {
    const { read_only: readOnly, digest } = read()
    if (readOnly !== null) {
      throw new Failure('FORBIDDEN', `The gateway cannot change ${path}: ${readOnly}. Change it where it is deployed.`)
    }
    if (wanted.digest !== undefined && wanted.digest !== digest) {
      throw invalidRequest('The configuration file has changed since it was read. Read it again.', 'digest')
    }
    const document = parse(textNow() ?? '')
    const keys = createKeyFiles(join(dataFolder, 'provider-keys'))
    try {
      for (const [id, entry] of Object.entries(wanted.providers ?? {})) putProvider(document, id, entry, keys)
      for (const [id, entry] of Object.entries(wanted.models ?? {})) putEntry(document, 'models', id, entry)
      for (const [name, target] of Object.entries(wanted.aliases ?? {})) {
        if (target === null) document.deleteIn(['aliases', name])
        else document.setIn(['aliases', name], target)
      }
      for (const [id, isDisabled] of Object.entries(wanted.disabled_providers ?? {})) {
        putDisabled(document, id, isDisabled)
      }
      const text = document.toString({ lineWidth: 0 })
      const faults = check(text)
      if (faults.length > 0) {
        throw invalidRequest(
          `Nothing was changed, because the file would be wrong: ${faults.map(formatFault).join('; ')}`,
        )
      }
      replaceFile(path, text)
      for (const [id, entry] of Object.entries(wanted.providers ?? {})) if (entry === null) keys.remove(id)
    } catch (thrown) {
      keys.restore()
      throw thrown
    }
    applying = onWritten()
    return read()
  }
  return { read, change, applied: () => applying }
}

function rootOf(value: unknown): Partial<Record<keyof FileChange, unknown>> {
  return typeof value === 'object' && value !== null ? value : {}
}

function parse(text: string): Document {
  return parseDocument(text, { prettyErrors: false, stringKeys: true })
}

function listOf(value: unknown): Entry[] {
  return Array.isArray(value) ? (value as Entry[]) : []
}

function withoutKey(entry: Entry): Entry {
  const { api_key: key } = entry
  if (typeof key !== 'string') return entry
  return { ...entry, api_key: /^(file:|\$\{)/.test(key) ? key : 'set' }
}

function whyReadOnly(path: string): string | null {
  try {
    // A new file replaces the old one, so the folder has to be writable as well.
    const target = existsSync(path) ? realpathSync(path) : path
    if (existsSync(target)) accessSync(target, constants.W_OK)
    accessSync(dirname(target), constants.W_OK)
    return null
  } catch (error) {
    return `it is read-only (${error instanceof Error && 'code' in error ? error.code : 'unknown'})`
  }
}

/** Writes a new file and renames it over the old one, so that no reader sees half of it. Keeps mode, owner and links. */
function replaceFile(path: string, text: string): void {
  const target = existsSync(path) ? realpathSync(path) : path
  const before = existsSync(target) ? statSync(target) : undefined
  const next = `${target}.new`
  writeFileSync(next, text, { mode: before?.mode ?? 0o600, flush: true })
  if (before) {
    chmodSync(next, before.mode)
    if (process.getuid?.() === 0) chownSync(next, before.uid, before.gid)
  }
  renameSync(next, target)
}

interface KeyFiles {
  /** Stores a key and returns how an entry refers to it. */
  put(id: string, key: string): string
  /** Deletes the stored key of a removed provider. */
  remove(id: string): void
  /** Restores the previous keys. */
  restore(): void
}

function createKeyFiles(folder: string): KeyFiles {
  const before = new Map<string, string | undefined>()
  const write = (path: string, key: string) => {
    writeFileSync(`${path}.new`, key, { mode: 0o600, flush: true })
    renameSync(`${path}.new`, path)
  }
  return {
    put(id, key) {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      const path = join(folder, id)
      before.set(path, existsSync(path) ? readFileSync(path, 'utf8') : undefined)
      write(path, key)
      return `file:${path}`
    },
    remove: (id) => rmSync(join(folder, id), { force: true }),
    restore() {
      for (const [path, key] of before) {
        if (key === undefined) rmSync(path, { force: true })
        else write(path, key)
      }
    },
  }
}

/**
 * Callers of the API must not be able to read the gateway's files and variables, nor to send a stored key to another
 * address. So they cannot set references, and a changed address needs the key again.
 */
function putProvider(document: Document, id: string, entry: Entry | null, keys: KeyFiles): void {
  if (entry === null) return putEntry(document, 'providers', id, null)
  if (!providerId.test(id)) {
    throw invalidRequest('A provider’s id has lower-case letters, digits and dashes, at most 63.', 'providers')
  }
  const { api_key: key, ...rest } = entry
  const old = listOf((document.toJS() as { readonly providers?: unknown } | null)?.providers).find(
    (each) => each.id === id,
  )
  const isMoved = old !== undefined && (rest.base_url !== old.base_url || rest.dialect !== old.dialect)
  if (typeof rest.base_url === 'string' && rest.base_url.includes('${') && rest.base_url !== old?.base_url) {
    throw invalidRequest('`base_url` cannot refer to a variable here. Write it into the file.', 'providers')
  }
  if (key !== undefined && (typeof key !== 'string' || key.trim() === '')) {
    throw invalidRequest('`api_key` must be the provider’s key.', 'providers')
  }
  if (isMoved && old.api_key !== undefined && key === undefined) {
    throw invalidRequest('A changed address or dialect needs the key again: `api_key` is missing.', 'providers')
  }
  const reference = key === undefined ? old?.api_key : keys.put(id, key.trim())
  putEntry(document, 'providers', id, { ...rest, ...(reference !== undefined && { api_key: reference }) })
}

function putDisabled(document: Document, id: string, isDisabled: boolean): void {
  const list = document.get('disabled_providers')
  const items = isSeq(list) ? list.items : []
  const at = items.findIndex((item) => isScalar(item) && String(item.value) === id)
  if (at >= 0 === isDisabled) return
  if (!isDisabled && items.length === 1) document.delete('disabled_providers')
  else if (!isDisabled) document.deleteIn(['disabled_providers', at])
  else if (isSeq(list)) list.add(document.createNode(id))
  else document.set('disabled_providers', document.createNode([id]))
}

/** Leaves unchanged fields alone, so that they keep their comments. */
function putEntry(document: Document, section: 'providers' | 'models', id: string, entry: Entry | null): void {
  const list = document.get(section)
  const items = isSeq(list) ? list.items : []
  const at = items.findIndex((item) => isMap(item) && String(item.get('id')) === id)
  if (entry === null) {
    if (at < 0) throw new Failure('NOT_FOUND', `The configuration file has no ${section.slice(0, -1)} ${id}.`)
    if (items.length === 1) document.delete(section)
    else document.deleteIn([section, at])
    return
  }
  const wanted: Entry = { id, ...entry, ...('id' in entry && { id }) }
  const item = items[at]
  if (!isMap(item)) {
    if (isSeq(list)) list.add(document.createNode(wanted))
    else document.set(section, document.createNode([wanted]))
    return
  }
  const before = item.toJS(document) as Entry
  for (const name of Object.keys(before)) if (!(name in wanted)) item.delete(name)
  for (const [name, value] of Object.entries(wanted)) {
    if (!isDeepStrictEqual(value, before[name])) item.set(name, document.createNode(value))
  }
}
