// The configuration in force. A changed file is loaded again: a good one is handed to the listeners, a wrong one is
// reported and the last good one stays. What cannot change while running keeps its value and is named.

import { Secret } from '../kernel/secret.ts'
import { type Config, frozenConfig, type KeyFiles, type LoadedConfig, type RefusedConfig } from './config.ts'
import type { ConfigFault } from './fault.ts'
import type { ShownSetting } from './shown-settings.ts'
import { type FileWatch, watchConfigFile } from './watch.ts'

export type ConfigReport =
  /** In force now, except the settings that need a restart. */
  | { readonly kind: 'applied'; readonly needsRestart: readonly string[]; readonly warnings: readonly ConfigFault[] }
  /** The last good configuration stays in force. */
  | { readonly kind: 'refused'; readonly faults: readonly ConfigFault[]; readonly warnings: readonly ConfigFault[] }
  /** The file is gone; the last good configuration stays in force. */
  | { readonly kind: 'deleted'; readonly configPath: string }

/** Must not throw or reject. One that takes its time promises whether the change is in force. */
export type ConfigListener = (config: Config) => Promise<boolean> | undefined

export interface ConfigSource {
  readonly current: Config
  /** Answers with the way to stop listening. */
  onChange(listener: ConfigListener): () => void
  /** Told when a changed file was wrong and the last good configuration stays. Must not throw. */
  onRefused(listener: () => void): void
  /** Each setting in force and where it came from; secrets are "set". */
  settings(): readonly ShownSetting[]
  /** Loads now, whether or not a file changed. */
  reload(): void
  close(): void
}

export interface ConfigSourceOptions {
  readonly initial: LoadedConfig
  readonly load: () => LoadedConfig | RefusedConfig
  readonly report: (report: ConfigReport) => void
  /** Absent = nothing is told of them. */
  readonly describe?: (config: Config) => readonly ShownSetting[]
  readonly intervalMs?: number
}

/** The names are the ones people write in the file, or the variable where there is none. */
const fixedSettings = {
  host: 'server.host',
  port: 'server.port',
  dataFolder: 'server.data',
  logFormat: 'server.log',
  // Local servers are looked for once, at the start.
  localModels: 'server.local_models',
  databaseUrl: 'DATABASE_URL',
  redisUrl: 'REDIS_URL',
  secret: 'TOLLGATE_SECRET',
  adminToken: 'TOLLGATE_ADMIN_TOKEN',
} as const satisfies Partial<Record<keyof Config, string>>

export function createConfigSource(options: ConfigSourceOptions): ConfigSource {
  const { initial, load, report } = options
  const listeners = new Set<ConfigListener>()
  const refusalListeners = new Set<() => void>()
  let current = initial.config

  const keyWatches = new Map<string, FileWatch>()

  const reload = (): void => {
    const outcome = load()
    watchKeys(outcome.keyFiles)
    if ('faults' in outcome) {
      for (const listener of refusalListeners) listener()
      report({ kind: 'refused', faults: outcome.faults, warnings: fromFile(outcome.warnings) })
      return
    }
    if (current.configFileExists && !outcome.config.configFileExists) {
      report({ kind: 'deleted', configPath: current.configPath })
      return
    }
    const { config, needsRestart } = keepFixedSettings(current, outcome.config)
    current = config
    const taking = [...listeners].flatMap((listener) => listener(config) ?? [])
    const tell = () => report({ kind: 'applied', needsRestart, warnings: fromFile(outcome.warnings) })
    if (taking.length === 0) return tell()
    // Whoever could not take it over has said so.
    void Promise.all(taking).then((taken) => taken.every(Boolean) && tell())
  }
  const watchFile = (path: string, digest: string | undefined) =>
    watchConfigFile(path, {
      onChange: reload,
      known: { digest },
      ...(options.intervalMs !== undefined && { intervalMs: options.intervalMs }),
    })
  /** A key that is renewed in its file is used from then on, and one that was missing mends the configuration. */
  const watchKeys = (keyFiles: KeyFiles): void => {
    for (const [path, watch] of keyWatches) {
      if (keyFiles.has(path)) continue
      watch.close()
      keyWatches.delete(path)
    }
    for (const [path, digest] of keyFiles) if (!keyWatches.has(path)) keyWatches.set(path, watchFile(path, digest))
  }
  const watch = watchFile(current.configPath, initial.fileDigest)
  watchKeys(initial.keyFiles)

  return {
    get current() {
      return current
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    onRefused: (listener) => void refusalListeners.add(listener),
    settings: () => options.describe?.(current) ?? [],
    reload,
    close() {
      for (const each of [watch, ...keyWatches.values()]) each.close()
    },
  }
}

/** The environment cannot have changed; its warnings were given at the start. */
function fromFile(warnings: readonly ConfigFault[]): readonly ConfigFault[] {
  return warnings.filter((warning) => warning.where !== 'environment')
}

function keepFixedSettings(
  current: Config,
  next: Config,
): { readonly config: Config; readonly needsRestart: readonly string[] } {
  const changed = (Object.keys(fixedSettings) as (keyof typeof fixedSettings)[]).filter(
    (key) => plain(current[key]) !== plain(next[key]),
  )
  const kept = Object.fromEntries(Object.keys(fixedSettings).map((key) => [key, current[key as keyof Config]]))
  return {
    config: frozenConfig({ ...next, ...kept }),
    needsRestart: changed.map((key) => fixedSettings[key]),
  }
}

function plain(value: string | number | boolean | Secret | undefined): string | number | boolean | undefined {
  return value instanceof Secret ? value.reveal() : value
}
