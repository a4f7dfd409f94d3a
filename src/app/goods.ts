// What one configuration sells, and through whom. A changed configuration, a price that was set, or a model server found
// on this machine makes new goods; what runs keeps the ones it began with.

import { builtInModels } from '../catalog/data/built-in.ts'
import { sandboxModels } from '../catalog/data/sandbox.ts'
import { modelFromEntry } from '../catalog/entry.ts'
import { type Catalog, createCatalog, type Model } from '../catalog/model.ts'
import type { Price } from '../catalog/price.ts'
import {
  type LaidPrices,
  layPriceOverrides,
  overrideSource,
  type PriceInForce,
  readPriceOverrides,
  recordFees,
  recordPrices,
} from '../catalog/price-versions.ts'
import type { Config } from '../config/config.ts'
import type { Dialects } from '../dialects/dialect.ts'
import type { Clock } from '../kernel/clock.ts'
import { formatPrice } from '../kernel/money.ts'
import { createEgressGuard, type EgressGuard } from '../providers/egress/egress-guard.ts'
import { createGuardedTransport } from '../providers/egress/guarded-transport.ts'
import type { LocalServer } from '../providers/local.ts'
import type { Endpoint, Provider, Transport } from '../providers/provider.ts'
import { createProviders, dormantEndpoints } from '../providers/registry.ts'
import type { Health } from '../routing/health/health.ts'
import { createOffer, type Offer } from '../routing/offer.ts'
import type { Database } from '../store/database.ts'
import type { Log } from '../telemetry/log.ts'

export interface Goods {
  readonly offer: Offer
  readonly catalog: Catalog
  readonly providers: ReadonlyMap<string, Provider>
  /** By model id. */
  readonly priceVersions: ReadonlyMap<string, string>
  /** For addresses that workspaces bring; undefined = they may not. */
  readonly guard: EgressGuard | undefined
  /** To an address that a workspace brought; refuses where they may not. */
  guardedTransport(baseUrl: string): Transport
  /** Of every provider there is, whether or not the operator has a key for it. */
  endpointsOf(providerId: string): readonly Endpoint[] | undefined
  /** How many models a caller without an allowlist can call through a provider. */
  modelCount(providerId: string): number
  /** undefined = there is no such model. */
  findPrice(modelId: string): PriceInForce | undefined
}

export interface GoodsDependencies {
  readonly sandboxTransport: Transport
  readonly dialects: Dialects
  readonly health: Health
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
}

/** Every price that is asked is on record before the first call. */
export async function stockGoods(
  config: Config,
  local: readonly LocalServer[],
  { sandboxTransport, dialects, health, database, clock, log }: GoodsDependencies,
): Promise<Goods> {
  const providers = providersOf(config, local, sandboxTransport, clock)
  const priced = pricesOf(config, catalogOf(config, local), await readPriceOverrides(database.sql))
  const catalog = createCatalog(priced.models)
  const sourceOf = ({ id, source }: Model): string => (priced.setterOf(id) === 'api' ? overrideSource : source)
  const recorded = catalog.models.map((model) => ({ ...model, source: sourceOf(model) }))
  const { versions: priceVersions, moved } = await recordPrices({ database, clock, models: recorded })
  const basisPoints = BigInt(config.ownKeys.feeBasisPoints)
  const fees = await recordFees({ database, clock, models: recorded, basisPoints })
  for (const { id, source } of priced.idle) {
    log.warn(`the price that was set for ${id} is not in force: ${source} has one`)
  }
  for (const { modelId, bucket, from, to } of moved) {
    log.warn(`the ${bucket} price of ${modelId} moved more than tenfold: $${formatPrice(from)} → $${formatPrice(to)}`)
  }
  const guard = config.ownKeys.mayBringAddress
    ? createEgressGuard({ allow: config.ownKeys.allowHosts, plainHttp: config.ownKeys.plainHttp })
    : undefined
  const dormant = dormantEndpoints(providers, { keys: config.providerKeys, clock })
  const endpointsOf = (id: string): readonly Endpoint[] | undefined => providers.get(id)?.endpoints ?? dormant.get(id)
  const guardedTransport = (baseUrl: string): Transport =>
    guard ? createGuardedTransport(guard, baseUrl) : () => Promise.reject(addressNotAllowed())
  const offer = createOffer({
    ...{ catalog, providers, dialects, priceVersions, fees, health, endpointsOf, guardedTransport },
  })
  return {
    offer,
    catalog,
    providers,
    priceVersions,
    guard,
    guardedTransport,
    endpointsOf,
    modelCount: (id) =>
      catalog.models.filter(({ price, routes }) => price && routes.some(({ providerId }) => providerId === id)).length,
    findPrice(id) {
      const model = catalog.find(id)
      const named = { setter: priced.setterOf(id), version: priceVersions.get(id) }
      return model && { price: model.price, source: sourceOf(model), ...named }
    },
  }
}

function providersOf(
  config: Config,
  local: readonly LocalServer[],
  sandboxTransport: Transport,
  clock: Clock,
): ReadonlyMap<string, Provider> {
  const configured = createProviders({
    entries: config.providers,
    keys: config.providerKeys,
    sandboxOn: config.sandbox,
    sandboxTransport,
    clock,
  })
  // What somebody wrote down comes before what was found.
  const found = local.map(({ provider }) => [provider.id, provider] as const)
  return new Map([...found, ...configured])
}

function catalogOf(config: Config, local: readonly LocalServer[]): Catalog {
  const builtIn = [...sandboxModels, ...builtInModels].map((entry) => modelFromEntry(entry, 'built in'))
  const found = local.flatMap(({ provider, models }) => models.map((entry) => modelFromEntry(entry, provider.source)))
  return createCatalog([...builtIn, ...found, ...config.models])
}

function pricesOf(config: Config, { models }: Catalog, overrides: ReadonlyMap<string, Price>): LaidPrices {
  const pricedByFile = new Set(config.models.flatMap(({ id, price }) => (price ? [id] : [])))
  return layPriceOverrides(models, overrides, pricedByFile)
}

/** As the network would say it: the operator has taken the permission back since the credential was stored. */
function addressNotAllowed(): Error {
  return Object.assign(new Error('own addresses are not allowed'), { code: 'EGRESS_REFUSED' })
}
