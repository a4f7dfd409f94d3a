// Which candidates are tried and in which order, given how each stands. Pure: standings and chance are handed in. Health
// alone never leaves a request without a candidate; only what its provider told us to leave alone stays out.

import type { Route, RoutingPolicy } from '../../catalog/model.ts'
import { outlierLimitMs, type Quantiles } from './latency.ts'
import { placeReason } from './plan-reason.ts'
import { platformCredential, type RouteKey } from './route-key.ts'
import type { Standing } from './standing.ts'

/** What a candidate must have to be ranked. */
export interface Rankable {
  readonly route: Pick<Route, 'priority' | 'weight' | 'cost'>
  readonly key: RouteKey
}

/** A candidate and what is known of it at this moment. */
export interface Rated<Item extends Rankable> {
  readonly candidate: Item
  readonly standing: Standing
  /** undefined = too few samples to decide anything by. */
  readonly firstEvent: Quantiles | undefined
}

export interface PlanPreferences {
  /** The route that has this conversation's prompt cache. */
  readonly sticky?: RouteKey | undefined
  /** Inside one priority: share by weight (the default), or take the cheapest or the quickest to begin. */
  readonly policy?: RoutingPolicy
  /** Off while the retry budget is empty: a probe that failed would be seen. */
  readonly probes?: 'on' | 'off'
  /** A number in [0, 1). */
  random(): number
}

export interface Excluded<Item> {
  readonly candidate: Item
  readonly standing: Standing
}

export interface HealthPlan<Item> {
  readonly ordered: readonly Item[]
  /** Why each of the ordered stands where it does, for people. */
  readonly reasons: readonly string[]
  readonly excluded: readonly Excluded<Item>[]
  /** Panic: no route is known to work, so all are tried but those that their providers told us to leave alone. */
  readonly mode: 'ordinary' | 'panic'
}

/** A slow route keeps half of its share: slowness alone never takes a route away. */
const outlierFactor = 0.5

export function planWithHealth<Item extends Rankable>(
  rated: readonly Rated<Item>[],
  preferences: PlanPreferences,
): HealthPlan<Item> {
  // A probe may be refused when its turn comes, so it is nothing to rely on.
  const mode = rated.some(({ standing }) => standing.factor > 0 && standing.state !== 'probing') ? 'ordinary' : 'panic'
  const excluded: Excluded<Item>[] = []
  const kept: Rated<Item>[] = []
  for (const each of rated) {
    const { candidate, standing } = each
    if (isLeftOut(standing, mode, preferences)) excluded.push({ candidate, standing })
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

function isLeftOut(standing: Standing, mode: HealthPlan<unknown>['mode'], { probes }: PlanPreferences): boolean {
  if (mode === 'panic') return standing.state === 'parked' && !standing.isGuess
  return standing.factor === 0 || (standing.state === 'probing' && probes === 'off')
}

/** In the order they are tried; inside a group are those that compete: one priority, one kind of credential. */
function inGroups<Item extends Rankable>(kept: Rated<Item>[]): Rated<Item>[][] {
  const groups: Rated<Item>[][] = []
  for (const each of kept.sort((a, b) => compareGroups(a.candidate, b.candidate))) {
    const last = groups.at(-1)
    if (last?.[0] && compareGroups(last[0].candidate, each.candidate) === 0) last.push(each)
    else groups.push([each])
  }
  return groups
}

/** A workspace's own credentials come before ours, whatever the priorities. */
function compareGroups(a: Rankable, b: Rankable): number {
  return ownRank(a) - ownRank(b) || a.route.priority - b.route.priority
}

function ownRank({ key }: Rankable): number {
  return key.credentialId === platformCredential ? 1 : 0
}

interface Placed<Item> {
  readonly candidate: Item
  readonly reason: string
}

function orderGroup<Item extends Rankable>(
  group: readonly Rated<Item>[],
  mode: HealthPlan<unknown>['mode'],
  { sticky, policy = 'priority', random }: PlanPreferences,
): Placed<Item>[] {
  const limitMs = outlierLimitMs(group.flatMap(({ firstEvent }) => (firstEvent ? [firstEvent.p95] : [])))
  // A route without figures counts as the best until it has some, or it would never get any.
  const bestMs = Math.min(...group.map(({ firstEvent }) => firstEvent?.p50 ?? Number.POSITIVE_INFINITY))
  const ranked = group.map(({ candidate, standing, firstEvent }) => {
    const isOutlier = firstEvent !== undefined && firstEvent.p95 > limitMs
    const factor = (mode === 'panic' ? 1 : standing.factor) * (isOutlier ? outlierFactor : 1)
    const isSticky = candidate.key === sticky
    return {
      candidate,
      turn: turnOf(standing, isSticky),
      // What does not have all of its weight has to be that much better to come first.
      rank: rankBy(policy, candidate, firstEvent?.p50 ?? bestMs) / factor,
      draw: weightedDraw(candidate.route.weight * factor, random),
      reason: placeReason({ candidate, standing, firstEvent, policy, mode, isSticky, isOutlier, rivals: group.length }),
    }
  })
  return ranked.sort((a, b) => a.turn - b.turn || compareRanks(a.rank, b.rank) || b.draw - a.draw)
}

/** Most requests read more than they write. */
const inputShare = 3

/** Lower comes first; equal ranks share by weight. */
function rankBy(policy: RoutingPolicy, { route: { cost } }: Rankable, firstEventMs: number): number {
  if (policy === 'fastest') return Number.isFinite(firstEventMs) ? firstEventMs : 0
  if (policy === 'priority') return 0
  return cost === undefined ? Number.POSITIVE_INFINITY : inputShare * Number(cost.input) + Number(cost.output)
}

/** Two that are not known are alike; subtracting them would be no number. */
function compareRanks(a: number, b: number): number {
  return a === b ? 0 : a - b
}

/** The sticky route first: a lost prompt cache costs more than a later probe. Then the probe, or there would be none. */
function turnOf({ state, factor }: Standing, isSticky: boolean): number {
  // Asked when nobody else is left.
  if (state === 'parked') return 3
  if (state === 'probing') return factor > 0 ? 1 : 2
  return isSticky && state !== 'ejected' ? 0 : 2
}

/**
 * Sorting by u^(1/weight) picks without replacement in proportion to the weights (Efraimidis and Spirakis, 2006), so
 * one pass orders a whole group.
 */
function weightedDraw(weight: number, random: () => number): number {
  return weight > 0 ? random() ** (1 / weight) : -1
}
