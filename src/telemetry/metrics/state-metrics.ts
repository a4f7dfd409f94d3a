// How things stand, asked for when somebody reads: wallets and holds, routes, budgets, the configuration. It knows
// nobody who knows these things; app.ts passes the questions in.

import type { NumberPoint } from './reading.ts'
import type { MetricRegistry } from './registry.ts'

/** What a ledger says of itself. Amounts are nano-dollars, times epoch milliseconds. */
export interface LedgerReading {
  readonly openHolds: number
  readonly heldTotal: bigint
  readonly oldestHoldAt: number | undefined
  readonly commits: number
  readonly commitsFailed: number
  readonly commitMsLast: number
  readonly commitMsTotal: number
  readonly charges: number
  readonly estimated: number
  readonly overruns: number
  readonly writtenOff: bigint
  readonly reaped: number
  readonly reapedSent: number
  /** Absent where the database has no clock of its own. */
  readonly clockSkewMs?: number
}

/** The worse, the larger: of several routes under one name the worst is shown. */
export const routeStates = { healthy: 0, 'slow start': 1, probing: 2, parked: 3, ejected: 4 } as const

/** Where limits are counted: with the other replicas (or alone where there are none), or on this one's share of each. */
export const limiterModes = { shared: 0, share: 1 } as const

export interface RouteStateReading {
  readonly model: string
  readonly provider: string
  readonly state: keyof typeof routeStates
}

export interface WalletReading {
  /** A workspace's id, or `other` for all that were not read one by one. */
  readonly workspace: string
  readonly posted: bigint
}

export interface StateSources {
  ledger(): LedgerReading
  wallets(): Promise<readonly WalletReading[]>
  routes(): Iterable<RouteStateReading>
  unpricedModels(): number
  readonly retryBudget: { level(): number; refused(): number }
  limiterMode(): keyof typeof limiterModes
  /** Epoch milliseconds. */
  now(): number
}

const nanosPerUsd = 1e9

export function defineStateMetrics(registry: MetricRegistry, sources: StateSources): void {
  defineWalletMetrics(registry, sources)
  defineLedgerMetrics(registry, sources)
  registry.ask({
    name: 'tollgate_route_state',
    type: 'gauge',
    help: 'Routes on the credential of the operator: 0 healthy, 1 slow start, 2 probing, 3 parked, 4 ejected.',
    labels: ['model', 'provider'],
    merge: 'max',
    read: () =>
      Array.from(sources.routes(), ({ model, provider, state }): NumberPoint => {
        return { values: [model, provider], value: routeStates[state] }
      }),
  })
  registry.ask({
    name: 'tollgate_unpriced_models',
    type: 'gauge',
    help: 'Models that cannot be called because they have no price.',
    read: () => sources.unpricedModels(),
  })
  registry.ask({
    name: 'tollgate_retry_budget',
    type: 'gauge',
    help: 'Extra attempts that this process may make now.',
    read: () => sources.retryBudget.level(),
  })
  registry.ask({
    name: 'tollgate_retries_refused_total',
    type: 'counter',
    help: 'Extra attempts that were not made because the budget was spent.',
    read: () => sources.retryBudget.refused(),
  })
  registry.ask({
    name: 'tollgate_limiter_mode',
    type: 'gauge',
    help: 'Limits: 0 counted together with the other replicas, 1 per replica, because their store is away.',
    read: () => limiterModes[sources.limiterMode()],
  })
  registry.ask({
    name: 'tollgate_clock_skew_seconds',
    type: 'gauge',
    help: "How far this machine's clock is ahead of the database's; less than 0: behind it.",
    read: () => (sources.ledger().clockSkewMs ?? 0) / 1000,
  })
}

function defineWalletMetrics(registry: MetricRegistry, sources: StateSources): void {
  registry.ask({
    name: 'tollgate_wallet_balance_usd',
    type: 'gauge',
    help: 'What is in the wallets, held or not. Read from the database: every replica says the same.',
    labels: ['workspace'],
    read: async () =>
      (await sources.wallets()).map(({ workspace, posted }) => ({ values: [workspace], value: usd(posted) })),
  })
  registry.ask({
    name: 'tollgate_wallet_held_usd',
    type: 'gauge',
    help: 'What running requests of this process have set aside.',
    read: () => usd(sources.ledger().heldTotal),
  })
  registry.ask({
    name: 'tollgate_open_holds',
    type: 'gauge',
    help: 'Holds of this process that are neither settled nor released.',
    read: () => sources.ledger().openHolds,
  })
  registry.ask({
    name: 'tollgate_oldest_hold_seconds',
    type: 'gauge',
    help: 'Age of the oldest open hold of this process; 0 = nothing is held.',
    read: () => {
      const { oldestHoldAt } = sources.ledger()
      return oldestHoldAt === undefined ? 0 : Math.max(0, sources.now() - oldestHoldAt) / 1000
    },
  })
}

function defineLedgerMetrics(registry: MetricRegistry, { ledger }: StateSources): void {
  const counters: readonly (readonly [name: string, help: string, read: (stats: LedgerReading) => number])[] = [
    ['tollgate_ledger_commits_total', 'Commits of the ledger; many charges may share one.', (s) => s.commits],
    ['tollgate_ledger_commit_failures_total', 'Commits of the ledger that failed.', (s) => s.commitsFailed],
    ['tollgate_ledger_commit_seconds_total', 'Time spent in commits of the ledger.', (s) => s.commitMsTotal / 1000],
    ['tollgate_charges_total', 'Requests that were charged.', (s) => s.charges],
    ['tollgate_estimated_charges_total', 'Charges by estimated usage: the provider reported none.', (s) => s.estimated],
    ['tollgate_overrun_charges_total', 'Charges above what was held.', (s) => s.overruns],
    ['tollgate_written_off_usd_total', 'What wallets could not pay and the operator lost.', (s) => usd(s.writtenOff)],
  ]
  for (const [name, help, read] of counters) registry.ask({ name, help, type: 'counter', read: () => read(ledger()) })
  registry.ask({
    name: 'tollgate_ledger_commit_last_seconds',
    type: 'gauge',
    help: 'How long the last commit of the ledger took.',
    read: () => ledger().commitMsLast / 1000,
  })
  registry.ask({
    name: 'tollgate_reaped_holds_total',
    type: 'counter',
    help: 'Holds that ended because their process died or their time was over; sent: the body had gone upstream.',
    labels: ['sent'],
    read: () => {
      const { reaped, reapedSent } = ledger()
      return [
        { values: ['yes'], value: reapedSent },
        { values: ['no'], value: reaped - reapedSent },
      ]
    },
  })
}

function usd(nanos: bigint): number {
  return Number(nanos) / nanosPerUsd
}
