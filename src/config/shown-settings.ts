// Every setting in force and where it came from: a variable, a line of the file, or the default. Secrets are "set".

import { readFileSync } from 'node:fs'
import { dirname, relative } from 'node:path'
import { type Config, type ConfigInputs, loadConfig, type RefusedConfig } from './config.ts'
import { type ConfigDocument, readDocument } from './document.ts'
import { type ConfigPath, valueAt } from './fault.ts'
import { variable } from './references.ts'
import type { LimitsSection, OwnKeysSection, RetriesSection, ServerSection } from './schema.ts'
import { serverVariables } from './variables.ts'

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
    drainDelayMs === undefined ? 'as the database needs it' : drainDelayMs / 1000,
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

/** Of a configuration that may be in force for long: its file is looked at now, for the lines. */
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

/** The file is read again for its lines; it was good a moment ago, and if it is gone now nothing is told of it. */
function openFile(config: Config, inputs: ConfigInputs) {
  const { configPath, configFileExists } = config
  const inside = relative(inputs.cwd, configPath)
  const name = inside.startsWith('..') ? configPath : inside
  const document = configFileExists ? parse(configPath, name, inputs) : undefined
  return {
    value: configFileExists ? configPath : `no file in ${dirname(configPath)}`,
    source: (path: ConfigPath) =>
      valueAt(document?.value, path) === undefined ? undefined : `${name}:${document?.line(path)}`,
  }
}

function parse(path: string, name: string, { readFile }: ConfigInputs): ConfigDocument | undefined {
  const read = readFile ?? ((file: string) => readFileSync(file, 'utf8'))
  try {
    const document = readDocument(name, read(path))
    return 'faults' in document ? undefined : document
  } catch {
    return undefined
  }
}
