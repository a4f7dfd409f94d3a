// Shows the live catalog to the management API and the pages: models, prices, route health, providers and the workspaces'
// own provider keys. Addresses and credentials are left out wherever the answer is public.

import { basename } from 'node:path'
import type { CatalogItem } from '../api/catalog.ts'
import type { OfferedModel } from '../api/projects.ts'
import type { ProviderDetails, ShownProvider } from '../api/providers.ts'
import type { Model } from '../catalog/model.ts'
import { showPrice } from '../catalog/price.ts'
import { surfaces } from '../dialects/registry.ts'
import type { CredentialDestination, Credentials, RouteDependencies } from '../http/management/dependencies.ts'
import { isoTime } from '../kernel/clock.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import { nearestNames } from '../kernel/nearest.ts'
import { readOwnCredential } from '../providers/credentials.ts'
import { builtInProviders } from '../providers/data/built-in.ts'
import { EgressRefusal } from '../providers/egress/egress-guard.ts'
import { baseUrlFault } from '../providers/entry.ts'
import type { Endpoint, Provider } from '../providers/provider.ts'
import type { Health, RouteReading } from '../routing/health.ts'
import { explainPlan, ownProviders, type PlanExplanation } from '../routing/offer.ts'
import { type ProbedDialects, probeFault, probeProvider } from '../routing/probe-provider.ts'
import type { Sql } from '../store/sql.ts'
import { createAllowlist } from '../tenancy/allowlist.ts'
import type { Caller } from '../tenancy/caller.ts'
import { type CredentialCache, putCredential } from '../tenancy/credentials.ts'
import { getWorkspace, type Project } from '../tenancy/workspaces.ts'
import type { RouteCost } from '../web/catalog/entry.ts'
import type { Auth } from './auth.ts'
import type { CatalogSnapshot, LiveCatalog } from './live-catalog.ts'

/**
 * Models that can be called, and those that only lack a price: an unknown price is shown, not hidden. With `all` also those
 * that no enabled provider serves.
 */
export function catalogItems(
  snapshot: CatalogSnapshot,
  health: Pick<Health, 'snapshot' | 'standing'>,
  { all }: { readonly all: boolean } = { all: false },
): readonly CatalogItem[] {
  const { catalog, providers, needsOf, endpointsOf } = snapshot
  const itemOf = createItems(snapshot, health)
  const isServed = ({ routes }: Model) => routes.some(({ providerId }) => providers.has(providerId))
  const offProviders = ({ routes }: Model) =>
    [...new Set(routes.map(({ providerId }) => providerId))].map((id) => ({ provider: id, needs: [...needsOf(id)] }))
  return catalog.models
    .filter((model) => isServed(model) || (all && model.routes.some(({ providerId }) => endpointsOf(providerId))))
    .map((model) => ({
      ...itemOf(model),
      callable: model.price !== undefined && isServed(model),
      ...(!isServed(model) && { off: offProviders(model) }),
    }))
}

/** Shows models with their prices in the catalog or in a price list. */
function createItems(
  { providers, priceVersions, pricedAt, findPrice }: CatalogSnapshot,
  health: Pick<Health, 'snapshot' | 'standing'>,
  priceList?: string,
): (model: Model) => Omit<CatalogItem, 'callable' | 'off'> {
  const readings = readingsByRoute(health.snapshot())
  /** The first version is what the gateway started with. */
  const changedAt = (id: string) => {
    const since = pricedAt.get(id)
    const isFirst = since === undefined || /#1$/.test(priceVersions.get(id) ?? '#1')
    return isFirst ? {} : { price_changed_at: isoTime(since) }
  }
  return (model) => {
    const found = findPrice(model.id, priceList)
    return {
      id: model.id,
      name: model.name,
      owned_by: model.ownedBy,
      context_tokens: model.contextTokens ?? null,
      max_output_tokens: model.maxOutputTokens ?? null,
      tags: model.tags,
      released: model.released ?? null,
      ...(model.description !== undefined && { description: model.description }),
      ...(model.knowledge !== undefined && { knowledge: model.knowledge }),
      ...(model.input && { input: model.input }),
      ...(model.retires !== undefined && { retires: model.retires }),
      ...(model.fallbacks.length > 0 && { fallbacks: model.fallbacks }),
      source: publicSource(model.source),
      price: found?.price ? showPrice(found.price) : null,
      price_source: found?.price ? publicPriceSource(found.version, found.source) : null,
      price_version: found?.version ?? null,
      ...changedAt(model.id),
      routes: shownRoutes(model, providers, health, readings),
    }
  }
}

/** The source of a price in a list would state the markup. */
export function publicPriceSource(version: string | undefined, source: string): string {
  return version?.includes('#list-') ? 'price list' : publicSource(source)
}

/** For operators: what they pay at the routes of a model. */
export function routeCosts({ catalog, providers }: CatalogSnapshot, modelId: string): readonly RouteCost[] {
  const routes = (catalog.find(modelId)?.routes ?? []).filter(({ providerId }) => providers.has(providerId))
  return routes.map(({ providerId, upstreamModel, cost }) => ({
    provider: providerId,
    upstream_model: upstreamModel,
    cost: cost ? showPrice(cost) : null,
  }))
}

/** Only the file's name: its folder is not public. */
export function publicSource(source: string): string {
  return basename(source)
}

function shownRoutes(
  model: Model,
  providers: CatalogSnapshot['providers'],
  health: Pick<Health, 'standing'>,
  readings: ReadonlyMap<string, RouteReading>,
) {
  return model.routes.flatMap(({ providerId, upstreamModel, priority, weight }) => {
    const provider = providers.get(providerId)
    if (!provider) return []
    const reading = readings.get(`${providerId} ${upstreamModel}`)
    const standing = health.standing(reading?.route, provider)
    return {
      provider: providerId,
      upstream_model: upstreamModel,
      priority,
      weight,
      state: standing.state,
      health: reading?.state.state ?? 'healthy',
      factor: reading?.state.factor ?? 1,
      wait_ms: reading?.state.waitMs ?? null,
      why: standing.why ?? null,
      rehearsal: provider.ignoresHealth ?? false,
      first_event_ms: figures(reading?.firstEventMs),
      tokens_per_second: figures(reading?.tokensPerSecond),
    }
  })
}

/** null = no streamed answer in the last hour. */
function figures(quantiles: RouteReading['firstEventMs']) {
  if (!quantiles) return null
  const { p50, p95, samples, windowMs } = quantiles
  return { p50: Math.round(p50), p95: Math.round(p95), samples, window_ms: windowMs }
}

/**
 * Only of the operator's credential: the health of a workspace's own key is private. Of several endpoints at which a provider
 * serves a model, the one that was used last.
 */
function readingsByRoute(readings: readonly RouteReading[]): ReadonlyMap<string, RouteReading> {
  const found = new Map<string, RouteReading>()
  for (const reading of readings) {
    const { credentialId, providerId, upstreamModel, judgedMs } = reading.route
    const name = `${providerId} ${upstreamModel}`
    const before = found.get(name)
    if (credentialId !== 'platform' || (before && before.route.judgedMs > judgedMs)) continue
    found.set(name, reading)
  }
  return found
}

/** A caller that may use every model on the operator's credentials. */
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
  priceList: undefined,
}

export interface Offering {
  readonly catalog: Pick<LiveCatalog, 'current'>
  readonly health: Pick<Health, 'snapshot' | 'standing'>
  readonly credentials: Pick<CredentialCache, 'find'>
}

/** The models that a caller may call, at the prices that GET /v1/models states and requests are charged by. */
export async function modelsOf(
  { catalog: { current }, health, credentials }: Offering,
  caller: Pick<Caller, 'workspaceId' | 'priceList' | 'allow'>,
): Promise<readonly OfferedModel[]> {
  const { priceList } = caller
  const own = await credentials.find(caller.workspaceId)
  const offer = current.offer.with(own, priceList)
  const itemOf = createItems(current, health, priceList)
  return offer.list({ ...anyone, ...caller }).map((model) => {
    const item = itemOf(model)
    const isOwn = offer.isOwn(model)
    const providers = model.routes.map(({ providerId }) => providerId).filter((id) => own.has(id))
    return {
      ...item,
      // Without a route on the operator's key, only its provider bills it.
      ...(isOwn && item.routes.length === 0 && { price: null, price_source: null, price_version: null }),
      callable: true,
      own_key: isOwn,
      own_providers: [...new Set(providers)],
    }
  })
}

/** For a key of the project without an allowlist. */
export async function modelsOfProject(
  offering: Offering,
  sql: Sql,
  { workspaceId, models }: Project,
): Promise<readonly OfferedModel[]> {
  const { priceList } = await getWorkspace(sql, workspaceId)
  return await modelsOf(offering, {
    workspaceId,
    priceList,
    allow: models === undefined ? [] : [createAllowlist(models)],
  })
}

export function planOf(
  { catalog, health }: { readonly catalog: LiveCatalog; readonly health: Health },
  modelId: string,
  surface: keyof typeof surfaces,
): PlanExplanation | undefined {
  const offer = catalog.current.offer.platform
  const model = offer.find(anyone, modelId)
  if (model instanceof Failure) return undefined
  return explainPlan({
    offer,
    health,
    caller: anyone,
    model,
    surface: surfaces[surface].dialect,
  })
}

/** A shorter key is not shown at all: four characters would be a large part of it. */
const shownLengthMin = 8

/** Lists providers and tests the operator's and the workspaces' keys with the same calls that requests make. */
export function providerAdmin(
  catalog: LiveCatalog,
  credentials: Pick<CredentialCache, 'find'>,
  dialects: ProbedDialects,
  health: Pick<Health, 'recordTest'>,
): RouteDependencies['providers'] {
  return {
    list: () => [...catalog.current.providers.values()].map((provider) => shownProvider(provider, catalog.current)),
    find(id) {
      const provider = catalog.current.providers.get(id)
      return provider && { ...shownProvider(provider, catalog.current), routes: pricedRoutes(id, catalog.current) }
    },
    async test(id) {
      const provider = catalog.current.providers.get(id)
      if (!provider) return undefined
      const probe = await probeProvider(provider, dialects)
      // A throttled test says nothing: the key is accepted, and the limit passes.
      if (probe.verdict !== 'throttled') health.recordTest(id, probeFault(probe))
      return probe
    },
    async testOwn(workspaceId, id) {
      const credential = (await credentials.find(workspaceId)).get(id)
      if (!credential) throw new Failure('NOT_FOUND', `The workspace has no credential for the provider ${id}.`)
      if ('fault' in credential) {
        const message = `The key for ${id} cannot be decrypted with the current master secret. Store it again.`
        throw new Failure('INVALID_REQUEST', message)
      }
      const own = ownProviders(new Map([[id, credential]]), catalog.current).get(id)
      if (own && !own.refusal) return await probeProvider(own.provider, dialects)
      const message = `The key for ${id} was stored for another address than the provider has now. Store it again.`
      throw new Failure('INVALID_REQUEST', message)
    },
  }
}

function shownProvider(
  { id, source, endpoints, apiKey, transport }: Provider,
  { modelCount }: CatalogSnapshot,
): ShownProvider {
  const key = apiKey?.reveal()
  return {
    id,
    source,
    origin: configuredBy(id, source, transport === undefined),
    last4: key === undefined ? null : key.length < shownLengthMin ? '' : key.slice(-4),
    address: URL.parse(endpoints[0]?.baseUrl ?? '')?.host || null,
    models: modelCount(id),
  }
}

function pricedRoutes(id: string, { catalog, findPrice }: CatalogSnapshot): ProviderDetails['routes'] {
  return catalog.models.flatMap((model) => {
    const price = findPrice(model.id)?.price
    const shown = price ? showPrice(price) : null
    return model.routes
      .filter(({ providerId }) => providerId === id)
      .map(({ upstreamModel, cost }) => ({
        model: model.id,
        upstream_model: upstreamModel,
        price: shown,
        cost: cost ? showPrice(cost) : null,
      }))
  })
}

function configuredBy(id: string, source: string, isCalled: boolean): ShownProvider['origin'] {
  if (builtInProviders.some((known) => known.id === id && known.variable === source)) return 'environment'
  if (source === 'built in') return 'built_in'
  return isCalled && /^127\.0\.0\.1:\d+$/.test(source) ? 'found' : 'file'
}

/** Reads, stores and deletes the provider keys that workspaces bring. */
export function credentialAdmin(
  catalog: LiveCatalog,
  { keyRing, forgetCredentials }: Pick<Auth, 'keyRing' | 'forgetCredentials'>,
): Credentials {
  return {
    destinationOf: (provider, baseUrl) => destinationOf(catalog.current, provider, baseUrl),
    read: (provider, text) => readOwnCredential(endpointOf(catalog.current, provider)?.auth ?? 'none', text),
    put: (sql, credential) => putCredential(sql, credential, keyRing),
    forget: forgetCredentials,
  }
}

/** The providers for which a workspace may store a key, enabled or not, by id. */
export function keyedProviders(snapshot: CatalogSnapshot): readonly string[] {
  const known = new Set([...snapshot.dormantProviders, ...snapshot.providers.keys()])
  return [...known]
    .filter((id) => takesKey(endpointOf(snapshot, id)))
    .filter((id) => snapshot.guard !== undefined || originOf(endpointOf(snapshot, id)) !== undefined)
    .sort()
}

/** Where a workspace's key may be sent: to the provider's address, or to one that it brings if the operator allows that. */
async function destinationOf(
  snapshot: CatalogSnapshot,
  provider: string,
  baseUrl: string | undefined,
): Promise<CredentialDestination> {
  const { guard } = snapshot
  const endpoint = endpointOf(snapshot, provider)
  if (!takesKey(endpoint)) throw takesNoKey(provider, keyedProviders(snapshot))
  if (baseUrl === undefined || isSameAddress(baseUrl, endpoint?.baseUrl)) {
    const origin = originOf(endpoint)
    if (origin === undefined) throw needsAddress(provider, guard !== undefined)
    return { origin, baseUrl: undefined }
  }
  if (!guard) {
    const message =
      'This gateway does not allow workspaces to bring addresses. Its operator can set `own_keys.base_urls`.'
    throw new Failure('INVALID_REQUEST', message, { param: 'base_url' })
  }
  const checked = await guard.checkBaseUrl(baseUrl)
  if (checked instanceof EgressRefusal) throw invalidRequest(`\`base_url\` ${checked.message}.`, 'base_url')
  const fault = baseUrlFault({ dialect: endpoint?.dialect, base_url: checked.baseUrl })
  if (fault !== undefined) throw invalidRequest(`\`base_url\` ${fault}.`, 'base_url')
  return checked
}

/** The first one: all endpoints of a provider have the same host and take credentials in the same way. */
function endpointOf({ endpointsOf }: Pick<CatalogSnapshot, 'endpointsOf'>, provider: string): Endpoint | undefined {
  return endpointsOf(provider)?.[0]
}

/** False: there is no such provider, or it answers inside this process. */
function takesKey(endpoint: Endpoint | undefined): boolean {
  return endpoint !== undefined && /^(https?:|\{)/.test(endpoint.baseUrl)
}

/** undefined = the address has a placeholder that neither the operator's settings nor the credential fill, such as a region. */
function originOf(endpoint: Endpoint | undefined): string | undefined {
  const [, origin, path = ''] = /^(https?:\/\/[^/{}]+)(\/.*)?$/.exec(endpoint?.baseUrl ?? '') ?? []
  return path.includes('{') && !endpoint?.baseUrlOf ? undefined : URL.parse(origin ?? '')?.origin
}

/** Ignores the spelling of the host and trailing slashes. */
function isSameAddress(asked: string, own: string | undefined): boolean {
  const normalized = (url: string) => URL.parse(url)?.href.replace(/\/+$/, '')
  const address = normalized(asked)
  return address !== undefined && own !== undefined && address === normalized(own)
}

function takesNoKey(provider: string, known: readonly string[]): Failure {
  const near = nearestNames(provider, known, 1)
  const hint = near.length > 0 ? ` Did you mean \`${near[0]}\`?` : ''
  return new Failure('NOT_FOUND', `There is no provider \`${provider.slice(0, 100)}\` that takes a key.${hint}`)
}

function needsAddress(provider: string, mayBringAddress: boolean): Failure {
  const advice = mayBringAddress
    ? 'Send one as `base_url`.'
    : 'Its operator can set the variables of that provider, or `own_keys.base_urls` so that you can send one.'
  return invalidRequest(`This gateway knows no address of ${provider}. ${advice}`, 'base_url')
}
