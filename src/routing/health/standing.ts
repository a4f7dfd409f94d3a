// How a route stands at one moment, for the plan, the pages and the metrics: all that is known of it in one word, with
// the reason and the time left. Reads only.

import type { FaultClass } from '../fault.ts'
import { slowStartFactor } from './breaker.ts'
import type { ParkingSpot } from './parking.ts'
import type { RouteKey } from './route-key.ts'

export interface Standing {
  /** Probing: an ejection is over, and real requests test the route one by one. */
  readonly state: 'healthy' | 'ejected' | 'probing' | 'slow start' | 'parked'
  /** The share of its weight that the route gets now. 0 = it is left out. */
  readonly factor: number
  /** How long this lasts at least; absent while a route is healthy. */
  readonly waitMs?: number
  /** What the last fault or the parking was about. */
  readonly why?: FaultClass
  /** Parked for as long as we thought right: where nobody else is left, one request at a time may look. */
  readonly isGuess?: true
}

export const healthy: Standing = Object.freeze({ state: 'healthy', factor: 1 })

/** The common case makes no object. */
export function standingOf(key: RouteKey, nowMs: number): Standing {
  return parkedStanding(key, nowMs) ?? (key.breaker.isCalm(nowMs) ? healthy : restlessStanding(key, nowMs))
}

/** undefined = not parked. Of several reasons, the one that lasts longest. */
export function parkedStanding({ credential, throttle, route }: RouteKey, nowMs: number): Standing | undefined {
  if (!credential.isParked(nowMs) && !throttle.isParked(nowMs) && !route.isParked(nowMs)) return undefined
  const parked = [credential, throttle, route].filter((spot) => spot.isParked(nowMs))
  const longest = parked.reduce((a, b) => longer(a, b, nowMs))
  const guess = parked.every((spot) => spot.isGuess()) ? ({ isGuess: true } as const) : {}
  return { state: 'parked', factor: 0, waitMs: longest.waitMs(nowMs), ...reason(longest.why), ...guess }
}

function longer(a: ParkingSpot, b: ParkingSpot, nowMs: number): ParkingSpot {
  return b.waitMs(nowMs) > a.waitMs(nowMs) ? b : a
}

function restlessStanding({ breaker }: RouteKey, nowMs: number): Standing {
  const state = breaker.state(nowMs)
  const rest = { waitMs: breaker.waitMs(nowMs), ...reason(breaker.why) }
  if (state === 'ejected') return { state, factor: 0, ...rest }
  if (state === 'half open') {
    return { state: 'probing', factor: breaker.isProbeFree(nowMs) ? slowStartFactor : 0, ...rest }
  }
  return { state: state === 'closed' ? 'healthy' : state, factor: breaker.factor(nowMs), ...rest }
}

function reason(why: FaultClass | undefined): { readonly why?: FaultClass } {
  return why === undefined ? {} : { why }
}
