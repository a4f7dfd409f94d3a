// Loads the configuration of one process: environment, then file, then defaults, validated and frozen. Also lists each
// setting with its source. The only reader of the environment; it names no provider and starts nothing.

import { readFileSync } from 'node:fs'
import { dirname, relative } from 'node:path'
import type { ModelEntry } from '../catalog/entry.ts'
import type { Model } from '../catalog/model.ts'
import { formatPrice, type Pico } from '../kernel/money.ts'
import { Secret } from '../kernel/secret.ts'
import type { ProviderEntry } from '../providers/entry.ts'
import type { BillEntry } from './bill-entry.ts'
import { type ConfigDocument, type ConfigFault, readDocument, valueAt } from './document.ts'
import {
  configPathOf,
  type Environment,
  type EnvironmentSettings,
  errorCode,
  readVariables,
  secretVariables,
  setProxyVariables,
  unknownVariables,
  variable,
  variables,
} from './environment.ts'
import { type FileReading, readConfigFile } from './file.ts'
import type { PolicyEntry } from './policy-entry.ts'
import type { SectionInputs } from './schema.ts'
import {
  type MemberName,
  type ProcessFacts,
  type SettingSection,
  type SettingValues,
  settingValues,
  shownValue,
} from './setting.ts'
import { bySection, type SectionName, sectionNames, sections } from './settings.ts'

type Section<Name extends SectionName> = SettingValues<(typeof sections)[Name]['settings']>

/** The settings of `server` themselves, and a member for each other section. */
type SettingsConfig = Section<'server'> & {
  readonly [Name in Exclude<SectionName, 'server'> as MemberName<Name, (typeof sections)[Name]>]: Section<Name>
}

/** Frozen. */
export type Config = Readonly<SettingsConfig & EnvironmentSettings> & {
  /** Whether the environment names an HTTP proxy for calls to providers. */
  readonly hasHttpProxy: boolean
  readonly providers: readonly ProviderEntry[]
  readonly models: readonly Model[]
  /** Further names of models. */
  readonly aliases: Readonly<Record<string, string>>
  /** Providers that are not called. */
  readonly disabledProviders: readonly string[]
  /** Where providers' bills are read. */
  readonly bills: readonly BillEntry[]
  /** Endpoints that may refuse requests and answers. */
  readonly policies: readonly PolicyEntry[]
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
  readonly builtInModels: readonly ModelEntry[]
  /** Throws errors with a `code`, as node:fs does. */
  readonly readFile?: (path: string) => string
  /** Used instead of the configuration file, to validate a text before it is written. */
  readonly fileText?: string | undefined
}

export interface LoadedConfig {
  readonly config: Config
  readonly warnings: readonly ConfigFault[]
  /** Digest of the file, to detect changes; undefined without a file. */
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
  const configPath = configPathOf(env, cwd)
  const fromEnvironment = readVariables(env, inputs.providerVariables)
  const { reading, fileDigest, keyFiles } = readFile(configPath, inputs)

  const alsoKnown = [...inputs.providerVariables, ...reading.referenced]
  const warnings = [...fromEnvironment.warnings, ...unknownVariables(env, alsoKnown), ...reading.warnings]
  const faults = [...fromEnvironment.faults, ...reading.faults]
  if (reading.settings === undefined || faults.length > 0) return { faults, warnings, keyFiles }

  const { sections: fromFile, ...entries } = reading.settings
  const given = bySection((name) => ({ ...fromFile[name], ...fromEnvironment.sections[name] }))
  const config: Config = {
    ...settingsOf(given, factsOf(inputs)),
    ...fromEnvironment.settings,
    ...entries,
    hasHttpProxy: setProxyVariables(env).length > 0,
    configPath,
    configFileExists: fileDigest !== undefined,
  }
  return { config: frozenConfig(config), warnings, fileDigest, keyFiles }
}

export function factsOf({ env, cwd, stdoutIsTerminal }: ConfigInputs): ProcessFacts {
  return { cwd, stdoutIsTerminal, usesPostgres: variable(env, 'DATABASE_URL') !== undefined }
}

function settingsOf(given: SectionInputs, facts: ProcessFacts): SettingsConfig {
  const values = <Name extends SectionName>(name: Name): Section<Name> =>
    settingValues<(typeof sections)[Name]['settings']>(sections[name].settings, given[name], facts)
  return {
    ...values('server'),
    limits: values('limits'),
    ownKeys: values('own_keys'),
    retries: values('retries'),
    sessions: values('sessions'),
    contentExport: values('content_export'),
    prices: values('prices'),
    reconcile: values('reconcile'),
    batches: values('batches'),
    alerts: values('alerts'),
    webhooks: values('webhooks'),
    payments: values('payments'),
    signIn: values('sign_in'),
  }
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
  const { env, builtInProviderIds, builtInModels } = inputs
  const readKey = (file: string) => {
    keyFiles.set(file, undefined)
    const key = read(file)
    keyFiles.set(file, contentDigest(key))
    return key
  }
  const known = { builtInProviderIds, builtInModels }
  const reading = readConfigFile(text, { fileName, folder: dirname(path), env, readFile: readKey, ...known })
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
  settings: {
    sections: bySection(() => ({})),
    aliases: {},
    disabledProviders: [],
    providers: [],
    models: [],
    bills: [],
    policies: [],
  },
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
  const isSet = (name: string) => variable(inputs.env, name) !== undefined
  const settingsIn = (name: SectionName) => {
    const { member = name, settings }: SettingSection = sections[name]
    return Object.entries(settings).map(([key, row]): ShownSetting => {
      const line = valueAt(document?.value, [name, key]) === undefined ? undefined : document?.line([name, key])
      const { variable: setBy } = row
      const path = [...(name === 'server' ? [] : [member]), row.member ?? key]
      return {
        name: `${name}.${key}`,
        value: shownValue(row, valueAt(config, path)),
        source: setBy !== undefined && isSet(setBy) ? setBy : line === undefined ? 'default' : `${fileName}:${line}`,
      }
    })
  }
  return [
    {
      name: 'TOLLGATE_CONFIG',
      value: configFileExists ? configPath : `no file in ${dirname(configPath)}`,
      source: isSet('TOLLGATE_CONFIG') ? 'TOLLGATE_CONFIG' : 'default',
    },
    ...settingsIn('server'),
    ...secretVariables.map((name) =>
      isSet(name) ? { name, value: 'set', source: name } : { name, value: variables[name].unset, source: 'default' },
    ),
    ...sectionNames.filter((name) => name !== 'server').flatMap(settingsIn),
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
    ...config.bills.map(({ provider, format, adminKey, source }) => {
      const value = [format, ...(adminKey === undefined ? [] : ['admin key set'])].join(', ')
      return { name: `bills.${provider}`, value, source }
    }),
    ...config.policies.map(({ id, url, when, mode, onFailure, source }) => {
      const origin = URL.parse(url)?.origin ?? url
      return { name: `policies.${id}`, value: [when, mode, `fails ${onFailure}`, origin].join(', '), source }
    }),
    ...config.models.map(({ id, routes, source }) => {
      const value = routes.map(({ providerId, upstreamModel }) => `${upstreamModel} at ${providerId}`).join(', ')
      return { name: `models.${id}`, value, source }
    }),
  ]
}

/** undefined = the file was deleted or became invalid, so there are no line numbers. */
function parseFile(path: string, name: string, { readFile = readText }: ConfigInputs): ConfigDocument | undefined {
  try {
    const document = readDocument(name, readFile(path))
    return 'faults' in document ? undefined : document
  } catch {
    return undefined
  }
}
