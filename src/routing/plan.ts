// The candidates of a model for a caller, before anyone asks how they are: one for each route to a provider that can be
// called, in the endpoint that fits the caller's dialect best and takes what the request asks for together. Pure; order
// comes with health.

import type { Model, Route } from '../catalog/model.ts'
import type { TargetRules } from '../dialects/canonical/target-rules.ts'
import type { Dialect, Dialects } from '../dialects/dialect.ts'
import type { Failure } from '../kernel/failure.ts'
import type { Endpoint, Provider } from '../providers/provider.ts'
import { rulesFor } from '../providers/rules/rules-for.ts'
import type { Candidate } from './candidate.ts'
import { platformCredential, type RouteKey, type RouteNames } from './health/route-key.ts'
import type { OwnProvider } from './own-providers.ts'

/** What a request asks for that not every endpoint of a provider can do at once. */
export interface PlanWishes {
  readonly offersTools: boolean
  /** undefined = as the model does by itself. */
  readonly reasoning: 'on' | 'off' | undefined
}

export interface PlanInput {
  readonly model: Model
  /** The dialect the caller speaks; an endpoint of the same one is preferred, since nothing is lost on the way to it. */
  readonly surface: Dialect
  readonly wishes: PlanWishes
  readonly dialects: Dialects
  readonly platform: ReadonlyMap<string, Provider>
  readonly own: ReadonlyMap<string, OwnProvider>
  /** Whether routes on the operator's credentials may follow those on the workspace's own. */
  readonly sharesRoutes: boolean
  /** What a route's model at this endpoint accepts. */
  rulesOf(route: Route, endpoint: Endpoint, model: Pick<Model, 'tags'>): TargetRules
  keyOf(names: RouteNames): RouteKey
}

export function candidatesOf(input: PlanInput): readonly Candidate[] {
  const { model, own, platform, sharesRoutes } = input
  const candidates: Candidate[] = []
  for (const route of model.routes) {
    const found = own.get(route.providerId)
    const candidate = found && candidateFor(input, route, found.provider, found.credentialId)
    if (candidate) candidates.push(found.refusal ? refusing(candidate, found.refusal) : candidate)
  }
  // What the workspace pays its provider for is not billed by us as well, unless it said so; with a broken key neither.
  if (candidates.length > 0 && !sharesRoutes) return candidates
  for (const route of model.routes) {
    const provider = platform.get(route.providerId)
    const candidate = provider && candidateFor(input, route, provider, platformCredential)
    if (candidate) candidates.push(candidate)
  }
  return candidates
}

function candidateFor(input: PlanInput, route: Route, provider: Provider, credentialId: string): Candidate | undefined {
  const chosen = chooseEndpoint(input, route, provider)
  if (!chosen) return undefined
  const { endpoint, why } = chosen
  const { baseUrl } = endpoint
  return {
    route,
    provider,
    endpoint,
    dialect: input.dialects[endpoint.dialect],
    rules: input.rulesOf(route, endpoint, input.model),
    key: input.keyOf({ providerId: provider.id, baseUrl, upstreamModel: route.upstreamModel, credentialId }),
    isOwn: credentialId !== platformCredential,
    ...(why !== undefined && { why }),
  }
}

function refusing(candidate: Candidate, refusal: Failure): Candidate {
  return { ...candidate, refusal, why: 'its key cannot be used' }
}

interface ChosenEndpoint {
  readonly endpoint: Endpoint
  readonly why?: string
}

/**
 * Of those that serve the model the one in the caller's dialect, or the first, unless the model there refuses what another
 * of them takes.
 */
function chooseEndpoint(input: PlanInput, route: Route, provider: Provider): ChosenEndpoint | undefined {
  const serving = provider.endpoints.filter(({ models }) => models?.test(route.upstreamModel) !== false)
  // A name that nobody expected is better asked for than not.
  const endpoints = serving.length > 0 ? serving : provider.endpoints
  const usual = endpoints.find(({ dialect }) => dialect === input.surface.id) ?? endpoints[0]
  if (!usual || endpoints.length === 1 || takesTogether(input, route, usual)) return usual && { endpoint: usual }
  const other = endpoints.find((each) => takesTogether(input, route, each))
  if (!other) return { endpoint: usual }
  return { endpoint: other, why: `${other.dialect}, because ${usual.dialect} refuses tools while the model reasons` }
}

function takesTogether({ wishes, model, rulesOf }: PlanInput, route: Route, endpoint: Endpoint): boolean {
  if (!wishes.offersTools || wishes.reasoning === 'off') return true
  const { toolsWithReasoning, thinksByDefault } = rulesOf(route, endpoint, model)
  return toolsWithReasoning !== false || (wishes.reasoning === undefined && thinksByDefault !== true)
}

/** Rules hang on names and tags alone: each pair is asked for once, however often it is planned with. */
export function rememberRules(): PlanInput['rulesOf'] {
  const known = new Map<Route, Map<Endpoint, TargetRules>>()
  return (route, endpoint, { tags }) => {
    const settled = known.get(route)?.get(endpoint)
    if (settled) return settled
    const { dialect, rules: endpointRules, modelRules } = endpoint
    const rules = rulesFor({ dialect, upstreamModel: route.upstreamModel, endpointRules, modelRules, tags })
    known.set(route, (known.get(route) ?? new Map<Endpoint, TargetRules>()).set(endpoint, rules))
    return rules
  }
}
