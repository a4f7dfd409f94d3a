// The restrictions of a key: models (ids and patterns such as `acme/*` and `acme/large-*`) and source addresses. A model must be in the allowlists
// of the project and in that of the key, so a key can narrow what its project allows and never widen it.

import { assert, Failure, invalidRequest } from '../kernel/failure.ts'
import { type IpRange, isInRange, parseIpAddress, parseIpRange } from '../kernel/ip-range.ts'
import type { Column } from '../store/columns.ts'

export interface Allowlist {
  /** An id as itself, `prefix/*` as `prefix/`. An id never ends in a slash, so the two cannot be mixed up. */
  readonly entries: ReadonlySet<string>
  /** The beginnings of other patterns: `acme/large-` */
  readonly prefixes: readonly string[]
}

/** Enough for a hand-picked catalog, and small enough that ten thousand cached callers fit into memory. */
const patternsMax = 200
const pattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}\/(\*|[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}(\/?\*)?)$/
export const patternWords = "a model's id (`creator/model`) or a pattern (`creator/*`, `creator/model-*`)"

/** The pattern, or undefined if it is neither an id nor the beginning of some and `*`. */
export function parsePattern(text: string): string | undefined {
  return pattern.test(text) ? text : undefined
}

/** Throws a Failure if the field `models` of a request is wrong. */
export function checkModels(models: readonly string[]): void {
  if (models.length > patternsMax) {
    throw invalidRequest(`\`models\` has ${models.length} entries; at most ${patternsMax}.`, 'models')
  }
  const wrong = models.findIndex((text) => parsePattern(text) === undefined)
  if (wrong === -1) return
  throw invalidRequest(
    `\`models[${wrong}]\` must be a model's id (\`creator/model\`) or a pattern (\`creator/*\`, \`creator/model-*\`). Leave \`models\` out to allow every model.`,
    `models[${wrong}]`,
  )
}

export function createAllowlist(models: readonly string[]): Allowlist {
  const beginnings = models.filter((text) => /[^/]\*$/.test(text))
  const others = models.filter((text) => !beginnings.includes(text))
  return {
    entries: new Set(others.map((text) => (text.endsWith('/*') ? text.slice(0, -1) : text))),
    prefixes: beginnings.map((text) => text.slice(0, -1)),
  }
}

/** Every list must allow it; no list = every model. */
export function allowsModel(allow: readonly Allowlist[], id: string): boolean {
  for (const list of allow) if (!isIn(list, id)) return false
  return true
}

function isIn({ entries, prefixes }: Allowlist, id: string): boolean {
  if (entries.has(id)) return true
  for (let slash = id.indexOf('/'); slash !== -1; slash = id.indexOf('/', slash + 1)) {
    if (entries.has(id.slice(0, slash + 1))) return true
  }
  for (const prefix of prefixes) if (id.startsWith(prefix)) return true
  return false
}

/** Throws if the list cannot be read: it must not become "every model" or "anywhere". */
export function listFromSql(json: string | null): readonly string[] | undefined {
  if (json === null) return undefined
  const list: unknown = JSON.parse(json)
  assert(Array.isArray(list) && list.every((entry) => typeof entry === 'string'), 'a stored list holds strings')
  return Object.freeze(list)
}

/** A stored list of models or of allowed addresses; undefined = no restriction. */
export const listColumn: Column<readonly string[] | undefined> = {
  fromSql: (stored) => listFromSql(stored as string | null),
  toSql: (list) => (list === undefined ? null : JSON.stringify(list)),
}

const aliasesMax = 200
const aliasName = /^[A-Za-z0-9][A-Za-z0-9._:@+/-]{0,127}$/

/** Throws a Failure if the field `aliases` of a request is wrong. */
export function checkAliases(aliases: Readonly<Record<string, string>> = {}): void {
  const all = Object.entries(aliases)
  if (all.length > aliasesMax)
    throw invalidRequest(`\`aliases\` has ${all.length} entries; at most ${aliasesMax}.`, 'aliases')
  for (const [name, model] of all) {
    if (aliasName.test(name) && parsePattern(model) !== undefined && !model.endsWith('*')) continue
    throw invalidRequest(`\`aliases\` must map a name to the id of a model: {"gpt": "openai/gpt-5.6"}.`, 'aliases')
  }
}

export const aliasesColumn: Column<Readonly<Record<string, string>>> = {
  fromSql: (stored) => aliasesFromSql(stored as string | null) ?? {},
  toSql: (aliases) => (Object.keys(aliases).length === 0 ? null : JSON.stringify(aliases)),
}

export function aliasesFromSql(json: string | null): Readonly<Record<string, string>> | undefined {
  return json === null ? undefined : Object.freeze(JSON.parse(json) as Record<string, string>)
}

/** Caches lists by their stored text: the keys of one project share one list in memory. */
export function createAllowlistPool(): (json: string | null) => Allowlist | undefined {
  const listsMax = 1000
  const lists = new Map<string, Allowlist>()
  return (json) => {
    const models = json === null ? undefined : lists.get(json)
    if (json === null || models !== undefined) return models
    const list = createAllowlist(listFromSql(json) ?? [])
    if (lists.size >= listsMax) lists.clear()
    lists.set(json, list)
    return list
  }
}

const sourcesMax = 100

/** Throws a Failure if the field `sources` of a request is wrong. */
export function checkSources(sources: readonly string[] | undefined): void {
  if (sources === undefined) return
  if (sources.length === 0 || sources.length > sourcesMax) {
    throw invalidRequest(`\`sources\` must have 1 to ${sourcesMax} entries; leave it out for anywhere.`, 'sources')
  }
  const wrong = sources.findIndex((text) => parseIpRange(text) === undefined)
  if (wrong === -1) return
  throw invalidRequest(
    `\`sources[${wrong}]\` must be an address or a range whose bits after the prefix are 0, such as 203.0.113.7, 10.0.0.0/8 or 2001:db8::/32.`,
    `sources[${wrong}]`,
  )
}

export function rangesOf(sources: readonly string[] | undefined): readonly IpRange[] | undefined {
  if (sources === undefined) return undefined
  return Object.freeze(
    sources.map((text) => {
      const range = parseIpRange(text)
      assert(range, 'a stored source is an address or a range')
      return Object.freeze(range)
    }),
  )
}

/** `address`: undefined if it is unknown; a restricted key is then refused. */
export function allowsSource(
  { sources }: { readonly sources: readonly IpRange[] | undefined },
  address: string | undefined,
): boolean {
  if (sources === undefined) return true
  const parsed = address === undefined ? undefined : parseIpAddress(address)
  return parsed !== undefined && sources.some((range) => isInRange(range, parsed))
}

/** Names the address, because behind a proxy it is often not the expected one. Never names the ranges. */
export function sourceFailure({ keyName }: { readonly keyName: string }, address: string | undefined): Failure {
  const from = address === undefined ? 'an unknown address' : address
  return new Failure(
    'FORBIDDEN',
    `Tollgate does not accept the key "${keyName}" from ${from}: it is restricted to other addresses. Use it from there, or create a key for this place.`,
  )
}
