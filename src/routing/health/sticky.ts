// Which route served a conversation last, so that the next turn finds the provider's prompt cache there. A preference
// that may be lost at any time; it never keeps a request on a route that fails.

import type { Clock } from '../../kernel/clock.ts'
import type { RouteKey } from './route-key.ts'

/** About 200 bytes each: 4 MB at most. */
const entriesMax = 20_000

export interface StickyRoutes {
  /** `conversation` names workspace, model and how it begins. */
  find(conversation: string): RouteKey | undefined
  /** To be told of every answer, so that the time counts from the last use. */
  remember(conversation: string, route: RouteKey, cache: 'short' | 'long'): void
  size(): number
}

interface Entry {
  readonly route: RouteKey
  readonly usedMs: number
}

/** Conversations of one kind of cache, in the order of last use, which is the order in which they end. */
class Shelf {
  readonly entries = new Map<string, Entry>()

  constructor(readonly lastsMs: number) {}

  find(conversation: string, nowMs: number): Entry | undefined {
    const entry = this.entries.get(conversation)
    if (entry === undefined || nowMs - entry.usedMs < this.lastsMs) return entry
    this.entries.delete(conversation)
    return undefined
  }

  /** Most conversations are never asked for again, and nobody else would take them away. */
  clear(nowMs: number): void {
    for (const [conversation, { usedMs }] of this.entries) {
      if (nowMs - usedMs < this.lastsMs) return
      this.entries.delete(conversation)
    }
  }

  /** When the one longest unused was used. */
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
  const short = new Shelf(300_000)
  const long = new Shelf(3_600_000)
  const size = (): number => short.entries.size + long.entries.size

  return {
    find(conversation) {
      const nowMs = clock.monotonicMs()
      return (short.find(conversation, nowMs) ?? long.find(conversation, nowMs))?.route
    },
    remember(conversation, route, cache) {
      const usedMs = clock.monotonicMs()
      // A long cache that is read stays: each use begins its hour anew.
      const staysLong = long.find(conversation, usedMs)?.route === route
      short.entries.delete(conversation)
      long.entries.delete(conversation)
      const shelf = cache === 'long' || staysLong ? long : short
      shelf.entries.set(conversation, { route, usedMs })
      short.clear(usedMs)
      long.clear(usedMs)
      if (size() > entriesMax) (short.oldestMs() <= long.oldestMs() ? short : long).dropOldest()
    },
    size,
  }
}
