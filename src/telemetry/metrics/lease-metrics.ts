// The slices of hot wallets from which this process admits in memory, as several replicas on PostgreSQL do.

import type { MetricRegistry } from './registry.ts'

/** What a ledger says of its leases. Amounts are nano-dollars. */
export interface LeaseReading {
  readonly open: number
  readonly leased: bigint
  readonly inUse: bigint
  readonly taken: number
  readonly returned: number
  readonly lost: number
  readonly holds: number
  readonly refusalsJudged: number
  readonly recalls: number
}

const nanosPerUsd = 1e9

export function defineLeaseMetrics(registry: MetricRegistry, leases: () => LeaseReading): void {
  registry.ask({
    name: 'tollgate_leases',
    type: 'gauge',
    help: 'Slices of hot wallets that this process has.',
    read: () => leases().open,
  })
  registry.ask({
    name: 'tollgate_leased_usd',
    type: 'gauge',
    help: 'What is in the slices of this process; in_use: held by running requests.',
    labels: ['part'],
    read: () => {
      const { leased, inUse } = leases()
      return [
        { values: ['in_use'], value: Number(inUse) / nanosPerUsd },
        { values: ['free'], value: Number(leased - inUse) / nanosPerUsd },
      ]
    },
  })
  registry.ask({
    name: 'tollgate_leases_ended_total',
    type: 'counter',
    help: 'Slices that this process has no more; lost: taken back, because it was silent for too long.',
    labels: ['how'],
    read: () => {
      const { returned, lost } = leases()
      return [
        { values: ['returned'], value: returned },
        { values: ['lost'], value: lost },
      ]
    },
  })
  const counters: readonly (readonly [name: string, help: string, read: (stats: LeaseReading) => number])[] = [
    ['tollgate_leases_taken_total', 'Slices of hot wallets that this process took.', (s) => s.taken],
    ['tollgate_lease_holds_total', 'Holds that were admitted from a slice, in memory.', (s) => s.holds],
    [
      'tollgate_lease_refusals_judged_total',
      'Wallets found short while slices of them were out.',
      (s) => s.refusalsJudged,
    ],
    ['tollgate_lease_recalls_total', 'Of these, how often the slices were asked for first.', (s) => s.recalls],
  ]
  for (const [name, help, read] of counters) registry.ask({ name, help, type: 'counter', read: () => read(leases()) })
}
