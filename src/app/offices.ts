// What operators and payers come to: the management API, payments, the pages and their sessions.

import manifest from '../../package.json' with { type: 'json' }
import type { OfferedModel } from '../api/projects.ts'
import type { ConfigSource } from '../config/source.ts'
import { anthropicMessages } from '../dialects/anthropic-messages/index.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import type { SurfaceName } from '../http/management/catalog.ts'
import { createRequestReader } from '../http/management/requests.ts'
import { createManagementApi, type ManagementApi } from '../http/management/serve.ts'
import { createStripePayments, type StripePayments } from '../http/payments/stripe.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import { explainPlan, type PlanExplanation } from '../routing/explain-plan.ts'
import type { Log } from '../telemetry/log.ts'
import { createRequestTail } from '../telemetry/request-tail.ts'
import { createAllowlist } from '../tenancy/allowlist.ts'
import type { Caller } from '../tenancy/caller.ts'
import { createIdempotency } from '../tenancy/idempotency.ts'
import type { Project } from '../tenancy/projects.ts'
import { createPageBudget } from '../web/page-budget.ts'
import { catalogItems } from './catalog-view.ts'
import { dialects, type Engine } from './engine.ts'
import type { Fleet } from './fleet.ts'
import type { Ground } from './ground.ts'
import { createCredentials } from './own-credentials.ts'
import { createPages, type Pages } from './pages.ts'
import type { People } from './people.ts'
import { createProviderDesk } from './provider-desk.ts'

export interface OfficeDependencies {
  readonly ground: Ground
  readonly people: People
  readonly engine: Engine
  readonly fleet: Fleet
  readonly source: ConfigSource
  readonly clock: Clock
  readonly log: Log
  addressOf(request: Request): string | undefined
  forwardedProtoOf(request: Request): string | undefined
  onDefect(error: unknown, id: RequestId): Failure
}

export interface Offices extends Pages {
  readonly management: ManagementApi
  /** undefined = no payment provider is configured. */
  readonly payments: StripePayments | undefined
}

export function openOffices({
  ground,
  people,
  engine,
  fleet,
  source,
  clock,
  log,
  addressOf,
  forwardedProtoOf,
  onDefect,
}: OfficeDependencies): Offices {
  const { database, adminToken } = ground
  const { ledger, health, goods } = engine
  const config = source.current
  const { renderFailure } = openaiChat
  const budget = createPageBudget(clock)
  const pages = createPages({
    ...{ clock, database, adminToken, health, budget, addressOf, forwardedProtoOf, goods },
    config: () => source.current,
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
    publicUrl: () => source.current.publicUrl ?? `http://${config.host}:${config.port}`,
  })
  const seal = ground.subkeys('idempotency-store')
  const tail = createRequestTail({
    database,
    clock,
    onFault: (error) => log.warn('new requests could not be shown', { error: String(error) }),
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
    invalidate: fleet.invalidate,
    changes: fleet.changes,
    planOf: (modelId, surface) => planOf(engine, modelId, surface),
    modelsOf: (project) => modelsOf(engine, people, project),
    idempotency: createIdempotency(seal.current, seal.previous),
    computeVerifier: people.computeVerifier,
    version: manifest.version,
    credentials: createCredentials({ keys: people.keyRing, cache: { forget: fleet.forgetCredentials }, goods }),
    providers: createProviderDesk({ dialects, credentials: people.credentials, goods }),
    settings: () => source.settings(),
    requests: createRequestReader({ database, ledger, requests: engine.requests }),
    catalog: () => catalogItems(goods(), health),
    catalogIsPublic: () => source.current.catalogIsPublic,
    budget,
    prices: { find: (id) => goods().findPrice(id), renew: () => engine.stock.renew() },
    sessionOf: pages.sessions.sessionOf,
    checkout: config.stripe.secretKey && payments?.checkout,
  })
  const web: Offices['web'] = {
    ...pages.web,
    close() {
      // Open pages listen to both.
      tail.close()
      pages.web.close()
    },
  }
  return { ...pages, web, management, payments }
}

/** Whoever may call everything on the operator's credentials. */
const anyone: Caller = {
  keyId: 'key_',
  keyName: '',
  projectId: 'prj_',
  projectName: '',
  workspaceId: 'ws_',
  workspaceName: '',
  allow: [],
  limits: [],
  sharesRoutes: true,
  sources: undefined,
}

async function modelsOf(
  { goods }: Engine,
  { credentials }: People,
  { workspaceId, models }: Project,
): Promise<readonly OfferedModel[]> {
  const own = await credentials.open(workspaceId)
  const offer = goods().offer.with(own)
  const allow = models === undefined ? [] : [createAllowlist(models)]
  return offer.list({ ...anyone, allow }).map((model) => {
    const providers = model.routes.map(({ providerId }) => providerId).filter((id) => own.has(id))
    return {
      id: model.id,
      owned_by: model.ownedBy,
      own_key: offer.isOwn(model),
      own_providers: [...new Set(providers)],
    }
  })
}

function planOf({ goods, health }: Engine, modelId: string, surface: SurfaceName): PlanExplanation | undefined {
  const offer = goods().offer.platform
  const model = offer.find(anyone, modelId)
  if (model instanceof Failure) return undefined
  return explainPlan({
    offer,
    health,
    caller: anyone,
    model,
    surface: surface === 'chat' ? openaiChat : anthropicMessages,
  })
}
