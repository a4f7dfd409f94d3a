// The only place where things are constructed and wired. It takes a configuration and answers with a running gateway; the
// rooms it puts together are in app/.

import { createClientAddresses } from './app/client-addresses.ts'
import { createEngine } from './app/engine.ts'
import { createFleet } from './app/fleet.ts'
import { layGround, openingCredit } from './app/ground.ts'
import { type Offices, openOffices } from './app/offices.ts'
import { createPeople } from './app/people.ts'
import type { Config } from './config/config.ts'
import type { ConfigSource } from './config/source.ts'
import { anthropicMessages } from './dialects/anthropic-messages/index.ts'
import { openaiChat } from './dialects/openai-chat/index.ts'
import { createHandler, refusePath } from './http/handler.ts'
import { ListenFault, listen } from './http/listen.ts'
import { createModelsRoutes } from './http/models.ts'
import { refuse } from './http/responses.ts'
import { createShedding } from './http/shedding.ts'
import type { Clock } from './kernel/clock.ts'
import { Failure } from './kernel/failure.ts'
import { createId, type RequestId } from './kernel/ids.ts'
import { formatUsd } from './kernel/money.ts'
import { randomUnit } from './kernel/random.ts'
import type { Ledger } from './ledger/ledger.ts'
import { cannotCharge } from './pipeline/thin-hold.ts'
import type { Provider } from './providers/provider.ts'
import { isStoreUnavailable } from './store/sql-error.ts'
import { StartRefusal } from './store/start-refusal.ts'
import type { Log } from './telemetry/log.ts'
import type { AdminToken } from './tenancy/admin-token.ts'
import type { FirstStart } from './tenancy/first-start.ts'

export interface App {
  readonly url: string
  readonly engine: 'sqlite' | 'postgres'
  readonly firstStart: FirstStart
  /** Where the management token is. */
  readonly adminToken: Pick<AdminToken, 'source' | 'file'>
  /** What a new installation's wallet starts with, decimal USD. */
  readonly openingCredit: string
  /** A path with a one-time secret that signs a browser in, valid for a few minutes. */
  createSignInPath(): Promise<string>
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
  /** For tests that look at the records of requests: how long these may wait for others. */
  readonly requestLogFlushMs?: number
  /** The ledger's memory cannot be trusted any more: finish what runs, then end the process. Absent = nothing is done. */
  onBroken?(): void
  /** Whether other processes listen on the same port. */
  readonly sharesPort?: boolean
}

/** Seconds a silent connection may live between requests. */
const idleSeconds = 60
/** Several replicas stand behind a balancer, which needs a moment to notice that one is leaving. */
const sharedDrainDelayMs = 5_000

/** Never late. */
const stillClock: Clock = { now: () => 0, monotonicMs: () => 0 }

export async function startApp(deps: AppDependencies): Promise<App> {
  const { source, clock, loopClock = stillClock, log, dressLedger, requestLogFlushMs, sharesPort = false } = deps
  // A database that is away is no defect; whoever needed it may come again.
  const onDefect = (error: unknown, id: RequestId): Failure =>
    isStoreUnavailable(error) ? cannotCharge(1000) : logDefect(log, error, id)
  const ground = await layGround(deps)
  const people = createPeople({ ground, source, clock, log })
  const config = source.current
  // A price that another replica changed renews what is in stock here, also one that is heard of while that is made.
  let isPriceHeard = false
  let onPriceChange = (): void => {
    isPriceHeard = true
  }
  // Nobody is signed in, and no page open, before there are any.
  let offices: Offices | undefined
  const fleet = createFleet({
    ...{ ground, people, config, clock, log },
    onPriceChange: () => onPriceChange(),
    onAccessChange: () => offices?.web.accessChanged(),
  })
  const { limiter, limiterMode } = fleet
  // The socket knows how many requests run and who sent them, and is opened last.
  let running = (): number => 0
  let socketAddress = (_: Request): string | undefined => undefined
  const { addressOf, forwardedProtoOf } = createClientAddresses({
    config: () => source.current,
    socketAddress: (request) => socketAddress(request),
  })
  const engine = await createEngine({
    ...{
      ground,
      people,
      limiter,
      limiterMode,
      source,
      clock,
      log,
      addressOf,
      dressLedger,
      requestLogFlushMs,
      onDefect,
      onBroken: () => deps.onBroken?.(),
    },
  })
  onPriceChange = () => void engine.stock.renew()
  if (isPriceHeard) onPriceChange()
  offices = openOffices({
    ...{ ground, people, engine, fleet, source, clock, log, addressOf, forwardedProtoOf, onDefect },
  })
  const { web, sessions, management, payments } = offices

  const { ledger, stock, goods } = engine
  const { authenticate, credentials } = people
  // First it says that it goes and still takes requests, until a balancer had the time to notice; then it takes none.
  let leaving = false
  let draining = false
  const shedding = createShedding({ clock: loopClock, random: randomUnit, running: () => running() })
  const handler = createHandler({
    chat: openaiChat,
    messages: anthropicMessages,
    generate: engine.generate,
    countTokens: engine.countTokens,
    models: createModelsRoutes({ authenticate, credentials, limiter, offer: () => goods().offer }),
    management,
    metrics: engine.observers.metrics,
    pages: web.handle,
    payments,
    notReady: () => (draining ? shuttingDown() : undefined),
    overloaded: () => shedding.refusal(),
    degraded: () => fleet.degraded(),
    notAble: () => {
      if (leaving) return shuttingDown()
      return ledger.admits() ? undefined : cannotCharge(1000)
    },
    onDefect,
    addressOf,
    idleSeconds,
  })
  const { host, port, localModels } = source.current
  const listening = listen({
    host,
    port,
    idleSeconds,
    // A proxy that keeps connections must not find one closed in the very moment in which it sends the next request.
    handler: (request, socket) => (leaving ? lastOnItsConnection(handler(request, socket)) : handler(request, socket)),
    refusePath: (request) => refusePath(request, { chat: openaiChat, messages: anthropicMessages }),
    sharesPort,
    onDefect(error) {
      const id = createId('req')
      return refuse(openaiChat, logDefect(log, error, id), id)
    },
  })
  if (listening instanceof ListenFault) throw refusedPort(source.current, listening)
  running = listening.running
  socketAddress = listening.socketAddress
  if (localModels) void stock.lookForLocalServers([Number(new URL(listening.url).port)])

  return {
    url: listening.url,
    engine: ground.database.engine,
    firstStart: ground.firstStart,
    adminToken: ground.adminToken,
    openingCredit: formatUsd(openingCredit),
    createSignInPath: async () => `/console?t=${await sessions.createLink()}`,
    providers: () => goods().providers,
    modelCount: (providerId) => goods().modelCount(providerId),
    hurry() {
      draining = true
      listening.hurry()
    },
    async stop() {
      leaving = true
      const { drainMs, drainDelayMs } = source.current
      const delayMs = drainDelayMs ?? (ground.database.engine === 'postgres' ? sharedDrainDelayMs : 0)
      draining = delayMs === 0
      if (!draining) setTimeout(() => (draining = true), delayMs).unref()
      web.close()
      const drained = await listening.stop({ delayMs, drainMs }, () => engine.ticker.expireAll())
      shedding.close()
      source.close()
      await fleet.close()
      await engine.close()
      await people.close()
      await ground.close()
      log.flush()
      return drained
    },
  }
}

async function lastOnItsConnection(answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer
  response.headers.set('connection', 'close')
  return response
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
