// The configuration file: from text to checked entries, or to everything that is wrong with it at once.

import { modelFromEntry } from '../catalog/entry.ts'
import type { Model } from '../catalog/model.ts'
import { Secret } from '../kernel/secret.ts'
import { answersInProcess, type ProviderEntry, resolveProviderEntry } from '../providers/entry.ts'
import { type ConfigDocument, readDocument } from './document.ts'
import {
  type ConfigFault,
  type ConfigPath,
  checkSchema,
  formatPath,
  type SchemaFault,
  suggestion,
  valueAt,
} from './fault.ts'
import {
  interpolate,
  type ReferenceContext,
  type ReferenceFault,
  referencedVariables,
  resolveSecret,
} from './references.ts'
import {
  configFileSchema,
  type LimitsSection,
  type OwnKeysSection,
  type RetriesSection,
  type ServerSection,
} from './schema.ts'

export interface FileSettings {
  readonly server: ServerSection
  readonly limits: LimitsSection
  readonly ownKeys: OwnKeysSection
  readonly retries: RetriesSection
  readonly providers: readonly ProviderEntry[]
  readonly models: readonly Model[]
}

export interface FileReading {
  /** undefined exactly when there are faults. */
  readonly settings: FileSettings | undefined
  readonly faults: readonly ConfigFault[]
  readonly warnings: readonly ConfigFault[]
  /** Variables the file refers to; they belong to its author, whatever their names. */
  readonly referenced: readonly string[]
}

export interface FileInputs extends ReferenceContext {
  /** As faults name it. */
  readonly fileName: string
  readonly builtInProviderIds: readonly string[]
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
    ...unknownProviders(root, inputs.builtInProviderIds),
  ]
  const faults = inOrder(document, found)
  const warnings = inOrder(document, ignoredKeys(root))
  const { referenced } = resolved
  if ('faults' in checked || faults.length > 0) return { settings: undefined, faults, warnings, referenced }

  const source = (path: ConfigPath) => `${inputs.fileName}:${document.line(path)}`
  const settings: FileSettings = {
    server: checked.value.server ?? {},
    limits: checked.value.limits ?? {},
    ownKeys: checked.value.own_keys ?? {},
    retries: checked.value.retries ?? {},
    providers: (checked.value.providers ?? []).map((entry, index) =>
      resolveProviderEntry(entry, { apiKey: resolved.keys.get(index), source: source(['providers', index]) }),
    ),
    models: (checked.value.models ?? []).map((entry, index) => modelFromEntry(entry, source(['models', index]))),
  }
  return { settings, faults, warnings, referenced }
}

/** From top to bottom, as one goes through a file to mend it. */
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
  readonly faults: readonly SchemaFault[]
  readonly referenced: readonly string[]
}

function resolveReferences(root: unknown, context: ReferenceContext): ResolvedReferences {
  const keys = new Map<number, Secret>()
  const faults: SchemaFault[] = []
  const referenced: string[] = []
  const providers = entriesOf(root, 'providers').map((entry, index) => {
    const { api_key: key, base_url: url } = mapping(entry)
    if (typeof key === 'string' && key !== '') {
      referenced.push(...referencedVariables(key))
      const secret = resolveSecret(key, context)
      if (secret instanceof Secret) keys.set(index, secret)
      else faults.push(referenceFault(['providers', index, 'api_key'], secret))
    }
    if (typeof url !== 'string' || !url.includes('${')) return entry
    referenced.push(...referencedVariables(url))
    const address = interpolate(url, context.env)
    if ('text' in address) return { ...mapping(entry), base_url: address.text }
    faults.push(referenceFault(['providers', index, 'base_url'], address))
    // Reported already; a stand-in keeps the schema from refusing the same field again.
    return { ...mapping(entry), base_url: 'http://unresolved.invalid' }
  })
  const replaced = providers.length === 0 ? root : { ...mapping(root), providers }
  return { root: replaced, keys, faults, referenced }
}

function referenceFault(path: ConfigPath, { fault, ...rest }: ReferenceFault): SchemaFault {
  return { path, at: 'value', message: fault, ...rest }
}

function repeatedIds(document: ConfigDocument, root: unknown, section: 'providers' | 'models'): SchemaFault[] {
  const first = new Map<unknown, number>()
  return entriesOf(root, section).flatMap((entry, index) => {
    const { id } = mapping(entry)
    const earlier = first.get(id)
    if (earlier === undefined) first.set(id, index)
    if (typeof id !== 'string' || earlier === undefined) return []
    const path = [section, index, 'id']
    const here = document.line(path)
    const there = document.line([section, earlier, 'id'])
    const message = `this id stands twice: in line ${there} (${section}[${earlier}]) and in line ${here}`
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
      const message = `there is no provider of this id; ${suggestion(provider, known)}`
      return [{ path, at: 'value' as const, message }]
    }),
  )
}

function ignoredKeys(root: unknown): SchemaFault[] {
  return entriesOf(root, 'providers').flatMap((entry, index) => {
    const { dialect, base_url: url } = mapping(entry)
    if (!answersInProcess(dialect) || url === undefined) return []
    const message = 'is ignored: the sandbox answers inside the gateway'
    return [{ path: ['providers', index, 'base_url'], at: 'key' as const, message }]
  })
}

function entriesOf(container: unknown, key: string): readonly unknown[] {
  const list = valueAt(container, [key])
  return Array.isArray(list) ? list : []
}

function mapping(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}
