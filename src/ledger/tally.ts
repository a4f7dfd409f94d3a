// Counts how holds end, for the numbers of stats.ts. Told by whoever ended them, once each.

import type { Nano } from '../kernel/money.ts'
import type { ReapReport, SettleEnd, Settlement } from './ledger.ts'
import type { EndStats } from './stats.ts'

export interface Tally {
  readonly stats: EndStats
  settled(settlement: Settlement, end: SettleEnd, held: bigint): void
  reaped(reports: readonly ReapReport[]): void
}

export function createTally(): Tally {
  const stats = { charges: 0, estimated: 0, overruns: 0, writtenOff: 0n as Nano, reaped: 0, reapedSent: 0 }
  return {
    stats,
    settled({ charge, estimated }, end, held) {
      if (end.kind !== 'settled') return
      stats.charges++
      if (estimated) stats.estimated++
      if (charge > held) stats.overruns++
      stats.writtenOff = (stats.writtenOff + end.writtenOff) as Nano
    },
    reaped(reports) {
      stats.reaped += reports.length
      stats.reapedSent += reports.filter(({ sent }) => sent).length
    },
  }
}
