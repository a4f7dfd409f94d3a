// What one configuration offers to one caller: which models it may see, and the ordered routes to one of them. Every
// endpoint asks here, so that a model outside the caller's reach reads exactly like one that does not exist.

import type { Catalog } from '../catalog/catalog.ts'
import type { Model } from '../catalog/model.ts'
import type { Price } from '../catalog/price.ts'
import type { Dialect, Dialects } from '../dialects/dialect.ts'
import { Failure } from '../kernel/failure.ts'
import { nearestNames } from '../kernel/nearest.ts'
import type { Provider } from '../providers/provider.ts'
import { allowsModel } from '../tenancy/allowlist.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { Candidate } from './candidate.ts'
import { planCandidates, rememberRules } from './plan.ts'

/** A model that can be called: it has a price and a provider that is switched on. */
export interface OfferedModel extends Model {
  readonly price: Price
  /** Names the price for ever; a charge is kept with it. */
  readonly priceVersion: string | undefined
  /** The id as JSON, as replies carry it. */
  readonly idJson: Uint8Array
}

export interface Offer {
  /** Sorted by id. */
  list(caller: Caller): readonly OfferedModel[]
  find(caller: Caller, id: string): OfferedModel | Failure
  /** At least one: an offered model has a route to a provider that is switched on. */
  plan(model: OfferedModel, surface: Dialect): readonly Candidate[]
}

export interface OfferInput {
  readonly catalog: Catalog
  readonly providers: ReadonlyMap<string, Provider>
  readonly dialects: Dialects
  /** By model id. */
  readonly priceVersions: ReadonlyMap<string, string>
  /** A number in [0, 1). */
  random(): number
}

const suggestionsMax = 3

export function createOffer({ catalog, providers, dialects, priceVersions, random }: OfferInput): Offer {
  const offered = new Map<string, OfferedModel>()
  for (const model of catalog.models) {
    const { price } = model
    const isServed = model.routes.some((route) => providers.has(route.providerId))
    if (!price || !isServed) continue
    const priceVersion = priceVersions.get(model.id)
    offered.set(model.id, { ...model, price, priceVersion, idJson: new TextEncoder().encode(JSON.stringify(model.id)) })
  }
  const all = [...offered.values()]
  /** Plans without an element of chance; the same for every request. */
  const plans = new Map<OfferedModel, Map<Dialect, readonly Candidate[]>>()
  const rulesOf = rememberRules()
  const findProvider = (id: string): Provider | undefined => providers.get(id)

  const list = ({ allow }: Caller): readonly OfferedModel[] =>
    allow.length === 0 ? all : all.filter((model) => allowsModel(allow, model.id))
  return {
    list,
    find(caller, id) {
      const model = offered.get(id)
      if (model && allowsModel(caller.allow, id)) return model
      const near = nearestNames(
        id,
        list(caller).map((each) => each.id),
        suggestionsMax,
      )
      return new Failure('NOT_FOUND', `No model \`${shorten(id)}\`.${suggestion(near)}`, { param: 'model' })
    },
    plan(model, surface) {
      const settled = plans.get(model)?.get(surface)
      if (settled) return settled
      const candidates = planCandidates({ model, surface, dialects, findProvider, rulesOf, random })
      if (!sharesTraffic(model)) remember(plans, model, surface, candidates)
      return candidates
    },
  }
}

/** Whether routes of one priority take turns by weight. */
function sharesTraffic(model: Model): boolean {
  return new Set(model.routes.map((route) => route.priority)).size < model.routes.length
}

function remember(
  plans: Map<OfferedModel, Map<Dialect, readonly Candidate[]>>,
  model: OfferedModel,
  surface: Dialect,
  candidates: readonly Candidate[],
): void {
  const ofModel = plans.get(model) ?? new Map<Dialect, readonly Candidate[]>()
  plans.set(model, ofModel.set(surface, candidates))
}

function suggestion(near: readonly string[]): string {
  if (near.length === 0) return ' GET /v1/models lists what this key can use.'
  return ` Did you mean ${near.map((id) => `\`${id}\``).join(' or ')}?`
}

function shorten(id: string): string {
  return id.length > 100 ? `${id.slice(0, 100)}…` : id
}
