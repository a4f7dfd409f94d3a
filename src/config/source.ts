// Holds the configuration in effect and reloads a changed file. A valid one goes to the listeners; an invalid one is
// reported, and the last valid one stays. Settings that need a restart keep their value and are reported.

import { readFile, stat } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { Secret } from '../kernel/secret.ts'
import {
  type Config,
  contentDigest,
  frozenConfig,
  type KeyFiles,
  type LoadedConfig,
  type RefusedConfig,
  type ShownSetting,
} from './config.ts'
import type { ConfigFault } from './document.ts'
import { type ConfigEditor, createConfigEditor } from './edit.ts'
import type { Setting } from './setting.ts'
import { sections } from './settings.ts'

export type ConfigReport =
  /** In effect now, except the settings that need a restart. */
  | { readonly kind: 'applied'; readonly needsRestart: readonly string[]; readonly warnings: readonly ConfigFault[] }
  /** The last valid configuration stays in effect. */
  | { readonly kind: 'refused'; readonly faults: readonly ConfigFault[]; readonly warnings: readonly ConfigFault[] }
  /** The file is gone; the last valid configuration stays in effect. */
  | { readonly kind: 'deleted'; readonly configPath: string }

/** Must not throw or reject. An asynchronous one resolves to whether the change is in effect. */
export type ConfigListener = (config: Config) => Promise<boolean> | undefined

export interface ConfigSource {
  readonly current: Config
  onChange(listener: ConfigListener): void
  /** Called when a changed file is wrong. Must not throw. */
  onRefused(listener: () => void): void
  /** Each setting in effect and where it came from; secrets are "set". */
  settings(): readonly ShownSetting[]
  /** Loads now, whether or not a file changed. Resolves when a valid configuration is in effect. */
  reload(): Promise<void>
  /** Changes entries of the file. */
  readonly editor: ConfigEditor
  close(): void
}

export interface ConfigSourceOptions {
  readonly initial: LoadedConfig
  /** `fileText`: instead of the content of the file. */
  readonly load: (fileText?: string) => LoadedConfig | RefusedConfig
  readonly report: (report: ConfigReport) => void
  /** Absent = `settings` is empty. */
  readonly describe?: (config: Config) => readonly ShownSetting[]
  readonly intervalMs?: number
}

/** Members of Config that only change with a restart, each with its name in the file or its variable. */
const fixedMembers: readonly (readonly [member: keyof Config, name: string])[] = [
  // The settings of `server` are members of Config itself.
  ...Object.entries<Setting>(sections.server.settings).flatMap(([key, { member, needsRestart }]) =>
    needsRestart ? [[(member ?? key) as keyof Config, `server.${key}`] as const] : [],
  ),
  ['databaseUrl', 'DATABASE_URL'],
  ['redisUrl', 'REDIS_URL'],
  ['secret', 'TOLLGATE_SECRET'],
  ['adminToken', 'TOLLGATE_ADMIN_TOKEN'],
]

export function createConfigSource(options: ConfigSourceOptions): ConfigSource {
  const { initial, load, report } = options
  const listeners: ConfigListener[] = []
  const refusalListeners: (() => void)[] = []
  const closers = new Map<string, () => void>()
  let described: { readonly config: Config; readonly settings: readonly ShownSetting[] } | undefined

  const reload = async (): Promise<void> => {
    const outcome = load()
    watchKeys(outcome.keyFiles)
    if ('faults' in outcome) {
      for (const listener of refusalListeners) listener()
      report({ kind: 'refused', faults: outcome.faults, warnings: fromFile(outcome.warnings) })
      return
    }
    if (source.current.configFileExists && !outcome.config.configFileExists) {
      report({ kind: 'deleted', configPath: source.current.configPath })
      return
    }
    const { config, needsRestart } = keepFixedSettings(source.current, outcome.config)
    source.current = config
    const pending = listeners.flatMap((listener) => listener(config) ?? [])
    // A listener that could not apply it has logged that itself.
    if (pending.length > 0 && !(await Promise.all(pending)).every(Boolean)) return
    report({ kind: 'applied', needsRestart, warnings: fromFile(outcome.warnings) })
  }
  const watchFile = (path: string, digest: string | undefined) =>
    watchConfigFile({ path, digest, intervalMs: options.intervalMs, onChange: reload })
  /** A key replaced in its file takes effect, and a missing key that appears makes the configuration valid. */
  const watchKeys = (keyFiles: KeyFiles): void => {
    for (const [path, close] of closers) {
      if (keyFiles.has(path)) continue
      close()
      closers.delete(path)
    }
    for (const [path, digest] of keyFiles) if (!closers.has(path)) closers.set(path, watchFile(path, digest))
  }
  const close = watchFile(initial.config.configPath, initial.fileDigest)
  watchKeys(initial.keyFiles)

  const source: ConfigSource & { current: Config } = {
    current: initial.config,
    onChange: (listener) => void listeners.push(listener),
    onRefused: (listener) => void refusalListeners.push(listener),
    settings() {
      // Reading a file with a thousand models takes a quarter of a second.
      if (described?.config !== source.current) {
        described = { config: source.current, settings: options.describe?.(source.current) ?? [] }
      }
      return described.settings
    },
    reload,
    editor: createConfigEditor({
      path: initial.config.configPath,
      dataFolder: initial.config.dataFolder,
      check(text) {
        const outcome = load(text)
        return 'faults' in outcome ? outcome.faults : []
      },
      onWritten: reload,
    }),
    close() {
      for (const each of [close, ...closers.values()]) each()
    },
  }
  return source
}

/** The environment cannot have changed; its warnings were printed at the start. */
function fromFile(warnings: readonly ConfigFault[]): readonly ConfigFault[] {
  return warnings.filter((warning) => warning.where !== 'environment')
}

function keepFixedSettings(
  current: Config,
  next: Config,
): { readonly config: Config; readonly needsRestart: readonly string[] } {
  const kept = Object.fromEntries(fixedMembers.map(([member]) => [member, current[member]]))
  return {
    config: frozenConfig({ ...next, ...kept }),
    needsRestart: fixedMembers.flatMap(([member, name]) =>
      isDeepStrictEqual(revealed(current[member]), revealed(next[member])) ? [] : [name],
    ),
  }
}

function revealed(value: unknown): unknown {
  return value instanceof Secret ? value.reveal() : value
}

export interface FileWatchOptions {
  readonly path: string
  /** Digest of the content as it was read; undefined = there was no file. */
  readonly digest: string | undefined
  readonly intervalMs?: number | undefined
  /** Called once per change; the callee reads the file itself. */
  onChange(): void
}

/** A digest, which never equals one of these words. */
type Content = string | 'absent' | 'unreadable'

/**
 * Detects new content, whether it was written in place, renamed over the file, or a symbolic link got a new target. It
 * polls, because notifications are lost in exactly those cases and on network mounts.
 *
 * A change is reported when two polls in a row find the same new content, so that a half-written file, or one
 * between an editor's delete and rename, is not taken for the new configuration. Returns a function that ends it.
 */
export function watchConfigFile({ path, digest, intervalMs = 500, onChange }: FileWatchOptions): () => void {
  let reported: Content = digest ?? 'absent'
  let pending: Content | undefined
  let lastState: string | undefined
  let settledState: string | undefined
  let closed = false
  let timer: ReturnType<typeof setTimeout> | undefined

  const look = async (): Promise<void> => {
    const state = await fileState(path)
    if (closed || state === settledState) return
    const content = await fileContent(path)
    if (closed) return
    // File times advance in steps of milliseconds: a state seen once may still cover another write.
    const settled = state === lastState
    lastState = state
    const changed = content !== reported
    if (changed && content !== pending) {
      pending = content
      return
    }
    reported = content
    pending = undefined
    if (settled) settledState = state
    if (changed) onChange()
  }
  const again = (): void => {
    timer = setTimeout(() => void look().finally(() => closed || again()), intervalMs)
    // Watching a file must not keep the process alive.
    timer.unref()
  }
  again()
  return () => {
    closed = true
    clearTimeout(timer)
  }
}

/** Changes when the path leads to another file or the file was written. */
async function fileState(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = await stat(path)
    return [dev, ino, size, mtimeMs, ctimeMs].join(':')
  } catch {
    return 'absent'
  }
}

async function fileContent(path: string): Promise<Content> {
  try {
    return contentDigest(await readFile(path, 'utf8'))
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT' ? 'absent' : 'unreadable'
  }
}
