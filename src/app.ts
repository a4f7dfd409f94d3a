// The only place where things are constructed and wired. Each part is a file in app/ and gets the ones before it:
// storage → auth (keys, limits) → pipeline (requests) → alerts → batches → admin (management API, pages, payments) → the HTTP
// server.

import { type Admin, createAdmin, publicUrlOf } from './app/admin.ts'
import { createAlerts } from './app/alerts.ts'
import { type Auth, createAuth } from './app/auth.ts'
import { createBatches } from './app/batches.ts'
import type { LiveCatalog } from './app/live-catalog.ts'
import { type Base, openingCredit, openStorage } from './app/open-storage.ts'
import { createPipeline, type Pipeline } from './app/pipeline.ts'
import type { Config } from './config/config.ts'
import { surfaces } from './dialects/registry.ts'
import { createAnthropicBatchesRoute } from './http/batches/anthropic.ts'
import { createOpenaiBatchesRoute } from './http/batches/openai.ts'
import { createClientTelemetryRoute } from './http/client-telemetry.ts'
import { createHandler, type Shutdown } from './http/handler.ts'
import { connectionLimits, ListenFault, listen } from './http/listen.ts'
import { createManagedSettingsRoute } from './http/managed-settings.ts'
import { createModelInfoRoute, createModelsRoute } from './http/models.ts'
import { createClientAddresses } from './http/request.ts'
import { refuse } from './http/responses.ts'
import { createOpenSocket } from './http/responses-socket.ts'
import { createShedding, memoryLimit } from './http/shedding.ts'
import { createSpendRoute } from './http/spend.ts'
import { createStoredResponsesRoute } from './http/stored-responses.ts'
import { type Clock, randomUnit } from './kernel/clock.ts'
import { Failure } from './kernel/failure.ts'
import { createId, type RequestId } from './kernel/ids.ts'
import { formatUsd } from './kernel/money.ts'
import type { Ledger } from './ledger/ledger.ts'
import type { ClientRequest } from './pipeline/client-request.ts'
import { cannotCharge } from './pipeline/spend-refusals.ts'
import type { Provider } from './providers/provider.ts'
import type { Database } from './store/database.ts'
import { isStoreUnavailable, storeUnavailable } from './store/sql-error.ts'
import { causeText, fullDiskRefusal, StartRefusal } from './store/start-refusal.ts'
import type { Log } from './telemetry/log.ts'
import type { FirstStart } from './tenancy/first-start.ts'
import type { AdminToken } from './tenancy/secrets.ts'

export interface App {
  readonly url: string
  readonly engine: 'sqlite' | 'postgres'
  readonly firstStart: FirstStart
  /** Where the management token is stored. */
  readonly adminToken: Pick<AdminToken, 'source' | 'file'>
  /** The opening balance of a new installation, decimal USD. */
  readonly openingCredit: string
  /** A path with a one-time secret that signs a browser in; it expires within minutes. */
  createSignInPath(): Promise<string>
  /** The enabled providers. */
  providers(): ReadonlyMap<string, Provider>
  /** How many models a caller without an allowlist can call through a provider. */
  modelCount(providerId: string): number
  /** Stops accepting requests, finishes the running ones and closes everything. False = some requests were cut off. */
  stop(): Promise<boolean>
  /** Shortens a running `stop` to a few seconds; requests still running then are ended, settled and recorded. */
  shortenDrain(): void
}

export interface AppDependencies extends Base {
  /** Measures event-loop delay; absent = requests are not shed for it. */
  readonly loopClock?: Clock
  /** A line for the operator while the start waits for something. */
  onProgress(line: string): void
  /** For measurements: wraps the ledger. */
  wrapLedger?(real: Ledger): Ledger
  /** For tests: how long rows of the request log may wait to be written together. */
  readonly requestLogFlushMs?: number
  /** The balances in memory cannot be trusted any more: finish what runs, then end the process. */
  onBroken?(): void
  /** For tests: a server in place of Stripe's. */
  readonly stripeUrl?: string
  /** For tests: see PostgresOptions. */
  readonly timeoutFactor?: number
  /** How many lines of the log could not be written; absent = none. */
  logLinesDropped?(): number
  /** Whether other processes listen on the same port. */
  readonly sharesPort?: boolean
}

/** How long a connection may be silent within a request. */
const idleSeconds = 60

/** The share of the memory for bodies that are being received; requests are shed long before all of it is in use. */
const bodiesShare = 0.25
/** What the WebSockets may remember of their last responses, as a share of the memory. */
const rememberedShare = 0.05

/** Throws a StartRefusal for what the operator can mend. */
export async function startApp(deps: AppDependencies): Promise<App> {
  try {
    return await start(deps)
  } catch (thrown) {
    const fullDisk = fullDiskRefusal(thrown, deps.source.current.dataFolder)
    if (fullDisk) throw fullDisk
    if (thrown instanceof StartRefusal || !isStoreUnavailable(thrown)) throw thrown
    throw new StartRefusal(
      `Tollgate could not start: the database did not answer in time (${causeText(thrown)}). Check that it is running, not overloaded, and that no other session holds locks on Tollgate's tables. Then start Tollgate again.`,
      { cause: thrown },
    )
  }
}

async function start(deps: AppDependencies): Promise<App> {
  const { source, clock, log } = deps
  const base = { source, clock, log }
  // An unreachable database is not a defect: the caller can retry.
  const onDefect = (error: unknown, id: RequestId): Failure =>
    isStoreUnavailable(error) ? storeUnavailable() : logDefect(log, error, id)
  // These two are built below, and needed by what is built before them.
  const catalogLoaded = Promise.withResolvers<LiveCatalog>()
  let admin: Admin | undefined

  const storage = await openStorage({ ...base, onProgress: deps.onProgress, timeoutFactor: deps.timeoutFactor })
  // Follows the changes of other replicas before the catalog reads the prices, so that none is missed in between.
  const auth = createAuth({
    ...base,
    storage,
    onPriceChange: () => void catalogLoaded.promise.then((catalog) => catalog.reload()),
    onAccessChange: () => admin?.web.accessChanged(),
  })
  const { addressOf, forwardedProtoOf } = createClientAddresses(() => source.current.trustedProxies)
  const pipeline = await createPipeline({
    ...base,
    storage,
    auth,
    addressOf,
    onDefect,
    onBroken: () => deps.onBroken?.(),
    logLinesDropped: () => deps.logLinesDropped?.() ?? 0,
    wrapLedger: deps.wrapLedger,
    requestLogFlushMs: deps.requestLogFlushMs,
  })
  const { catalog, health } = pipeline
  catalogLoaded.resolve(catalog)
  const alerts = createAlerts({ ...base, storage, health, catalog, address: () => publicUrlOf(source.current) })
  const shutdown: { phase: Shutdown['phase'] } = { phase: 'serving' }
  const limits = connectionLimits()
  const bodiesMemory = memoryLimit() * bodiesShare
  const shedding = createShedding({ clock: deps.loopClock, random: randomUnit, runningMax: limits.requestsMax })
  const { database } = storage
  const isBusy = shedding.isStrained
  const batches = createBatches({ ...base, storage, auth, pipeline, alerts, isBusy, forwardedProtoOf })
  await batches.restoreHolds()
  admin = createAdmin({
    ...{ ...base, storage, auth, pipeline, alerts, batches: batches.managed, addressOf, forwardedProtoOf, onDefect },
    stripeUrl: deps.stripeUrl,
  })
  const { web, sessions, close: closeAdmin } = admin

  const serve = createRoutes({
    ...base,
    auth,
    pipeline,
    batches,
    admin,
    shutdown,
    shedding,
    database,
    addressOf,
    onDefect,
  })
  const { host, port, localModels } = source.current
  const listening = listen({
    host,
    port,
    idleSeconds,
    clock,
    serve,
    ...limits,
    bodiesBytesMax() {
      const { bodiesBytesMax, bodyBytesMax } = source.current
      return Math.max(bodyBytesMax, Math.min(bodiesBytesMax, bodiesMemory))
    },
    sharesPort: deps.sharesPort ?? false,
    onDefect(error) {
      const id = createId('req')
      return refuse(surfaces.chat.dialect, logDefect(log, error, id), id)
    },
  })
  if (listening instanceof ListenFault) throw refusedPort(source.current, listening)
  if (localModels) void catalog.findLocalServers([Number(new URL(listening.url).port)])

  return {
    url: listening.url,
    engine: storage.database.engine,
    firstStart: storage.firstStart,
    adminToken: storage.adminToken,
    openingCredit: formatUsd(openingCredit),
    createSignInPath: async () => `/console?t=${await sessions.createLink()}`,
    providers: () => catalog.current.providers,
    modelCount: (providerId) => catalog.current.modelCount(providerId),
    shortenDrain() {
      shutdown.phase = 'draining'
      listening.shortenDrain()
    },
    async stop() {
      const { drainMs, drainDelayMs: delayMs } = source.current
      shutdown.phase = delayMs === 0 ? 'draining' : 'leaving'
      if (delayMs > 0) setTimeout(() => (shutdown.phase = 'draining'), delayMs).unref()
      web.close()
      // Its lines are requests like others: they end with those.
      const batchesClosed = batches.close()
      const drained = await listening.stop({ delayMs, drainMs }, () => pipeline.ticker.expireAll())
      await batchesClosed
      // In the reverse order of the start: what is closed later is still used by what is closed before.
      shedding.close()
      source.close()
      await closeAdmin()
      await alerts.close()
      await pipeline.close()
      await auth.close()
      await storage.close()
      log.flush()
      return drained
    },
  }
}

interface RoutesInput extends Base {
  readonly auth: Auth
  readonly pipeline: Pipeline
  readonly batches: ReturnType<typeof createBatches>
  readonly admin: Admin
  readonly shutdown: Shutdown
  readonly shedding: ReturnType<typeof createShedding>
  readonly database: Database
  addressOf(request: ClientRequest): string | undefined
  onDefect(error: unknown, id: RequestId): Failure
}

/** Everything that the gateway serves, by path. */
function createRoutes({ source, clock, auth, pipeline, batches, admin, ...http }: RoutesInput) {
  const { ledger, catalog } = pipeline
  const { authenticate, credentials, limiter } = auth
  const listing = { authenticate, credentials, limiter, catalog }
  return createHandler({
    generate: pipeline.generate,
    countTokens: pipeline.countTokens,
    compact: pipeline.compact,
    embed: pipeline.embed,
    openSocket: createOpenSocket({
      ...{ authenticate, clock, settings: source, addressOf: http.addressOf },
      ...{ generate: pipeline.generate, warmUp: pipeline.warmUp },
      rememberedMax: memoryLimit() * rememberedShare,
    }),
    models: createModelsRoute(listing),
    modelInfo: createModelInfoRoute(listing),
    spend: createSpendRoute({ authenticate, ledger, clock }),
    clientTelemetry: createClientTelemetryRoute({
      authenticate,
      database: http.database,
      relay: () => (source.current.clientTelemetry ? pipeline.relayTelemetry : undefined),
    }),
    managedSettings: createManagedSettingsRoute({ authenticate, limiter, database: http.database }),
    storedResponses: createStoredResponsesRoute({
      authenticate,
      limiter,
      storedResponses: pipeline.storedResponses,
      settings: source,
    }),
    openaiBatches: createOpenaiBatchesRoute(batches.route),
    anthropicBatches: createAnthropicBatchesRoute(batches.route),
    management: admin.management,
    signIn: admin.signIn,
    metrics: pipeline.metrics,
    pages: admin.web.handle,
    notFound: admin.web.notFound,
    payments: admin.payments,
    settings: source,
    shutdown: http.shutdown,
    overloaded: http.shedding.refusal,
    degraded: () => auth.degraded(),
    unreadiness: () => (ledger.admits() ? undefined : cannotCharge(1000)),
    onDefect: http.onDefect,
    addressOf: http.addressOf,
    idleSeconds,
  })
}

/** A bug in Tollgate: the details go to the log, not to the caller. */
function logDefect(log: Log, error: unknown, id: RequestId): Failure {
  log.error('a defect in Tollgate', {
    request_id: id,
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  })
  return new Failure('INTERNAL', 'Tollgate failed to handle this request; the log has the cause under the request id.')
}

function refusedPort({ host, port }: Config, { code }: ListenFault): StartRefusal {
  if (code === 'EADDRINUSE') {
    return new StartRefusal(
      `Port ${port} on ${host} is taken. Stop the other program, or choose another: --port N or TOLLGATE_PORT.`,
    )
  }
  if (code === 'EACCES') {
    return new StartRefusal(
      `Port ${port} needs privileges this user does not have. Choose one above 1023: --port N or TOLLGATE_PORT.`,
    )
  }
  return new StartRefusal(`Cannot listen on ${host}:${port} (${code}). Set TOLLGATE_HOST and TOLLGATE_PORT.`)
}
