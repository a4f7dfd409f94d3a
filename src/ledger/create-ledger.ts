// Makes the ledger that fits the database: one process on the embedded engine, or one of several replicas.

import { type Clock, randomUnit } from '../kernel/clock.ts'
import { type Failpoint, noFailpoint } from '../kernel/failpoint.ts'
import { onTimer, yieldToEventLoop } from '../kernel/timers.ts'
import type { Database } from '../store/database.ts'
import { createEmbeddedLedger } from './embedded/embedded-ledger.ts'
import { type Ledger, type Recounts, type Timers, usualHoldLifetimeMs } from './ledger.ts'
import { createSharedLedger } from './shared/shared-ledger.ts'

const systemTimers: Timers = {
  wait: (milliseconds) => Bun.sleep(milliseconds),
  endOfTurn: yieldToEventLoop,
  every: onTimer,
}

export interface CreateLedgerOptions {
  readonly database: Database
  readonly clock: Clock
  readonly holdLifetimeMs?: number
  /** Called when background work failed; it is retried. */
  readonly onFault?: (what: string, error: unknown) => void
  /** Called once if the wallets in memory contradict what was committed: the process must be restarted. */
  readonly onBroken?: (error: unknown) => void
  /** For tests. */
  readonly timers?: Timers
  readonly seedsBudgets?: boolean
  readonly recounts?: Recounts | undefined
  readonly failpoint?: Failpoint
}

/** Reads every wallet on the embedded engine, registers the replica on PostgreSQL. The database must be migrated. */
export function createLedger({
  database,
  clock,
  holdLifetimeMs = usualHoldLifetimeMs,
  onFault = () => {},
  onBroken = () => {},
  timers = systemTimers,
  seedsBudgets = true,
  recounts,
  failpoint: reach = noFailpoint,
}: CreateLedgerOptions): Promise<Ledger> {
  const options = {
    database,
    clock,
    holdLifetimeMs,
    seedsBudgets,
    recounts,
    onFault,
    onBroken,
    timers,
    reach,
    random: randomUnit,
  }
  if (database.journal) return createEmbeddedLedger(options, database.journal)
  return createSharedLedger(options)
}
