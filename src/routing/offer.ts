// What one configuration offers to one caller: which models it may see, and the candidates of one of them. Every endpoint
// asks here, so that a model outside the caller's reach reads exactly like one that does not exist.

import type { Catalog, Model } from '../catalog/model.ts'
import type { Price } from '../catalog/price.ts'
import type { Fee } from '../catalog/price-versions.ts'
import type { Dialect, Dialects } from '../dialects/dialect.ts'
import { Failure } from '../kernel/failure.ts'
import { nearestNames } from '../kernel/nearest.ts'
import type { Provider } from '../providers/provider.ts'
import { allowsModel } from '../tenancy/allowlist.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { WorkspaceCredentials } from '../tenancy/credentials.ts'
import type { Candidate } from './candidate.ts'
import type { Health } from './health/health.ts'
import { plainId } from './model-alias.ts'
import { type OwnProvider, type OwnProvidersInput, ownProviders } from './own-providers.ts'
import { candidatesOf, type PlanInput, type PlanWishes, rememberRules } from './plan.ts'

/** A model that can be called: it has a price and a provider that is switched on, or that a workspace opens. */
export interface OfferedModel extends Model {
  readonly price: Price
  /** Names the price for ever; a charge is kept with it. */
  readonly priceVersion: string | undefined
  /** What a call on the workspace's own credential costs; absent = nothing. */
  readonly fee?: Fee | undefined
  /** The id as JSON, as replies carry it. */
  readonly idJson: Uint8Array
}

/** What one workspace may choose from. */
export interface WorkspaceOffer {
  /** Sorted by id. */
  list(caller: Caller): readonly OfferedModel[]
  find(caller: Caller, id: string): OfferedModel | Failure
  /** Whether a credential of the workspace's own opens a route to it. */
  isOwn(model: OfferedModel): boolean
  /** In no particular order; at least one. */
  candidates(model: OfferedModel, surface: Dialect, caller: Caller, wishes?: PlanWishes): readonly Candidate[]
}

export interface Offer {
  /** With the credentials of the workspace, whose map is the same object until they change. */
  with(credentials: WorkspaceCredentials): WorkspaceOffer
  /** What everybody can see who has no allowlist and no credentials. */
  readonly platform: WorkspaceOffer
}

export interface OfferInput extends OwnProvidersInput {
  readonly catalog: Catalog
  readonly providers: ReadonlyMap<string, Provider>
  readonly dialects: Dialects
  /** By model id. */
  readonly priceVersions: ReadonlyMap<string, string>
  /** The same. */
  readonly fees: ReadonlyMap<string, Fee>
  readonly health: Pick<Health, 'route'>
}

export function createOffer(input: OfferInput): Offer {
  const sold = soldModels(input)
  const rulesOf = rememberRules()
  const offerWith = (own: ReadonlyMap<string, OwnProvider>) => createWorkspaceOffer(sold, own, { ...input, rulesOf })
  const platform = offerWith(new Map())
  const known = new WeakMap<WorkspaceCredentials, WorkspaceOffer>()
  return {
    platform,
    with(credentials) {
      if (credentials.size === 0) return platform
      const remembered = known.get(credentials)
      if (remembered) return remembered
      const offer = offerWith(ownProviders(credentials, input))
      known.set(credentials, offer)
      return offer
    },
  }
}

function soldModels({ catalog, priceVersions, fees }: OfferInput): readonly OfferedModel[] {
  return catalog.models.flatMap((model) => {
    const { price, id } = model
    if (!price) return []
    const idJson = new TextEncoder().encode(JSON.stringify(id))
    return [{ ...model, price, priceVersion: priceVersions.get(id), fee: fees.get(id), idJson }]
  })
}

/** By model, and by what else decides. */
type RememberedPlans = Map<OfferedModel, Map<string, readonly Candidate[]>>

const noWishes: PlanWishes = { offersTools: false, reasoning: undefined }

function createWorkspaceOffer(
  sold: readonly OfferedModel[],
  own: ReadonlyMap<string, OwnProvider>,
  { providers, dialects, health, rulesOf }: OfferInput & Pick<PlanInput, 'rulesOf'>,
): WorkspaceOffer {
  const isServed = ({ routes }: OfferedModel): boolean =>
    routes.some(({ providerId }) => providers.has(providerId) || own.has(providerId))
  const all = sold.filter(isServed)
  const byId = new Map(all.map((model) => [model.id, model]))
  const ownPlans: RememberedPlans = new Map()
  const sharedPlans: RememberedPlans = new Map()

  const list = ({ allow }: Caller): readonly OfferedModel[] =>
    allow.length === 0 ? all : all.filter((model) => allowsModel(allow, model.id))
  return {
    list,
    isOwn: ({ routes }) => own.size > 0 && routes.some(({ providerId }) => own.has(providerId)),
    find(caller, id) {
      const model = byId.get(id) ?? byId.get(plainId(id))
      if (model && allowsModel(caller.allow, model.id)) return model
      const seen = list(caller).map((each) => each.id)
      return unknownModel(id, seen)
    },
    candidates(model, surface, { sharesRoutes }, wishes = noWishes) {
      const plans = sharesRoutes ? sharedPlans : ownPlans
      const key = `${surface.id} ${wishes.offersTools ? (wishes.reasoning ?? 'unsaid') : ''}`
      const settled = plans.get(model)?.get(key)
      if (settled) return settled
      const keyOf: PlanInput['keyOf'] = (names) => health.route(names)
      const shared = { platform: providers, own, sharesRoutes, rulesOf, keyOf }
      const candidates = candidatesOf({ model, surface, wishes, dialects, ...shared })
      plans.set(model, (plans.get(model) ?? new Map<string, readonly Candidate[]>()).set(key, candidates))
      return candidates
    },
  }
}

const suggestionsMax = 3

function unknownModel(id: string, seen: readonly string[]): Failure {
  const near = nearestNames(id, seen, suggestionsMax)
  const hint =
    near.length === 0
      ? ' GET /v1/models lists what this key can use.'
      : ` Did you mean ${near.map((each) => `\`${each}\``).join(' or ')}?`
  return new Failure('NOT_FOUND', `No model \`${shorten(id)}\`.${hint}`, { param: 'model' })
}

function shorten(id: string): string {
  // A key in the wrong field is still a key.
  const shown = id.replace(/sk-tg-\w+/g, 'sk-tg-…')
  return shown.length > 100 ? `${shown.slice(0, 100)}…` : shown
}
