// The settings of one process: environment, then file, then defaults, checked and frozen, and each of them with where it came
// from. The only reader of the environment; it names no provider and starts nothing.

import { readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import type { Model } from '../catalog/model.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import { formatPrice, type Pico } from '../kernel/money.ts'
import { Secret } from '../kernel/secret.ts'
import type { ProviderEntry } from '../providers/entry.ts'
import { type ConfigDocument, type ConfigFault, readDocument, valueAt } from './document.ts'
import {
  type Environment,
  type EnvironmentSettings,
  errorCode,
  readVariables,
  secretVariables,
  serverVariables,
  setProxyVariables,
  unknownVariables,
  variable,
} from './environment.ts'
import { type FileReading, type FileSettings, readConfigFile } from './file.ts'
import { type Sections, type ServerSection, sectionNames, sectionsOf, settingsIn } from './schema.ts'

/** Frozen. */
export type Config = Readonly<ReturnType<typeof settingsOf> & EnvironmentSettings> & {
  /** Whether the environment names an HTTP proxy for calls to providers. */
  readonly hasHttpProxy: boolean
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
  /** Instead of the content of the configuration file, to check it before it is written. */
  readonly fileText?: string | undefined
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

  const config: Config = {
    ...settingsOf({ ...settings, server: { ...settings.server, ...variables.server } }, inputs),
    ...variables.settings,
    hasHttpProxy: setProxyVariables(env).length > 0,
    providers: settings.providers,
    models: settings.models,
    configPath,
    configFileExists: fileDigest !== undefined,
  }
  return { config: frozenConfig(config), warnings, fileDigest, keyFiles }
}

/** The sections of the file with their defaults. */
function settingsOf(
  {
    own_keys: ownKeys,
    sign_in: signIn,
    aliases,
    disabledProviders,
    ...sections
  }: Omit<FileSettings, 'providers' | 'models'>,
  { cwd, stdoutIsTerminal }: ConfigInputs,
) {
  const { server, limits, retries, sessions, webhooks, prices, payments } = sections
  return {
    host: server.host ?? '127.0.0.1',
    /** 0 = any free one. */
    port: server.port ?? 8080,
    /** Absolute. */
    dataFolder: resolve(cwd, server.data ?? 'data'),
    sandbox: isOn(server.sandbox),
    logFormat: server.log ?? (stdoutIsTerminal ? ('pretty' as const) : ('json' as const)),
    bodyBytesMax: server.body_bytes_max ?? 32 * 1024 * 1024,
    drainMs: Math.round((server.drain_seconds ?? 120) * 1000),
    /** undefined = depends on the database. */
    drainDelayMs: server.drain_delay_seconds === undefined ? undefined : server.drain_delay_seconds * 1000,
    /** Where people reach the gateway; undefined = where it listens. */
    publicUrl: server.public_url?.replace(/\/+$/, ''),
    /** Whether the catalog pages need no session. */
    catalogIsPublic: server.catalog !== 'signed-in',
    /** 0 = forever. */
    requestsRetentionDays: server.requests_retention_days ?? 90,
    /** How the end user that a request names is recorded. */
    endUsers: server.end_users ?? 'hashed',
    /** Whether callers may have their responses stored, and for how many days. */
    storeResponses: server.store_responses === 'on' || server.store_responses === true,
    responsesRetentionDays: server.responses_retention_days ?? 30,
    localModels: isOn(server.local_models),
    /** Addresses and ranges of the proxies whose X-Forwarded-For is believed. */
    trustedProxies: server.trusted_proxies ?? [],
    /** Origins whose pages may call the API; `*` = all. */
    corsOrigins: server.cors_origins ?? [],
    /** Whether callers may choose among the providers of a model. */
    providerChoice: server.provider_choice !== 'off' && server.provider_choice !== false,
    /** Further names of models. */
    aliases,
    /** Providers that are not called. */
    disabledProviders,
    /** Limits of every key without limits; undefined = unlimited. */
    limits: {
      requestsPerMinute: limits.requests_per_minute,
      tokensPerMinute: limits.tokens_per_minute,
      concurrentRequests: limits.concurrent_requests,
    },
    /** Provider keys that workspaces bring themselves. The fee is in hundredths of a percent of the model's price. */
    ownKeys: {
      feeBasisPoints: Math.round((ownKeys.fee_percent ?? 0) * 100),
      mayBringAddress: ownKeys.base_urls ?? false,
      allowHosts: ownKeys.allow_hosts ?? [],
      plainHttp: ownKeys.plain_http ?? false,
    },
    /** On the same route, when no other is left. `attempts` includes the first one. */
    retries: {
      attempts: retries.attempts ?? 3,
      backoffMs: retries.backoff_ms ?? 2_000,
      totalMs: retries.total_ms ?? 8_000,
    },
    /** undefined = prices are not updated. */
    priceUpdates:
      prices.update_from === undefined
        ? undefined
        : {
            from: /^https?:/.test(prices.update_from) ? prices.update_from : resolve(cwd, prices.update_from),
            hours: prices.update_hours ?? 24,
          },
    webhooks: { allowHosts: webhooks.allow_hosts ?? [] },
    /** US dollars. */
    payments: { min: payments.min ?? '1.00', max: payments.max ?? '10000.00' },
    sessions: {
      cacheMarks: isOn(sessions.cache_marks),
      keepReasoning: isOn(sessions.keep_reasoning),
    },
    /** How people sign in. The identity provider itself is `oidc`, from the environment. */
    signIn: {
      mode: signIn.mode ?? ('invite' as const),
      openingCredit: signIn.opening_credit ?? '0',
      providerName: signIn.provider_name ?? 'single sign-on',
      allowedDomains: signIn.allowed_domains ?? [],
      requiredGroup: signIn.required_group,
      groupClaim: signIn.group_claim ?? 'groups',
      roles: (signIn.roles ?? []).map(({ group, role, workspace }) => {
        return { group, role, workspaceId: workspace as WorkspaceId | undefined }
      }),
    },
  }
}

/** The default is on. */
function isOn(setting: 'on' | 'off' | boolean | undefined): boolean {
  return setting !== 'off' && setting !== false
}

function readFile(path: string, inputs: ConfigInputs) {
  const keyFiles = new Map<string, string | undefined>()
  const read = inputs.readFile ?? readText
  const fileName = fileNameIn(inputs.cwd, path)
  let text: string
  try {
    text = inputs.fileText ?? read(path)
  } catch (error) {
    const code = errorCode(error)
    const named = variable(inputs.env, 'TOLLGATE_CONFIG') !== undefined
    if (code === 'ENOENT' && !named) return { reading: noFile, fileDigest: undefined, keyFiles }
    const message = `the configuration file cannot be read (${code})${named ? '; TOLLGATE_CONFIG names it' : ''}`
    const reading = { ...noFile, settings: undefined, faults: [{ where: fileName, field: '', message }] }
    return { reading, fileDigest: undefined, keyFiles }
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
  settings: { ...sectionsOf({}), aliases: {}, disabledProviders: [], providers: [], models: [] },
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

type ShowSetting = (config: Config) => unknown

const limitOf =
  (name: keyof Config['limits']): ShowSetting =>
  ({ limits }) =>
    limits[name] ?? 'unlimited'

/** Settings that are shown otherwise than as the member of the configuration with the same name. */
const shownOtherwise: {
  readonly [Name in keyof Sections]?: { readonly [Key in keyof Sections[Name]]?: ShowSetting }
} = {
  server: {
    data: ({ dataFolder }) => dataFolder,
    log: ({ logFormat }) => logFormat,
    drain_seconds: ({ drainMs }) => drainMs / 1000,
    drain_delay_seconds: ({ drainDelayMs: ms }) => (ms === undefined ? 'depends on the database' : ms / 1000),
    public_url: ({ publicUrl }) => publicUrl ?? 'where it listens',
    catalog: ({ catalogIsPublic }) => (catalogIsPublic ? 'public' : 'signed-in'),
  },
  limits: {
    requests_per_minute: limitOf('requestsPerMinute'),
    tokens_per_minute: limitOf('tokensPerMinute'),
    concurrent_requests: limitOf('concurrentRequests'),
  },
  own_keys: {
    fee_percent: ({ ownKeys }) => ownKeys.feeBasisPoints / 100,
    base_urls: ({ ownKeys }) => String(ownKeys.mayBringAddress),
    plain_http: ({ ownKeys }) => String(ownKeys.plainHttp),
  },
  prices: {
    update_from: ({ priceUpdates }) => priceUpdates?.from ?? 'nowhere',
    update_hours: ({ priceUpdates }) => priceUpdates?.hours ?? 24,
  },
  sign_in: {
    required_group: ({ signIn }) => signIn.requiredGroup ?? 'none',
    roles: ({ signIn }) => signIn.roles.map(({ group, role }) => `${group} = ${role}`),
  },
}

function shownValue(config: Config, section: keyof Sections, key: string): string {
  const otherwise = shownOtherwise[section]?.[key as never] as ShowSetting | undefined
  const path = section === 'server' ? [camelCase(key)] : [camelCase(section), camelCase(key)]
  const value = otherwise ? otherwise(config) : valueAt(config, path)
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.join(', ')
  return typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value)
}

function camelCase(name: string): string {
  return name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
}

export function listSettings(inputs: ConfigInputs): readonly ShownSetting[] | RefusedConfig {
  const loaded = loadConfig(inputs)
  if ('faults' in loaded) return loaded
  return shownSettings(loaded.config, inputs)
}

/** The configuration may have been loaded long ago; its file is read again for the line numbers. */
export function shownSettings(config: Config, inputs: ConfigInputs): readonly ShownSetting[] {
  const { configPath, configFileExists } = config
  const fileName = fileNameIn(inputs.cwd, configPath)
  const document = configFileExists ? parseFile(configPath, fileName, inputs) : undefined
  const isSet = (name: string | undefined) => name !== undefined && variable(inputs.env, name) !== undefined
  const section = (name: keyof Sections) =>
    settingsIn(name).map((key): ShownSetting => {
      const setBy = name === 'server' ? serverVariables[key as keyof ServerSection] : undefined
      const line = valueAt(document?.value, [name, key]) === undefined ? undefined : document?.line([name, key])
      const source =
        setBy !== undefined && isSet(setBy) ? setBy : line === undefined ? 'default' : `${fileName}:${line}`
      return { name: `${name}.${key}`, value: shownValue(config, name, key), source }
    })
  return [
    {
      name: 'TOLLGATE_CONFIG',
      value: configFileExists ? configPath : `no file in ${dirname(configPath)}`,
      source: isSet('TOLLGATE_CONFIG') ? 'TOLLGATE_CONFIG' : 'default',
    },
    ...section('server'),
    ...Object.entries(secretVariables).map(([name, { otherwise }]) =>
      isSet(name) ? { name, value: 'set', source: name } : { name, value: otherwise, source: 'default' },
    ),
    ...sectionNames.filter((name) => name !== 'server').flatMap(section),
    ...Object.entries(config.aliases).map(([name, model]) => ({
      name: `aliases.${name}`,
      value: model,
      source: `${fileName}:${document?.line(['aliases', name])}`,
    })),
    ...config.disabledProviders.map((id, at) => ({
      name: `disabled_providers.${at}`,
      value: id,
      source: `${fileName}:${document?.line(['disabled_providers', at])}`,
    })),
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

/** undefined: it is gone or wrong by now, and gives no line numbers. */
function parseFile(path: string, name: string, { readFile = readText }: ConfigInputs): ConfigDocument | undefined {
  try {
    const document = readDocument(name, readFile(path))
    return 'faults' in document ? undefined : document
  } catch {
    return undefined
  }
}
