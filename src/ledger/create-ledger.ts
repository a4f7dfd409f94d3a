// Makes the ledger that fits the database: one process on the embedded engine, or one of several replicas.

import type { Clock } from '../kernel/clock.ts'
import { type Failpoint, noFailpoint } from '../kernel/failpoint.ts'
import { randomUnit } from '../kernel/random.ts'
import type { Database } from '../store/database.ts'
import { createEmbeddedLedger } from './embedded/embedded-ledger.ts'
import type { Ledger } from './ledger.ts'
import { type Pace, realPace } from './pace.ts'
import { createSharedLedger } from './shared/shared-ledger.ts'

/** Longer than any request may take: the default total deadline of a route is 15 minutes. */
const defaultHoldLifetimeMs = 20 * 60_000

export interface CreateLedgerOptions {
  readonly database: Database
  readonly clock: Clock
  readonly holdLifetimeMs?: number
  /** For tests. */
  readonly pace?: Pace
  readonly failpoint?: Failpoint
}

/** Reads every wallet on the embedded engine, registers the replica on PostgreSQL. The database must be migrated. */
export function createLedger({
  database,
  clock,
  holdLifetimeMs = defaultHoldLifetimeMs,
  pace = realPace,
  failpoint: reach = noFailpoint,
}: CreateLedgerOptions): Promise<Ledger> {
  const options = { database, clock, holdLifetimeMs, pace, reach, random: randomUnit }
  if (database.batches) return createEmbeddedLedger(options, database.batches)
  return createSharedLedger(options)
}
