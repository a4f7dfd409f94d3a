// What a limiter promises, whether it counts in this process or in a store shared by several. It says who may go on now
// and how long the others should wait; it makes nobody wait itself.

import type { LimitKind, LimitScope } from './limit.ts'

export interface Limiter {
  /**
   * A concurrent place in every scope for a request whose body is still to come, or nothing in any. Refused, too, where
   * its requests of the minute are used up; neither is worth reading a body for.
   */
  arrive(scopes: readonly LimitScope[]): Arrival | Refused

  /**
   * Takes one request and the estimated tokens in every scope, or nothing in any. An estimate of 0 tokens (a request
   * that generates nothing) is never refused for tokens.
   *
   * A request larger than a whole minute's tokens is admitted when nothing is used, and leaves a debt that later
   * requests wait for. It could never fit; refusing it for ever with a time to retry would be a lie, and it costs no
   * more than its size: over any longer time the average holds.
   */
  admit(scopes: readonly LimitScope[], estimatedTokens: number): Admission | Refused | Promise<Admission | Refused>
}

/** Ended exactly once: by `admit`, whatever the verdict, or by `end`. */
export interface Arrival {
  readonly kind: 'arrived'
  /** As `admit` of the limiter, for the request this place was taken for. */
  admit(estimatedTokens: number): Admission | Refused | Promise<Admission | Refused>
  /** What came cannot be served: the place is free again, and the request counts, for it was made. */
  end(): void
}

export interface Admission {
  readonly kind: 'admitted'
  readonly state: LimitStates
  /**
   * To be called exactly once, when the request is over: frees its concurrent place and counts the tokens it really
   * used instead of the estimate. More than estimated may leave a debt; undefined, for a request that never reached a
   * provider, counts no tokens. The request itself stays counted: it was made.
   */
  end(actualTokens: number | undefined): void
}

export interface Refused {
  readonly kind: 'refused'
  /** Where the wait is longest. */
  readonly scope: LimitScope
  readonly limit: LimitKind
  /** Per minute, or at the same time. */
  readonly max: number
  /** What is taken of `max` now, rounded up; above it while there is a debt. */
  readonly used: number
  /** What this request would take. */
  readonly asked: number
  /**
   * Whole, at least 1. Who waits just as long is admitted, unless others take the place meanwhile; for `concurrent` it
   * is a guess, because nobody knows when a running request ends.
   */
  readonly retryAfterMs: number
  readonly state: LimitStates
}

/** For headers: of each limit the scope with the least left, this request included. Absent = unlimited. */
export interface LimitStates {
  readonly requests?: LimitState
  readonly tokens?: LimitState
}

export interface LimitState {
  readonly limit: number
  /** Whole, at least 0. */
  readonly remaining: number
  /** Until nothing is used any more, if nothing else comes. */
  readonly resetMs: number
}
