// The numbers that a ledger has for metrics: of this process alone, counted as things happen, never asked of the
// database. Counters start at 0 with the process.

import type { Nano } from '../kernel/money.ts'

export interface HoldStats {
  readonly openHolds: number
  readonly heldTotal: Nano
  /** Epoch milliseconds; undefined = nothing is held. */
  readonly oldestHoldAt: number | undefined
}

/** Of charges, top-ups and, with several replicas, heartbeats; many operations may share one. */
export interface CommitStats {
  readonly commits: number
  readonly commitsFailed: number
  /** 0 before the first. */
  readonly commitMsLast: number
  readonly commitMsTotal: number
}

export interface EndStats {
  readonly charges: number
  /** Charges by estimated usage. */
  readonly estimated: number
  /** Charges above what was held. */
  readonly overruns: number
  /** What wallets could not pay. */
  readonly writtenOff: Nano
  /** Holds that ended because their process died or their lifetime was over, as far as this process ended them. */
  readonly reaped: number
  /** Of these, the ones whose body had gone upstream. */
  readonly reapedSent: number
}

export interface LedgerStats extends HoldStats, CommitStats, EndStats {
  /** How far this machine's clock is ahead of the database's (less than 0: behind it); absent where they are one. */
  readonly clockSkewMs?: number
}
