// What operators and payers use: the management API, payments, and the pages with their sessions.

import manifest from '../../package.json' with { type: 'json' }
import { showPrice } from '../catalog/price.ts'
import { readPriceHistory } from '../catalog/price-versions.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { dialects } from '../dialects/registry.ts'
import { createTokenCheck } from '../http/management/authorize.ts'
import { createRequestReader } from '../http/management/requests.ts'
import { createManagementApi, type ManagementApi } from '../http/management/serve.ts'
import { createStripePayments, type StripePayments } from '../http/payments/stripe.ts'
import { isoTime } from '../kernel/clock.ts'
import type { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import { builtInProviderIds } from '../providers/registry.ts'
import { createRequestTail } from '../telemetry/request-tail.ts'
import { appendAudit } from '../tenancy/audit.ts'
import { createConsoleSessions } from '../tenancy/console-sessions.ts'
import { createIdempotency } from '../tenancy/idempotency.ts'
import { createWeb, type Web } from '../web/create-web.ts'
import { createPageBudget, type PageBudget } from '../web/page-budget.ts'
import { createSessions, readVisit, type SessionEvent, type Sessions, type Visit } from '../web/session.ts'
import {
  catalogItems,
  credentialAdmin,
  keyedProviders,
  modelsOf,
  planOf,
  providerAdmin,
  publicSource,
} from './admin-view.ts'
import type { Auth } from './auth.ts'
import type { Base, Storage } from './open-storage.ts'
import type { Pipeline } from './pipeline.ts'

export interface AdminDependencies extends Base {
  readonly storage: Storage
  readonly auth: Auth
  readonly pipeline: Pipeline
  addressOf(request: Request): string | undefined
  forwardedProtoOf(request: Request): string | undefined
  onDefect(error: unknown, id: RequestId): Failure
}

export interface Admin {
  readonly web: Web
  readonly sessions: Sessions
  readonly management: ManagementApi
  /** undefined = no payment provider is configured. */
  readonly payments: StripePayments | undefined
}

export function createAdmin(deps: AdminDependencies): Admin {
  const { storage, auth, pipeline, source, clock, log, addressOf, onDefect } = deps
  const { database, adminToken } = storage
  const { ledger, health, catalog } = pipeline
  const config = source.current
  const { renderFailure } = openaiChat
  const budget = createPageBudget(clock)
  const { web, sessions } = createPages(deps, budget)
  const payments = createStripePayments({
    database,
    ledger,
    clock,
    log,
    renderFailure,
    onDefect,
    ...(config.stripe.secretKey && { secretKey: config.stripe.secretKey }),
    ...(config.stripe.webhookSecret && { webhookSecret: config.stripe.webhookSecret }),
    publicUrl: () => source.current.publicUrl ?? `http://${config.host}:${config.port}`,
  })
  const tail = createRequestTail({
    database,
    clock,
    onFault: (error) => log.warn('cannot show new requests', { error: String(error) }),
  })
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
    modelsOf: (project) => modelsOf(catalog.current, auth.credentials, project),
    idempotency: createIdempotency(storage.subkeys('idempotency-store')),
    computeVerifier: auth.computeVerifier,
    version: manifest.version,
    credentials: credentialAdmin(catalog, auth),
    providers: providerAdmin(catalog, auth.credentials, dialects),
    settings: () => source.settings(),
    requests: createRequestReader({ database, ledger, requests: pipeline.requests }),
    catalog: () => catalogItems(catalog.current, health),
    catalogIsPublic: () => source.current.catalogIsPublic,
    budget,
    prices: { find: (id) => catalog.current.findPrice(id), renew: () => catalog.reload() },
    sessionOf: sessions.sessionOf,
    checkout: config.stripe.secretKey && payments?.checkout,
  })
  return {
    web: {
      ...web,
      close() {
        // Open pages follow both.
        tail.close()
        web.close()
      },
    },
    sessions,
    management,
    payments,
  }
}

const auditedAs = {
  'signed in by link': { action: 'session.open', details: { by: 'link' } },
  'signed in by token': { action: 'session.open', details: { by: 'token' } },
  'signed out': { action: 'session.end' },
  'signed out everywhere': { action: 'session.end_all' },
} as const satisfies Readonly<Record<SessionEvent, object>>

function createPages(deps: AdminDependencies, budget: PageBudget): Pick<Admin, 'web' | 'sessions'> {
  const { clock, source, addressOf } = deps
  const { database, adminToken } = deps.storage
  const { catalog, health } = deps.pipeline
  const publicUrl = (): string | undefined => source.current.publicUrl
  const visitOf = (request: Request): Visit =>
    readVisit(request, { publicUrl: publicUrl(), forwardedProto: deps.forwardedProtoOf(request) })
  const sessions = createSessions({
    clock,
    visitOf,
    rows: createConsoleSessions(database),
    adminToken: () => adminToken,
  })
  const web = createWeb({
    clock,
    version: manifest.version,
    sessions,
    budget,
    addressOf,
    publicUrl,
    visitOf,
    isPublic: () => source.current.catalogIsPublic,
    catalog: () => catalogItems(catalog.current, health),
    // The names of providers that the operator added are not public.
    keyedProviders: () => keyedProviders(catalog.current).filter((id) => builtInProviderIds.includes(id)),
    async priceHistory(modelId) {
      const history = await readPriceHistory(database.sql, modelId)
      return history.map(({ version, price, source, effectiveFrom }) => ({
        version,
        price: showPrice(price),
        source: publicSource(source),
        effective_from: isoTime(effectiveFrom),
      }))
    },
    tokenPlace:
      adminToken.file === undefined
        ? `It is in ${adminToken.source}.`
        : 'It is in the file admin-token of the data folder.',
    onSession: (event) =>
      database.transaction((sql) =>
        appendAudit(sql, { actor: 'console session', at: clock.now(), object: 'console', ...auditedAs[event] }),
      ),
    // Guesses are slowed down as in the management API.
    ...createTokenCheck({ adminToken, clock, addressOf }),
  })
  return { web, sessions }
}
