// The order in which the routes of a model are tried, and which measurements are shown.

import { routeStatus } from '../../api/route-state.ts'
import { outlierLimitMs, samplesMin } from '../../routing/latency.ts'
import type { CatalogRoute, Figures } from './entry.ts'
import { countOf } from './format.ts'

export interface OrderedRoute {
  readonly route: CatalogRoute
  /** 1 = tried first; routes of the same priority share a place. undefined = skipped now. */
  readonly place: number | undefined
  readonly why: string
}

/** The figures of the route with the most samples. */
export function busiestFigures(
  routes: readonly CatalogRoute[],
  kind: 'first_event_ms' | 'tokens_per_second',
): Figures | null {
  let found: Figures | null = null
  for (const route of routes) {
    const figures = route[kind]
    if (figures && figures.samples > (found?.samples ?? 0)) found = figures
  }
  return found
}

export function hasEnoughSamples(figures: Figures | null): figures is Figures {
  return figures !== null && figures.samples >= samplesMin
}

/** Shown instead of a number. */
export function missingFigureText(figures: Figures | null, isUnmeasured: boolean): string {
  if (isUnmeasured) return 'not measured'
  return figures ? `not enough traffic yet (${countOf(figures.samples, 'call')})` : 'no streams yet'
}

/** A slow route keeps half its share. */
const outlierFactor = 0.5

/**
 * The order in which the router would try the routes now. It follows routing/plan.ts, which draws lots
 * among routes of the same priority; for those the share is given instead of a place.
 */
export function orderRoutes(routes: readonly CatalogRoute[]): readonly OrderedRoute[] {
  const isLastResort = !routes.some(({ factor, health }) => factor > 0 && health !== 'probing')
  const isKept = (route: CatalogRoute) => (isLastResort ? route.health !== 'parked' : route.factor > 0)
  const priorities = [...new Set(routes.filter(isKept).map(({ priority }) => priority))].sort((a, b) => a - b)
  const ordered = priorities.flatMap((priority, index) => {
    const group = routes.filter((route) => route.priority === priority && isKept(route))
    return orderGroup(group, { place: index + 1, isLastResort })
  })
  const skipped = routes
    .filter((route) => !isKept(route))
    .map((route) => {
      const { text, detail } = routeStatus(route)
      return { route, place: undefined, why: `skipped: ${text}. ${detail}` }
    })
  return [...ordered, ...skipped]
}

interface GroupOptions {
  readonly place: number
  readonly isLastResort: boolean
}

function orderGroup(group: readonly CatalogRoute[], { place, isLastResort }: GroupOptions): readonly OrderedRoute[] {
  const limitMs = outlierLimitMs(
    group
      .map((route) => route.first_event_ms)
      .filter(hasEnoughSamples)
      .map(({ p95 }) => p95),
  )
  const rated = group.map((route) => {
    const figures = route.first_event_ms
    const isSlow = hasEnoughSamples(figures) && figures.p95 > limitMs
    const factor = (isLastResort ? 1 : route.factor) * (isSlow ? outlierFactor : 1)
    return { route, isSlow, factor, weight: route.weight * factor }
  })
  rated.sort((a, b) => b.weight - a.weight)
  const total = rated.reduce((sum, { weight }) => sum + weight, 0)
  return rated.map(({ route, isSlow, factor, weight }) => {
    const reasons = [`priority ${route.priority}`]
    if (group.length > 1) reasons.push(`${Math.round((100 * weight) / total)} % of first attempts, by weight`)
    else if (place === 1) reasons.push('the only route of this priority, so tried first')
    else reasons.push('tried after lower priority numbers')
    if (isSlow) reasons.push('half share: slower than its peers')
    if (isLastResort) reasons.push('tried although failing: no better route is left')
    else if (factor < 1 && !isSlow) reasons.push(`reduced share: ${routeStatus(route).text}`)
    return { route, place, why: reasons.join('; ') }
  })
}
