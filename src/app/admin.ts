// Builds what operators and payers use: the management API, payments, and the pages with their sessions.

import manifest from '../../package.json' with { type: 'json' }
import { showPrice } from '../catalog/price.ts'
import { readPriceHistory } from '../catalog/price-versions.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { dialects } from '../dialects/registry.ts'
import { createTokenCheck } from '../http/management/authorize.ts'
import type { RouteDependencies } from '../http/management/dependencies.ts'
import { createRequestReader } from '../http/management/requests.ts'
import { createManagementApi } from '../http/management/serve.ts'
import { createStripePayments, type StripePayments } from '../http/payments/stripe.ts'
import { type AmountBounds, stripeBounds } from '../http/payments/stripe-checkout.ts'
import { admitCaller } from '../http/request.ts'
import { createSignInRoutes, type WrongCode } from '../http/sign-in.ts'
import { isoTime } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import { networkOf } from '../kernel/ip-range.ts'
import { parseUsd, zeroNano } from '../kernel/money.ts'
import { createRounds } from '../kernel/timers.ts'
import { type ClientRequest, pathOf } from '../pipeline/client-request.ts'
import { builtInProviderIds } from '../providers/registry.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import { readSeries, wholeStepMs } from '../telemetry/request-series.ts'
import { createRequestTail } from '../telemetry/request-tail.ts'
import { createRouteHistory, type RouteHistory, readRouteHistory } from '../telemetry/route-history.ts'
import { type AuditEntry, appendAudit } from '../tenancy/audit.ts'
import type { SignedUp } from '../tenancy/claims.ts'
import { createConsoleSessions } from '../tenancy/console-sessions.ts'
import { createUserCodes, type DeviceGrant } from '../tenancy/device-grants.ts'
import { createGuessLimits, type GuessLimits } from '../tenancy/guess-limits.ts'
import { createIdempotency } from '../tenancy/idempotency.ts'
import { createPasswords, findPerson, type Passwords } from '../tenancy/people.ts'
import { principalOfPerson, principalOfToken } from '../tenancy/principal.ts'
import { createRefreshTokens } from '../tenancy/sign-ins.ts'
import { createAccounts, type Refusal } from '../web/accounts.ts'
import type { RouteDay, RouteMonth } from '../web/catalog/entry.ts'
import { createWeb } from '../web/create-web.ts'
import { createOidc } from '../web/oidc.ts'
import { createPageBudget, type PageBudget } from '../web/page-budget.ts'
import { createSessions, originOf, readVisit, type SessionEvent, type Visit } from '../web/session.ts'
import {
  catalogItems,
  credentialAdmin,
  keyedProviders,
  modelsOf,
  modelsOfProject,
  planOf,
  providerAdmin,
  publicPriceSource,
  routeCosts,
} from './admin-view.ts'
import type { Alerts } from './alerts.ts'
import type { Auth } from './auth.ts'
import type { CatalogSnapshot } from './live-catalog.ts'
import { type Base, errorFields, type Storage } from './open-storage.ts'
import type { Pipeline } from './pipeline.ts'
import { startPriceUpdates } from './price-updates.ts'
import { startReconciliations } from './reconciliations.ts'

interface AdminDependencies extends Base {
  readonly storage: Storage
  readonly auth: Auth
  readonly pipeline: Pipeline
  readonly alerts: Alerts
  readonly batches: RouteDependencies['batches']
  addressOf(request: ClientRequest): string | undefined
  forwardedProtoOf(request: ClientRequest): string | undefined
  onDefect(error: unknown, id: RequestId): Failure
  /** For tests: a server in place of Stripe's. */
  readonly stripeUrl?: string | undefined
}

export type Admin = ReturnType<typeof createAdmin>

export function createAdmin(deps: AdminDependencies) {
  const { storage, auth, pipeline, source, clock, log, addressOf, onDefect } = deps
  const { database, adminToken } = storage
  const { ledger, health, catalog } = pipeline
  const config = source.current
  const { renderFailure } = openaiChat
  const budget = createPageBudget(clock)
  const passwords = createPasswords()
  const guessLimits = createGuessLimits(clock)
  const onRefused = createRefusalLog(database, clock)
  // Guesses are slowed down as in the management API.
  const guesses = createTokenCheck({ adminToken, clock, addressOf, onRefused: () => onRefused('token') })
  const readApi = async (request: ClientRequest, path: string): Promise<unknown> => {
    const answer = await management(readOnBehalf(request, path), pathOf(path))
    const isRead = answer?.status === 200 && answer.body instanceof Uint8Array
    return isRead ? JSON.parse(new TextDecoder().decode(answer.body)) : undefined
  }
  const routeHistory = createRouteHistory(database)
  const { web, sessions, visitOf } = createPages(deps, {
    ...{ budget, passwords, onRefused, guesses, guessLimits, readApi, routeHistory },
  })
  const onStarted = createBoundedAudit(database, clock)
  const signIns = {
    ...{ database, clock, addressOf, onRefused, onDefect },
    accessTokens: auth.accessTokens,
    refreshTokens: createRefreshTokens(storage.subkeys('refresh-token')),
    userCodes: createUserCodes(storage.subkeys('user-code')),
    originOf: (request: ClientRequest) => originOf(visitOf(request)),
    invalidate: auth.invalidate,
    slowName: guesses.slowName,
    guesses: guessLimits,
    count: pipeline.countSignIn,
    onStarted: ({ id, client }: Pick<DeviceGrant, 'id' | 'client'>) =>
      onStarted({ action: 'sign_in.start', object: id, details: { client } }),
  }
  const payments = createStripePayments({
    database,
    ledger,
    clock,
    log,
    raising: deps.alerts.raising,
    renderFailure,
    onDefect,
    ...(config.stripe.secretKey && { secretKey: config.stripe.secretKey }),
    ...(config.stripe.webhookSecret && { webhookSecret: config.stripe.webhookSecret }),
    publicUrl: () => publicUrlOf(source.current),
    bounds: () => boundsOf(source.current.payments),
    ...(deps.stripeUrl !== undefined && { baseUrl: deps.stripeUrl }),
  })
  const paymentRounds = payments && startPaymentRounds(deps, payments)
  const tail = createRequestTail({
    database,
    clock,
    onFault: (error) => log.warn('cannot show new requests', { error: String(error) }),
  })
  const prices = {
    find: (id: string, list?: string) => catalog.current.findPrice(id, list),
    models: () => catalog.current.catalog.models,
    renew: () => catalog.reload(),
  }
  const management = createManagementApi({
    tail,
    clock,
    database,
    ledger,
    adminToken,
    addressOf,
    onDefect,
    renderFailure,
    invalidate: auth.invalidate,
    changes: auth.changes,
    planOf: (modelId, surface) => planOf(pipeline, modelId, surface),
    modelsOf: (project) => modelsOfProject({ catalog, health, credentials: auth.credentials }, database.sql, project),
    idempotency: createIdempotency(storage.subkeys('idempotency-store')),
    computeVerifier: auth.computeVerifier,
    version: manifest.version,
    credentials: credentialAdmin(catalog, auth),
    storedResponses: pipeline.storedResponses,
    providers: providerAdmin(catalog, auth.credentials, dialects, health),
    routeHistory,
    contentRules: () => source.current,
    settings: () => source.settings(),
    configFile: source.editor,
    requests: createRequestReader({ database, ledger, requests: pipeline.requests }),
    catalog: (options) => catalogItems(catalog.current, health, options),
    catalogIsPublic: () => source.current.catalogIsPublic,
    budget,
    batches: deps.batches,
    bills: { sources: () => source.current.bills },
    webhooks: deps.alerts.webhooks,
    mailPolicy: deps.alerts.mailPolicy,
    sendMail: deps.alerts.sendMail,
    prices,
    sessionOf: sessions.sessionOf,
    tokenOf: (token) => principalOfToken(database.sql, token, clock.now()),
    onRefused: () => onRefused('token'),
    passwords,
    signIns,
    async createSignInLink() {
      const path = `/console?t=${await sessions.createLink()}`
      const { publicUrl } = source.current
      return { path, url: publicUrl === undefined ? null : publicUrl + path }
    },
    linkTo: (secret) => `${publicUrlOf(source.current)}/console?i=${secret}`,
    ...(config.stripe.secretKey && payments),
  })
  const signIn = createSignInRoutes(signIns)
  const updates = startPriceUpdates({ source, clock, log, database, prices, changes: auth.changes })
  const reconciliations = startReconciliations({ source, clock, log, database })
  return {
    web: {
      ...web,
      close() {
        updates.close()
        // Open pages follow both.
        tail.close()
        web.close()
      },
    },
    sessions,
    management,
    signIn,
    payments,
    /** Waits for a round of automatic top-ups, and for a bill that is being read. */
    async close() {
      await paymentRounds?.close()
      await reconciliations.close()
    },
  }
}

/** What tells whose session a request has, and by which address the browser knows the gateway. */
const sessionHeaders = ['cookie', 'host', 'x-forwarded-proto']

/** A read of the management API that a page of the console makes for its user, with the same session. */
function readOnBehalf({ headers, signal, connection }: ClientRequest, url: string): ClientRequest {
  const kept = [...headers].filter(([name]) => sessionHeaders.includes(name))
  const bytes = async () => new Uint8Array(0)
  return { method: 'GET', url, headers: new Headers(kept), body: null, bodyUsed: false, bytes, signal, connection }
}

function boundsOf({ min, max }: Base['source']['current']['payments']): AmountBounds {
  return { min: parseUsd(min) ?? stripeBounds.min, max: parseUsd(max) ?? stripeBounds.max }
}

const paymentRoundMs = 10_000

/** The catalog is ordered by the requests of the last week; of models beyond the first 200 the order does not matter. */
const usedDays = 7
const usedMax = 200
const dayMs = 86_400_000

/** Automatic top-ups, and refunds that were interrupted. What one round cannot do, the next one does. */
function startPaymentRounds({ log }: Base, payments: StripePayments): { close(): Promise<void> } {
  const onFault = (error: unknown): void => {
    if (!isStoreUnavailable(error)) log.warn('automatic top-ups failed; the next round tries again', errorFields(error))
  }
  return createRounds({ milliseconds: paymentRoundMs, onFault }, () => payments.round())
}

export function publicUrlOf({ publicUrl, host, port }: Base['source']['current']): string {
  return publicUrl ?? `http://${host}:${port}`
}

/** Entries a minute: a flood of wrong sign-ins must not fill the audit log. */
const refusalsMax = 60

type Refused = Refusal | WrongCode | 'token' | 'cross-site request'

/** Records refused sign-ins and tokens. */
function createRefusalLog(database: Storage['database'], clock: Base['clock']) {
  const record = createBoundedAudit(database, clock)
  return (by: Refused): void => record({ action: 'session.refused', object: 'console', details: { by } })
}

/** Records what strangers can cause as often as they like. What is left out is counted in the next entry. */
function createBoundedAudit(database: Storage['database'], clock: Base['clock']) {
  let [since, written, leftOut] = [0, 0, 0]
  return ({ action, object, details: facts }: Pick<AuditEntry, 'action' | 'object' | 'details'>): void => {
    const now = clock.now()
    if (now - since >= 60_000) [since, written] = [now, 0]
    if (written >= refusalsMax) {
      leftOut++
      return
    }
    const details = { ...facts, ...(leftOut > 0 && { left_out: leftOut }) }
    written++
    leftOut = 0
    const entry = { actor: 'unknown', at: now, action, object, details }
    // The refusal or start itself does not depend on the database.
    void database.transaction((sql) => appendAudit(sql, entry)).catch(() => {})
  }
}

const auditedAs = {
  'signed in by link': { action: 'session.open', details: { by: 'link' } },
  'signed in by token': { action: 'session.open', details: { by: 'token' } },
  'signed in by password': { action: 'session.open', details: { by: 'password' } },
  'signed in by invitation': { action: 'session.open', details: { by: 'invitation' } },
  'signed in by identity provider': { action: 'session.open', details: { by: 'identity provider' } },
  'signed up': { action: 'session.open', details: { by: 'sign-up' } },
  'signed out': { action: 'session.end' },
  'signed out everywhere': { action: 'session.end_all' },
} as const satisfies Readonly<Record<SessionEvent, object>>

interface PageParts {
  readonly readApi: (request: ClientRequest, path: string) => Promise<unknown>
  readonly routeHistory: RouteHistory
  readonly budget: PageBudget
  readonly passwords: Passwords
  readonly onRefused: (by: Refused) => void
  readonly guesses: ReturnType<typeof createTokenCheck>
  readonly guessLimits: GuessLimits
}

function createPages(deps: AdminDependencies, parts: PageParts) {
  const { budget, passwords, onRefused, guesses, guessLimits, readApi } = parts
  const { clock, source, log, addressOf } = deps
  const { database, adminToken } = deps.storage
  const { catalog, health, ledger } = deps.pipeline
  const publicUrl = (): string | undefined => source.current.publicUrl
  const visitOf = (request: ClientRequest): Visit =>
    readVisit(request, { publicUrl: publicUrl(), forwardedProto: deps.forwardedProtoOf(request) })
  const sessions = createSessions({
    clock,
    visitOf,
    rows: createConsoleSessions(database),
    adminToken: () => adminToken,
    principalOf: (personId) => principalOfPerson(database.sql, personId),
    onCrossSite: () => onRefused('cross-site request'),
  })
  const { oidc: provider } = source.current
  const onSignUp = async ({ workspaceId }: SignedUp): Promise<void> => {
    const amount = parseUsd(source.current.signIn.openingCredit) ?? zeroNano
    if (workspaceId === undefined || amount === zeroNano) return
    await ledger.fund({ workspaceId, amount, kind: 'grant', reference: 'opening credit' })
  }
  const web = createWeb({
    clock,
    version: manifest.version,
    sessions,
    budget,
    addressOf,
    publicUrl,
    visitOf,
    readApi,
    isPublic: () => source.current.catalogIsPublic,
    hasBatches: () => source.current.batches.enabled,
    catalog: () => catalogItems(catalog.current, health),
    offered: () => catalog.current,
    async modelsOfKey(request) {
      const caller = await admitCaller(deps.auth, request, addressOf(request))
      return caller instanceof Failure ? caller : await modelsOf({ catalog, health, ...deps.auth }, caller)
    },
    // The names of providers that the operator added are not public.
    keyedProviders: () => keyedProviders(catalog.current).filter((id) => builtInProviderIds.includes(id)),
    async priceHistory(modelId) {
      const history = await readPriceHistory(database.sql, modelId)
      return history.map(({ version, price, source, effectiveFrom }) => ({
        version,
        price: showPrice(price),
        source: publicPriceSource(version, source),
        effective_from: isoTime(effectiveFrom),
      }))
    },
    routeDays: (modelId) => readRouteDays(database, modelId, clock.now()),
    routeMonths: (modelId) => monthsOf(parts.routeHistory, catalog.current, modelId, clock.now()),
    routeCosts: (modelId) => routeCosts(catalog.current, modelId),
    async usedModels() {
      // Whole days, which the sums have.
      const to = Math.ceil(clock.now() / dayMs) * dayMs
      const period = { from: to - usedDays * dayMs, to, stepMs: wholeStepMs, offsetMs: 0 }
      const models = await readSeries(database, { ...period, group: 'model' })
      const used = models.toSorted((a, b) => Number(b.total.requests - a.total.requests))
      return used.slice(0, usedMax).map(({ value }) => value ?? '')
    },
    tokenPlace:
      adminToken.file === undefined
        ? `It is in ${adminToken.source}.`
        : 'It is in the file admin-token of the data folder.',
    accounts: createAccounts({
      database,
      clock,
      passwords,
      onRefused,
      onSignUp,
      isOpen: () => source.current.signIn.mode === 'open',
      invalidate: deps.auth.invalidate,
      slowGuess: guesses.slowGuess,
      guesses: guessLimits,
      networkOf: (request) => networkOf(addressOf(request)),
    }),
    oidc: provider && {
      ...createOidc({
        database,
        clock,
        provider,
        onRefused,
        onSignUp,
        onAccessChange: deps.auth.invalidate,
        rules: () => source.current.signIn,
        scopes: () => source.current.signIn.scopes,
        onFault: (error) => log.warn('sign-in with the identity provider failed', errorFields(error)),
      }),
      providerName: () => source.current.signIn.providerName,
    },
    nameOf: async (id) => (await findPerson(database.sql, { id }))?.email ?? id,
    onSession: (event, personId) =>
      database.transaction((sql) => {
        const actor = personId ?? 'console session'
        return appendAudit(sql, { actor, at: clock.now(), object: 'console', ...auditedAs[event] })
      }),
    ...guesses,
  })
  return { web, sessions, visitOf }
}

const monthMs = 30 * dayMs

/** Of the routes of a model; they are told apart by what their provider calls it. */
async function monthsOf(
  history: RouteHistory,
  { catalog }: CatalogSnapshot,
  modelId: string,
  now: number,
): Promise<readonly RouteMonth[]> {
  const all = await history.read(now, Math.ceil((now - monthMs) / hourMs) * hourMs)
  return (catalog.find(modelId)?.routes ?? []).flatMap(({ providerId, upstreamModel }) => {
    const found = all.find((each) => each.provider === providerId && each.upstreamModel === upstreamModel)
    if (!found) return []
    const slots = [...found.slots.values()]
    const sum = (side: 'ok' | 'failed') => slots.reduce((total, slot) => total + slot[side], 0)
    return [{ provider: providerId, upstream_model: upstreamModel, ok: sum('ok'), failed: sum('failed') }]
  })
}

const hourMs = 3_600_000
const dayHours = 24

/** The current hour and the 23 before it. */
async function readRouteDays(database: Storage['database'], model: string, now: number): Promise<readonly RouteDay[]> {
  const from = Math.floor(now / hourMs) * hourMs - (dayHours - 1) * hourMs
  const routes = await readRouteHistory(database, { model, from, to: now + 1, slotMs: hourMs })
  return routes.map(({ provider, upstreamModel, slots }) => ({
    provider,
    upstream_model: upstreamModel,
    hours: Array.from({ length: dayHours }, (_, at) => {
      const hour = slots.get(from + at * hourMs)
      return hour ? [hour.ok, hour.failed] : null
    }),
  }))
}
