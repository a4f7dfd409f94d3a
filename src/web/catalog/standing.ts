// How a model and its routes are doing, in the words the pages use. State is always a word; the lamp beside it only
// repeats it. Nothing is made up: without samples a figure is missing, and too few of them say so.

import { samplesMin } from '../../routing/health/latency.ts'
import type { CatalogEntry, CatalogRoute, Figures } from './entry.ts'
import { isPrivate } from './seen-entries.ts'

/** For the lamp: its colour and shape. */
export type Signal = 'go' | 'caution' | 'stop' | 'off'

export interface ShownStanding {
  readonly signal: Signal
  readonly word: string
  /** More of it in a sentence; empty where the word says all. */
  readonly detail: string
}

export function routeStanding({ health, wait_ms, why, rehearsal }: CatalogRoute): ShownStanding {
  // Nothing is learned from it, so that "healthy" would be a guess.
  if (rehearsal && health === 'healthy') return { signal: 'go', word: 'always on', detail: 'It fails only on purpose.' }
  const reason = why ? `last fault: ${why}` : ''
  const wait = wait_ms ? ` ${spanText(wait_ms)}` : ''
  switch (health) {
    case 'healthy':
      return { signal: 'go', word: 'healthy', detail: '' }
    case 'slow start':
      return { signal: 'caution', word: 'warming up', detail: reason }
    case 'probing':
      return { signal: 'caution', word: 'on trial', detail: reason }
    case 'parked':
      return { signal: 'stop', word: `set aside${wait}`, detail: reason }
    case 'ejected':
      return { signal: 'stop', word: `cooling${wait}`, detail: reason }
    default:
      return { signal: 'caution', word: health, detail: reason }
  }
}

export function modelStanding(entry: CatalogEntry): ShownStanding {
  const { routes } = entry
  if (!entry.callable) return { signal: 'off', word: 'not callable', detail: 'It has no price.' }
  if (isPrivate(entry)) return { signal: 'go', word: 'own key', detail: 'Served with the workspace’s own credential.' }
  if (routes.length === 0) return { signal: 'off', word: 'no route', detail: 'No provider that serves it is on.' }
  const standings = routes.map(routeStanding)
  const open = standings.filter(({ signal }) => signal !== 'stop').length
  if (open === 0) return { signal: 'stop', word: 'no route now', detail: standings.map(({ word }) => word).join(', ') }
  if (open < routes.length) {
    return { signal: 'caution', word: `${open} of ${routes.length} open`, detail: 'The others are left out for now.' }
  }
  const restless = standings.find(({ signal }) => signal !== 'go')
  return restless ?? standings[0] ?? { signal: 'go', word: 'healthy', detail: '' }
}

/** Of the route with most samples: what most callers met. */
export function busiest(routes: readonly CatalogRoute[], kind: 'first_event_ms' | 'tokens_per_second'): Figures | null {
  let found: Figures | null = null
  for (const route of routes) {
    const figures = route[kind]
    if (figures && figures.samples > (found?.samples ?? 0)) found = figures
  }
  return found
}

/** Whether there are enough samples to show a number for them. */
export function isTelling(figures: Figures | null): figures is Figures {
  return figures !== null && figures.samples >= samplesMin
}

/** In place of a number. */
export function missingFigure(figures: Figures | null, isRehearsed: boolean): string {
  if (isRehearsed) return 'not measured'
  return figures ? `too little traffic yet (n = ${figures.samples})` : 'no traffic yet'
}

/** `41 s`, `12 min`, `3 h`. */
export function spanText(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000)
  if (seconds < 100) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 100 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}
