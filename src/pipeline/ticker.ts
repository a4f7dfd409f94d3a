// One timer for all clocks of all running requests. Thousands of streams would otherwise arm and clear a timer for
// every event; here each only writes down when it last saw one, and is asked ten times a second whether that was too
// long ago.

import type { Clock } from '../kernel/clock.ts'

export interface Watched {
  /** Where the ticker keeps it, -1 while it does not; the ticker's own to write. */
  seat: number
  tick(monotonicMs: number): void
  /** The gateway stops and can wait no longer. */
  expire?(): void
}

export interface Ticker {
  /** The time of the last tick, or of the last watch that began: good enough for what is judged by ticks, and free. */
  readonly nowMs: number
  watch(watched: Watched): void
  unwatch(watched: Watched): void
  /** Ends everything that still runs. */
  expireAll(): void
  /** Nobody is asked any more, so nothing may still run. */
  close(): void
}

const tickMs = 100
/** A tick this late follows a pause of the whole process: what came meanwhile waits in its sockets, unheard. */
const pausedMs = 1_000

/** `onDefect`: one request that cannot be asked must not take the others with it. */
export function createTicker(clock: Clock, onDefect: (error: unknown) => void): Ticker {
  // A list whose last entry takes a freed seat. A set would hash every request and be rescanned by every collection.
  const all: Watched[] = []
  let tickedMs = clock.monotonicMs()
  let nowMs = tickedMs
  let isListening = false
  const timer = setInterval(() => {
    const passedMs = clock.monotonicMs() - tickedMs
    nowMs = tickedMs += passedMs
    // Whoever seems silent may not have been: it is heard first, and judged by the next tick, however late that is.
    isListening = passedMs > pausedMs && !isListening
    if (isListening) return
    // Backwards, since one that leaves while it is asked is replaced by the last, which has been asked already.
    for (let seat = all.length - 1; seat >= 0; seat--) ask(all[seat])
  }, tickMs)
  const ask = (watched: Watched | undefined) => {
    try {
      watched?.tick(nowMs)
    } catch (error) {
      onDefect(error)
    }
  }
  const expireAll = () => {
    for (const watched of [...all]) watched.expire?.()
  }
  timer.unref()
  return {
    get nowMs() {
      return nowMs
    },
    watch(watched) {
      nowMs = clock.monotonicMs()
      watched.seat = all.length
      all.push(watched)
    },
    unwatch(watched) {
      const { seat } = watched
      if (seat < 0) return
      watched.seat = -1
      const last = all.pop()
      if (last === undefined || last === watched) return
      last.seat = seat
      all[seat] = last
    },
    expireAll,
    close() {
      clearInterval(timer)
      expireAll()
    },
  }
}
