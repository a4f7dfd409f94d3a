// A gateway's metrics with hand-made answers to everything they ask.

import { createGatewayMetrics, type GatewayMetricsOptions } from '../../src/telemetry/metrics.ts'

export const ledgerReading = {
  openHolds: 2,
  heldTotal: 1_500_000_000n,
  oldestHoldAt: 1_699_999_988_000,
  commits: 40,
  commitsFailed: 1,
  commitMsLast: 5,
  commitMsTotal: 250,
  charges: 90,
  estimated: 3,
  overruns: 1,
  writtenOff: 20_000_000n,
  reaped: 4,
  reapedSent: 1,
}

export function openGatewayMetrics(options: Partial<GatewayMetricsOptions> = {}) {
  return createGatewayMetrics({
    clock: { now: () => 1_700_000_000_000, monotonicMs: () => 0 },
    version: '0.1.0',
    engine: 'sqlite',
    every: () => () => {},
    ledger: () => ledgerReading,
    wallets: async () => [{ workspace: 'ws_1', posted: 5_000_000_000n }],
    routes: () => [
      { model: 'acme/large', provider: 'acme', state: 'healthy' },
      { model: 'acme/large', provider: 'acme', state: 'parked' },
      { model: 'acme/large', provider: 'acme-eu', state: 'ejected' },
    ],
    unpricedModels: () => 1,
    retryBudget: { level: () => 3.2, refused: () => 7 },
    limiterMode: () => 'share',
    strayCounts: new Map([['api.acme.example', 2]]),
    logLinesDropped: () => 6,
    requestRecordsLost: () => 8,
    telemetryDropped: () => [{ values: ['traces'], value: 9 }],
    ...options,
  })
}
