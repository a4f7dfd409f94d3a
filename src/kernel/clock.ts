// The only place that reads the time. Everything else is handed a Clock, so that tests can stand still.

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
