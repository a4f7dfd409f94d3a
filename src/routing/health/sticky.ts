// Which route served a conversation last, so that the next turn finds the provider's prompt cache there. A preference
// that may be lost at any time; it never keeps a request on a route that fails.

import type { Clock } from '../../kernel/clock.ts'
import type { RouteKey } from './route-key.ts'

/** About 200 bytes each: 4 MB at most. */
const entriesMax = 20_000
const shortMs = 300_000
const longMs = 3_600_000

export interface StickyRoutes {
  /** `conversation` names workspace, model and cacheable prefix, or the client's own session. */
  find(conversation: string): RouteKey | undefined
  /** To be told of every answer, so that the time counts from the last use. */
  remember(conversation: string, route: RouteKey, cache: 'short' | 'long'): void
  size(): number
}

interface Entry {
  readonly route: RouteKey
  readonly lastsMs: number
  readonly usedMs: number
}

export function createStickyRoutes({ clock }: { clock: Clock }): StickyRoutes {
  /** In the order of last use. */
  const entries = new Map<string, Entry>()

  function find(conversation: string): Entry | undefined {
    const entry = entries.get(conversation)
    if (entry === undefined || clock.monotonicMs() - entry.usedMs < entry.lastsMs) return entry
    entries.delete(conversation)
    return undefined
  }

  return {
    find: (conversation) => find(conversation)?.route,
    remember(conversation, route, cache) {
      const before = find(conversation)
      // A long cache that is read stays: each use begins its hour anew.
      const staysLong = before?.route === route && before.lastsMs === longMs
      const lastsMs = cache === 'long' || staysLong ? longMs : shortMs
      entries.delete(conversation)
      entries.set(conversation, { route, lastsMs, usedMs: clock.monotonicMs() })
      if (entries.size > entriesMax) {
        const oldest = entries.keys().next()
        if (!oldest.done) entries.delete(oldest.value)
      }
    },
    size: () => entries.size,
  }
}
