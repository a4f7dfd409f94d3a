// Builds the parts that serve model requests: the live catalog, route health, ledger, request log, metrics, traces and the
// request pipeline over all of them.

import manifest from '../../package.json' with { type: 'json' }
import type { Dialect } from '../dialects/dialect.ts'
import { dialects } from '../dialects/registry.ts'
import { createMetricsRoute } from '../http/metrics.ts'
import { randomUnit } from '../kernel/clock.ts'
import { createFailpoint } from '../kernel/failpoint.ts'
import { assert, type Failure } from '../kernel/failure.ts'
import { createId, type RequestId } from '../kernel/ids.ts'
import { createLedger } from '../ledger/create-ledger.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { answersOnly, batchDependencies } from '../pipeline/batch-dependencies.ts'
import type { ClientRequest } from '../pipeline/client-request.ts'
import { createCountTokens } from '../pipeline/count-tokens.ts'
import { createTicker } from '../pipeline/deadline.ts'
import { InputRatios } from '../pipeline/estimate.ts'
import { createExpectedCost } from '../pipeline/expected-cost.ts'
import { createKeptReasoning } from '../pipeline/kept-reasoning.ts'
import { PreviousTurns, UsualOutputs } from '../pipeline/learned.ts'
import { createPrepareRequest } from '../pipeline/prepare-request.ts'
import { Rooms } from '../pipeline/rooms.ts'
import { createRunRequest, type RunDependencies } from '../pipeline/run.ts'
import { createCacheKeys, createContentTags } from '../pipeline/session.ts'
import { replyOfResult, type StoredResult } from '../pipeline/stored-result.ts'
import { PendingSettlements } from '../pipeline/stream.ts'
import { createWarmUp } from '../pipeline/warm-up.ts'
import { strayCounts } from '../providers/connection-pool.ts'
import { createSandboxTransport } from '../providers/sandbox/transport.ts'
import { type CallBudget, createHedgeBudget, createRetryBudget } from '../routing/failover.ts'
import { createHealth, type Health, type HealthNotice } from '../routing/health.ts'
import { createStickyRoutes } from '../routing/sticky.ts'
import { storeNow } from '../store/database.ts'
import { createContentExporter } from '../telemetry/content-exporter.ts'
import { createGatewayMetrics, readWallets } from '../telemetry/metrics.ts'
import { createOtlpExporter, type OtlpExporter, readOtlpSettings } from '../telemetry/otlp.ts'
import { createRequestLog, type RequestLog } from '../telemetry/request-log.ts'
import type { RequestRecord } from '../telemetry/request-record.ts'
import { createFolding } from '../telemetry/request-stats.ts'
import { createRetention } from '../telemetry/retention.ts'
import { createGenerationKeys } from '../tenancy/idempotency.ts'
import { finishRecount, pendingRecounts } from '../tenancy/limit-recounts.ts'
import { createStoredResponses } from '../tenancy/stored-responses.ts'
import { catalogItems } from './admin-view.ts'
import type { Auth } from './auth.ts'
import { createLiveCatalog, type LiveCatalog } from './live-catalog.ts'
import { type Base, errorFields, type Storage } from './open-storage.ts'

interface PipelineDependencies extends Base {
  readonly storage: Storage
  readonly auth: Auth
  addressOf(request: ClientRequest): string | undefined
  onDefect(error: unknown, id: RequestId): Failure
  /** The balances in memory cannot be trusted any more; the process has to be restarted. */
  onBroken(): void
  logLinesDropped(): number
  /** For measurements: wraps the ledger. */
  readonly wrapLedger: ((real: Ledger) => Ledger) | undefined
  readonly requestLogFlushMs: number | undefined
}

interface OwnResults extends Pick<RunDependencies, 'authenticate' | 'idempotencyKeys' | 'ledger'> {
  resultOf(requestId: RequestId): StoredResult
}

export type Pipeline = Awaited<ReturnType<typeof createPipeline>>

export async function createPipeline(deps: PipelineDependencies) {
  const { storage, auth, source, clock, log, wrapLedger, onDefect } = deps
  const { database } = storage
  const health = createHealth({ clock, random: randomUnit, onNotice: (notice) => log.warn(describeNotice(notice)) })
  const sandboxTransport = createSandboxTransport({ clock })
  const catalog = await createLiveCatalog({ source, sandboxTransport, dialects, health, database, clock, log })
  const kill = (): void => void process.kill(process.pid, 'SIGKILL')
  const reach = createFailpoint(source.current.failpoints, { random: randomUnit, kill })
  const realLedger = await createLedger({
    database,
    clock,
    failpoint: reach,
    recounts: {
      pending: () => pendingRecounts(database.sql),
      finish: (recount) => database.transaction((sql) => finishRecount(sql, recount)),
    },
    onFault: (what, error) => log.warn(what, errorFields(error)),
    onBroken(error) {
      log.error(
        'The balances in memory contradict the database. No new requests are accepted; running ones are finished, then this process exits with code 1. A restart reads the balances again. Please report this.',
        errorFields(error),
      )
      deps.onBroken()
    },
  })
  const ledger = wrapLedger ? wrapLedger(realLedger) : realLedger
  const requests = createRequestLog({
    database,
    flushMs: deps.requestLogFlushMs,
    onLost: (count, error) => log.warn(`${count} lines of the request log were lost`, errorFields(error)),
  })
  const retryBudget = createRetryBudget({ clock })
  const observers = createObservers(deps, { ledger, health, retryBudget, catalog, requests })
  const ticker = createTicker(clock, (error) => void onDefect(error, createId('req')))
  const pendingSettlements = new PendingSettlements()
  const unconfirmed = new Set<Promise<void>>()
  const idempotencyKeys = createGenerationKeys({
    database,
    clock,
    keys: storage.subkeys('idempotency-store'),
    isCharged: async (id) => (await ledger.transfersOf(id)).length > 0,
    replica: realLedger.replica,
  })
  const storedResponses = createStoredResponses({
    ...{ database, clock, keys: auth.keyRing },
    days: () => source.current.responsesRetentionDays,
  })
  const shared = {
    clock,
    log,
    ticker,
    pendingSettlements,
    unconfirmed,
    ledger,
    requests,
    reach,
    health,
    limiter: auth.limiter,
    retryBudget,
    onDefect,
    credentials: auth.credentials,
    authenticate: auth.authenticate,
    random: randomUnit,
    observe: observers.observe,
    beginTrace: observers.beginTrace,
    streams: observers.streams,
    keptReasoning: createKeptReasoning({
      clock,
      secret: storage.subkeys('kept-reasoning').current,
      shared: auth.sharedCache('reasoning'),
    }),
    deriveCacheKey: createCacheKeys(storage.subkeys('prompt-cache').current),
    tagContent: createContentTags(storage.subkeys('encrypted-content')),
    sticky: createStickyRoutes({ clock, shared: auth.sharedCache('sticky') }),
    hedges: createHedgeBudget({ clock }),
    ratios: new InputRatios(),
    turns: new PreviousTurns(clock),
    outputs: new UsualOutputs(),
    rooms: new Rooms(ticker),
    idempotencyKeys,
    storedResponses,
    catalog,
    settings: source,
  }
  const embedded = ({ embeddings }: Dialect) => {
    assert(embeddings, 'only a dialect with embeddings has this path')
    return embeddings.readEnvelope
  }
  return {
    generate: createRunRequest(shared),
    countTokens: createCountTokens(shared),
    compact: createRunRequest(shared, ({ readCompaction }) => {
      assert(readCompaction, 'only a dialect that compacts has this path')
      return readCompaction
    }),
    embed: createRunRequest(shared, embedded),
    warmUp: createWarmUp(shared),
    /** For requests that the gateway makes itself: the same path, with other ways to know the caller and to keep answers. */
    runners(own: Pick<RunDependencies, 'authenticate' | 'idempotencyKeys'>) {
      const deps = { ...shared, ...own }
      return { generate: createRunRequest(deps), embed: createRunRequest(deps, embedded) }
    },
    /** For lines of batches at a provider: how they are rendered for it, and run with what it has answered. */
    inBatches(providerId: string, own: OwnResults) {
      const lines = { ...shared, ...own, ...batchDependencies(shared, providerId) }
      const replyTo: RunDependencies['replyTo'] = async (held) =>
        replyOfResult(shared, held, own.resultOf(held.exchange.record.id))
      const results = { ...lines, settings: answersOnly(source), replyTo }
      return {
        prepare: { generate: createPrepareRequest(lines), embed: createPrepareRequest(lines, embedded) },
        run: { generate: createRunRequest(results), embed: createRunRequest(results, embedded) },
      }
    },
    expectedCost: createExpectedCost({ ...shared, batchProviders: () => source.current.batches.providers }),
    storedResponses,
    ledger,
    reach,
    requests,
    health,
    catalog,
    ticker,
    /** Serves GET /metrics. */
    metrics: observers.metrics,
    countSignIn: observers.countSignIn,
    /** undefined = no collector is configured. */
    relayTelemetry: observers.relayTelemetry,
    /** Commits the charges, then writes the request log. */
    async close(): Promise<void> {
      ticker.close()
      catalog.close()
      await pendingSettlements.close()
      idempotencyKeys.close()
      await ledger.close()
      // Charges whose outcome was unknown are resolved as far as the ledger could.
      await Promise.allSettled(unconfirmed)
      await requests.close()
      await observers.close()
    },
  }
}

function describeNotice({ route: { providerId, upstreamModel }, what, why, waitMs }: HealthNotice): string {
  const wait = waitMs > 0 ? ` for ${Math.ceil(waitMs / 1000)} s` : ''
  const hint = why === 'refused our credential' ? '; check its key with tollgate doctor' : ''
  return `route ${providerId} ${upstreamModel}: ${what}${wait}${why === undefined ? '' : ` (${why})`}${hint}`
}

interface Observed {
  readonly ledger: Pick<Ledger, 'stats'>
  readonly health: Health
  readonly retryBudget: CallBudget
  readonly catalog: LiveCatalog
  readonly requests: Pick<RequestLog, 'lost'>
}

/** Metrics for Prometheus, traces and metrics over OTLP, and the upkeep of the request log. None of it can fail or delay a request. */
function createObservers(deps: PipelineDependencies, observed: Observed) {
  const { ledger, health, retryBudget, catalog, requests } = observed
  const { source, clock, log, addressOf, auth } = deps
  const { database, adminToken } = deps.storage
  let otlp: OtlpExporter | undefined
  const instanceId = createId('rep')
  const report = (line: string) => log.warn(line)
  const contentExporter = createContentExporter({
    settings: () => source.current.contentExport,
    headers: source.current.contentHeaders,
    ...{ clock, version: manifest.version, instanceId, report },
  })
  const metrics = createGatewayMetrics({
    clock,
    version: manifest.version,
    engine: database.engine,
    ledger: () => ledger.stats(),
    wallets: () => readWallets(database),
    routes: () =>
      catalogItems(catalog.current, health).flatMap(({ id: model, routes }) =>
        routes.map(({ provider, health: state }) => ({ model, provider, state })),
      ),
    unpricedModels: () => catalog.current.catalog.models.filter(({ price }) => !price).length,
    retryBudget,
    limiterMode: auth.limiterMode,
    strayCounts,
    logLinesDropped: deps.logLinesDropped,
    requestRecordsLost: requests.lost,
    telemetryDropped: () => [...(otlp?.dropped() ?? []), { values: ['content'], value: contentExporter.dropped() }],
  })
  source.onRefused(() => metrics.configRefused())
  otlp = createOtlp(deps, { instanceId, report, readMetrics: () => metrics.registry.read() })
  const retention = createRetention({
    database,
    clock,
    days: () => source.current.requestsRetentionDays,
    onFault: (error) => log.warn('cannot delete old rows of the request log', { error: String(error) }),
  })
  const folding = createFolding({
    database,
    now: () => storeNow(database, clock),
    onFault: (error) => log.warn('cannot move hours to the usage sums', { error: String(error) }),
  })
  const exporter = otlp
  const observe = (record: RequestRecord): void => {
    metrics.observeRequest(record)
    exporter?.observeRequest(record)
    contentExporter.observeRequest(record)
  }
  return {
    observe,
    /** undefined = traces are not exported. */
    beginTrace: otlp?.beginTrace,
    streams: { opened: metrics.streamOpened, closed: metrics.streamClosed },
    countSignIn: metrics.signInChanged,
    relayTelemetry: otlp?.relay,
    metrics: createMetricsRoute({ registry: metrics.registry, adminToken, clock, addressOf }),
    async close(): Promise<void> {
      await otlp?.close()
      await contentExporter.close()
      await folding.close()
      await retention.close()
      metrics.close()
    },
  }
}

function createOtlp(
  { source, clock, log }: Base,
  more: Pick<Parameters<typeof createOtlpExporter>[0], 'instanceId' | 'report' | 'readMetrics'>,
): OtlpExporter | undefined {
  const { settings, faults } = readOtlpSettings(source.current.otel)
  for (const fault of faults) log.warn(fault)
  return settings && createOtlpExporter({ settings, clock, version: manifest.version, ...more })
}
