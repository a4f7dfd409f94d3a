// All metrics of a gateway in one registry, and the few things that must be told to it as they happen. Every name in it
// is documented in docs/operate/observe.md; a test names what is missing there.

import { defineProcessMetrics, type ProcessFacts } from './process-metrics.ts'
import type { NumberPoint } from './reading.ts'
import { createRegistry, type MetricRegistry } from './registry.ts'
import { createRequestMetrics, type ObserveRequest } from './request-metrics.ts'
import { defineStateMetrics, type StateSources } from './state-metrics.ts'

export interface GatewayMetrics {
  readonly registry: MetricRegistry
  /** To be called once per request, when it is over. */
  readonly observeRequest: ObserveRequest
  /** A streamed answer begins, and ends however it ends. */
  streamOpened(): void
  streamClosed(): void
  /** A changed configuration file was wrong; the last good one stays in force. */
  configRefused(): void
  close(): void
}

export interface GatewayMetricsOptions extends Omit<ProcessFacts, 'clock'>, Omit<StateSources, 'now'> {
  readonly clock: ProcessFacts['clock']
  /** What could not be sent to a collector, by signal; absent = nothing is sent. */
  telemetryDropped?(): readonly NumberPoint[]
}

export function createGatewayMetrics(options: GatewayMetricsOptions): GatewayMetrics {
  const { clock, version, engine, every } = options
  const registry = createRegistry()
  const observeRequest = createRequestMetrics(registry)
  defineStateMetrics(registry, {
    ledger: () => options.ledger(),
    wallets: () => options.wallets(),
    routes: () => options.routes(),
    unpricedModels: () => options.unpricedModels(),
    retryBudget: options.retryBudget,
    limiterMode: () => options.limiterMode(),
    now: () => clock.now(),
  })
  let activeStreams = 0
  registry.ask({
    name: 'tollgate_active_streams',
    type: 'gauge',
    help: 'Streamed answers that are running now.',
    read: () => activeStreams,
  })
  const refusals = registry.counter({
    name: 'tollgate_config_reload_failures_total',
    help: 'Changed configuration files that were refused.',
  })
  defineOwnMetrics(registry, options)
  const stop = defineProcessMetrics(registry, { clock, version, engine, ...(every && { every }) })
  return {
    registry,
    observeRequest,
    streamOpened: () => void activeStreams++,
    streamClosed: () => void activeStreams--,
    configRefused: () => refusals.find().add(1),
    close: stop,
  }
}

/** What the metrics themselves could not tell. */
function defineOwnMetrics(registry: MetricRegistry, { telemetryDropped }: GatewayMetricsOptions): void {
  registry.ask({
    name: 'tollgate_metrics_folded_total',
    type: 'counter',
    help: 'Observations counted under the label value other, because the metric has too many series.',
    labels: ['metric'],
    read: () => registry.folded(),
  })
  registry.ask({
    name: 'tollgate_metrics_read_failures_total',
    type: 'counter',
    help: 'Values that could not be had when somebody read them.',
    labels: ['metric'],
    read: () => registry.failures(),
  })
  registry.ask({
    name: 'tollgate_telemetry_dropped_total',
    type: 'counter',
    help: 'Spans and metrics that could not be sent to the collector.',
    labels: ['signal'],
    read: () => telemetryDropped?.() ?? [],
  })
}
