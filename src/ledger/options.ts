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
  /** Work in the background failed; it is tried again by itself. */
  onFault(what: string, error: unknown): void
  /**
   * The wallets in memory contradict what was committed. Nothing more is admitted; running requests can still be settled.
   * Only a restart, which reads the wallets again, mends it. Called once.
   */
  onBroken(error: unknown): void
  /** False only in tests: a spend limit then begins with nothing. */
  readonly seedsBudgets: boolean
  /** In [0, 1); spreads the retries of several processes. */
  random(): number
}
