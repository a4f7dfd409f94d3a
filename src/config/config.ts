// The settings of one process: environment, then file, then defaults, checked and frozen, and each of them with where it came
// from. The only reader of the environment; it names no provider and starts nothing.

import { readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import type { Model } from '../catalog/model.ts'
import { formatPrice, type Pico } from '../kernel/money.ts'
import { Secret } from '../kernel/secret.ts'
import type { ProviderEntry } from '../providers/entry.ts'
import { type ConfigDocument, type ConfigFault, type ConfigPath, readDocument, valueAt } from './document.ts'
import {
  type Environment,
  type EnvironmentSettings,
  errorCode,
  readVariables,
  serverVariables,
  setProxyVariables,
  unknownVariables,
  variable,
} from './environment.ts'
import { type FileReading, readConfigFile } from './file.ts'
import type { LimitsSection, OwnKeysSection, RetriesSection, ServerSection } from './schema.ts'

/** Limits of every key that has none of its own; undefined = unlimited. */
export interface LimitDefaults {
  readonly requestsPerMinute: number | undefined
  readonly tokensPerMinute: number | undefined
  readonly concurrentRequests: number | undefined
}

/** Provider keys that workspaces bring themselves. */
export interface OwnKeySettings {
  /** In hundredths of a percent of the model's price. */
  readonly feeBasisPoints: number
  readonly mayBringAddress: boolean
  readonly allowHosts: readonly string[]
  readonly plainHttp: boolean
}

/** Retries on the same route when no other is left. */
export interface RetrySettings {
  /** Including the first one. */
  readonly attempts: number
  readonly backoffMs: number
  readonly totalMs: number
}

export interface Config extends EnvironmentSettings {
  readonly host: string
  /** 0 = any free one. */
  readonly port: number
  /** Absolute. */
  readonly dataFolder: string
  readonly sandbox: boolean
  readonly logFormat: 'pretty' | 'json'
  readonly bodyBytesMax: number
  readonly drainMs: number
  /** undefined = depends on the database. */
  readonly drainDelayMs: number | undefined
  readonly limits: LimitDefaults
  readonly ownKeys: OwnKeySettings
  readonly retries: RetrySettings
  /** Where people reach the gateway; undefined = where it listens. */
  readonly publicUrl: string | undefined
  readonly localModels: boolean
  /** Addresses and ranges of the proxies whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[]
  /** Whether the environment names an HTTP proxy for calls to providers. */
  readonly hasHttpProxy: boolean
  /** Whether the catalog pages need no session. */
  readonly catalogIsPublic: boolean
  /** 0 = forever. */
  readonly requestsRetentionDays: number
  readonly providers: readonly ProviderEntry[]
  readonly models: readonly Model[]
  /** Absolute; where the file is, or would be looked for. */
  readonly configPath: string
  readonly configFileExists: boolean
}

export interface ConfigInputs {
  readonly env: Environment
  readonly cwd: string
  readonly stdoutIsTerminal: boolean
  /** The usual variables of built-in providers, e.g. `ACME_API_KEY`. */
  readonly providerVariables: readonly string[]
  readonly builtInProviderIds: readonly string[]
  /** Throws with a `code` as the file system does. */
  readonly readFile?: (path: string) => string
}

export interface LoadedConfig {
  readonly config: Config
  readonly warnings: readonly ConfigFault[]
  /** Digest of the file, to notice changes; undefined without a file. */
  readonly fileDigest: string | undefined
  readonly keyFiles: KeyFiles
}

export interface RefusedConfig {
  readonly faults: readonly ConfigFault[]
  readonly warnings: readonly ConfigFault[]
  readonly keyFiles: KeyFiles
}

/** Files that hold keys, by path, with the digest of what they contained; undefined = it could not be read. */
export type KeyFiles = ReadonlyMap<string, string | undefined>

export function readProcess(): Pick<ConfigInputs, 'env' | 'cwd' | 'stdoutIsTerminal'> {
  return { env: { ...process.env }, cwd: process.cwd(), stdoutIsTerminal: process.stdout.isTTY === true }
}

/** Overrides the environment of this process and of those it starts. */
export function setAboveEnvironment(settings: Readonly<Record<string, string>>): void {
  Object.assign(process.env, settings)
}

export function loadConfig(inputs: ConfigInputs): LoadedConfig | RefusedConfig {
  const { env, cwd } = inputs
  const configPath = resolve(cwd, variable(env, 'TOLLGATE_CONFIG') ?? 'tollgate.yaml')
  const variables = readVariables(env, inputs.providerVariables)
  const { reading, fileDigest, keyFiles } = readFile(configPath, inputs)

  const alsoKnown = [...inputs.providerVariables, ...reading.referenced]
  const warnings = [...variables.warnings, ...unknownVariables(env, alsoKnown), ...reading.warnings]
  const faults = [...variables.faults, ...reading.faults]
  const { settings } = reading
  if (settings === undefined || faults.length > 0) return { faults, warnings, keyFiles }

  const { limits, ownKeys, retries } = settings
  const server = { ...settings.server, ...variables.server }
  const config: Config = {
    host: server.host ?? '127.0.0.1',
    port: server.port ?? 8080,
    dataFolder: resolve(cwd, server.data ?? 'data'),
    sandbox: server.sandbox !== 'off' && server.sandbox !== false,
    logFormat: server.log ?? (inputs.stdoutIsTerminal ? 'pretty' : 'json'),
    ...variables.settings,
    bodyBytesMax: server.body_bytes_max ?? 32 * 1024 * 1024,
    drainMs: Math.round((server.drain_seconds ?? 120) * 1000),
    drainDelayMs: server.drain_delay_seconds === undefined ? undefined : server.drain_delay_seconds * 1000,
    limits: {
      requestsPerMinute: limits.requests_per_minute,
      tokensPerMinute: limits.tokens_per_minute,
      concurrentRequests: limits.concurrent_requests,
    },
    ownKeys: {
      feeBasisPoints: Math.round((ownKeys.fee_percent ?? 0) * 100),
      mayBringAddress: ownKeys.base_urls ?? false,
      allowHosts: ownKeys.allow_hosts ?? [],
      plainHttp: ownKeys.plain_http ?? false,
    },
    retries: {
      attempts: retries.attempts ?? 3,
      backoffMs: retries.backoff_ms ?? 2_000,
      totalMs: retries.total_ms ?? 8_000,
    },
    publicUrl: server.public_url?.replace(/\/+$/, ''),
    catalogIsPublic: server.catalog !== 'signed-in',
    requestsRetentionDays: server.requests_retention_days ?? 90,
    localModels: server.local_models !== 'off' && server.local_models !== false,
    trustedProxies: server.trusted_proxies ?? [],
    hasHttpProxy: setProxyVariables(env).length > 0,
    providers: settings.providers,
    models: settings.models,
    configPath,
    configFileExists: fileDigest !== undefined,
  }
  return { config: frozenConfig(config), warnings, fileDigest, keyFiles }
}

interface ReadFile {
  readonly reading: FileReading
  readonly fileDigest: string | undefined
  readonly keyFiles: KeyFiles
}

function readFile(path: string, inputs: ConfigInputs): ReadFile {
  const keyFiles = new Map<string, string | undefined>()
  const read = inputs.readFile ?? readText
  const fileName = fileNameIn(inputs.cwd, path)
  let text: string
  try {
    text = read(path)
  } catch (error) {
    const code = errorCode(error)
    const named = variable(inputs.env, 'TOLLGATE_CONFIG') !== undefined
    if (code === 'ENOENT' && !named) return { reading: noFile, fileDigest: undefined, keyFiles }
    const message = `the configuration file cannot be read (${code})${named ? '; TOLLGATE_CONFIG names it' : ''}`
    return {
      reading: { ...noFile, settings: undefined, faults: [{ where: fileName, field: '', message }] },
      fileDigest: undefined,
      keyFiles,
    }
  }
  const { env, builtInProviderIds } = inputs
  const readKey = (file: string) => {
    keyFiles.set(file, undefined)
    const key = read(file)
    keyFiles.set(file, contentDigest(key))
    return key
  }
  const reading = readConfigFile(text, { fileName, folder: dirname(path), env, readFile: readKey, builtInProviderIds })
  return { reading, fileDigest: contentDigest(text), keyFiles }
}

function readText(path: string): string {
  return readFileSync(path, 'utf8')
}

/** As messages name it: relative if it is inside the working folder. */
function fileNameIn(cwd: string, path: string): string {
  const inside = relative(cwd, path)
  return inside.startsWith('..') ? path : inside
}

export function contentDigest(text: string): string {
  return new Bun.CryptoHasher('sha256').update(text).digest('hex')
}

const noFile: FileReading = {
  settings: { server: {}, limits: {}, ownKeys: {}, retries: {}, providers: [], models: [] },
  faults: [],
  warnings: [],
  referenced: [],
}

/** Frozen deeply, and printable: JSON has no bigint, and the only ones here are prices. */
export function frozenConfig(config: Config): Config {
  const copy = { ...config }
  const printable = (_: string, value: unknown) => (typeof value === 'bigint' ? formatPrice(value as Pico) : value)
  const toJSON = (): unknown => JSON.parse(JSON.stringify({ ...copy }, printable))
  Object.defineProperty(copy, 'toJSON', { value: toJSON, enumerable: false })
  deepFreeze(copy)
  return copy
}

function deepFreeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return
  Object.freeze(value)
  if (value instanceof Secret) return
  for (const inner of Object.values(value)) deepFreeze(inner)
}

export interface ShownSetting {
  /** As the file names it, or the variable where there is no such name. */
  readonly name: string
  readonly value: string
  /** `TOLLGATE_PORT`, `tollgate.yaml:4`, `default`. */
  readonly source: string
}

type Shown<Section> = { readonly [Key in keyof Required<Section>]: (config: Config) => unknown }

const serverValues: Shown<ServerSection> = {
  host: ({ host }) => host,
  port: ({ port }) => port,
  data: ({ dataFolder }) => dataFolder,
  log: ({ logFormat }) => logFormat,
  sandbox: ({ sandbox }) => onOff(sandbox),
  body_bytes_max: ({ bodyBytesMax }) => bodyBytesMax,
  drain_seconds: ({ drainMs }) => drainMs / 1000,
  drain_delay_seconds: ({ drainDelayMs }) =>
    drainDelayMs === undefined ? 'depends on the database' : drainDelayMs / 1000,
  public_url: ({ publicUrl }) => publicUrl ?? 'where it listens',
  requests_retention_days: ({ requestsRetentionDays }) => requestsRetentionDays,
  catalog: ({ catalogIsPublic }) => (catalogIsPublic ? 'public' : 'signed-in'),
  local_models: ({ localModels }) => onOff(localModels),
  trusted_proxies: ({ trustedProxies }) => listed(trustedProxies),
}

const limitValues: Shown<LimitsSection> = {
  requests_per_minute: ({ limits }) => limits.requestsPerMinute ?? 'unlimited',
  tokens_per_minute: ({ limits }) => limits.tokensPerMinute ?? 'unlimited',
  concurrent_requests: ({ limits }) => limits.concurrentRequests ?? 'unlimited',
}

const ownKeyValues: Shown<OwnKeysSection> = {
  fee_percent: ({ ownKeys }) => ownKeys.feeBasisPoints / 100,
  base_urls: ({ ownKeys }) => ownKeys.mayBringAddress,
  allow_hosts: ({ ownKeys }) => listed(ownKeys.allowHosts),
  plain_http: ({ ownKeys }) => ownKeys.plainHttp,
}

const retryValues: Shown<RetriesSection> = {
  attempts: ({ retries }) => retries.attempts,
  backoff_ms: ({ retries }) => retries.backoffMs,
  total_ms: ({ retries }) => retries.totalMs,
}

const secretValues: Readonly<Record<string, { readonly of: (config: Config) => unknown; readonly otherwise: string }>> =
  {
    TOLLGATE_ADMIN_TOKEN: { of: ({ adminToken }) => adminToken, otherwise: 'generated, in the data folder' },
    TOLLGATE_SECRET: { of: ({ secret }) => secret, otherwise: 'generated, in the data folder' },
    TOLLGATE_SECRET_PREVIOUS: { of: ({ secretPrevious }) => secretPrevious, otherwise: 'not set' },
    DATABASE_URL: { of: ({ databaseUrl }) => databaseUrl, otherwise: 'not set: SQLite in the data folder' },
    REDIS_URL: { of: ({ redisUrl }) => redisUrl, otherwise: 'not set' },
    STRIPE_SECRET_KEY: { of: ({ stripe }) => stripe.secretKey, otherwise: 'not set' },
    STRIPE_WEBHOOK_SECRET: { of: ({ stripe }) => stripe.webhookSecret, otherwise: 'not set' },
  }

export function listSettings(inputs: ConfigInputs): readonly ShownSetting[] | RefusedConfig {
  const loaded = loadConfig(inputs)
  if ('faults' in loaded) return loaded
  return shownSettings(loaded.config, inputs)
}

/** The configuration may have been loaded long ago; its file is read again for the line numbers. */
export function shownSettings(config: Config, inputs: ConfigInputs): readonly ShownSetting[] {
  const file = openFile(config, inputs)
  const fromFile = (path: ConfigPath) => file.source(path) ?? 'default'
  const section = (name: string, values: Readonly<Record<string, (config: Config) => unknown>>) =>
    Object.entries(values).map(([key, of]) => {
      return { name: `${name}.${key}`, value: String(of(config)), source: fromFile([name, key]) }
    })
  return [
    { name: 'TOLLGATE_CONFIG', value: file.value, source: given(inputs, 'TOLLGATE_CONFIG') ?? 'default' },
    ...section('server', serverValues).map((setting) => {
      const name = serverVariables[setting.name.slice('server.'.length) as keyof ServerSection]
      return { ...setting, source: given(inputs, name) ?? setting.source }
    }),
    ...Object.entries(secretValues).map(([name, { of, otherwise }]) => {
      const isSet = of(config) !== undefined
      return { name, value: isSet ? 'set' : otherwise, source: isSet ? name : 'default' }
    }),
    ...section('limits', limitValues),
    ...section('own_keys', ownKeyValues),
    ...section('retries', retryValues),
    ...Object.keys(config.providerKeys).map((name) => ({ name, value: 'set', source: name })),
    ...config.providers.map(({ id, dialect, baseUrl, apiKey, source }) => {
      const value = [dialect, baseUrl, apiKey === undefined ? 'no key' : 'key set'].filter(Boolean).join(', ')
      return { name: `providers.${id}`, value, source }
    }),
    ...config.models.map(({ id, routes, source }) => {
      const value = routes.map(({ providerId, upstreamModel }) => `${upstreamModel} at ${providerId}`).join(', ')
      return { name: `models.${id}`, value, source }
    }),
  ]
}

function onOff(isOn: boolean): string {
  return isOn ? 'on' : 'off'
}

function listed(entries: readonly string[]): string {
  return entries.length === 0 ? 'none' : entries.join(', ')
}

function given({ env }: ConfigInputs, name: string): string | undefined {
  return variable(env, name) === undefined ? undefined : name
}

/** A file that is gone or wrong by now gives no line numbers. */
function openFile({ configPath, configFileExists }: Config, inputs: ConfigInputs) {
  const name = fileNameIn(inputs.cwd, configPath)
  const document = configFileExists ? parseFile(configPath, name, inputs) : undefined
  return {
    value: configFileExists ? configPath : `no file in ${dirname(configPath)}`,
    source: (path: ConfigPath) =>
      valueAt(document?.value, path) === undefined ? undefined : `${name}:${document?.line(path)}`,
  }
}

function parseFile(path: string, name: string, { readFile = readText }: ConfigInputs): ConfigDocument | undefined {
  try {
    const document = readDocument(name, readFile(path))
    return 'faults' in document ? undefined : document
  } catch {
    return undefined
  }
}
