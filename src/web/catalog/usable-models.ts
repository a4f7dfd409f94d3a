// The catalog as one key or project sees it: the models that GET /v1/models returns. Models that only a workspace's own
// provider key unlocks are not in the public catalog; only their id is known here.

import type { CatalogEntry } from './entry.ts'

/** An item of GET /v1/models. */
export interface UsableModel {
  readonly id: string
  readonly owned_by: string
  readonly own_key?: boolean
}

/** undefined = no restriction. */
export function usableEntries(
  entries: readonly CatalogEntry[],
  usable: readonly UsableModel[] | undefined,
): readonly CatalogEntry[] {
  if (!usable) return entries
  const known = new Map(entries.map((entry) => [entry.id, entry]))
  return usable.map((model) => {
    const entry = known.get(model.id) ?? ownKeyEntry(model)
    return model.own_key ? { ...entry, own_key: true } : entry
  })
}

/** The catalog with the models that own keys unlock, by id; catalog models that they also serve are marked. */
export function withOwnKeyModels(
  entries: readonly CatalogEntry[],
  own: readonly UsableModel[],
): readonly CatalogEntry[] {
  if (own.length === 0) return entries
  const ids = new Set(own.map(({ id }) => id))
  const known = new Set(entries.map(({ id }) => id))
  const more = own.filter(({ id }) => !known.has(id)).map((model) => ({ ...ownKeyEntry(model), own_key: true }))
  const marked = entries.map((entry) => (ids.has(entry.id) ? { ...entry, callable: true, own_key: true } : entry))
  return [...marked, ...more].sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** Whether only the workspace's own key serves it, so that its provider bills it. */
export function isOwnKeyOnly({ own_key, routes }: CatalogEntry): boolean {
  return own_key === true && routes.length === 0
}

function ownKeyEntry({ id, owned_by }: UsableModel): CatalogEntry {
  return {
    id,
    name: id,
    owned_by,
    context_tokens: null,
    max_output_tokens: null,
    tags: [],
    released: null,
    source: 'own key',
    price_source: null,
    price_version: null,
    price: null,
    callable: true,
    routes: [],
  }
}
