// The settings of one process: environment, then file, then defaults, checked and frozen. The only reader of the
// environment; it names no provider and starts nothing.

import { readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import type { Model } from '../catalog/model.ts'
import type { FailpointPlan } from '../kernel/failpoint.ts'
import { formatPrice, type Pico } from '../kernel/money.ts'
import { Secret } from '../kernel/secret.ts'
import type { ProviderEntry } from '../providers/entry.ts'
import type { ConfigFault } from './fault.ts'
import { type FileReading, readConfigFile } from './file.ts'
import { type Environment, errorCode, variable } from './references.ts'
import type { LimitsSection, OwnKeysSection, RetriesSection } from './schema.ts'
import {
  type OtelVariables,
  readVariables,
  type StripeSecrets,
  unknownVariables,
  type VariableSettings,
} from './variables.ts'
import { contentDigest } from './watch.ts'

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

/** How a request is tried again on the same route when no other is left. */
export interface RetrySettings {
  /** In all, the first one included. */
  readonly attempts: number
  readonly backoffMs: number
  readonly totalMs: number
}

export interface Config {
  readonly host: string
  /** 0 = any free one. */
  readonly port: number
  /** Absolute. */
  readonly dataFolder: string
  readonly sandbox: boolean
  readonly logFormat: 'pretty' | 'json'
  /** undefined = the embedded database in the data folder. Both addresses may contain a password. */
  readonly databaseUrl: Secret | undefined
  readonly redisUrl: Secret | undefined
  /** undefined = generated into the data folder. */
  readonly secret: Secret | undefined
  readonly adminToken: Secret | undefined
  /** For tests of what survives a crash. */
  readonly failpoints: readonly FailpointPlan[]
  readonly bodyBytesMax: number
  readonly drainMs: number
  /** undefined = as the engine needs it. */
  readonly drainDelayMs: number | undefined
  readonly limits: LimitDefaults
  readonly ownKeys: OwnKeySettings
  readonly retries: RetrySettings
  /** Where people reach the gateway; undefined = where it listens. */
  readonly publicUrl: string | undefined
  readonly localModels: boolean
  /** Addresses and ranges of the proxies whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[]
  /** Whether the catalog pages need no session. */
  readonly catalogIsPublic: boolean
  /** The one that is being replaced; what it sealed can still be opened. */
  readonly secretPrevious: Secret | undefined
  readonly stripe: StripeSecrets
  readonly otel: OtelVariables
  /** 0 = for ever. */
  readonly requestsRetentionDays: number
  readonly providers: readonly ProviderEntry[]
  readonly models: readonly Model[]
  /** Values of the usual provider variables that are set, by variable. */
  readonly providerKeys: Readonly<Record<string, Secret>>
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
  /** What the file contained, for noticing that it changed; undefined without a file. */
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

/** Settings for this process and those that it starts, above whatever its environment says. */
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

  const server = { ...settings.server, ...variables.server }
  const config: Config = {
    host: server.host ?? '127.0.0.1',
    port: server.port ?? 8080,
    dataFolder: resolve(cwd, server.data ?? 'data'),
    sandbox: server.sandbox !== 'off' && server.sandbox !== false,
    logFormat: server.log ?? (inputs.stdoutIsTerminal ? 'pretty' : 'json'),
    ...secretSettings(variables),
    bodyBytesMax: server.body_bytes_max ?? 32 * 1024 * 1024,
    drainMs: Math.round((server.drain_seconds ?? 120) * 1000),
    drainDelayMs: server.drain_delay_seconds === undefined ? undefined : server.drain_delay_seconds * 1000,
    limits: limitDefaults(settings.limits),
    ownKeys: ownKeySettings(settings.ownKeys),
    retries: retrySettings(settings.retries),
    publicUrl: server.public_url?.replace(/\/+$/, ''),
    catalogIsPublic: server.catalog !== 'signed-in',
    requestsRetentionDays: server.requests_retention_days ?? 90,
    localModels: server.local_models !== 'off' && server.local_models !== false,
    trustedProxies: server.trusted_proxies ?? [],
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
  const read = inputs.readFile ?? ((file: string) => readFileSync(file, 'utf8'))
  const inside = relative(inputs.cwd, path)
  const fileName = inside.startsWith('..') ? path : inside
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

const noFile: FileReading = {
  settings: { server: {}, limits: {}, ownKeys: {}, retries: {}, providers: [], models: [] },
  faults: [],
  warnings: [],
  referenced: [],
}

function secretSettings(variables: VariableSettings) {
  const { databaseUrl, redisUrl, secret, secretPrevious, adminToken, stripe, otel, failpoints, providerKeys } =
    variables
  return { databaseUrl, redisUrl, secret, secretPrevious, adminToken, stripe, otel, failpoints, providerKeys }
}

function limitDefaults(section: LimitsSection): LimitDefaults {
  return {
    requestsPerMinute: section.requests_per_minute,
    tokensPerMinute: section.tokens_per_minute,
    concurrentRequests: section.concurrent_requests,
  }
}

function ownKeySettings(section: OwnKeysSection): OwnKeySettings {
  return {
    feeBasisPoints: Math.round((section.fee_percent ?? 0) * 100),
    mayBringAddress: section.base_urls ?? false,
    allowHosts: section.allow_hosts ?? [],
    plainHttp: section.plain_http ?? false,
  }
}

function retrySettings(section: RetriesSection): RetrySettings {
  return {
    attempts: section.attempts ?? 3,
    backoffMs: section.backoff_ms ?? 2_000,
    totalMs: section.total_ms ?? 8_000,
  }
}

/** Frozen to the ground, and printable: JSON has no bigint, and the only ones in here are prices. */
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
