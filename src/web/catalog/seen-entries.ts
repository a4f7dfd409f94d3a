// The catalog as one key or one project sees it: exactly the models that GET /v1/models answers, each as the catalog shows
// it. A model that only a workspace's own credential opens is in no public list; of it only the name is known here.

import type { CatalogEntry } from './entry.ts'

/** An item of GET /v1/models. */
export interface SeenModel {
  readonly id: string
  readonly owned_by: string
  readonly own_key?: boolean
}

export function seenEntries(
  entries: readonly CatalogEntry[],
  seen: readonly SeenModel[] | undefined,
): readonly CatalogEntry[] {
  if (!seen) return entries
  const known = new Map(entries.map((entry) => [entry.id, entry]))
  return seen.map((model) => {
    const entry = known.get(model.id) ?? privateEntry(model)
    return model.own_key ? { ...entry, own_key: true } : entry
  })
}

/** The catalog with the models that only own credentials open, by id; what they serve too is marked. */
export function withOwnModels(entries: readonly CatalogEntry[], own: readonly SeenModel[]): readonly CatalogEntry[] {
  if (own.length === 0) return entries
  const ids = new Set(own.map(({ id }) => id))
  const known = new Set(entries.map(({ id }) => id))
  const more = own.filter(({ id }) => !known.has(id)).map((model) => ({ ...privateEntry(model), own_key: true }))
  const marked = entries.map((entry) => (ids.has(entry.id) ? { ...entry, callable: true, own_key: true } : entry))
  return [...marked, ...more].sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** Priced by whoever the workspace has its credential from. */
export function isPrivate({ own_key, routes }: CatalogEntry): boolean {
  return own_key === true && routes.length === 0
}

function privateEntry({ id, owned_by }: SeenModel): CatalogEntry {
  return {
    id,
    name: id,
    owned_by,
    context_tokens: null,
    max_output_tokens: null,
    tags: [],
    released: null,
    source: 'own key',
    price: null,
    callable: true,
    routes: [],
  }
}
