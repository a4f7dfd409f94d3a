// What an allowlist makes of the catalog, by the rule that the gateway itself asks.

import { allowsModel, createAllowlist } from '../../../../tenancy/allowlist.ts'
import type { CatalogEntry } from '../../../catalog/entry.ts'

/** null = every model. */
export function allowedEntries(
  models: readonly string[] | null,
  entries: readonly CatalogEntry[],
): readonly CatalogEntry[] {
  if (models === null) return entries
  const lists = [createAllowlist(models)]
  return entries.filter(({ id }) => allowsModel(lists, id))
}
