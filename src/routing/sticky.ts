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
}

/** Conversations with one cache lifetime, ordered by last use, which is also the order in which they expire. */
class ExpiringRoutes {
  readonly entries = new Map<string, Entry>()

  constructor(readonly lifetimeMs: number) {}

  find(conversation: string, nowMs: number): Entry | undefined {
    const entry = this.entries.get(conversation)
    if (entry === undefined || nowMs - entry.usedMs < this.lifetimeMs) return entry
    this.entries.delete(conversation)
    return undefined
  }

  /** Removes expired conversations; most are never looked up again. */
  clear(nowMs: number): void {
    for (const [conversation, { usedMs }] of this.entries) {
      if (nowMs - usedMs < this.lifetimeMs) return
      this.entries.delete(conversation)
    }
  }

  /** The last use of the least recently used. */
  oldestMs(): number {
    const [oldest] = this.entries.values()
    return oldest?.usedMs ?? Number.POSITIVE_INFINITY
  }

  dropOldest(): void {
    const [oldest] = this.entries.keys()
    if (oldest !== undefined) this.entries.delete(oldest)
  }
}

export function createStickyRoutes({ clock }: { clock: Clock }): StickyRoutes {
  const short = new ExpiringRoutes(300_000)
  const long = new ExpiringRoutes(3_600_000)
  const size = (): number => short.entries.size + long.entries.size

  return {
    find(conversation) {
      const nowMs = clock.monotonicMs()
      return (short.find(conversation, nowMs) ?? long.find(conversation, nowMs))?.route
    },
    remember(conversation, route, cache) {
      const usedMs = clock.monotonicMs()
      // Each use of a long cache renews its hour.
      const staysLong = long.find(conversation, usedMs)?.route === route
      short.entries.delete(conversation)
      long.entries.delete(conversation)
      const routes = cache === 'long' || staysLong ? long : short
      routes.entries.set(conversation, { route, usedMs })
      short.clear(usedMs)
      long.clear(usedMs)
      if (size() > entriesMax) (short.oldestMs() <= long.oldestMs() ? short : long).dropOldest()
    },
    size,
  }
}
