// The models of one configuration, looked up by id. A changed configuration makes a new catalog; this one never changes.

import type { Model } from './model.ts'

export interface Catalog {
  find(id: string): Model | undefined
  /** Sorted by id. */
  readonly models: readonly Model[]
}

export function createCatalog(models: Iterable<Model>): Catalog {
  const byId = new Map<string, Model>()
  for (const model of models) byId.set(model.id, model)
  const sorted = [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  return { find: (id) => byId.get(id), models: sorted }
}
