// The web pages on a separate port, over a catalog that a test can change while pages are open.

import { createHash } from 'node:crypto'
import { builtInModels } from '../../src/catalog/data/built-in.ts'
import { sandboxModels } from '../../src/catalog/data/sandbox.ts'
import type { ModelEntry } from '../../src/catalog/entry.ts'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import { Failure } from '../../src/kernel/failure.ts'
import { type ClientRequest, pathOf } from '../../src/pipeline/client-request.ts'
import { createConsoleSessions } from '../../src/tenancy/console-sessions.ts'
import { createGuessLimits } from '../../src/tenancy/guess-limits.ts'
import { createPasswords, findPerson } from '../../src/tenancy/people.ts'
import { principalOfPerson } from '../../src/tenancy/principal.ts'
import { createAccounts } from '../../src/web/accounts.ts'
import type { CatalogEntry, DatedPrice, RouteDay } from '../../src/web/catalog/entry.ts'
import { createWeb } from '../../src/web/create-web.ts'
import { createPageBudget, type PageBudget } from '../../src/web/page-budget.ts'
import { createSessions, readVisit, type Sessions } from '../../src/web/session.ts'
import { createEngine } from './engines.ts'
import { serveAnswers } from './http.ts'

export interface WebHarness {
  readonly url: string
  readonly sessions: Sessions
  /** The management token that is accepted; a test may change it. */
  token: string
  /** The models; a test may change them. */
  entries: readonly CatalogEntry[]
  isPublic: boolean
  /** Events of sessions, for the audit log. */
  readonly events: string[]
  /** Whether links are tried no more. */
  isBraked: boolean
  /** The budget of pages. */
  readonly budget: PageBudget
  /** Prices that were in force, by model id; a test may add some. */
  readonly histories: Record<string, readonly DatedPrice[]>
  /** Sessions cannot be looked up from here on. */
  loseDatabase(): Promise<void>
  stop(): Promise<void>
}

export interface WebHarnessOptions {
  readonly entries?: readonly CatalogEntry[]
  readonly clock?: Clock
  /** Of every model's routes. */
  readonly days?: readonly RouteDay[]
  /** Ids of the most used models. */
  readonly used?: readonly string[]
}

export async function startWeb(options: WebHarnessOptions = {}): Promise<WebHarness> {
  const { entries = sandboxEntries(), clock = systemClock } = options
  const store = await createEngine('sqlite').openStore(clock)
  const histories: Record<string, readonly DatedPrice[]> = {}
  const state = { token: 'a-management-token-for-tests', entries, isPublic: true, isBraked: false, histories }
  const events: string[] = []
  const budget = createPageBudget(clock)
  const visitOf = (request: ClientRequest) => readVisit(request, { publicUrl: undefined, forwardedProto: undefined })
  const sessions = createSessions({
    clock,
    rows: createConsoleSessions(store.database),
    adminToken: () => ({
      fingerprint: createHash('sha256').update(state.token).digest('hex').slice(0, 16),
      matches: (text) => text === state.token,
    }),
    visitOf,
    principalOf: (personId) => principalOfPerson(store.database.sql, personId),
  })
  const slowGuess = async () =>
    state.isBraked ? new Failure('LIMIT_EXCEEDED', 'Too many wrong ones came.', { retryAfterMs: 1000 }) : undefined
  const passwords = createPasswords()
  const web = createWeb({
    clock,
    sessions,
    accounts: createAccounts({
      database: store.database,
      clock,
      passwords,
      slowGuess,
      guesses: createGuessLimits(clock),
      invalidate: () => {},
      networkOf: () => '127.0.0.1/32',
      onRefused: (by) => void events.push(`refused ${by}`),
      isOpen: () => false,
      onSignUp: async () => {},
    }),
    oidc: undefined,
    nameOf: async (id) => (await findPerson(store.database.sql, { id }))?.email ?? id,
    version: '0.0.0-test',
    tokenPlace: 'It is in the file admin-token of the data folder.',
    catalog: () => state.entries,
    offered: () => undefined,
    modelsOfKey: async () => new Failure('UNAUTHORIZED', 'There are no keys here.'),
    keyedProviders: () => [],
    priceHistory: async (id) => state.histories[id] ?? [],
    routeDays: async () => options.days ?? [],
    routeMonths: async () => [],
    routeCosts: () => [],
    usedModels: async () => options.used ?? [],
    isPublic: () => state.isPublic,
    hasBatches: () => false,
    publicUrl: () => undefined,
    visitOf,
    readApi: async () => undefined,
    budget,
    addressOf: () => '127.0.0.1',
    onSession: (event) => void events.push(event),
    slowGuess,
    checkToken: async (token) =>
      token === state.token ? undefined : new Failure('UNAUTHORIZED', 'This is not the management token.'),
  })
  const server = serveAnswers((request) => web.handle(request, pathOf(request.url)))
  return Object.assign(state, {
    url: server.url,
    ...{ sessions, histories, events, budget },
    loseDatabase: () => store.database.close(),
    async stop() {
      web.close()
      server.stop()
      await store[Symbol.asyncDispose]()
    },
  })
}

export function sandboxEntries(): readonly CatalogEntry[] {
  return sandboxModels.map((entry) => shown(entry, true))
}

/** A large catalog: everything that is built in. */
export function builtInEntries(): readonly CatalogEntry[] {
  const all = [...sandboxEntries(), ...builtInModels.map((entry) => shown(entry, false))]
  return all.sort((a, b) => (a.id < b.id ? -1 : 1))
}

function shown(entry: ModelEntry, rehearsal: boolean): CatalogEntry {
  const { price } = entry
  return {
    id: entry.id,
    name: entry.name ?? entry.id,
    owned_by: entry.owned_by ?? entry.id.slice(0, entry.id.indexOf('/')),
    context_tokens: entry.context_tokens ?? null,
    max_output_tokens: entry.max_output_tokens ?? null,
    tags: entry.tags ?? [],
    released: entry.released ?? null,
    source: 'built in',
    price: price === undefined ? null : price === 'free' ? 'free' : shownPrice(price),
    price_source: 'built in',
    price_version: `${entry.id}#1`,
    callable: price !== undefined,
    routes: entry.routes.map((route) => ({
      provider: route.provider,
      upstream_model: route.model,
      priority: route.priority ?? 1,
      weight: route.weight ?? 1,
      health: 'healthy',
      factor: 1,
      wait_ms: null,
      why: null,
      rehearsal,
      state: rehearsal ? ('simulated' as const) : ('unused' as const),
      first_event_ms: null,
      tokens_per_second: null,
    })),
  }
}

type PriceEntry = Exclude<NonNullable<ModelEntry['price']>, 'free'>

function shownPrice({ over, ...row }: PriceEntry) {
  const tiers = Object.entries(over ?? {}).map(([tokens, tier]) => [tokens, shownRow(tier)] as const)
  return { ...shownRow(row), ...(tiers.length > 0 && { over: Object.fromEntries(tiers) }) }
}

function shownRow(row: Omit<PriceEntry, 'over'>) {
  const cacheWrite = row.cache_write ?? row.input
  return {
    input: row.input,
    output: row.output,
    cache_read: row.cache_read ?? row.input,
    cache_write: cacheWrite,
    cache_write_1h: row.cache_write_1h ?? cacheWrite,
  }
}
