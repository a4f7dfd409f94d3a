// The only place that reads the time or draws at random. Everything else gets a Clock, so that tests can stop it.

export interface Clock {
  /** Wall time in milliseconds since 1970. */
  now(): number
  /** Monotonic milliseconds with fractions, for measuring spans. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
}

/** `2026-11-15T01:02:03.004Z` */
export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}

/** A number in [0, 1), for choices such as sharing traffic by weight. Never for secrets or ids. */
export function randomUnit(): number {
  return Math.random()
}
