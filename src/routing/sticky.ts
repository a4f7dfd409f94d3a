// Remembers which route served a conversation last, so that the next turn finds the provider's prompt cache there. It is
// only a preference: it may be lost at any time and never keeps a request on a failing route.

import type { Clock } from '../kernel/clock.ts'
import type { RouteHealth } from './route.ts'

/** About 200 bytes each: 4 MB at most. */
const entriesMax = 20_000

export interface StickyRoutes {
  /** `conversation` identifies workspace, model and beginning (conversationKey in pipeline/admit.ts). */
  find(conversation: string): RouteHealth | undefined
  /** Called for every answer, so that the time counts from the last use. */
  remember(conversation: string, route: RouteHealth, cache: 'short' | 'long'): void
  size(): number
}

interface Entry {
  readonly route: RouteHealth
  readonly usedMs: number
  readonly lifetimeMs: number
}

/** How long providers keep a prompt cache after its last use. */
const lifetimeMs = { short: 300_000, long: 3_600_000 }

export function createStickyRoutes({ clock }: { clock: Clock }): StickyRoutes {
  /** Ordered by last use. The number is bounded, so expired entries may wait for their eviction. */
  const entries = new Map<string, Entry>()
  const find = (conversation: string): Entry | undefined => {
    const entry = entries.get(conversation)
    return entry && clock.monotonicMs() - entry.usedMs < entry.lifetimeMs ? entry : undefined
  }
  return {
    find: (conversation) => find(conversation)?.route,
    remember(conversation, route, cache) {
      const known = find(conversation)
      // Each use of a long cache renews its hour.
      const lifeMs = Math.max(lifetimeMs[cache], known?.route === route ? known.lifetimeMs : 0)
      entries.delete(conversation)
      entries.set(conversation, { route, usedMs: clock.monotonicMs(), lifetimeMs: lifeMs })
      const [oldest] = entries.size > entriesMax ? entries.keys() : []
      if (oldest !== undefined) entries.delete(oldest)
    },
    size: () => entries.size,
  }
}
