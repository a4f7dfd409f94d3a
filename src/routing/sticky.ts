// Remembers which route served a conversation last, so that the next turn finds the provider's prompt cache there. It is
// only a preference: it may be lost at any time and never keeps a request on a failing route. Replicas share it through
// Redis; without Redis they choose the same route for a new conversation by its hash (`rank.ts`).

import type { Clock } from '../kernel/clock.ts'
import type { SharedCache } from '../store/shared-cache.ts'
import type { RouteHealth } from './route.ts'

/** About 200 bytes each: 4 MB at most. */
const entriesMax = 20_000

export type StickyRoutes = ReturnType<typeof createStickyRoutes>

type CacheLife = 'short' | 'long'

interface Entry {
  readonly route: string
  readonly cache: CacheLife
  readonly usedMs: number
  /** When it was last written to the shared cache. */
  readonly sharedMs: number
}

/** How long providers keep a prompt cache after its last use. */
const lifetimeMs = { short: 300_000, long: 3_600_000 }
/** The shared entry is renewed after this part of its lifetime, not with every turn. */
const renewShare = 0.1

export function createStickyRoutes({ clock, shared }: { clock: Clock; shared?: SharedCache | undefined }) {
  /** Ordered by last use. The number is bounded, so expired entries may wait for their eviction. */
  const entries = new Map<string, Entry>()
  const findHere = (conversation: string): Entry | undefined => {
    const entry = entries.get(conversation)
    return entry && clock.monotonicMs() - entry.usedMs < lifetimeMs[entry.cache] ? entry : undefined
  }
  const keep = (conversation: string, entry: Entry): void => {
    entries.delete(conversation)
    entries.set(conversation, entry)
    const [oldest] = entries.size > entriesMax ? entries.keys() : []
    if (oldest !== undefined) entries.delete(oldest)
  }
  /** Another replica may have served the last turn, on another route. */
  const findShared = async (conversation: string, cache: SharedCache): Promise<string | undefined> => {
    const here = findHere(conversation)
    const found = readShared(await cache.get(conversation))
    if (found === undefined) return here?.route
    const nowMs = clock.monotonicMs()
    if (found.route !== here?.route) keep(conversation, { ...found, usedMs: nowMs, sharedMs: nowMs })
    return found.route
  }
  return {
    /**
     * The name of the route. `conversation` identifies workspace, model and session (pipeline/session.ts). A promise only if
     * replicas share.
     */
    find: (conversation: string): string | undefined | Promise<string | undefined> =>
      shared ? findShared(conversation, shared) : findHere(conversation)?.route,
    /** Called for every answer, so that the time counts from the last use. */
    remember(conversation: string, { name }: Pick<RouteHealth, 'name'>, written: CacheLife): void {
      const known = findHere(conversation)
      const isSame = known?.route === name
      // Each use of a long cache renews its hour.
      const cache = isSame && known.cache === 'long' ? 'long' : written
      const nowMs = clock.monotonicMs()
      const life = lifetimeMs[cache]
      const isShared = isSame && known.cache === cache && nowMs - known.sharedMs < life * renewShare
      if (shared && !isShared) shared.set(conversation, `${cache} ${name}`, life)
      keep(conversation, { route: name, cache, usedMs: nowMs, sharedMs: isShared ? known.sharedMs : nowMs })
    },
    size: () => entries.size,
  }
}

function readShared(text: string | undefined): Pick<Entry, 'route' | 'cache'> | undefined {
  const [, cache, route] = /^(short|long) (.+)$/s.exec(text ?? '') ?? []
  return cache === undefined || route === undefined ? undefined : { cache: cache as CacheLife, route }
}
