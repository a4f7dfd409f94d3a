// What a caller may use: the visible models, and the candidates of one of them. Every endpoint uses it, so that a model the
// caller may not use looks exactly like one that does not exist.

import type { Catalog, Model, RoutingPolicy } from '../catalog/model.ts'
import type { ListPrice } from '../catalog/price-lists.ts'
import type { Fee } from '../catalog/price-versions.ts'
import type { Dialect, Dialects } from '../dialects/dialect.ts'
import { Failure, type FailureCause, invalidRequest } from '../kernel/failure.ts'
import { nearestNames } from '../kernel/nearest.ts'
import { usualAuth } from '../providers/entry.ts'
import type { Provider, Transport } from '../providers/provider.ts'
import type { CandidateRecord } from '../telemetry/request-record.ts'
import { allowsModel } from '../tenancy/allowlist.ts'
import { hideKeys } from '../tenancy/api-key.ts'
import type { Caller } from '../tenancy/caller.ts'
import {
  type BrokenCredential,
  mayBeSentTo,
  type OpenedCredential,
  type WorkspaceCredentials,
} from '../tenancy/credentials.ts'
import type { RequestHeaders } from '../wire/http-message.ts'
import type { Health, Standing } from './health.ts'
import {
  type Candidate,
  candidatesOf,
  exclusionReason,
  type HealthPlan,
  joinPlans,
  type OfferedModel,
  type OwnProvider,
  type PlanInput,
  type RequestedFeatures,
  rememberRules,
  splitSuffix,
} from './plan.ts'

export interface ResolvedModel {
  readonly model: OfferedModel
  /** undefined = the model's own. */
  readonly policy: RoutingPolicy | undefined
}

export type WorkspaceOffer = ReturnType<typeof createWorkspaceOffer>
export type Offer = ReturnType<typeof createOffer>

export interface OfferInput extends OwnProvidersInput {
  readonly catalog: Catalog
  readonly providers: ReadonlyMap<string, Provider>
  readonly dialects: Dialects
  /** By model id. */
  readonly priceVersions: ReadonlyMap<string, string>
  /** By model id, when its price took effect. */
  readonly pricedAt?: ReadonlyMap<string, number>
  /** By model id. */
  readonly fees: ReadonlyMap<string, Fee>
  /** By the name of the list and model id. */
  readonly listPrices: ReadonlyMap<string, ReadonlyMap<string, ListPrice>>
  readonly health: Pick<Health, 'route'>
  /** Aliases of the installation: name → model id. */
  readonly aliases: Readonly<Record<string, string>>
  /** The variables that enable a provider; empty = only workspaces' own keys do. */
  needsOf(providerId: string): readonly string[]
}

export function createOffer(input: OfferInput) {
  const rulesOf = rememberRules()
  const offersAt = (listPrices?: ReadonlyMap<string, ListPrice>) => {
    const offered = offeredModels(input, listPrices)
    const offerWith = (own: ReadonlyMap<string, OwnProvider>) =>
      createWorkspaceOffer(offered, own, { ...input, rulesOf })
    const shared = offerWith(new Map())
    const known = new WeakMap<WorkspaceCredentials, WorkspaceOffer>()
    return (credentials: WorkspaceCredentials): WorkspaceOffer => {
      if (credentials.size === 0) return shared
      const cached = known.get(credentials)
      if (cached) return cached
      const offer = offerWith(ownProviders(credentials, input))
      known.set(credentials, offer)
      return offer
    }
  }
  const atCatalogPrices = offersAt()
  const atListPrices = new Map([...input.listPrices].map(([list, prices]) => [list, offersAt(prices)]))
  return {
    /** For callers without an allowlist and without own credentials. */
    platform: atCatalogPrices(new Map()),
    /** With the workspace's own credentials, whose map stays the same object until they change, and its price list. */
    with(credentials: WorkspaceCredentials, priceList: string | undefined): WorkspaceOffer {
      // A list that another replica has just created is known here within a second, like every other price.
      const offers = priceList === undefined ? atCatalogPrices : (atListPrices.get(priceList) ?? atCatalogPrices)
      return offers(credentials)
    },
  }
}

function offeredModels(
  { catalog, priceVersions, pricedAt, fees }: OfferInput,
  listPrices?: ReadonlyMap<string, ListPrice>,
): readonly OfferedModel[] {
  return catalog.models.flatMap((model) => {
    const { id } = model
    const listed = listPrices?.get(id)
    const price = listed?.price ?? model.price
    if (!price) return []
    const idJson = new TextEncoder().encode(JSON.stringify(id))
    return [
      {
        ...model,
        price,
        priceVersion: listed?.version ?? priceVersions.get(id),
        pricedAt: pricedAt?.get(id),
        fee: fees.get(id),
        idJson,
      },
    ]
  })
}

const reasonings: readonly RequestedFeatures['reasoning'][] = [undefined, 'off', 'on']
const noFeatures: RequestedFeatures = { offersTools: false, reasoning: undefined }

/** The models of one workspace. */
function createWorkspaceOffer(
  offered: readonly OfferedModel[],
  own: ReadonlyMap<string, OwnProvider>,
  {
    catalog,
    providers,
    dialects,
    health,
    aliases,
    needsOf,
    endpointsOf,
    rulesOf,
  }: OfferInput & Pick<PlanInput, 'rulesOf'>,
) {
  const isServed = ({ routes }: OfferedModel): boolean =>
    routes.some(({ providerId }) => providers.has(providerId) || own.has(providerId))
  const all = offered.filter(isServed)
  const byId = new Map<string, ResolvedModel>(all.map((model) => [model.id, { model, policy: undefined }]))
  const byBareName = Map.groupBy(all, ({ id }) => id.slice(id.indexOf('/') + 1))
  /** By model and everything else that the candidates depend on. */
  const plans = new Map<OfferedModel, Map<Dialect, (readonly Candidate[])[]>>()
  const healthOf: PlanInput['healthOf'] = (names) => health.route(names)

  /** Sorted by id. */
  const list = ({ allow }: Caller): readonly OfferedModel[] =>
    allow.length === 0 ? all : all.filter((model) => allowsModel(allow, model.id))
  const named = ({ aliases: ofProject }: Caller, name: string): ResolvedModel | undefined =>
    byId.get(name) ?? byId.get(ofProject?.[name] ?? '') ?? byId.get(aliases[name] ?? '')
  /** undefined = there is none, or none that the caller may use. */
  const exact = (caller: Caller, name: string): ResolvedModel | undefined => {
    const found = named(caller, name)
    // Most callers have no allowlist.
    return found && (caller.allow.length === 0 || allowsModel(caller.allow, found.model.id)) ? found : undefined
  }
  const byName = (caller: Caller, name: string): ResolvedModel | Failure => {
    const asked = exact(caller, name)
    if (asked) return asked
    const plain = splitSuffix(plainId(name))
    const found = exact(caller, plain.name)
    if (found) return { model: found.model, policy: plain.policy }
    const namesakes = (byBareName.get(plain.name) ?? []).filter(({ id }) => allowsModel(caller.allow, id))
    const [only] = namesakes
    if (only && namesakes.length === 1) return { model: only, policy: plain.policy }
    const ids = (only ? namesakes : list(caller)).map(({ id }) => id)
    if (only) return ambiguousModel(name, ids)
    const isHidden = named(caller, name) !== undefined || byBareName.has(plain.name) || named(caller, plain.name)
    return offModel(caller, plain.name) ?? unknownModel(name, ids, isHidden ? 'model_not_allowed' : 'unknown_model')
  }
  /** A model that the caller may use, but that has no price or no enabled provider. */
  const offModel = ({ allow, aliases: ofProject }: Caller, name: string): Failure | undefined => {
    const names = [name, ofProject?.[name], aliases[name]]
    const model = catalog.models.find(({ id }) => names.includes(id) || id.slice(id.indexOf('/') + 1) === name)
    if (!model || !allowsModel(allow, model.id)) return undefined
    // The sandbox, for example, when it is off.
    if (!model.routes.some(({ providerId }) => endpointsOf(providerId))) return undefined
    return model.price ? providersOff(model, needsOf) : unpricedModel(model.id)
  }
  /** Whether one of the workspace's own credentials gives access to it. */
  const isOwn = ({ routes }: OfferedModel): boolean =>
    own.size > 0 && routes.some(({ providerId }) => own.has(providerId))
  /**
   * The operator's fallbacks for a model, without those that cannot be called or that the caller may not use. A workspace that
   * pays its own provider is not billed for another model, unless it allows that.
   */
  const fallbacksOf = (caller: Caller, model: OfferedModel): readonly ResolvedModel[] => {
    const onlyOwn = isOwn(model) && !caller.sharesRoutes
    return model.fallbacks.flatMap((id) => {
      const found = byId.get(id)
      if (!found || (caller.allow.length > 0 && !allowsModel(caller.allow, id))) return []
      return onlyOwn && !isOwn(found.model) ? [] : [found]
    })
  }
  return {
    list,
    isOwn,
    /** By its id, an alias of the project or the installation, or its name without the creator if only one model has it. */
    find(caller: Caller, name: string): OfferedModel | Failure {
      const found = byName(caller, name)
      return found instanceof Failure ? found : found.model
    },
    /** The same, with the policy that a suffix (`:floor`, `:nitro`) asks for. */
    resolve: byName,
    fallbacksOf,
    /** In no particular order; at least one. */
    candidates(
      model: OfferedModel,
      surface: Dialect,
      { sharesRoutes }: Caller,
      features: RequestedFeatures = noFeatures,
    ): readonly Candidate[] {
      const reasoning = features.offersTools ? reasonings.indexOf(features.reasoning) + 1 : 0
      const at = reasoning * 2 + (sharesRoutes ? 1 : 0)
      const cached = plans.get(model)?.get(surface)?.[at]
      if (cached) return cached
      const shared = { platform: providers, own, sharesRoutes, rulesOf, healthOf }
      const candidates = candidatesOf({ model, surface, features, dialects, ...shared })
      const ofModel = plans.get(model) ?? new Map<Dialect, (readonly Candidate[])[]>()
      const ofSurface = ofModel.get(surface) ?? []
      ofSurface[at] = candidates
      plans.set(model, ofModel.set(surface, ofSurface))
      return candidates
    },
  }
}

function ambiguousModel(name: string, ids: readonly string[]): Failure {
  const listed = ids.map((id) => `\`${id}\``).join(', ')
  return invalidRequest(`Several models are called \`${shorten(name)}\`: ${listed}. Send one of these ids.`, 'model')
}

function unpricedModel(id: string): Failure {
  const message = `Model \`${id}\` has no price, so it cannot be called. The operator of this gateway can set one: tollgate prices set ${id}.`
  return new Failure('NOT_FOUND', message, { param: 'model', cause: 'no_route' })
}

function providersOff({ id, routes }: Model, needsOf: OfferInput['needsOf']): Failure {
  const providers = [...new Set(routes.map(({ providerId }) => providerId))]
  const enabling = providers.map(needsOf).flatMap((names) => (names.length > 0 ? [names.join(' and ')] : []))
  const operator =
    enabling.length > 0 ? ` The operator of this gateway can restart it with ${enabling.join(', or with ')}.` : ''
  const message = `Model \`${id}\` is off: this gateway has no key for ${providers.join(' or ')}.${operator} A workspace can store its own key.`
  return new Failure('NOT_FOUND', message, { param: 'model', cause: 'no_route' })
}

const suggestionsMax = 3

function unknownModel(id: string, visible: readonly string[], cause: FailureCause): Failure {
  const inOtherCase = visible.find((name) => name.toLowerCase() === id.toLowerCase())
  const near = nearestNames(id, visible, suggestionsMax)
  const hint =
    inOtherCase !== undefined
      ? ` Names of models are case-sensitive: send \`${inOtherCase}\`.`
      : near.length === 0
        ? ' GET /v1/models lists what this key can use.'
        : ` Did you mean ${near.map((each) => `\`${each}\``).join(' or ')}?`
  return new Failure('NOT_FOUND', `No model \`${shorten(id)}\`.${hint}`, { param: 'model', cause })
}

/** A key may have been put into the wrong field, so keys are masked. */
export function shorten(id: string): string {
  const shown = hideKeys(id)
  return shown.length > 100 ? `${shown.slice(0, 100)}…` : shown
}

// ── Explaining a plan ──

/** For the request's record: the candidates in order, then the excluded ones. */
export function candidateRecords({ ordered, reasons, excluded }: HealthPlan<Candidate>): readonly CandidateRecord[] {
  const records: CandidateRecord[] = []
  for (const candidate of ordered) records.push(recordOf(candidate, reasons[records.length] ?? ''))
  for (const { candidate, state } of excluded) records.push(recordOf(candidate, exclusionReason(state)))
  return records
}

function recordOf({ provider, route, why: endpointWhy }: Candidate, place: string): CandidateRecord {
  const why = endpointWhy === undefined ? place : `${place}, ${endpointWhy}`
  return { provider: provider.id, upstreamModel: route.upstreamModel, why }
}

export interface ExplainedCandidate extends CandidateRecord {
  /** 1 is tried first; undefined = it would not be tried now. */
  readonly place: number | undefined
  readonly standing: Standing
  /** The minimum time until its state can change; undefined = it has none. */
  readonly waitMs: number | undefined
  /** The dialect of its endpoint. */
  readonly dialect: string
  readonly lane: 'bytes' | 'translation'
  /** The model that it serves: the one that was asked for, or a fallback. */
  readonly model: string
}

export interface PlanExplanation {
  readonly model: string
  /** Panic: no route is known to work, so all that are not parked are tried. */
  readonly mode: HealthPlan<unknown>['mode']
  readonly candidates: readonly ExplainedCandidate[]
}

export interface ExplainPlanInput {
  readonly offer: WorkspaceOffer
  readonly health: Pick<Health, 'plan' | 'standing' | 'state'>
  readonly caller: Caller
  readonly model: OfferedModel
  readonly surface: Dialect
}

/** Where a request of this caller would go now. Among routes that share by weight, the order is one of many. */
export function explainPlan({ offer, health, caller, model, surface }: ExplainPlanInput): PlanExplanation {
  const models = [model, ...offer.fallbacksOf(caller, model).map((fallback) => fallback.model)]
  const plan = joinPlans(
    models.map((each) => health.plan(offer.candidates(each, surface, caller), { policy: each.routing })),
  )
  const all = [...plan.ordered, ...plan.excluded.map(({ candidate }) => candidate)]
  const records = candidateRecords(plan)
  const candidates = all.map(({ dialect, health: route, provider, model: served }, at): ExplainedCandidate => {
    return {
      ...(records[at] as CandidateRecord),
      place: at < plan.ordered.length ? at + 1 : undefined,
      standing: health.standing(route, provider),
      waitMs: health.state(route).waitMs,
      dialect: dialect.id,
      lane: dialect.id === surface.id ? 'bytes' : 'translation',
      model: served.id,
    }
  })
  return { model: model.id, mode: plan.mode, candidates }
}

// ── Own credentials ──

export interface OwnProvidersInput {
  /** Endpoints of a provider, whether or not the operator has a key for it. */
  endpointsOf(providerId: string): Provider['endpoints'] | undefined
  /** For an address that a tenant chose: through the egress guard. */
  guardedTransport(baseUrl: string): Transport
}

const ownSource = 'the workspace'

/**
 * The providers that a workspace uses with its own credentials: the known provider with the workspace's key and, if the
 * operator allows it, its own address. A key is sent only to the address it was stored for. A key that cannot be used is
 * not replaced by another one: the provider stays in the offer, and calls to it fail.
 */
export function ownProviders(
  credentials: WorkspaceCredentials,
  input: OwnProvidersInput,
): ReadonlyMap<string, OwnProvider> {
  const own = new Map<string, OwnProvider>()
  for (const [providerId, credential] of credentials) {
    const { id: credentialId } = credential
    const opened = 'fault' in credential ? credential.fault : openProvider(providerId, credential, input)
    if (typeof opened === 'string') {
      // It keeps its endpoints, which every candidate needs; nothing is sent to them.
      const endpoints = input.endpointsOf(providerId) ?? []
      const provider: Provider = { id: providerId, endpoints, apiKey: undefined, source: ownSource }
      own.set(providerId, { provider, credentialId, refusal: brokenKey(providerId, opened) })
    } else own.set(providerId, { provider: opened, credentialId })
  }
  return own
}

/** `elsewhere`: the provider's address was changed in the configuration. */
type KeyFault = BrokenCredential['fault'] | 'elsewhere'

const keyFaults: Readonly<Record<KeyFault, string>> = {
  unknown_secret: 'was encrypted under a master secret that this gateway was not given',
  altered: 'is not what was stored',
  elsewhere: 'was stored for another address than the provider has now',
}

function brokenKey(providerId: string, fault: KeyFault): Failure {
  const message = `The workspace's own key for ${providerId} ${keyFaults[fault]}, and no other key is used in its place. Store the key again, or delete it.`
  return new Failure('NOT_FOUND', message, { shouldRetry: false, cause: 'no_route' })
}

function openProvider(
  id: string,
  credential: OpenedCredential,
  { endpointsOf, guardedTransport }: OwnProvidersInput,
): Provider | 'elsewhere' {
  const { apiKey, baseUrl } = credential
  const known = (endpointsOf(id) ?? []).map((endpoint) => {
    return endpoint.baseUrlOf ? { ...endpoint, baseUrl: endpoint.baseUrlOf(apiKey) } : endpoint
  })
  const first = known[0]
  const endpoints = baseUrl === undefined ? known : first ? [{ ...first, baseUrl }] : []
  // A provider that the operator calls without a key gets the workspace's key in the dialect's usual way.
  const reachable = endpoints
    .filter((endpoint) => mayBeSentTo(credential, endpoint.baseUrl))
    .map((endpoint) => (endpoint.auth === 'none' ? { ...endpoint, auth: usualAuth(endpoint.dialect) } : endpoint))
  if (reachable.length === 0) return 'elsewhere'
  const provider: Provider = { id, endpoints: reachable, apiKey, source: ownSource }
  return baseUrl === undefined ? provider : { ...provider, transport: guardedTransport(baseUrl) }
}

// ── Names for Claude Code ──

// Claude Code's model picker shows only ids that begin with `claude` or `anthropic` (newer versions: contain one), so other
// models are listed for it with a prefix, which is removed from requests. Other clients see plain ids.

/** Works in every version (BerriAI/litellm#40515, 2026-09). */
const pickerPrefix = 'claude/'
/** Claude Code's suffix for a long context, which its beta flag also requests (tombii/better-ccflare#243, 2026-09). */
const windowSuffix = /\[1m\]$/i

export function listedId(id: string, headers: RequestHeaders): string {
  const isPicker = /^claude-(cli|code)\//i.test(headers.get('user-agent') ?? '')
  return isPicker && !/claude|anthropic/i.test(id) ? pickerPrefix + id : id
}

/** The id without a client's prefix and suffix. */
export function plainId(id: string): string {
  const plain = id.replace(windowSuffix, '')
  return plain.startsWith(pickerPrefix) ? plain.slice(pickerPrefix.length) : plain
}
