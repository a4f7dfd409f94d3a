// What serves generations: the goods, the health of their routes, the ledger, the limits, and the story of a request over
// all of them.

import type { ConfigSource } from '../config/source.ts'
import { anthropicMessages } from '../dialects/anthropic-messages/index.ts'
import type { Dialects } from '../dialects/dialect.ts'
import { gemini } from '../dialects/gemini/index.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { openaiResponses } from '../dialects/openai-responses/index.ts'
import { memoryLimit } from '../http/shedding.ts'
import type { Clock } from '../kernel/clock.ts'
import { createFailpoint } from '../kernel/failpoint.ts'
import type { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import { createId } from '../kernel/ids.ts'
import { randomUnit } from '../kernel/random.ts'
import { createLedger } from '../ledger/create-ledger.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Limiter } from '../limits/limiter.ts'
import { createCountTokens } from '../pipeline/count-tokens.ts'
import { createGenerate, type Generate } from '../pipeline/generate.ts'
import { InputRatios } from '../pipeline/input-ratio.ts'
import { Owed } from '../pipeline/owed.ts'
import { createTicker, type Ticker } from '../pipeline/ticker.ts'
import { createSandboxTransport } from '../providers/sandbox/transport.ts'
import { createHealth, type Health } from '../routing/health/health.ts'
import type { HealthNotice } from '../routing/health/note-outcome.ts'
import { createRetryBudget } from '../routing/health/retry-budget.ts'
import { createStickyRoutes } from '../routing/health/sticky.ts'
import { createHedgeBudget } from '../routing/hedge.ts'
import type { Log } from '../telemetry/log.ts'
import { createRequestLog, type RequestLog } from '../telemetry/request-log.ts'
import { sumUncountedCharges } from '../telemetry/uncounted-charges.ts'
import { createReplays } from '../tenancy/replays.ts'
import { createBodyRoom } from '../wire/body-room.ts'
import { errorFields } from './error-fields.ts'
import type { Goods } from './goods.ts'
import type { Ground } from './ground.ts'
import { createObservers, type ObserverDependencies, type Observers } from './observe.ts'
import type { People } from './people.ts'
import { createStock, type Stock } from './stock.ts'

/** One line per dialect. */
export const dialects: Dialects = {
  'openai-chat': openaiChat,
  'anthropic-messages': anthropicMessages,
  gemini,
  'openai-responses': openaiResponses,
}

/** Of the memory there is, for bodies on their way; requests are shed long before all of it is in use. */
const bodyRoomShare = 0.25

export interface EngineDependencies {
  readonly ground: Ground
  readonly people: People
  readonly limiter: Limiter
  limiterMode: ObserverDependencies['limiterMode']
  readonly source: ConfigSource
  readonly clock: Clock
  readonly log: Log
  addressOf(request: Request): string | undefined
  /** For measurements: the ledger as the gateway shall see it. */
  readonly dressLedger: ((real: Ledger) => Ledger) | undefined
  readonly requestLogFlushMs: number | undefined
  onDefect(error: unknown, id: RequestId): Failure
  /** The ledger's memory cannot be trusted any more; the process has to be restarted. */
  onBroken(): void
}

export interface Engine {
  readonly generate: Generate
  readonly countTokens: Generate
  readonly ledger: Ledger
  readonly requests: RequestLog
  readonly health: Health
  readonly stock: Stock
  readonly observers: Observers
  readonly ticker: Ticker
  goods(): Goods
  /** What was charged is committed, then what was asked is written. */
  close(): Promise<void>
}

export async function createEngine(deps: EngineDependencies): Promise<Engine> {
  const { ground, people, limiter, source, clock, log, addressOf, dressLedger, onDefect, onBroken } = deps
  const { database } = ground
  const health = createHealth({ clock, random: randomUnit, onNotice: (notice) => log.warn(describeNotice(notice)) })
  const sandboxTransport = createSandboxTransport({ clock })
  const stock = await createStock(source, { sandboxTransport, dialects, health, database, clock, log })
  const goods = (): Goods => stock.current
  const kill = (): void => void process.kill(process.pid, 'SIGKILL')
  const reach = createFailpoint(source.current.failpoints, { random: randomUnit, kill })
  const books = await createLedger({
    database,
    clock,
    failpoint: reach,
    sumUncounted: (asked) => sumUncountedCharges(database.sql, asked),
    onFault: (what, error) => log.warn(what, errorFields(error)),
    onBroken(error) {
      log.error(
        'the wallets in memory contradict the database: no new requests are taken, running ones are finished, then this process exits with code 1. A restart reads the wallets again. Please report this.',
        errorFields(error),
      )
      onBroken()
    },
  })
  const ledger = dressLedger ? dressLedger(books) : books
  const requests = createRequestLog({
    database,
    flushMs: deps.requestLogFlushMs,
    onLost: (count, error) => log.warn(`${count} lines of the request log were lost`, errorFields(error)),
  })
  const budget = createRetryBudget({ clock })
  const { adminToken } = ground
  const { limiterMode } = deps
  const observers = createObservers({
    ...{ source, clock, database, ledger, health, budget, adminToken, log, addressOf, goods, limiterMode },
  })
  const ticker = createTicker(clock, (error) => void onDefect(error, createId('req')))
  const owed = new Owed()
  const unconfirmed = new Set<Promise<void>>()
  const seal = ground.subkeys('idempotency-store')
  const replays = createReplays({
    database,
    clock,
    sealKey: seal.current,
    previousSealKey: seal.previous,
    isCharged: async (id) => (await ledger.transfersOf(id)).length > 0,
    replica: books.replica,
  })
  const generation = {
    clock,
    log,
    ticker,
    owed,
    unconfirmed,
    ledger,
    requests,
    reach,
    health,
    limiter,
    budget,
    onDefect,
    credentials: people.credentials,
    authenticate: people.authenticate,
    random: randomUnit,
    bodyRoom: createBodyRoom(memoryLimit() * bodyRoomShare),
    observe: observers.observe,
    beginTrace: observers.beginTrace,
    streams: observers.streams,
    sticky: createStickyRoutes({ clock }),
    hedges: createHedgeBudget(),
    ratios: new InputRatios(),
    replays,
    offer: () => goods().offer,
    get bodyBytesMax() {
      return source.current.bodyBytesMax
    },
    get retries() {
      return source.current.retries
    },
  }
  return {
    generate: createGenerate(generation),
    countTokens: createCountTokens(generation),
    ledger,
    requests,
    health,
    stock,
    observers,
    ticker,
    goods,
    async close() {
      ticker.close()
      stock.close()
      await owed.close()
      replays.close()
      await ledger.close()
      // The ledger has found out what it can.
      await Promise.allSettled(unconfirmed)
      await requests.close()
      await observers.close()
    },
  }
}

function describeNotice({ key, what, why, waitMs }: HealthNotice): string {
  const route = `${key.providerId} ${key.upstreamModel}`
  const wait = waitMs > 0 ? ` for ${Math.ceil(waitMs / 1000)} s` : ''
  const hint = why === 'refused our credential' ? '; is its key good? tollgate doctor' : ''
  return `route ${route}: ${what}${wait}${why === undefined ? '' : ` (${why})`}${hint}`
}
