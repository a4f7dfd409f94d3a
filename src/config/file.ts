// Reads the text of a configuration file into validated entries, or into a list of all its faults, and adds a provider to
// such a text.

import { isMap, isScalar, isSeq, parseDocument, stringify, type YAMLMap, type YAMLSeq } from 'yaml'
import { type ModelEntry, modelFromEntry } from '../catalog/entry.ts'
import type { Model } from '../catalog/model.ts'
import { nearestNames } from '../kernel/nearest.ts'
import { Secret } from '../kernel/secret.ts'
import { answersInProcess, type ProviderEntry, resolveProviderEntry } from '../providers/entry.ts'
import { type BillEntry, billFromEntry } from './bill-entry.ts'
import {
  type ConfigDocument,
  type ConfigFault,
  type ConfigPath,
  checkSchema,
  formatPath,
  readDocument,
  type SchemaFault,
  suggestion,
  valueAt,
} from './document.ts'
import {
  interpolate,
  type ReferenceContext,
  type ReferenceFault,
  referencedVariables,
  resolveSecret,
} from './environment.ts'
import { type PolicyEntry, policyFromEntry, policySecretFault } from './policy-entry.ts'
import { configFileSchema, type SectionInputs } from './schema.ts'
import { bySection } from './settings.ts'

export interface FileSettings {
  readonly sections: SectionInputs
  readonly providers: readonly ProviderEntry[]
  readonly models: readonly Model[]
  readonly aliases: Readonly<Record<string, string>>
  readonly disabledProviders: readonly string[]
  readonly bills: readonly BillEntry[]
  readonly policies: readonly PolicyEntry[]
}

export interface FileReading {
  /** undefined exactly when there are faults. */
  readonly settings: FileSettings | undefined
  readonly faults: readonly ConfigFault[]
  readonly warnings: readonly ConfigFault[]
  /** Variables the file refers to; never reported as unknown. */
  readonly referenced: readonly string[]
}

export interface FileInputs extends ReferenceContext {
  /** As faults name it. */
  readonly fileName: string
  readonly builtInProviderIds: readonly string[]
  readonly builtInModels: readonly ModelEntry[]
}

export function readConfigFile(text: string, inputs: FileInputs): FileReading {
  const document = readDocument(inputs.fileName, text)
  if ('faults' in document) return { settings: undefined, faults: document.faults, warnings: [], referenced: [] }

  const root = document.value ?? {}
  const resolved = resolveReferences(root, inputs)
  const checked = checkSchema(configFileSchema, resolved.root)
  const found: SchemaFault[] = [
    ...resolved.faults,
    ...('faults' in checked ? checked.faults : []),
    ...repeatedIds(document, root, 'providers'),
    ...repeatedIds(document, root, 'models'),
    ...repeatedIds(document, root, 'bills', 'provider'),
    ...repeatedIds(document, root, 'policies'),
    ...unknownProviders(root, inputs.builtInProviderIds),
    ...wrongBatchProviders(root, inputs.builtInProviderIds),
    ...wrongFallbacks(root, inputs.builtInModels),
  ]
  const faults = inOrder(document, found)
  const warnings = inOrder(document, [...ignoredKeys(root), ...missingVersions(resolved.root), ...missingPrices(root)])
  const { referenced } = resolved
  if ('faults' in checked || faults.length > 0) return { settings: undefined, faults, warnings, referenced }

  const source = (path: ConfigPath) => `${inputs.fileName}:${document.line(path)}`
  const settings: FileSettings = {
    sections: bySection((name) => checked.value[name] ?? {}),
    aliases: checked.value.aliases ?? {},
    disabledProviders: checked.value.disabled_providers ?? [],
    providers: (checked.value.providers ?? []).map((entry, index) =>
      resolveProviderEntry(entry, { apiKey: resolved.keys.get(index), source: source(['providers', index]) }),
    ),
    bills: (checked.value.bills ?? []).map((entry, index) =>
      billFromEntry(entry, { adminKey: resolved.adminKeys.get(index), source: source(['bills', index]) }),
    ),
    policies: (checked.value.policies ?? []).flatMap((entry, index) => {
      const secret = resolved.policySecrets.get(index)
      return secret ? [policyFromEntry(entry, { secret, source: source(['policies', index]) })] : []
    }),
    models: (checked.value.models ?? []).flatMap((entry, index): readonly Model[] => {
      if ('routes' in entry) return [modelFromEntry(entry, source(['models', index]))]
      const builtIn = inputs.builtInModels.find(({ id }) => id === entry.id)
      return builtIn ? [{ ...modelFromEntry(builtIn, 'built in'), fallbacks: entry.fallbacks }] : []
    }),
  }
  return { settings, faults, warnings, referenced }
}

/** From top to bottom. */
function inOrder(document: ConfigDocument, found: readonly SchemaFault[]): ConfigFault[] {
  const located = found.map(({ path, at, ...rest }) => {
    const offset = document.offset(path, at)
    return { offset, fault: { where: document.place(offset), field: formatPath(path), ...rest } }
  })
  return located.sort((a, b) => a.offset - b.offset).map(({ fault }) => fault)
}

interface ResolvedReferences {
  /** The file's value with references in base URLs replaced; keys stay as they were written. */
  readonly root: unknown
  /** By position in `providers`. */
  readonly keys: ReadonlyMap<number, Secret>
  /** By position in `bills`. */
  readonly adminKeys: ReadonlyMap<number, Secret>
  /** By position in `policies`. */
  readonly policySecrets: ReadonlyMap<number, Secret>
  readonly faults: readonly SchemaFault[]
  readonly referenced: readonly string[]
}

function resolveReferences(root: unknown, context: ReferenceContext): ResolvedReferences {
  const keys = new Map<number, Secret>()
  const adminKeys = new Map<number, Secret>()
  const policySecrets = new Map<number, Secret>()
  const faults: SchemaFault[] = []
  const referenced: string[] = []
  const resolveKey = (key: unknown, path: ConfigPath): Secret | undefined => {
    if (typeof key !== 'string' || key === '') return undefined
    referenced.push(...referencedVariables(key))
    const secret = resolveSecret(key, context)
    if (secret instanceof Secret) return secret
    faults.push(referenceFault(path, secret))
    return undefined
  }
  for (const [index, entry] of entriesOf(root, 'bills').entries()) {
    const secret = resolveKey(mapping(entry).admin_key, ['bills', index, 'admin_key'])
    if (secret) adminKeys.set(index, secret)
  }
  for (const [index, entry] of entriesOf(root, 'policies').entries()) {
    const path: ConfigPath = ['policies', index, 'secret']
    const secret = resolveKey(mapping(entry).secret, path)
    const fault = secret && policySecretFault(secret)
    if (fault !== undefined) faults.push({ path, at: 'value', message: fault })
    if (secret) policySecrets.set(index, secret)
  }
  const providers = entriesOf(root, 'providers').map((entry, index) => {
    const { api_key: key, base_url: url } = mapping(entry)
    const secret = resolveKey(key, ['providers', index, 'api_key'])
    if (secret) keys.set(index, secret)
    if (typeof url !== 'string' || !url.includes('${')) return entry
    referenced.push(...referencedVariables(url))
    const address = interpolate(url, context.env)
    if ('text' in address) return { ...mapping(entry), base_url: address.text }
    faults.push(referenceFault(['providers', index, 'base_url'], address))
    // Reported already; a placeholder keeps the schema from rejecting the same field again.
    return { ...mapping(entry), base_url: 'http://unresolved.invalid' }
  })
  const replaced = providers.length === 0 ? root : { ...mapping(root), providers }
  return { root: replaced, keys, adminKeys, policySecrets, faults, referenced }
}

function referenceFault(path: ConfigPath, { fault, ...rest }: ReferenceFault): SchemaFault {
  return { path, at: 'value', message: fault, ...rest }
}

function repeatedIds(
  document: ConfigDocument,
  root: unknown,
  section: 'providers' | 'models' | 'bills' | 'policies',
  name: 'id' | 'provider' = 'id',
): SchemaFault[] {
  const first = new Map<unknown, number>()
  return entriesOf(root, section).flatMap((entry, index) => {
    const id = mapping(entry)[name]
    const earlier = first.get(id)
    if (earlier === undefined) first.set(id, index)
    if (typeof id !== 'string' || earlier === undefined) return []
    const path = [section, index, name]
    const here = document.line(path)
    const there = document.line([section, earlier, name])
    const message = `this ${name} is used twice: in line ${there} (${section}[${earlier}]) and in line ${here}`
    return [{ path, at: 'value' as const, message }]
  })
}

function unknownProviders(root: unknown, builtIn: readonly string[]): SchemaFault[] {
  const declared = entriesOf(root, 'providers').flatMap((entry) => {
    const { id } = mapping(entry)
    return typeof id === 'string' ? [id] : []
  })
  const known = [...new Set([...declared, ...builtIn])]
  return entriesOf(root, 'models').flatMap((model, index) =>
    entriesOf(model, 'routes').flatMap((route, routeIndex) => {
      const { provider } = mapping(route)
      if (typeof provider !== 'string' || provider === '' || known.includes(provider)) return []
      const path = ['models', index, 'routes', routeIndex, 'provider']
      const message = `there is no provider with this id; ${suggestion(provider, known)}`
      return [{ path, at: 'value' as const, message }]
    }),
  )
}

/** Of a provider that is not built in, the dialect says whether it can have batches that we know. */
function wrongBatchProviders(root: unknown, builtIn: readonly string[]): SchemaFault[] {
  const declared = new Map(entriesOf(root, 'providers').map((entry) => [mapping(entry).id, mapping(entry).dialect]))
  const { providers } = mapping(mapping(root).batches)
  return (Array.isArray(providers) ? providers : []).flatMap((id: unknown, at): readonly SchemaFault[] => {
    if (typeof id !== 'string') return []
    const path = ['batches', 'providers', at]
    if (!declared.has(id)) {
      if (builtIn.includes(id)) return []
      const known = [...builtIn, ...declared.keys()].filter((each) => typeof each === 'string')
      return [{ path, at: 'value', message: `there is no provider with this id; ${suggestion(id, known)}` }]
    }
    const dialect = declared.get(id)
    if (typeof dialect !== 'string' || batchDialects.has(dialect)) return []
    const message = `is called in the dialect ${dialect}, whose batches the gateway does not use. Remove it: its lines are called one by one`
    return [{ path, at: 'value', message }]
  })
}

/** As in providers/batch-api/registry.ts. */
const batchDialects: ReadonlySet<string> = new Set(['openai-chat', 'openai-responses', 'anthropic-messages'])

/** The entry changes a built-in model instead of replacing it. */
function isChange(entry: unknown): boolean {
  const { routes, fallbacks } = mapping(entry)
  return routes === undefined && fallbacks !== undefined
}

function wrongFallbacks(root: unknown, builtIn: readonly ModelEntry[]): SchemaFault[] {
  const entries = entriesOf(root, 'models')
  const embeds = new Map<unknown, boolean>()
  for (const entry of [...builtIn, ...entries]) {
    const { id, tags } = mapping(entry)
    if (!isChange(entry)) embeds.set(id, Array.isArray(tags) && tags.includes('embeddings'))
  }
  const known = [...embeds.keys()].filter((id) => typeof id === 'string')
  const unknown = (id: string) => {
    const [near] = nearestNames(id, known, 1)
    return near === undefined
      ? '`tollgate models --all` lists the built-in ones'
      : `did you mean ${JSON.stringify(near)}?`
  }
  return entries.flatMap((entry, index): readonly SchemaFault[] => {
    const { id, fallbacks } = mapping(entry)
    const list: readonly unknown[] = Array.isArray(fallbacks) ? fallbacks : []
    const path = ['models', index, 'fallbacks']
    if (isChange(entry) && typeof id === 'string' && !embeds.has(id)) {
      const message = `there is no built-in model with this id, so its entry needs routes; ${unknown(id)}`
      return [{ path: ['models', index, 'id'], at: 'value', message }]
    }
    if (list.length > 0 && embeds.get(id)) {
      const message =
        'a model that makes embeddings has no fallbacks: vectors of different models cannot be compared. Remove them'
      return [{ path, at: 'key', message }]
    }
    return list.flatMap((each, at) => {
      if (typeof each !== 'string') return []
      let message: string | undefined
      if (each === id) message = 'is the model itself; name other models'
      else if (list.indexOf(each) < at) message = 'is named twice'
      else if (!embeds.has(each)) message = `there is no model with this id; ${unknown(each)}`
      else if (embeds.get(each)) message = 'makes embeddings and does not answer prompts; name another model'
      return message === undefined ? [] : [{ path: [...path, at], at: 'value', message }]
    })
  })
}

function ignoredKeys(root: unknown): SchemaFault[] {
  return entriesOf(root, 'providers').flatMap((entry, index) => {
    const { dialect, base_url: url } = mapping(entry)
    if (!answersInProcess(dialect) || url === undefined) return []
    const message = 'is ignored: the sandbox answers inside the gateway'
    return [{ path: ['providers', index, 'base_url'], at: 'key' as const, message }]
  })
}

/** Most such hosts serve their API below /v1, and a forgotten one is a 404 at the first call. */
function missingVersions(root: unknown): SchemaFault[] {
  return entriesOf(root, 'providers').flatMap((entry, index) => {
    const { dialect, base_url: text } = mapping(entry)
    const url = typeof text === 'string' ? URL.parse(text) : null
    if (url?.pathname !== '/' || (dialect !== 'openai-chat' && dialect !== 'openai-responses')) return []
    const message = 'has no path; most such addresses end in /v1. If this one does not, end it with a slash'
    return text === `${url.origin}/` ? [] : [{ path: ['providers', index, 'base_url'], at: 'value' as const, message }]
  })
}

function missingPrices(root: unknown): SchemaFault[] {
  return entriesOf(root, 'models').flatMap((entry, index) => {
    const { id, price } = mapping(entry)
    if (price !== undefined || typeof id !== 'string' || isChange(entry)) return []
    const message = `has no price and cannot be called: add price here (price: free says so on purpose), or run tollgate prices set ${id}`
    return [{ path: ['models', index, 'id'], at: 'value' as const, message }]
  })
}

function entriesOf(container: unknown, key: string): readonly unknown[] {
  const list = valueAt(container, [key])
  return Array.isArray(list) ? list : []
}

function mapping(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

export interface NewProvider {
  readonly id: string
  readonly dialect: string
  /** Absent for one that answers inside the gateway. */
  readonly baseUrl?: string | undefined
  /** `${VARIABLE}` or `file:/path`. */
  readonly keyReference?: string | undefined
}

export interface Insertion {
  readonly text: string
  /** The new lines, and the number of the first. */
  readonly added: readonly string[]
  readonly line: number
}

/**
 * Inserts one provider into the text of a configuration file and changes no other character, so that comments, order and
 * spacing stay. Takes references to keys only. `flow`: the list is in braces, as in JSON, where no line can be inserted.
 */
export function addProvider(text: string, provider: NewProvider): Insertion | 'repeated' | 'flow' {
  const document = parseDocument(text, { prettyErrors: false })
  const root = document.contents
  if (root === null) return insert(text, text.length, ['providers:', ...entryLines(provider, '  ')])
  if (!isMap(root) || root.flow) return 'flow'
  const pair = root.items.find(({ key }) => isScalar(key) && key.value === 'providers')
  if (pair === undefined) return insert(text, text.length, ['providers:', ...entryLines(provider, '  ')])
  const list = pair.value
  if (isSeq(list)) {
    if (list.items.some((item) => isMap(item) && String(item.get('id')) === provider.id)) return 'repeated'
    if (list.flow && list.items.length === 0 && list.range) return insertInstead(text, list.range, provider)
    return list.flow ? 'flow' : insertAfter(text, list, provider)
  }
  // `providers:` with nothing below it.
  const end = isScalar(pair.key) ? (pair.key.range?.[1] ?? text.length) : text.length
  return insert(text, endOfLine(text, end), entryLines(provider, '  '))
}

/** `providers: []` */
function insertInstead(text: string, [start, end]: readonly number[], provider: NewProvider): Insertion {
  const before = text.slice(0, start).trimEnd()
  return insert(
    before + text.slice(end),
    endOfLine(before + text.slice(end), before.length),
    entryLines(provider, '  '),
  )
}

/** The entry as text, for files that cannot be extended. */
export function entryText(provider: NewProvider): string {
  return entryLines(provider, '  ').join('\n')
}

function insertAfter(text: string, list: YAMLSeq, provider: NewProvider): Insertion {
  const last = list.items.at(-1) as YAMLMap | undefined
  const start = last?.range?.[0] ?? list.range?.[0] ?? 0
  const indent = /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', start - 1) + 1))?.[0] ?? '  '
  // The end of the value itself: comments and empty lines after it belong to what follows.
  return insert(text, endOfLine(text, (last?.range?.[1] ?? text.length) - 1), entryLines(provider, indent))
}

function entryLines({ id, dialect, baseUrl, keyReference }: NewProvider, indent: string): string[] {
  const entry = {
    id,
    dialect,
    ...(baseUrl === undefined ? {} : { base_url: baseUrl }),
    ...(keyReference === undefined ? {} : { api_key: keyReference }),
  }
  return stringify([entry])
    .trimEnd()
    .split('\n')
    .map((line) => indent + line)
}

function endOfLine(text: string, offset: number): number {
  const end = text.indexOf('\n', offset)
  return end === -1 ? text.length : end + 1
}

function insert(text: string, offset: number, added: readonly string[]): Insertion {
  const before = text.slice(0, offset)
  const gap = before === '' || before.endsWith('\n') ? '' : '\n'
  return {
    text: `${before}${gap}${added.join('\n')}\n${text.slice(offset)}`,
    added,
    line: `${before}${gap}`.split('\n').length,
  }
}
