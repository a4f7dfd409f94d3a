// The status of models and routes as text, the order in which routes are tried, and which measurements are shown.

import { outlierLimitMs, samplesMin } from '../../routing/latency.ts'
import { type CatalogEntry, type CatalogRoute, type Figures, isOwnKeyOnly } from './entry.ts'

export type StatusLevel = 'ok' | 'warning' | 'error' | 'off'

export interface ShownStatus {
  readonly level: StatusLevel
  readonly text: string
  /** A sentence more; empty = none. */
  readonly detail: string
}

const healths: Readonly<Record<string, readonly [StatusLevel, string]>> = {
  healthy: ['ok', 'healthy'],
  'slow start': ['warning', 'recovering'],
  probing: ['warning', 'recovering (probing)'],
  parked: ['error', 'paused'],
  ejected: ['error', 'cooldown'],
}

/** Green only if requests have shown it: an unused route is neither healthy nor failing. */
export function routeStatus({ health, wait_ms, why, rehearsal, answered }: CatalogRoute): ShownStatus {
  // The sandbox has no health.
  if (rehearsal && health === 'healthy')
    return {
      level: 'off',
      text: 'simulated',
      detail: 'The sandbox answers inside the gateway and fails only on purpose.',
    }
  if (health === 'healthy' && !answered) {
    const last = why ? ` Last fault: ${why}` : ''
    return { level: 'off', text: 'no recent traffic', detail: `No answer in the last hour shows its state.${last}` }
  }
  const [level, text] = healths[health] ?? ['warning', health]
  const wait = level === 'error' && wait_ms ? ` ${spanText(wait_ms)}` : ''
  return { level, text: text + wait, detail: why && level !== 'ok' ? `last fault: ${why}` : '' }
}

export function modelStatus(entry: CatalogEntry): ShownStatus {
  const { routes } = entry
  if (!entry.callable) return { level: 'off', text: 'not callable', detail: 'It has no price.' }
  if (isOwnKeyOnly(entry))
    return { level: 'ok', text: 'own key', detail: 'Served with the workspace’s own provider key.' }
  if (routes.length === 0) return { level: 'off', text: 'no route', detail: 'No provider that serves it is enabled.' }
  const statuses = routes.map(routeStatus)
  const open = statuses.filter(({ level }) => level !== 'error').length
  if (open === 0) return { level: 'error', text: 'unavailable', detail: statuses.map(({ text }) => text).join(', ') }
  if (open < routes.length) {
    return {
      level: 'warning',
      text: `${open} of ${routes.length} available`,
      detail: 'The other routes are skipped for now.',
    }
  }
  const [first] = statuses
  const seen = statuses.find(({ level }) => level === 'warning') ?? statuses.find(({ level }) => level === 'ok')
  return seen ?? first ?? { level: 'off', text: 'no route', detail: '' }
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
  return figures ? `not enough traffic yet (n = ${figures.samples})` : 'no streams yet'
}

/** `41 s`, `12 min`, `3 h`. */
export function spanText(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000)
  if (seconds < 100) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 100 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}

export interface OrderedRoute {
  readonly route: CatalogRoute
  /** 1 = tried first; routes of the same priority share a place. undefined = skipped now. */
  readonly place: number | undefined
  readonly why: string
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
      return { route, place: undefined, why: `skipped: ${text}${detail === '' ? '' : ` (${detail})`}` }
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
