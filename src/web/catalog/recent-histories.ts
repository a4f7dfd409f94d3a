// What each model cost before, read once for each turn of the catalog, however many pages ask: the embedded engine
// answers on the thread that moves generations.

import type { CatalogEntry, DatedPrice } from './entry.ts'

export type PriceHistory = (modelId: string) => Promise<readonly DatedPrice[]>

/** Of the turn whose entries are shown: a price that changed makes another one. None for a model that is not in it. */
export function recentHistories(
  read: PriceHistory,
): (entries: readonly CatalogEntry[], modelId: string) => Promise<readonly DatedPrice[]> {
  const byTurn = new WeakMap<readonly CatalogEntry[], Map<string, Promise<readonly DatedPrice[]>>>()
  return (entries, modelId) => {
    const known = byTurn.get(entries) ?? new Map<string, Promise<readonly DatedPrice[]>>()
    byTurn.set(entries, known)
    const remembered = known.get(modelId)
    if (remembered) return remembered
    if (!entries.some(({ id }) => id === modelId)) return Promise.resolve([])
    const asked = read(modelId)
    known.set(modelId, asked)
    // A question that failed is asked again.
    asked.catch(() => known.delete(modelId))
    return asked
  }
}
