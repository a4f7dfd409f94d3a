// Which candidates are tried and in which order, given their states, and why, for people. Pure: states and chance are passed
// in. Health alone never leaves a request without a candidate; only routes whose providers asked us to wait stay out.

import type { Route, RoutingPolicy } from '../catalog/model.ts'
import { type Price, ratesAt } from '../catalog/price.ts'
import { formatPrice, type Pico } from '../kernel/money.ts'
import { outlierLimitMs, type Quantiles } from './latency.ts'
import { platformCredential, type RouteHealth, type RouteState } from './route.ts'

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

// ── Reasons ──

interface Place extends Rated<Rankable> {
  readonly policy: RoutingPolicy
  readonly mode: HealthPlan<unknown>['mode']
  readonly isSticky: boolean
  readonly isOutlier: boolean
  /** Candidates of the group, itself included. */
  readonly rivals: number
}

/** `own credential, priority 1, weight 3, slow start at 40 %` */
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
  return `${text}, ${state.state === 'slow start' ? 'slow start' : 'overloaded'} at ${Math.round(state.factor * 100)} %`
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
