// The candidates of a model for a caller, before health: one for each route to a provider that can be called, at the
// endpoint that fits the caller's dialect best and accepts the combination the request asks for. Also the plan as people
// read it.

import type { Model, Route } from '../catalog/model.ts'
import type { TargetRules } from '../dialects/canonical/target-rules.ts'
import type { Dialect, Dialects, UpstreamDialect } from '../dialects/dialect.ts'
import type { Failure } from '../kernel/failure.ts'
import type { Endpoint, Provider } from '../providers/provider.ts'
import { rulesFor } from '../providers/rules/rules-for.ts'
import type { CandidateRecord } from '../telemetry/request-record.ts'
import { exclusionReason, type HealthPlan } from './rank.ts'
import { platformCredential, type RouteHealth, type RouteNames } from './route.ts'

/** A route chosen for a request: its endpoint, dialect and credential. */
export interface Candidate {
  readonly route: Route
  readonly provider: Provider
  readonly endpoint: Endpoint
  /** The dialect of the endpoint. */
  readonly dialect: UpstreamDialect
  /** The rules of the model at this endpoint. */
  readonly rules: TargetRules
  /** Why this endpoint, if it is not the one that the caller's dialect suggests. */
  readonly why?: string
  readonly health: RouteHealth
  /** On the workspace's own credential: the provider bills the workspace, not the operator. */
  readonly isOwn: boolean
  /** It is not called, and no other credential in its place; this is the error. */
  readonly refusal?: Failure
}

/** A provider opened with a workspace's own credential. */
export interface OwnProvider {
  readonly provider: Provider
  readonly credentialId: string
  /** Its key cannot be used; this is the error. */
  readonly refusal?: Failure
}

/** Features of a request that not every endpoint of a provider supports together. */
export interface RequestedFeatures {
  readonly offersTools: boolean
  /** undefined = the model's default. */
  readonly reasoning: 'on' | 'off' | undefined
}

export interface PlanInput {
  readonly model: Model
  /** The caller's dialect; an endpoint of the same one is preferred, because nothing is lost on the way to it. */
  readonly surface: Dialect
  readonly features: RequestedFeatures
  readonly dialects: Dialects
  readonly platform: ReadonlyMap<string, Provider>
  readonly own: ReadonlyMap<string, OwnProvider>
  /** Whether routes on the operator's credentials may follow those on the workspace's own. */
  readonly sharesRoutes: boolean
  /** The rules of a route's model at this endpoint. */
  rulesOf(route: Route, endpoint: Endpoint, model: Pick<Model, 'tags'>): TargetRules
  healthOf(names: RouteNames): RouteHealth
}

export function candidatesOf(input: PlanInput): readonly Candidate[] {
  const { model, own, platform, sharesRoutes } = input
  const candidates: Candidate[] = []
  for (const route of model.routes) {
    const found = own.get(route.providerId)
    const candidate = found && candidateFor(input, route, found.provider, found.credentialId)
    if (!candidate) continue
    const { refusal } = found
    candidates.push(refusal ? { ...candidate, refusal, why: 'its key cannot be used' } : candidate)
  }
  // The workspace pays its own provider, so we do not bill it as well unless it allows that, not even with a broken key.
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
    health: input.healthOf({ providerId: provider.id, baseUrl, upstreamModel: route.upstreamModel, credentialId }),
    isOwn: credentialId !== platformCredential,
    ...(why !== undefined && { why }),
  }
}

/** The endpoint in the caller's dialect among those that serve the model, or the first, unless only another accepts it all. */
function chooseEndpoint(
  input: PlanInput,
  route: Route,
  provider: Provider,
): { readonly endpoint: Endpoint; readonly why?: string } | undefined {
  const serving = provider.endpoints.filter(({ models }) => models?.test(route.upstreamModel) !== false)
  // An unexpected model name is tried anyway.
  const endpoints = serving.length > 0 ? serving : provider.endpoints
  const usual = endpoints.find(({ dialect }) => dialect === input.surface.id) ?? endpoints[0]
  if (!usual || endpoints.length === 1 || takesTogether(input, route, usual)) return usual && { endpoint: usual }
  const other = endpoints.find((each) => takesTogether(input, route, each))
  if (!other) return { endpoint: usual }
  return { endpoint: other, why: `${other.dialect}, because ${usual.dialect} refuses tools while the model reasons` }
}

function takesTogether({ features, model, rulesOf }: PlanInput, route: Route, endpoint: Endpoint): boolean {
  if (!features.offersTools || features.reasoning === 'off') return true
  const { toolsWithReasoning, thinksByDefault } = rulesOf(route, endpoint, model)
  return toolsWithReasoning !== false || (features.reasoning === undefined && thinksByDefault !== true)
}

/** Caches the rules, which depend on names and tags only. */
export function rememberRules(): PlanInput['rulesOf'] {
  const known = new Map<Route, Map<Endpoint, TargetRules>>()
  return (route, endpoint, { tags }) => {
    const cached = known.get(route)?.get(endpoint)
    if (cached) return cached
    const { dialect, rules: endpointRules, modelRules } = endpoint
    const rules = rulesFor({ dialect, upstreamModel: route.upstreamModel, endpointRules, modelRules, tags })
    known.set(route, (known.get(route) ?? new Map<Endpoint, TargetRules>()).set(endpoint, rules))
    return rules
  }
}

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
