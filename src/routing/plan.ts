// Which routes a request tries, and in which order: the candidates of a model for a caller, their order by health, price and
// weight, and the caller's preferences. Pure: states and chance are passed in. Health alone never leaves a request without
// a candidate; only routes whose providers asked us to wait stay out.

import type { Model, Route, RoutingPolicy } from '../catalog/model.ts'
import { type Price, ratesAt } from '../catalog/price.ts'
import type { Fee } from '../catalog/price-versions.ts'
import type { TargetRules } from '../dialects/canonical/target-rules.ts'
import type { ProviderPreferences } from '../dialects/canonical/translation.ts'
import type { Dialect, Dialects, UpstreamDialect } from '../dialects/dialect.ts'
import { Failure } from '../kernel/failure.ts'
import { formatPrice, type Pico } from '../kernel/money.ts'
import type { Endpoint, Provider } from '../providers/provider.ts'
import { rulesFor } from '../providers/rules/rules-for.ts'
import { outlierLimitMs, type Quantiles } from './latency.ts'
import { platformCredential, type RouteHealth, type RouteNames, type RouteState } from './route.ts'

// ── Candidates ──

// One for each route to a provider that can be called, at the endpoint that fits the caller's dialect best and accepts the
// combination the request asks for.

/** A model that can be called: it has a price and a provider, of the operator or of a workspace. */
export interface OfferedModel extends Model {
  readonly price: Price
  /** Identifies the price permanently; a charge is stored with it. */
  readonly priceVersion: string | undefined
  /** Since when it has had this price, in epoch milliseconds. */
  readonly pricedAt?: number | undefined
  /** The cost of a call on the workspace's own credential; absent = none. */
  readonly fee?: Fee | undefined
  /** The id as JSON, as replies carry it. */
  readonly idJson: Uint8Array
}

/** A route chosen for a request: its endpoint, dialect and credential. */
export interface Candidate {
  /** The model that it serves. */
  readonly model: OfferedModel
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
  /** Its requests are lines of a batch of the provider, charged at the price for those. */
  readonly inBatch?: true
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
  readonly model: OfferedModel
  /** The caller's dialect; an endpoint of the same one is preferred, because nothing is lost on the way to it. */
  readonly surface: Dialect
  readonly features: RequestedFeatures
  readonly dialects: Dialects
  readonly platform: ReadonlyMap<string, Provider>
  readonly own: ReadonlyMap<string, OwnProvider>
  /** Whether routes on the operator's credentials may follow those on the workspace's own. */
  readonly sharesRoutes: boolean
  rulesOf(route: Route, endpoint: Endpoint, model: Pick<Model, 'tags' | 'cacheMarks'>): TargetRules
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
    model: input.model,
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

/** Caches the rules, which depend on names and on what the catalog says of the model. */
export function rememberRules(): PlanInput['rulesOf'] {
  const known = new Map<Route, Map<Endpoint, TargetRules>>()
  return (route, endpoint, { tags, cacheMarks }) => {
    const cached = known.get(route)?.get(endpoint)
    if (cached) return cached
    const { dialect, rules: endpointRules, modelRules } = endpoint
    const { upstreamModel } = route
    const rules = rulesFor({ dialect, upstreamModel, endpointRules, modelRules, tags, cacheMarks })
    known.set(route, (known.get(route) ?? new Map<Endpoint, TargetRules>()).set(endpoint, rules))
    return rules
  }
}

// ── Their order ──

/** The part of a candidate that ranking needs. */
export interface Rankable {
  readonly route: Pick<Route, 'priority' | 'weight' | 'cost'>
  readonly health: RouteHealth
}

/** A candidate and its current health. */
export interface Rated<Item extends Rankable> {
  readonly candidate: Item
  readonly state: RouteState
  /** undefined = too few samples. */
  readonly firstEvent: Quantiles | undefined
}

export interface PlanPreferences {
  /** The name of the route that has this conversation's prompt cache. */
  readonly sticky?: string | undefined
  /** Every replica chooses the same route for the same conversation, if it has the same opinion of the routes' health. */
  readonly conversation?: string | undefined
  /** Within one priority: share by weight (the default), or take the cheapest or the fastest to begin. */
  readonly policy?: RoutingPolicy
  /** Off while the retry budget is empty: a failed probe would be visible to the caller. */
  readonly probes?: 'on' | 'off'
  /** A number in [0, 1). */
  random(): number
}

export interface Excluded<Item> {
  readonly candidate: Item
  readonly state: RouteState
}

export interface HealthPlan<Item> {
  readonly ordered: readonly Item[]
  /** Why each of `ordered` has its place. */
  readonly reasons: readonly string[]
  readonly excluded: readonly Excluded<Item>[]
  /** Panic: no route is known to work, so all are tried except those whose providers asked us to wait. */
  readonly mode: 'ordinary' | 'panic'
}

/** A slow route keeps half of its share: slowness alone never removes a route. */
const outlierFactor = 0.5
/** Most requests read more than they write. */
const inputShare = 3

export function planWithHealth<Item extends Rankable>(
  rated: readonly Rated<Item>[],
  preferences: PlanPreferences,
): HealthPlan<Item> {
  // A probe may be refused when its turn comes, so it does not count as working.
  const mode = rated.some(({ state }) => state.factor > 0 && state.state !== 'probing') ? 'ordinary' : 'panic'
  const excluded: Excluded<Item>[] = []
  const kept: Rated<Item>[] = []
  for (const each of rated) {
    const { candidate, state } = each
    if (isLeftOut(state, mode, preferences)) excluded.push({ candidate, state })
    else kept.push(each)
  }
  const placed = inGroups(kept).flatMap((group) => orderGroup(group, mode, preferences))
  return {
    ordered: placed.map(({ candidate }) => candidate),
    reasons: placed.map(({ reason }) => reason),
    excluded,
    mode,
  }
}

function isLeftOut(state: RouteState, mode: HealthPlan<unknown>['mode'], { probes }: PlanPreferences): boolean {
  if (mode === 'panic') return state.state === 'parked' && !state.isGuess
  return state.factor === 0 || (state.state === 'probing' && probes === 'off')
}

/** In the order they are tried; the candidates of a group compete: one priority, one kind of credential. */
function inGroups<Item extends Rankable>(kept: Rated<Item>[]): Rated<Item>[][] {
  const groups: Rated<Item>[][] = []
  for (const each of kept.sort((a, b) => compareGroups(a.candidate, b.candidate))) {
    const last = groups.at(-1)
    if (last?.[0] && compareGroups(last[0].candidate, each.candidate) === 0) last.push(each)
    else groups.push([each])
  }
  return groups
}

/** A workspace's own credentials come before the operator's, whatever the priorities. */
function compareGroups(a: Rankable, b: Rankable): number {
  return ownRank(a) - ownRank(b) || a.route.priority - b.route.priority
}

function ownRank({ health }: Rankable): number {
  return health.credentialId === platformCredential ? 1 : 0
}

function orderGroup<Item extends Rankable>(
  group: readonly Rated<Item>[],
  mode: HealthPlan<unknown>['mode'],
  { sticky, policy = 'priority', conversation, random }: PlanPreferences,
): { readonly candidate: Item; readonly reason: string }[] {
  const limitMs = outlierLimitMs(group.flatMap(({ firstEvent }) => (firstEvent ? [firstEvent.p95] : [])))
  // A route without samples ranks as the best until it has some; otherwise it would never get any.
  const bestMs = Math.min(...group.map(({ firstEvent }) => firstEvent?.p50 ?? Number.POSITIVE_INFINITY))
  const seed = conversation === undefined ? undefined : Bun.hash.xxHash32(conversation)
  const ranked = group.map(({ candidate, state, firstEvent }) => {
    // Not for a conversation: each replica measures for itself, and they would choose different routes for it.
    const isOutlier = seed === undefined && firstEvent !== undefined && firstEvent.p95 > limitMs
    const factor = (mode === 'panic' ? 1 : state.factor) * (isOutlier ? outlierFactor : 1)
    const isSticky = candidate.health.name === sticky
    return {
      candidate,
      turn: turnOf(state, isSticky),
      // With less than full weight it must be that much better to come first.
      rank: rankBy(policy, candidate, firstEvent?.p50 ?? bestMs) / factor,
      draw: weightedDraw(candidate.route.weight * factor, seed === undefined ? random() : hashedUnit(seed, candidate)),
      reason: placeReason({ candidate, state, firstEvent, policy, mode, isSticky, isOutlier, rivals: group.length }),
    }
  })
  return ranked.sort((a, b) => a.turn - b.turn || compareRanks(a.rank, b.rank) || b.draw - a.draw)
}

/** Free = nothing. */
function shortPromptCost(cost: Price): { readonly input: Pico; readonly output: Pico } {
  const { input = 0n as Pico, output = 0n as Pico } = ratesAt(cost, 0)
  return { input, output }
}

/** Lower comes first; equal ranks share by weight. */
function rankBy(policy: RoutingPolicy, { route: { cost } }: Rankable, firstEventMs: number): number {
  if (policy === 'fastest') return Number.isFinite(firstEventMs) ? firstEventMs : 0
  if (policy === 'priority') return 0
  if (!cost) return Number.POSITIVE_INFINITY
  const { input, output } = shortPromptCost(cost)
  return inputShare * Number(input) + Number(output)
}

/** Two infinite ranks are equal; their difference would be NaN. */
function compareRanks(a: number, b: number): number {
  return a === b ? 0 : a - b
}

/** The sticky route first, because a lost prompt cache costs more than a later probe. Then a probe, or there would be none. */
function turnOf({ state, factor }: RouteState, isSticky: boolean): number {
  if (state === 'parked') return 3
  if (state === 'probing') return factor > 0 ? 1 : 2
  return isSticky && state !== 'ejected' ? 0 : 2
}

/**
 * Sorting by u^(1/weight) picks without replacement in proportion to the weights (Efraimidis and Spirakis, 2006), so
 * one pass orders a whole group.
 */
function weightedDraw(weight: number, unit: number): number {
  return weight > 0 ? unit ** (1 / weight) : -1
}

/**
 * Rendezvous hashing: a number in (0, 1) by conversation and route. If a route comes or goes, only its own conversations
 * move.
 */
function hashedUnit(seed: number, { health }: Rankable): number {
  return (Bun.hash.xxHash32(health.name, seed) + 0.5) / 2 ** 32
}

// ── A caller's preferences ──

// In the form that OpenRouter made common: further models for the case that the first fails (`models`), and which of the
// operator's routes to use in which order (`provider`, `:floor`, `:nitro`). A caller can only narrow or reorder what the
// operator offers.

/** Our policies by the words of `provider.sort` and by the suffixes of model names. */
const policies: Readonly<Record<string, RoutingPolicy>> = {
  ...{ price: 'cheapest', throughput: 'fastest', latency: 'fastest' },
  ...{ floor: 'cheapest', nitro: 'fastest' },
}

const suffix = /:(floor|nitro)$/

/** The name without `:floor` or `:nitro`, and the policy that the suffix asks for. */
export function splitSuffix(name: string): { readonly name: string; readonly policy: RoutingPolicy | undefined } {
  const word = suffix.exec(name)?.[1]
  return word === undefined ? { name, policy: undefined } : { name: name.replace(suffix, ''), policy: policies[word] }
}

export function policyOf({ sort }: ProviderPreferences): RoutingPolicy | undefined {
  return sort === undefined ? undefined : policies[sort]
}

/** The candidates at providers that the caller wants; a failure if it wants none of those there are. */
export function wantedCandidates(
  candidates: readonly Candidate[],
  { order, only, ignore, isClosed }: ProviderPreferences,
  modelId: string,
): readonly Candidate[] | Failure {
  const among = only ?? (isClosed ? order : undefined)
  const wanted = candidates.filter(({ provider: { id } }) => {
    const name = id.toLowerCase()
    return among?.includes(name) !== false && !ignore?.includes(name)
  })
  if (wanted.length > 0) return wanted
  const served = [...new Set(candidates.map(({ provider }) => provider.id))].join(', ')
  const message = `\`provider\` leaves no route to \`${modelId}\`, which is served by ${served}. Name one of them, or leave \`provider\` out.`
  return new Failure('NOT_FOUND', message, { param: 'provider', cause: 'no_route' })
}

/** The candidates of the named providers first, in that order. */
export function inOrder(plan: HealthPlan<Candidate>, order: readonly string[]): HealthPlan<Candidate> {
  const placeOf = ({ provider }: Candidate): number => {
    const place = order.indexOf(provider.id.toLowerCase())
    return place === -1 ? order.length : place
  }
  const placed = plan.ordered.map((candidate, at) => {
    const reason = plan.reasons[at] ?? ''
    const place = placeOf(candidate)
    return { candidate, place, reason: place < order.length ? `${reason}, ${place + 1} in the caller's order` : reason }
  })
  placed.sort((a, b) => a.place - b.place)
  return { ...plan, ordered: placed.map(({ candidate }) => candidate), reasons: placed.map(({ reason }) => reason) }
}

export function onlyCandidates(
  plan: HealthPlan<Candidate>,
  isKept: (candidate: Candidate) => boolean,
): HealthPlan<Candidate> {
  const { ordered, reasons, excluded } = plan
  return {
    ...plan,
    ordered: ordered.filter(isKept),
    reasons: reasons.filter((_, at) => isKept(ordered[at] as Candidate)),
    excluded: excluded.filter(({ candidate }) => isKept(candidate)),
  }
}

/** One plan for several models: all routes of the first, then those of the next. */
export function joinPlans(plans: readonly HealthPlan<Candidate>[]): HealthPlan<Candidate> {
  return {
    ordered: plans.flatMap(({ ordered }) => ordered),
    reasons: plans.flatMap(({ ordered, reasons }, at) =>
      ordered.map(({ model }, place) =>
        at === 0 ? (reasons[place] ?? '') : `${reasons[place] ?? ''}, fallback ${model.id}`,
      ),
    ),
    excluded: plans.flatMap(({ excluded }) => excluded),
    mode: plans.some(({ mode }) => mode === 'ordinary') ? 'ordinary' : 'panic',
  }
}

// ── The plan as people read it ──

interface Place extends Rated<Rankable> {
  readonly policy: RoutingPolicy
  readonly mode: HealthPlan<unknown>['mode']
  readonly isSticky: boolean
  readonly isOutlier: boolean
  /** Candidates of the group, itself included. */
  readonly rivals: number
}

/** `own credential, priority 1, weight 3, slow start: 40 % of its share` */
function placeReason({ candidate, state, firstEvent, policy, mode, isSticky, isOutlier, rivals }: Place): string {
  const { route, health } = candidate
  let text = health.credentialId === platformCredential ? '' : 'own credential, '
  text += `priority ${route.priority}`
  if (rivals > 1) text += `, ${choiceReason(route, policy, firstEvent)}`
  if (isSticky) text += ', has the prompt cache of this conversation'
  if (isOutlier) text += ', slower than the others: half its weight'
  if (mode === 'panic') return `${text}, tried because no route is known to work`
  if (state.state === 'probing') return `${text}, tested after an ejection`
  if (state.factor === 1) return text
  return `${text}, ${state.state === 'slow start' ? 'slow start' : 'overloaded'}: ${Math.round(state.factor * 100)} % of its share`
}

function choiceReason(
  { weight, cost }: Rankable['route'],
  policy: RoutingPolicy,
  firstEvent: Quantiles | undefined,
): string {
  if (policy === 'fastest') return firstEvent ? `begins after ${Math.round(firstEvent.p50)} ms` : 'not measured yet'
  if (policy === 'cheapest') {
    if (!cost) return 'cost not known'
    const { input, output } = shortPromptCost(cost)
    return `costs $${formatPrice(input)} / $${formatPrice(output)}`
  }
  return `weight ${weight}`
}

/** `left out: ejected (failing), 41 s left` */
export function exclusionReason({ state, why, waitMs }: RouteState): string {
  const cause = why === undefined ? '' : ` (${why})`
  const seconds = Math.ceil((waitMs ?? 0) / 1000)
  // Another request is probing it.
  const word = state === 'probing' ? 'being tested' : state
  return `left out: ${word}${cause}${seconds > 0 ? `, ${seconds} s left` : ''}`
}
