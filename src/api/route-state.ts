// The state of routes, models and providers in words, the same for the pages and the command line. What the state of a route
// is, routing/health.ts decides.

import type { CatalogItem } from './catalog.ts'

export type StatusLevel = 'ok' | 'warning' | 'error' | 'off'

export interface ShownStatus {
  readonly level: StatusLevel
  readonly text: string
  /** A sentence more; empty = none. */
  readonly detail: string
}

type Route = Pick<CatalogItem['routes'][number], 'state' | 'wait_ms' | 'why'>

const words = {
  available: ['ok', 'available', 'It answered in the last hour.'],
  recovering: ['warning', 'recovering', 'It answers again, and gets less traffic for a while.'],
  failing: ['error', 'failing', 'It is still tried.'],
  cooldown: ['error', 'cooldown', 'It is not tried for a while.'],
  paused: ['error', 'paused', 'It is not tried for a while.'],
  unused: ['off', 'no recent traffic', 'No request in the last hour shows its state.'],
  simulated: ['off', 'simulated', 'The sandbox answers inside the gateway and fails only on purpose.'],
} as const satisfies Record<Route['state'], readonly [StatusLevel, string, string]>

/** Green only if requests have shown it: an unused route is neither available nor failing. */
export function routeStatus({ state, wait_ms: wait, why }: Route): ShownStatus {
  const [level, text, detail] = words[state]
  const isWaiting = wait !== null && (state === 'cooldown' || state === 'paused')
  return {
    level,
    text: isWaiting ? `${text} ${waitText(wait)}` : text,
    detail: why === null ? detail : `Last fault: ${causeName(why)}. ${detail}`,
  }
}

/** A model with one route has the state of that route. */
export function modelStatus({ callable, own_key: isOwn = false, routes }: ShownModel): ShownStatus {
  if (!callable) return { level: 'off', text: 'not callable', detail: 'It has no price.' }
  if (isOwn && routes.length === 0)
    return { level: 'ok', text: 'own key', detail: 'Served with the workspace’s own provider key.' }
  if (routes.length === 0) return { level: 'off', text: 'no route', detail: 'No provider that serves it is enabled.' }
  return routesStatus(routes)
}

/** Of all its routes. */
export function providerStatus(routes: readonly Route[]): ShownStatus {
  return routes.length === 0 ? { level: 'off', text: 'no routes', detail: '' } : routesStatus(routes)
}

interface ShownModel {
  readonly callable: boolean
  readonly own_key?: boolean | undefined
  readonly routes: readonly Route[]
}

function routesStatus(routes: readonly Route[]): ShownStatus {
  const statuses = routes.map(routeStatus)
  const [first] = statuses
  const failing = statuses.filter(({ level }) => level === 'error')
  if (first && statuses.length === 1) return first
  if (failing.length > 0 && failing.length < statuses.length) {
    const detail = [...new Set(failing.map(({ text }) => text))].join(', ')
    return { level: 'warning', text: `${statuses.length - failing.length} of ${statuses.length} available`, detail }
  }
  if (failing.length > 0 && new Set(routes.map(({ state }) => state)).size > 1) {
    return { level: 'error', text: 'unavailable', detail: statuses.map(({ text }) => text).join(', ') }
  }
  const seen = statuses.find(({ level }) => level === 'warning') ?? statuses.find(({ level }) => level === 'ok')
  return seen ?? first ?? { level: 'off', text: 'no routes', detail: '' }
}

const causeNames: Readonly<Record<string, string>> = {
  throttled: 'rate limit',
  'refused our credential': 'API key refused',
  'does not know the model': 'unknown model',
  failing: 'server error',
  garbled: 'invalid response',
  broken: 'connection lost',
}

/** `timed out`, `connection lost in mid-answer` */
export function causeName(outcome: string): string {
  const name = outcome.replace(/^interrupted: /, '')
  return `${causeNames[name] ?? name}${name === outcome ? '' : ' in mid-answer'}`
}

/** `41 s`, `12 min`, `3 h`. */
function waitText(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000)
  if (seconds < 100) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 100 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}
