// The only place where things are constructed and wired. It takes a configuration and answers with a running gateway.

import manifest from '../package.json' with { type: 'json' }
import { catalogItems } from './app/catalog-view.ts'
import { createCredentials } from './app/management.ts'
import { createObservers } from './app/observe.ts'
import { createPages } from './app/pages.ts'
import { createStock } from './app/stock.ts'
import type { Config } from './config/config.ts'
import type { ConfigSource } from './config/source.ts'
import { anthropicMessages } from './dialects/anthropic-messages/index.ts'
import type { Dialects } from './dialects/dialect.ts'
import { gemini } from './dialects/gemini/index.ts'
import { openaiChat } from './dialects/openai-chat/index.ts'
import { openaiResponses } from './dialects/openai-responses/index.ts'
import { createCountTokens } from './generation/count-tokens.ts'
import { createGenerate } from './generation/generate.ts'
import { cannotCharge } from './generation/hold.ts'
import { InputRatios } from './generation/input-ratio.ts'
import { createTicker } from './generation/ticker.ts'
import { refuse } from './http/failure-response.ts'
import { createHandler } from './http/handler.ts'
import { ListenFault, listen } from './http/listen.ts'
import { createManagementApi } from './http/management/api.ts'
import { createRequestReader } from './http/management/explain-request.ts'
import { createModelsRoutes } from './http/models-routes.ts'
import { createStripePayments } from './http/payments/stripe-payments.ts'
import { createShedding } from './http/shedding.ts'
import { assert } from './kernel/assert.ts'
import type { Clock } from './kernel/clock.ts'
import { createFailpoint } from './kernel/failpoint.ts'
import { Failure } from './kernel/failure.ts'
import { createId, type RequestId, type WorkspaceId } from './kernel/ids.ts'
import { formatUsd, type Nano } from './kernel/money.ts'
import { randomUnit } from './kernel/random.ts'
import { createLedger } from './ledger/create-ledger.ts'
import { recordFunding } from './ledger/fund.ts'
import type { Ledger } from './ledger/ledger.ts'
import { createMemoryLimiter } from './limits/memory-limiter.ts'
import type { Provider } from './providers/provider.ts'
import { createSandboxTransport } from './providers/sandbox/transport.ts'
import { createHealth } from './routing/health/health.ts'
import type { HealthNotice } from './routing/health/note-outcome.ts'
import { createRetryBudget } from './routing/health/retry-budget.ts'
import { createStickyRoutes } from './routing/health/sticky.ts'
import { createHedgeBudget } from './routing/hedge.ts'
import { openDataFolder } from './store/data-folder.ts'
import { lockDataFolder } from './store/folder-lock.ts'
import { migrate } from './store/migrate.ts'
import { openDatabase } from './store/open-database.ts'
import type { Sql } from './store/sql.ts'
import { StartRefusal } from './store/start-refusal.ts'
import type { Log } from './telemetry/log.ts'
import { createRequestLog } from './telemetry/request-log.ts'
import { type AdminToken, loadAdminToken } from './tenancy/admin-token.ts'
import { createVerifier } from './tenancy/api-key.ts'
import { createAuthenticator } from './tenancy/authenticate.ts'
import { createCredentialCache } from './tenancy/credentials/credential-cache.ts'
import { createKeyRing } from './tenancy/credentials/key-ring.ts'
import { ensureFirstStart, type FirstStart } from './tenancy/first-start.ts'
import { createIdempotency } from './tenancy/idempotency.ts'
import { createLastUsed, lastUsedFlushMs } from './tenancy/last-used.ts'
import { createReplays } from './tenancy/replays.ts'
import { deriveSubkey, loadMasterSecret, parseMasterSecret } from './tenancy/secrets.ts'

export interface App {
  readonly url: string
  readonly engine: 'sqlite' | 'postgres'
  readonly firstStart: FirstStart
  /** Where the management token is. */
  readonly adminToken: Pick<AdminToken, 'source' | 'file'>
  /** What a new installation's wallet starts with, decimal USD. */
  readonly openingCredit: string
  /** A path with a one-time secret that signs a browser in, valid for a few minutes. */
  createSignInPath(): string
  /** What the configuration in force switches on. */
  providers(): ReadonlyMap<string, Provider>
  /** How many models a caller without an allowlist can call through a provider. */
  modelCount(providerId: string): number
  /** Stops accepting, finishes what runs, closes everything; answers whether nobody had to be cut off. */
  stop(): Promise<boolean>
  /** A stop that runs waits only a few seconds more; what still runs then is told, settled and recorded. */
  hurry(): void
}

export interface AppDependencies {
  readonly source: ConfigSource
  readonly clock: Clock
  readonly log: Log
  /** Measures how late the event loop is; absent = nobody is turned away for that. */
  readonly loopClock?: Clock
  /** A line for a person while the start waits for something. */
  onProgress(line: string): void
  /** For measurements: the ledger as the gateway shall see it. */
  dressLedger?(real: Ledger): Ledger
}

/** One line per dialect. */
const dialects: Dialects = {
  'openai-chat': openaiChat,
  'anthropic-messages': anthropicMessages,
  gemini,
  'openai-responses': openaiResponses,
}

/** Seconds a silent connection may live between requests. */
const idleSeconds = 60
const drainDelayMs = 5_000

/** Never late. */
const stillClock: Clock = { now: () => 0, monotonicMs: () => 0 }

export async function startApp({
  source,
  clock,
  loopClock = stillClock,
  log,
  onProgress,
  dressLedger,
}: AppDependencies): Promise<App> {
  const config = source.current
  const folder = openDataFolder(config.dataFolder, (line) => log.warn(line))
  const lock = config.databaseUrl === undefined ? lockDataFolder(config.dataFolder) : undefined
  const database = await openDatabase({
    url: config.databaseUrl?.reveal(),
    dataFolder: config.dataFolder,
    report: (line) => log.warn(line),
  })
  await migrate({ database, clock, onProgress })
  const secret = loadMasterSecret(config.secret, folder)
  const previous = config.secretPrevious && parseMasterSecret(config.secretPrevious, 'TOLLGATE_SECRET_PREVIOUS')
  const firstStart = await ensureFirstStart({
    database,
    folder,
    secret,
    previousSecret: previous,
    clock,
    onWorkspace: (sql, workspaceId) => giveOpeningCredit(sql, workspaceId, clock),
  })
  const pepper = deriveSubkey(secret, 'api-key-pepper')
  const lastUsed = createLastUsed({
    database,
    clock,
    onFault: (error) => log.warn('when keys were last used could not be written', errorFields(error)),
  })
  const { authenticate, invalidate } = createAuthenticator({
    database,
    pepper,
    previousPepper: previous && deriveSubkey(previous, 'api-key-pepper'),
    clock,
    keyLimits: () => source.current.limits,
    noteUse: lastUsed.note,
  })
  const keyRing = createKeyRing(secret, previous)
  const credentials = createCredentialCache({ database, keys: keyRing, clock })

  const health = createHealth({ clock, random: randomUnit, onNotice: (notice) => log.warn(describeNotice(notice)) })
  const sandboxTransport = createSandboxTransport({ clock })
  const goods = await createStock(source, { sandboxTransport, dialects, health, database, clock, log })

  const reach = createFailpoint(config.failpoints, {
    random: randomUnit,
    kill: () => process.kill(process.pid, 'SIGKILL'),
  })
  const books = await createLedger({ database, clock, failpoint: reach })
  const ledger = dressLedger ? dressLedger(books) : books
  const requests = createRequestLog({
    database,
    onLost: (count, error) => log.warn(`${count} lines of the request log were lost`, errorFields(error)),
  })

  const idempotencyKey = deriveSubkey(secret, 'idempotency-store')
  const previousIdempotencyKey = previous && deriveSubkey(previous, 'idempotency-store')
  const adminToken = loadAdminToken(config.adminToken, folder)
  const budget = createRetryBudget({ clock })
  const observers = createObservers({
    source,
    clock,
    database,
    ledger,
    health,
    budget,
    adminToken,
    log,
    goods: () => goods.current,
  })
  const ticker = createTicker(clock)
  const limiter = createMemoryLimiter(clock)
  const onDefect = (error: unknown, id: RequestId): Failure => logDefect(log, error, id)
  let draining = false
  const generation = {
    clock,
    log,
    ticker,
    ledger,
    requests,
    reach,
    health,
    limiter,
    credentials,
    authenticate,
    onDefect,
    random: randomUnit,
    budget,
    observe: observers.observe,
    streams: observers.streams,
    sticky: createStickyRoutes({ clock }),
    hedges: createHedgeBudget(),
    ratios: new InputRatios(),
    replays: createReplays({
      database,
      clock,
      sealKey: idempotencyKey,
      previousSealKey: previousIdempotencyKey,
      isCharged: async (id) => (await ledger.transfersOf(id)).length > 0,
    }),
    offer: () => goods.current.offer,
    get ownKeyFee() {
      return goods.current.ownKeyFee
    },
    bodyBytesMax: config.bodyBytesMax,
  }
  const renderFailure = openaiChat.renderFailure
  const { web, sessions } = createPages({
    clock,
    adminToken,
    health,
    config: () => source.current,
    goods: () => goods.current,
  })
  const payments = createStripePayments({
    database,
    ledger,
    clock,
    log,
    renderFailure,
    onDefect,
    ...(config.stripe.secretKey && { secretKey: config.stripe.secretKey }),
    ...(config.stripe.webhookSecret && { webhookSecret: config.stripe.webhookSecret }),
    publicUrl: config.publicUrl ?? `http://${config.host}:${config.port}`,
  })
  const management = createManagementApi({
    clock,
    database,
    ledger,
    adminToken,
    invalidate,
    onDefect,
    renderFailure,
    idempotency: createIdempotency(idempotencyKey, previousIdempotencyKey),
    computeVerifier: createVerifier(pepper),
    version: manifest.version,
    credentials: createCredentials({ keys: keyRing, cache: credentials, goods: () => goods.current }),
    requests: createRequestReader({ database, ledger, requests }),
    catalog: () => catalogItems(goods.current, health),
    sessionOf: sessions.sessionOf,
    checkout: config.stripe.secretKey && payments?.checkout,
  })
  // The socket knows how many requests run, and is opened last.
  let running = (): number => 0
  const shedding = createShedding({ clock: loopClock, random: randomUnit, running: () => running() })
  const handler = createHandler({
    chat: openaiChat,
    messages: anthropicMessages,
    generate: createGenerate(generation),
    countTokens: createCountTokens(generation),
    models: createModelsRoutes({ authenticate, credentials, limiter, offer: () => goods.current.offer }),
    management,
    metrics: observers.metrics,
    pages: web.handle,
    payments,
    notReady: () => (draining ? shuttingDown() : undefined),
    overloaded: () => shedding.refusal(),
    notAble: () => (ledger.admits() ? undefined : cannotCharge(1000)),
    onDefect,
    idleSeconds,
  })
  const listening = listen({
    host: config.host,
    port: config.port,
    idleSeconds,
    handler,
    // Several replicas stand behind a balancer, which needs a moment to notice.
    drainDelayMs: database.engine === 'postgres' ? drainDelayMs : 0,
    onDefect(error) {
      const id = createId('req')
      return refuse(openaiChat, logDefect(log, error, id), id)
    },
  })
  if (listening instanceof ListenFault) throw refusedPort(config, listening)
  running = listening.running
  const uses = setInterval(() => void lastUsed.flush(), lastUsedFlushMs)
  if (config.localModels) void goods.lookForLocalServers([Number(new URL(listening.url).port)])

  return {
    url: listening.url,
    engine: database.engine,
    firstStart,
    adminToken,
    openingCredit: formatUsd(openingCredit),
    createSignInPath: () => `/console?t=${sessions.createLink()}`,
    providers: () => goods.current.providers,
    modelCount: (providerId) => goods.current.modelCount(providerId),
    hurry: () => listening.hurry(),
    async stop() {
      draining = true
      web.close()
      const drained = await listening.stop(source.current.drainMs, () => ticker.expireAll())
      ticker.close()
      shedding.close()
      source.close()
      // What was charged is committed, then what was asked is written, then the store may go.
      await ledger.close()
      await requests.close()
      clearInterval(uses)
      await observers.close()
      await lastUsed.flush()
      await database.close()
      lock?.release()
      log.flush()
      return drained
    },
  }
}

/** Without it the first call could not be paid for. */
const openingCredit = 5_000_000_000n as Nano

async function giveOpeningCredit(sql: Sql, workspaceId: WorkspaceId, clock: Clock): Promise<void> {
  const funding = { workspaceId, amount: openingCredit, kind: 'grant', reference: 'opening-credit' } as const
  const outcome = await recordFunding(sql, funding, clock.now())
  assert(outcome.kind === 'funded', 'a new wallet takes its opening credit')
}

function errorFields(error: unknown): { readonly error: string } {
  return { error: error instanceof Error ? error.message : String(error) }
}

function describeNotice({ key, what, why, waitMs }: HealthNotice): string {
  const route = `${key.providerId} ${key.upstreamModel}`
  const wait = waitMs > 0 ? ` for ${Math.ceil(waitMs / 1000)} s` : ''
  return `route ${route}: ${what}${wait}${why === undefined ? '' : ` (${why})`}`
}

function shuttingDown(): Failure {
  return new Failure('OVERLOADED', 'Tollgate is shutting down. Retry in a moment.', { retryAfterMs: 1000 })
}

/** A defect of ours: the whole story in the log, nothing of it for the caller. */
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
      `Port ${port} on ${host} is taken. Stop the other program, or set TOLLGATE_PORT to another.`,
    )
  }
  if (code === 'EACCES') {
    return new StartRefusal(
      `Port ${port} needs privileges this user does not have. Set TOLLGATE_PORT to one above 1023.`,
    )
  }
  return new StartRefusal(`Cannot listen on ${host}:${port} (${code}). Set TOLLGATE_HOST and TOLLGATE_PORT.`)
}
