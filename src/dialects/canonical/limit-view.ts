// What is left of a caller's limits, as far as a surface's headers tell it. Whoever counts has more to say; a dialect
// only needs these numbers.

export interface LimitView {
  readonly limit: number
  /** Whole, at least 0. */
  readonly remaining: number
  /** Until nothing is used any more, if nothing else comes. */
  readonly resetMs: number
}

/** Absent = unlimited. */
export interface LimitViews {
  readonly requests?: LimitView
  readonly tokens?: LimitView
}

/** `now` is wall time, for surfaces that name a moment and not a span. */
export type LimitHeaders = (limits: LimitViews, now: number) => Record<string, string>
