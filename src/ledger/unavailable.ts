// The answer of every ledger call that could not be carried out because no commit was confirmed; the caller may try again.
// For holds, extensions, releases and top-ups a commit whose reply was lost may have been made all the same, so a repeated
// call has to find it. A settlement in that state is `unknown`, never this.

export interface Unavailable {
  readonly kind: 'unavailable'
  readonly retryAfterMs: number
}

export const unavailable: Unavailable = { kind: 'unavailable', retryAfterMs: 1000 }
