// The only place where things are constructed and wired. It takes a configuration and answers with a running gateway.

import { createCatalog } from './catalog/catalog.ts'
import { sandboxModels } from './catalog/data/sandbox.ts'
import { modelFromEntry } from './catalog/entry.ts'
import { recordPrices } from './catalog/price-versions.ts'
import type { Config } from './config/config.ts'
import type { ConfigSource } from './config/source.ts'
import { anthropicMessages } from './dialects/anthropic-messages/index.ts'
import type { Dialects } from './dialects/dialect.ts'
import { openaiChat } from './dialects/openai-chat/index.ts'
import { createCountTokens } from './generation/count-tokens.ts'
import { createGenerate } from './generation/generate.ts'
import { cannotCharge } from './generation/hold.ts'
import { InputRatios } from './generation/input-ratio.ts'
import { createTicker } from './generation/ticker.ts'
import { refuse } from './http/failure-response.ts'
import { createHandler } from './http/handler.ts'
import { ListenFault, listen } from './http/listen.ts'
import { createModelsRoutes } from './http/models-routes.ts'
import { assert } from './kernel/assert.ts'
import type { Clock } from './kernel/clock.ts'
import { createFailpoint } from './kernel/failpoint.ts'
import { Failure } from './kernel/failure.ts'
import { createId, type RequestId, type WorkspaceId } from './kernel/ids.ts'
import type { Nano } from './kernel/money.ts'
import { randomUnit } from './kernel/random.ts'
import { createLedger } from './ledger/create-ledger.ts'
import { recordFunding } from './ledger/fund.ts'
import type { Provider, Transport } from './providers/provider.ts'
import { createProviders } from './providers/registry.ts'
import { createSandboxTransport } from './providers/sandbox/transport.ts'
import { createOffer, type Offer } from './routing/offer.ts'
import { openDataFolder } from './store/data-folder.ts'
import type { Database } from './store/database.ts'
import { lockDataFolder } from './store/folder-lock.ts'
import { migrate } from './store/migrate.ts'
import { openDatabase } from './store/open-database.ts'
import type { Sql } from './store/sql.ts'
import { StartRefusal } from './store/start-refusal.ts'
import type { Log } from './telemetry/log.ts'
import { createRequestLog } from './telemetry/request-log.ts'
import { createAuthenticator } from './tenancy/authenticate.ts'
import { ensureFirstStart, type FirstStart } from './tenancy/first-start.ts'
import { deriveSubkey, loadMasterSecret } from './tenancy/secrets.ts'

export interface App {
  readonly url: string
  readonly engine: 'sqlite' | 'postgres'
  readonly firstStart: FirstStart
  /** What the configuration in force switches on. */
  providers(): ReadonlyMap<string, Provider>
  /** How many models a caller without an allowlist can call through a provider. */
  modelCount(providerId: string): number
  /** Stops accepting, finishes what runs, closes everything; answers whether nobody had to be cut off. */
  stop(): Promise<boolean>
}

export interface AppDependencies {
  readonly source: ConfigSource
  readonly clock: Clock
  readonly log: Log
  /** A line for a person while the start waits for something. */
  onProgress(line: string): void
}

/** One line per dialect. */
const dialects: Dialects = { 'openai-chat': openaiChat, 'anthropic-messages': anthropicMessages }

/** Seconds a silent connection may live between requests. */
const idleSeconds = 60

export async function startApp({ source, clock, log, onProgress }: AppDependencies): Promise<App> {
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
  const firstStart = await ensureFirstStart({
    database,
    folder,
    secret,
    clock,
    onWorkspace: (sql, workspaceId) => giveOpeningCredit(sql, workspaceId, clock),
  })
  const { authenticate } = createAuthenticator({ database, pepper: deriveSubkey(secret, 'api-key-pepper'), clock })

  const sandboxTransport = createSandboxTransport({ clock })
  const stock = (settings: Config): Promise<Goods> => goodsOf(settings, { sandboxTransport, database, clock, log })
  let inForce = await stock(config)
  let changing = Promise.resolve()
  source.onChange((changed) => {
    // One after the other: the last change wins, whichever takes longer to record its prices.
    changing = changing.then(async () => {
      inForce = await stock(changed)
    })
    changing = changing.catch((error) =>
      log.error('the changed configuration could not take effect', errorFields(error)),
    )
  })

  const reach = createFailpoint(config.failpoints, {
    random: randomUnit,
    kill: () => process.kill(process.pid, 'SIGKILL'),
  })
  const ledger = await createLedger({ database, clock, failpoint: reach })
  const requests = createRequestLog({
    database,
    onLost: (count, error) => log.warn(`${count} lines of the request log were lost`, errorFields(error)),
  })

  const ticker = createTicker(clock)
  let draining = false
  const generation = {
    clock,
    log,
    ticker,
    ledger,
    requests,
    reach,
    ratios: new InputRatios(),
    authenticate,
    offer: () => inForce.offer,
    bodyBytesMax: config.bodyBytesMax,
    onDefect: (error: unknown, id: RequestId) => logDefect(log, error, id),
  }
  const handler = createHandler({
    chat: openaiChat,
    messages: anthropicMessages,
    generate: createGenerate(generation),
    countTokens: createCountTokens(generation),
    models: createModelsRoutes({ authenticate, offer: () => inForce.offer }),
    notReady: () => (draining ? shuttingDown() : undefined),
    notAble: () => (ledger.admits() ? undefined : cannotCharge(1000)),
    onDefect: (error, id) => logDefect(log, error, id),
    idleSeconds,
  })
  const listening = listen({
    host: config.host,
    port: config.port,
    idleSeconds,
    handler,
    onDefect(error) {
      const id = createId('req')
      return refuse(openaiChat, logDefect(log, error, id), id)
    },
  })
  if (listening instanceof ListenFault) throw refusedPort(config, listening)

  return {
    url: listening.url,
    engine: database.engine,
    firstStart,
    providers: () => inForce.providers,
    modelCount: (providerId) => inForce.modelCount(providerId),
    async stop() {
      draining = true
      const drained = await listening.stop(source.current.drainMs, () => ticker.expireAll())
      ticker.close()
      source.close()
      // What was charged is committed, then what was asked is written, then the store may go.
      await ledger.close()
      await requests.close()
      await database.close()
      lock?.release()
      log.flush()
      return drained
    },
  }
}

interface Goods {
  readonly offer: Offer
  readonly providers: ReadonlyMap<string, Provider>
  modelCount(providerId: string): number
}

interface GoodsDependencies {
  readonly sandboxTransport: Transport
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
}

/** What one configuration sells, and through whom; every price it asks is on record before the first call. */
async function goodsOf(config: Config, { sandboxTransport, database, clock, log }: GoodsDependencies): Promise<Goods> {
  const providers = createProviders({
    entries: config.providers,
    keys: config.providerKeys,
    sandboxOn: config.sandbox,
    sandboxTransport,
  })
  const builtIn = sandboxModels.map((entry) => modelFromEntry(entry, 'built in'))
  const catalog = createCatalog([...builtIn, ...config.models])
  const { versions: priceVersions, moved } = await recordPrices({ database, clock, models: catalog.models })
  for (const jump of moved)
    log.warn(`the price of ${jump.modelId} moved more than tenfold: ${jump.bucket} ${jump.from} → ${jump.to}`)
  const offer = createOffer({ catalog, providers, dialects, priceVersions, random: randomUnit })
  const modelCount = (providerId: string): number =>
    catalog.models.filter((model) => model.price && model.routes.some((route) => route.providerId === providerId))
      .length
  return { offer, providers, modelCount }
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
