// The one answer of every ledger call that a wallet cannot pay for, with what there is.

import type { Nano } from '../kernel/money.ts'

/** The wallet can pay once `posted - held` covers the amount; if even `posted` does not, waiting is no use. */
export interface Insufficient {
  readonly kind: 'insufficient'
  readonly posted: Nano
  readonly held: Nano
}
