// Eyes on the gateway: metrics for Prometheus, traces and metrics over OTLP where an endpoint is set, and what
// is kept and counted of the request log. Nothing of it can fail or delay a request.

import manifest from '../../package.json' with { type: 'json' }
import type { Config } from '../config/config.ts'
import type { ConfigSource } from '../config/source.ts'
import { createMetricsRoute } from '../http/metrics.ts'
import type { Clock } from '../kernel/clock.ts'
import { createId } from '../kernel/ids.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Health } from '../routing/health/health.ts'
import type { RetryBudget } from '../routing/health/retry-budget.ts'
import type { Database } from '../store/database.ts'
import type { Log } from '../telemetry/log.ts'
import { createGatewayMetrics, type GatewayMetricsOptions } from '../telemetry/metrics/gateway-metrics.ts'
import { readWallets } from '../telemetry/metrics/read-wallets.ts'
import { createOtlpExporter, type OtlpExporter } from '../telemetry/otlp/exporter.ts'
import { readOtlpSettings } from '../telemetry/otlp/settings.ts'
import type { RequestRecord } from '../telemetry/request-record.ts'
import { createRetention } from '../telemetry/retention.ts'
import { createRollups } from '../telemetry/rollups/rollups.ts'
import type { AdminToken } from '../tenancy/admin-token.ts'
import { catalogItems } from './catalog-view.ts'
import type { Goods } from './goods.ts'

export interface ObserverDependencies {
  readonly source: ConfigSource
  readonly clock: Clock
  readonly database: Database
  readonly ledger: Pick<Ledger, 'stats'>
  readonly health: Health
  readonly budget: RetryBudget
  readonly adminToken: AdminToken
  readonly log: Log
  addressOf(request: Request): string | undefined
  goods(): Goods
  limiterMode: GatewayMetricsOptions['limiterMode']
}

export interface Observers {
  observe(record: RequestRecord): void
  /** undefined = nobody collects traces. */
  readonly beginTrace: OtlpExporter['beginTrace'] | undefined
  readonly streams: { opened(): void; closed(): void }
  metrics(request: Request): Promise<Response>
  close(): Promise<void>
}

export function createObservers(deps: ObserverDependencies): Observers {
  const { source, clock, database, ledger, health, budget, adminToken, log, addressOf, goods, limiterMode } = deps
  let otlp: OtlpExporter | undefined
  const metrics = createGatewayMetrics({
    clock,
    version: manifest.version,
    engine: database.engine,
    ledger: () => ledger.stats(),
    wallets: () => readWallets(database),
    routes: () => routeStates(goods(), health),
    unpricedModels: () => goods().catalog.models.filter(({ price }) => !price).length,
    retryBudget: budget,
    limiterMode,
    telemetryDropped: () => otlp?.dropped() ?? [],
  })
  source.onRefused(() => metrics.configRefused())
  otlp = createOtlp(source.current, deps, () => metrics.registry.read())
  const retention = createRetention({
    database,
    clock,
    days: () => source.current.requestsRetentionDays,
    onFault: (error) => log.warn('old lines of the request log could not be removed', { error: String(error) }),
  })
  const rollups = createRollups({
    database,
    clock,
    onFault: (error) => log.warn('requests could not be counted', { error: String(error) }),
    onUnreadable(count, first) {
      metrics.requestsUncounted(count)
      log.warn('Rows of the request log cannot be read; they are missing from the sums. Charges are not affected.', {
        count,
        first_request_id: first,
      })
    },
  })
  return {
    observe(record) {
      metrics.observeRequest(record)
      otlp?.observeRequest(record)
    },
    beginTrace: otlp?.beginTrace,
    streams: { opened: () => metrics.streamOpened(), closed: () => metrics.streamClosed() },
    metrics: createMetricsRoute({ registry: metrics.registry, adminToken, clock, addressOf }),
    async close() {
      await otlp?.close()
      await rollups.close()
      await retention.close()
      metrics.close()
    },
  }
}

type ReadMetrics = Parameters<typeof createOtlpExporter>[0]['readMetrics']

function createOtlp(
  { otel }: Config,
  { clock, log }: ObserverDependencies,
  readMetrics: ReadMetrics,
): OtlpExporter | undefined {
  const { settings, faults } = readOtlpSettings({
    OTEL_EXPORTER_OTLP_ENDPOINT: otel.endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: otel.headers,
    OTEL_SERVICE_NAME: otel.serviceName,
    OTEL_TRACES_SAMPLER_ARG: otel.samplerArg,
  })
  for (const fault of faults) log.warn(fault)
  if (!settings) return undefined
  const report = (line: string): void => log.warn(line)
  return createOtlpExporter({
    settings,
    clock,
    version: manifest.version,
    instanceId: createId('rep'),
    readMetrics,
    report,
  })
}

function routeStates(goods: Goods, health: Health) {
  return catalogItems(goods, health).flatMap(({ id: model, routes }) =>
    routes.map(({ provider, health: state }) => ({ model, provider, state })),
  )
}
