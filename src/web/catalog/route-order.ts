// The order in which the router would try a model's routes now, and why, for people. It follows the rules of
// routing/health/plan-with-health.ts, which draws lots among routes of one priority: what is certain is said as a place,
// what is drawn as a share.

import { outlierLimitMs, samplesMin } from '../../routing/health/latency.ts'
import type { CatalogRoute } from './entry.ts'
import { routeStanding } from './standing.ts'

export interface OrderedRoute {
  readonly route: CatalogRoute
  /** 1 = tried first; routes of one priority share a place. undefined = left out now. */
  readonly place: number | undefined
  readonly why: string
}

/** What a state usually leaves of a route's weight. */
const usualFactors: Readonly<Record<string, number>> = { ejected: 0, parked: 0, probing: 0.1, 'slow start': 0.1 }
/** A slow route keeps half of its share. */
const outlierFactor = 0.5

const factorOf = ({ factor, health }: CatalogRoute): number => factor ?? usualFactors[health] ?? 1

export function orderRoutes(routes: readonly CatalogRoute[]): readonly OrderedRoute[] {
  const isPanic = !routes.some((route) => factorOf(route) > 0 && route.health !== 'probing')
  const isKept = (route: CatalogRoute) => (isPanic ? route.health !== 'parked' : factorOf(route) > 0)
  const priorities = [...new Set(routes.filter(isKept).map(({ priority }) => priority))].sort((a, b) => a - b)
  const ordered = priorities.flatMap((priority, index) => {
    const group = routes.filter((route) => route.priority === priority && isKept(route))
    return orderGroup(group, { place: index + 1, isPanic })
  })
  const left = routes
    .filter((route) => !isKept(route))
    .map((route) => {
      const { word, detail } = routeStanding(route)
      return { route, place: undefined, why: `left out: ${word}${detail === '' ? '' : ` (${detail})`}` }
    })
  return [...ordered, ...left]
}

interface Turn {
  readonly place: number
  readonly isPanic: boolean
}

function orderGroup(group: readonly CatalogRoute[], { place, isPanic }: Turn): readonly OrderedRoute[] {
  const telling = group.flatMap(({ first_event_ms: figures }) =>
    figures && figures.samples >= samplesMin ? figures : [],
  )
  const limitMs = outlierLimitMs(telling.map(({ p95 }) => p95))
  const rated = group.map((route) => {
    const figures = route.first_event_ms
    const isSlow = figures !== null && figures.samples >= samplesMin && figures.p95 > limitMs
    const factor = (isPanic ? 1 : factorOf(route)) * (isSlow ? outlierFactor : 1)
    return { route, isSlow, factor, weight: route.weight * factor }
  })
  rated.sort((a, b) => b.weight - a.weight)
  const total = rated.reduce((sum, { weight }) => sum + weight, 0)
  return rated.map(({ route, isSlow, factor, weight }) => {
    const reasons = [`priority ${route.priority}`]
    if (group.length > 1) reasons.push(`${Math.round((100 * weight) / total)} % of the first tries, by weight`)
    else if (place === 1) reasons.push(`alone there, so it goes first`)
    else reasons.push('after every route of a lower number')
    if (isSlow) reasons.push('half its share: slow for this group')
    if (isPanic) reasons.push('tried although it fails: nothing better is left')
    else if (factor < 1 && !isSlow) reasons.push(`a reduced share: ${routeStanding(route).word}`)
    return { route, place, why: reasons.join('; ') }
  })
}
