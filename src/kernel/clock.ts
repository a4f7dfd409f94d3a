// The only place that reads the time or a random number. Everything else gets a Clock, so that tests control the time.

export interface Clock {
  /** Wall time in milliseconds since 1970. */
  now(): number
  /** Monotonic milliseconds with fractions, for measuring durations. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
}

/**
 * Returns the earlier of two times: the wall time, and what it would be if nobody had set the clock since this call. What is
 * over by this time is over, whichever way the clock was set.
 */
export function certainTime(clock: Clock): () => number {
  const startedAt = clock.now() - clock.monotonicMs()
  return () => Math.min(clock.now(), Math.floor(startedAt + clock.monotonicMs()))
}

/** The second of the last `isoTime`, and its text up to the point: most calls are for the current second. */
let lastSecond = -1
let lastText = ''

/** `2026-11-15T01:02:03.004Z` */
export function isoTime(epochMs: number): string {
  const second = Math.floor(epochMs / 1000)
  const rest = epochMs - second * 1000
  if (!Number.isInteger(rest)) return new Date(epochMs).toISOString()
  if (second !== lastSecond) {
    lastText = new Date(second * 1000).toISOString().slice(0, -4)
    lastSecond = second
  }
  return `${lastText}${rest < 10 ? '00' : rest < 100 ? '0' : ''}${rest}Z`
}

/** A number in [0, 1), for choices such as sharing traffic by weight. Never for secrets or ids. */
export function randomUnit(): number {
  return Math.random()
}
