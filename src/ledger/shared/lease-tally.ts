// Counts what becomes of leases, for the numbers of stats.ts. Each part that does something to leases adds to it.

import type { Nano } from '../../kernel/money.ts'
import type { LeaseStats } from '../stats.ts'
import type { LeaseBook } from './lease-book.ts'

export interface LeaseTally {
  taken: number
  returned: number
  holds: number
  refusalsJudged: number
  recalls: number
}

export function createLeaseTally(): LeaseTally {
  return { taken: 0, returned: 0, holds: 0, refusalsJudged: 0, recalls: 0 }
}

export function leaseStats(tally: LeaseTally, book: LeaseBook): LeaseStats {
  const leases = book.all()
  const sum = (pick: (lease: (typeof leases)[number]) => bigint) =>
    leases.reduce((total, lease) => total + pick(lease), 0n) as Nano
  return {
    ...tally,
    open: leases.length,
    leased: sum(({ left, inUse }) => left + inUse),
    inUse: sum(({ inUse }) => inUse),
    // What was taken and is neither here nor given back.
    lost: tally.taken - tally.returned - leases.length,
  }
}
