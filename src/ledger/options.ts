// What a ledger of either engine is made from.

import type { Clock } from '../kernel/clock.ts'
import type { Failpoint } from '../kernel/failpoint.ts'
import type { Database } from '../store/database.ts'
import type { Pace } from './pace.ts'

export interface LedgerOptions {
  readonly database: Database
  readonly clock: Clock
  readonly pace: Pace
  readonly reach: Failpoint
  /** Of holds that name no lifetime of their own. */
  readonly holdLifetimeMs: number
  /** In [0, 1); spreads the retries of several processes. */
  random(): number
}
