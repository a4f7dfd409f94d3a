// The catalog as it was a moment ago: made anew at most once a second, however many pages ask.

import type { Clock } from '../../kernel/clock.ts'
import type { CatalogEntry } from './entry.ts'

const freshMs = 900

/** Shorter than the second between two looks of the change feed: a page that was told of a change never gets the old. */
export function recentEntries(read: () => readonly CatalogEntry[], clock: Clock): () => readonly CatalogEntry[] {
  let entries: readonly CatalogEntry[] = []
  let readAt = Number.NEGATIVE_INFINITY
  return () => {
    const now = clock.monotonicMs()
    if (now - readAt < freshMs) return entries
    entries = read()
    readAt = now
    return entries
  }
}
