// What the gateway has learned of its routes: told of every attempt's end, asked before every plan. State is local to
// the process and lost on restart without harm; nothing here calls a provider, and a healthy route costs next to nothing.

import { firstEventLimitMs, type Quantiles } from './latency.ts'
import { createOutcomes, type HealthDependencies, type Outcomes } from './note-outcome.ts'
import {
  type Excluded,
  type HealthPlan,
  type PlanPreferences,
  planWithHealth,
  type Rankable,
} from './plan-with-health.ts'
import { createRouteKeys, type RouteKey, type RouteNames } from './route-key.ts'
import { healthy, parkedStanding, type Standing, standingOf } from './standing.ts'

export interface RouteReading {
  /** Its base URL is for operators only. */
  readonly key: RouteKey
  readonly standing: Standing
  /** undefined = no traffic in the last hour. */
  readonly firstEventMs: Quantiles | undefined
  readonly tokensPerSecond: Quantiles | undefined
}

export interface Health extends Outcomes {
  /** The key of a route; made once, kept by whoever plans with it. */
  route(names: RouteNames): RouteKey
  plan<Item extends Rankable>(
    candidates: readonly Item[],
    preferences?: Omit<PlanPreferences, 'random'>,
  ): HealthPlan<Item>
  /** When the attempt began, to be handed back with its outcome; or why it must not be made now. */
  begin(key: RouteKey, mode: HealthPlan<unknown>['mode']): number | Standing
  standing(key: RouteKey): Standing
  firstEventLimitMs(key: RouteKey, kind: 'reasoning' | 'ordinary'): number
  /** A new value under the same id: what was parked for the old one is free. */
  renewCredential(owner: Pick<RouteNames, 'providerId' | 'credentialId'>): void
  snapshot(): readonly RouteReading[]
}

const noneExcluded: readonly Excluded<never>[] = []
const onlyRoute: readonly string[] = ['the only route']

export function createHealth(deps: HealthDependencies): Health {
  const { clock, random } = deps
  const keys = createRouteKeys()

  return {
    ...createOutcomes(deps),
    route: (names) => keys.find(names),
    plan(candidates, preferences) {
      const nowMs = clock.monotonicMs()
      const [only] = candidates
      if (candidates.length === 1 && only && standingOf(only.key, nowMs) === healthy) {
        return { ordered: candidates, reasons: onlyRoute, excluded: noneExcluded, mode: 'ordinary' }
      }
      const rated = candidates.map((candidate) => ({
        candidate,
        standing: standingOf(candidate.key, nowMs),
        firstEvent: candidate.key.latency.firstEventMs.reliable(nowMs),
      }))
      return planWithHealth(rated, { ...preferences, random })
    },
    begin(key, mode) {
      const nowMs = clock.monotonicMs()
      const parked = parkedStanding(key, nowMs)
      if (parked && (mode !== 'panic' || !parked.isGuess || !startProbes(key, nowMs))) return parked
      const { breaker } = key
      if (breaker.isCalm(nowMs) || breaker.state(nowMs) !== 'half open') return nowMs
      if (breaker.isProbeFree(nowMs)) breaker.startProbe(nowMs)
      else if (mode === 'ordinary') return standingOf(key, nowMs)
      return nowMs
    },
    standing: (key) => standingOf(key, clock.monotonicMs()),
    firstEventLimitMs: (key, kind) => firstEventLimitMs(key.latency.firstEventMs.reliable(clock.monotonicMs()), kind),
    renewCredential: (owner) => keys.renewCredential(owner, clock.monotonicMs()),
    snapshot() {
      const nowMs = clock.monotonicMs()
      return Array.from(keys.all(), (key) => ({
        key,
        standing: standingOf(key, nowMs),
        firstEventMs: key.latency.firstEventMs.quantiles(nowMs),
        tokensPerSecond: key.latency.tokensPerSecond.quantiles(nowMs),
      }))
    },
  }
}

/** Of everything the route is parked for, so that one request looks at a credential, not one of each model. */
function startProbes({ credential, throttle, route }: RouteKey, nowMs: number): boolean {
  const parked = [credential, throttle, route].filter((spot) => spot.isParked(nowMs))
  if (!parked.every((spot) => spot.isProbeFree(nowMs))) return false
  for (const spot of parked) spot.startProbe(nowMs)
  return true
}
