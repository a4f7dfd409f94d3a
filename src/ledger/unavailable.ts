// The one answer of every ledger call when nothing can be committed; the caller may come back, nothing was changed.

export interface Unavailable {
  readonly kind: 'unavailable'
  readonly retryAfterMs: number
}

export const unavailable: Unavailable = { kind: 'unavailable', retryAfterMs: 1000 }
