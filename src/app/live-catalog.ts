// The models on sale, their prices and the providers that serve them. A changed configuration, a changed price or a model server
// found on this machine makes a new snapshot; running requests keep the one they started with.

import { allBuiltInModels } from '../catalog/data/built-in.ts'
import { modelFromEntry } from '../catalog/entry.ts'
import { createCatalog, type Model } from '../catalog/model.ts'
import { readPriceLists, recordListPrices } from '../catalog/price-lists.ts'
import {
  layPriceOverrides,
  overrideSource,
  type PriceInForce,
  readPriceOverrides,
  readRouteCosts,
  recordCosts,
  recordFees,
  recordPrices,
} from '../catalog/price-versions.ts'
import type { Config } from '../config/config.ts'
import type { ConfigSource } from '../config/source.ts'
import type { Dialects } from '../dialects/dialect.ts'
import type { Clock } from '../kernel/clock.ts'
import { formatPrice } from '../kernel/money.ts'
import { sendByFetch } from '../providers/call-endpoint.ts'
import { sendBySocket } from '../providers/connection-pool.ts'
import { createEgressGuard, createGuardedTransport } from '../providers/egress/egress-guard.ts'
import { findLocalServers, type LocalServer } from '../providers/local.ts'
import type { Endpoint, Provider, Transport } from '../providers/provider.ts'
import { createProviders, dormantEndpoints, neededVariables } from '../providers/registry.ts'
import type { Health } from '../routing/health.ts'
import { createOffer } from '../routing/offer.ts'
import { platformCredential } from '../routing/route.ts'
import type { Database } from '../store/database.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import type { Log } from '../telemetry/log.ts'
import { errorFields } from './open-storage.ts'

export type CatalogSnapshot = Awaited<ReturnType<typeof createSnapshot>>

export interface LiveCatalog {
  readonly current: CatalogSnapshot
  /**
   * Applies changes made in the database, here or by another replica, to the next request. False = it failed, which is
   * logged; the last snapshot stays in effect, and the reload is retried until it succeeds.
   */
  reload(): Promise<boolean>
  /** Looks for model servers on the usual ports of this machine, once. Skips the ports of configured providers. */
  findLocalServers(exceptPorts: readonly number[]): Promise<void>
  /** Stops retrying. */
  close(): void
}

export interface CatalogDependencies {
  readonly sandboxTransport: Transport
  readonly dialects: Dialects
  readonly health: Health
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly source: Pick<ConfigSource, 'current' | 'onChange'>
  /** For tests. */
  readonly retryMs?: number
}

/** A server on this machine that takes longer than this to list its models is not ready to serve. */
const searchMs = 500
const defaultRetryMs = 2000

export async function createLiveCatalog(deps: CatalogDependencies): Promise<LiveCatalog> {
  const { source, log, health, retryMs = defaultRetryMs } = deps
  let local: readonly LocalServer[] = []
  const first = await createSnapshot(source.current, local, deps)
  let reloading: Promise<unknown> = Promise.resolve()
  let retry: ReturnType<typeof setTimeout> | undefined
  let isStale = false
  let isClosed = false
  let onFresh = Promise.withResolvers<void>()

  const load = async (): Promise<void> => {
    const before = live.current.providers
    live.current = await createSnapshot(source.current, local, deps)
    for (const provider of live.current.providers.values()) {
      if (isAnotherAccount(before.get(provider.id), provider)) {
        health.renewCredential({ providerId: provider.id, credentialId: platformCredential })
      }
    }
  }
  const succeeded = (): boolean => {
    clearTimeout(retry)
    if (isStale) log.info('Pending price and configuration changes are now active.')
    isStale = false
    onFresh.resolve()
    onFresh = Promise.withResolvers()
    return true
  }
  const failed = (error: unknown): boolean => {
    clearTimeout(retry)
    if (isClosed) return false
    retry = setTimeout(reload, retryMs)
    retry.unref()
    // Logged once, not for every retry.
    if (!isStale) {
      // An unreachable database is reported elsewhere too.
      const level = isStoreUnavailable(error) ? 'warn' : 'error'
      log[level](
        'Price and configuration changes cannot take effect yet. The previous ones stay active; retrying.',
        errorFields(error),
      )
    }
    isStale = true
    return false
  }
  const reload = (): Promise<boolean> => {
    // One at a time: the last change wins, even if an earlier one takes longer to record its prices.
    const done = reloading.then(load).then(succeeded, failed)
    reloading = done
    return done
  }
  // The configuration source reports a change as active only after a reload has succeeded.
  source.onChange(async () => {
    if (!(await reload())) await onFresh.promise
    return true
  })
  const live: LiveCatalog & { current: CatalogSnapshot } = {
    current: first,
    reload,
    async findLocalServers(exceptPorts) {
      const configured = source.current.providers.flatMap(({ baseUrl }) => loopbackPort(baseUrl))
      const signal = AbortSignal.timeout(searchMs)
      local = await findLocalServers({ exceptPorts: [...exceptPorts, ...configured], signal })
      if (local.length === 0) return
      await reload()
      for (const { provider, models } of local) {
        log.info(`found ${provider.id} at ${provider.source}: ${models.length} models, free of charge`)
      }
    },
    close() {
      isClosed = true
      clearTimeout(retry)
    },
  }
  return live
}

/** Health readings of one key or address say nothing about another. */
function isAnotherAccount(before: Provider | undefined, now: Provider): boolean {
  const addresses = ({ endpoints }: Provider) => endpoints.map(({ baseUrl }) => baseUrl).join(' ')
  if (before === undefined) return true
  return before.apiKey?.reveal() !== now.apiKey?.reveal() || addresses(before) !== addresses(now)
}

function loopbackPort(baseUrl: string | undefined): number[] {
  const url = baseUrl === undefined ? null : URL.parse(baseUrl)
  if (!url || !/^(localhost|127\.|\[::1\])/.test(url.hostname)) return []
  return [Number(url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : url.port)]
}

/** Records every price before the first request is charged with it. */
async function createSnapshot(
  config: Config,
  local: readonly LocalServer[],
  { sandboxTransport, dialects, health, database, clock, log }: CatalogDependencies,
) {
  const declared = {
    entries: config.providers,
    keys: config.providerKeys,
    disabled: config.disabledProviders,
    clock,
    byFetch: config.hasHttpProxy,
    instanceIdentity: config.instanceIdentity,
  }
  const configured = createProviders({ ...declared, sandboxOn: config.sandbox, sandboxTransport })
  // Configured providers take precedence over servers found on this machine.
  const found = local.filter(({ provider }) => !config.disabledProviders.includes(provider.id))
  const providers = new Map([...found.map(({ provider }) => [provider.id, provider] as const), ...configured])
  const isPricedByFile = ({ price, source }: Model) => price !== undefined && source !== 'built in'
  const pricedByFile = new Set(config.models.filter(isPricedByFile).map(({ id }) => id))
  const overrides = await readPriceOverrides(database.sql)
  const costs = await readRouteCosts(database.sql)
  const priced = layPriceOverrides(modelsOf(config, local), overrides.get(''), { pricedByFile, costs })
  const sourceOf = ({ id, source }: Model): string => (priced.setterOf(id) === 'api' ? overrideSource : source)
  const recorded = createCatalog(priced.models).models.map((model) => ({ ...model, source: sourceOf(model) }))
  const { versions: priceVersions, since: pricedAt, moved } = await recordPrices({ database, clock, models: recorded })
  const costed = await recordCosts({ database, clock, models: priced.models, versions: priceVersions })
  const catalog = createCatalog(costed)
  const basisPoints = BigInt(config.ownKeys.feeBasisPoints)
  const fees = await recordFees({ database, clock, models: recorded, basisPoints })
  const lists = await readPriceLists(database.sql)
  const listPrices = await recordListPrices({ database, clock, models: recorded, lists, overrides })
  for (const { id, source } of priced.idle) {
    log.warn(`the price set for ${id} through the API is not in effect, because ${source} has a price for it`)
  }
  for (const { modelId, bucket, from, to } of moved) {
    log.warn(`the ${bucket} price of ${modelId} changed more than tenfold: $${formatPrice(from)} → $${formatPrice(to)}`)
  }
  /** Checks base URLs that workspaces bring; undefined = they may not bring any. */
  const guard = config.ownKeys.mayBringAddress
    ? createEgressGuard({ allow: config.ownKeys.allowHosts, plainHttp: config.ownKeys.plainHttp })
    : undefined
  const dormant = dormantEndpoints(providers, declared)
  /** The variables that enable a provider; empty = only workspaces' own keys do. */
  const needsOf = (id: string): readonly string[] =>
    config.providers.some((entry) => entry.id === id) ? [] : (neededVariables(id) ?? [])
  /** The endpoints of any known provider, whether or not the operator has a key for it. */
  const endpointsOf = (id: string): readonly Endpoint[] | undefined => providers.get(id)?.endpoints ?? dormant.get(id)
  /** Calls a base URL that a workspace brought; rejects if they may not bring any. */
  const guardedTransport = (baseUrl: string): Transport =>
    guard
      ? createGuardedTransport(guard, baseUrl, config.hasHttpProxy ? sendByFetch : sendBySocket)
      : () => Promise.reject(addressNotAllowed())
  const offer = createOffer({
    ...{ catalog, providers, dialects, priceVersions, pricedAt, fees, listPrices, health },
    ...{ endpointsOf, guardedTransport, needsOf, aliases: config.aliases },
  })
  return {
    ...{ offer, catalog, providers, priceVersions, pricedAt, guard, guardedTransport, endpointsOf, needsOf },
    /** Ids of known providers that the operator has no key for. */
    dormantProviders: [...dormant.keys()] as readonly string[],
    /** How many models a caller without an allowlist can call through a provider. */
    modelCount: (id: string) =>
      catalog.models.filter(({ price, routes }) => price && routes.some(({ providerId }) => providerId === id)).length,
    /** In a price list, or in the catalog. undefined = there is no such model. */
    findPrice(id: string, list?: string): PriceInForce | undefined {
      const model = catalog.find(id)
      const listed = list === undefined ? undefined : listPrices.get(list)?.get(id)
      if (listed) return listed
      const named = { setter: priced.setterOf(id), version: priceVersions.get(id) }
      return model && { price: model.price, source: sourceOf(model), ...named }
    },
  }
}

/** Later entries replace earlier ones of the same id. */
function modelsOf(config: Config, local: readonly LocalServer[]): readonly Model[] {
  const builtIn = allBuiltInModels.map((entry) => modelFromEntry(entry, 'built in'))
  const found = local.flatMap(({ provider, models }) => models.map((entry) => modelFromEntry(entry, provider.source)))
  return createCatalog([...builtIn, ...found, ...config.models]).models
}

/** Looks like a network error: the operator has withdrawn the permission since the credential was stored. */
function addressNotAllowed(): Error {
  return Object.assign(new Error('own addresses are not allowed'), { code: 'EGRESS_REFUSED' })
}
