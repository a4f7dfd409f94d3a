// One timer for all clocks of all running requests. Thousands of streams would otherwise arm and clear a timer for
// every event; here each only writes down when it last saw one, and is asked ten times a second whether that was too
// long ago.

import type { Clock } from '../kernel/clock.ts'

export interface Watched {
  tick(monotonicMs: number): void
  /** The gateway stops and can wait no longer. */
  expire?(): void
}

export interface Ticker {
  watch(watched: Watched): void
  unwatch(watched: Watched): void
  /** Ends everything that still runs. */
  expireAll(): void
  close(): void
}

const tickMs = 100

export function createTicker(clock: Clock): Ticker {
  const all = new Set<Watched>()
  const timer = setInterval(() => {
    const nowMs = clock.monotonicMs()
    for (const watched of all) watched.tick(nowMs)
  }, tickMs)
  timer.unref()
  return {
    watch: (watched) => void all.add(watched),
    unwatch: (watched) => void all.delete(watched),
    expireAll() {
      for (const watched of [...all]) watched.expire?.()
    },
    close: () => clearInterval(timer),
  }
}
