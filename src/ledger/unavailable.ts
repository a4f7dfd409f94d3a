// The one answer of every ledger call when no commit can be confirmed; the caller may come back. A commit whose answer was
// lost may have been made all the same, so that whatever is repeated has to find it.

export interface Unavailable {
  readonly kind: 'unavailable'
  readonly retryAfterMs: number
}

export const unavailable: Unavailable = { kind: 'unavailable', retryAfterMs: 1000 }
