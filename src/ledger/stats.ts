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

/** Of the slices of hot wallets from which this process admits in memory; all 0 where there is one process. */
export interface LeaseStats {
  readonly open: number
  /** What is in them, free or held by running requests. */
  readonly leased: Nano
  /** Of that, what running requests hold. */
  readonly inUse: Nano
  readonly taken: number
  /** Given back by this process. */
  readonly returned: number
  /** Taken back by others, because this process was silent for too long. */
  readonly lost: number
  /** Holds that were admitted in memory. */
  readonly holds: number
  /** Wallets that could not pay while slices of them were out, each time it was judged whether they may be told so. */
  readonly refusalsJudged: number
  /** Of these, how often the slices were asked for first. */
  readonly recalls: number
}

export const noLeases: LeaseStats = Object.freeze({
  open: 0,
  leased: 0n as Nano,
  inUse: 0n as Nano,
  taken: 0,
  returned: 0,
  lost: 0,
  holds: 0,
  refusalsJudged: 0,
  recalls: 0,
})

export interface LedgerStats extends HoldStats, CommitStats, EndStats {
  readonly leases: LeaseStats
  /** How far this machine's clock is ahead of the database's (less than 0: behind it); absent where they are one. */
  readonly clockSkewMs?: number
}
