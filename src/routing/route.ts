// The health data of a route and its current state. A RouteHealth is created once per route and reused, so that no request
// builds a name. Routes share what they have in common: the breaker of a model at an endpoint, the cooldown of a credential.

import { Breaker, slowStartFactor } from './breaker.ts'
import { Cooldown } from './cooldown.ts'
import type { FaultClass } from './faults.ts'
import { Latency } from './latency.ts'

/** The operator's credential, of which every provider has at most one. */
export const platformCredential = 'platform'

export interface RouteNames {
  readonly providerId: string
  /** Base URL of the endpoint: faults of one region are not those of another. */
  readonly baseUrl: string
  readonly upstreamModel: string
  /** `platform`, or the id of a workspace's own credential. */
  readonly credentialId: string
}

export interface RouteHealth extends RouteNames {
  /** All its names; the same on every replica. */
  readonly name: string
  /** Shared by every credential: a provider that is down is down for all. */
  readonly breaker: Breaker
  /** Shared by every model of the credential. */
  readonly credential: Cooldown
  /** The credential at this model; shared by every endpoint of the provider. */
  readonly throttle: Cooldown
  /** The route itself, if its provider does not know the model. */
  readonly disabled: Cooldown
  readonly latency: Latency
  /** When the last attempt began that the provider answered; undefined = none yet. */
  answeredMs: number | undefined
}

export interface Routes {
  /** The same object for the same names, also after a configuration reload. */
  find(names: RouteNames): RouteHealth
  /** Clears the cooldowns of a credential that has a new value. */
  renewCredential(owner: Pick<RouteNames, 'providerId' | 'credentialId'>, nowMs: number): void
  all(): Iterable<RouteHealth>
}

/** Bounds the routes of workspaces' own credentials; 3 KB each once used. */
const ownMax = 10_000

export function createRoutes(): Routes {
  /** As many as the configuration names. */
  const platform = new LruTable<RouteHealth>(Number.POSITIVE_INFINITY)
  /** An evicted route that is still in use keeps working; the next lookup creates a new one. */
  const own = new LruTable<RouteHealth>(ownMax)
  const breakers = new LruTable<Breaker>(ownMax)
  const cooldowns = new LruTable<Cooldown>(2 * ownMax)
  const createCooldown = (): Cooldown => new Cooldown()

  return {
    find({ providerId, baseUrl, upstreamModel, credentialId }) {
      const table = credentialId === platformCredential ? platform : own
      const names = [providerId, baseUrl, upstreamModel, credentialId]
      return table.find(names, () => ({
        name: names.join(' '),
        providerId,
        baseUrl,
        upstreamModel,
        credentialId,
        breaker: breakers.find([providerId, baseUrl, upstreamModel], () => new Breaker()),
        credential: cooldowns.find([providerId, credentialId], createCooldown),
        throttle: cooldowns.find([providerId, credentialId, upstreamModel], createCooldown),
        disabled: new Cooldown(),
        latency: new Latency(),
        answeredMs: undefined,
      }))
    },
    renewCredential({ providerId, credentialId }, nowMs) {
      for (const table of [platform, own]) {
        for (const route of table.values()) {
          if (route.providerId !== providerId || route.credentialId !== credentialId) continue
          for (const cooldown of cooldownsOf(route)) cooldown.renew(nowMs)
        }
      }
    },
    *all() {
      yield* platform.values()
      yield* own.values()
    },
  }
}

/** Evicts the least recently used entry. */
class LruTable<Value> {
  readonly #max: number
  readonly #values = new Map<string, Value>()

  constructor(max: number) {
    this.#max = max
  }

  find(names: readonly string[], create: () => Value): Value {
    const name = JSON.stringify(names)
    const value = this.#values.get(name) ?? create()
    this.#values.delete(name)
    this.#values.set(name, value)
    if (this.#values.size > this.#max) {
      const oldest = this.#values.keys().next()
      if (!oldest.done) this.#values.delete(oldest.value)
    }
    return value
  }

  values(): Iterable<Value> {
    return this.#values.values()
  }
}

export function cooldownsOf({ credential, throttle, disabled }: RouteHealth): readonly Cooldown[] {
  return [credential, throttle, disabled]
}

/** The state of a route at one moment, for the plan, the pages and the metrics. */
export interface RouteState {
  /** Probing: the ejection is over, and real requests test the route one by one. Parked: a cooldown is active. */
  readonly state: 'healthy' | 'ejected' | 'probing' | 'slow start' | 'parked'
  /** The share of its weight that the route gets. 0 = it is left out. */
  readonly factor: number
  /** How long this lasts at least; absent while healthy. */
  readonly waitMs?: number
  /** The cause: the last fault, or that of the cooldown. */
  readonly why?: FaultClass
  /** The cooldown's duration is our own guess: if no other route is left, one request at a time may probe. */
  readonly isGuess?: true
}

export const healthy: RouteState = Object.freeze({ state: 'healthy', factor: 1 })

/** Allocates nothing for a healthy route. */
export function routeState(route: RouteHealth, nowMs: number): RouteState {
  return parkedState(route, nowMs) ?? (route.breaker.isHealthy(nowMs) ? healthy : breakerState(route, nowMs))
}

/** undefined = no cooldown. Of several, the longest. */
export function parkedState(route: RouteHealth, nowMs: number): RouteState | undefined {
  const { credential, throttle, disabled } = route
  if (!credential.isActive(nowMs) && !throttle.isActive(nowMs) && !disabled.isActive(nowMs)) return undefined
  const active = cooldownsOf(route).filter((cooldown) => cooldown.isActive(nowMs))
  const longest = active.reduce((a, b) => (b.waitMs(nowMs) > a.waitMs(nowMs) ? b : a))
  const guess = active.every((cooldown) => cooldown.isGuess()) ? ({ isGuess: true } as const) : {}
  return { state: 'parked', factor: 0, waitMs: longest.waitMs(nowMs), ...cause(longest.why), ...guess }
}

function breakerState({ breaker }: RouteHealth, nowMs: number): RouteState {
  const state = breaker.state(nowMs)
  const rest = { waitMs: breaker.waitMs(nowMs), ...cause(breaker.why) }
  if (state === 'ejected') return { state, factor: 0, ...rest }
  if (state === 'half open') {
    return { state: 'probing', factor: breaker.isProbeFree(nowMs) ? slowStartFactor : 0, ...rest }
  }
  return { state: state === 'closed' ? 'healthy' : state, factor: breaker.factor(nowMs), ...rest }
}

function cause(why: FaultClass | undefined): { readonly why?: FaultClass } {
  return why === undefined ? {} : { why }
}
