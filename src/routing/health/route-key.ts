// Names a route for its health: made once per route and reused, so that no request builds a name. Two keys share what
// they have in common: the breaker of the model at an endpoint, the parking of a credential.

import { Breaker } from './breaker.ts'
import { Latency } from './latency.ts'
import { ParkingSpot } from './parking.ts'

/** The credential of the operator, which every provider has at most one of. */
export const platformCredential = 'platform'

export interface RouteNames {
  readonly providerId: string
  /** Of the endpoint; faults of one region are not those of another. */
  readonly baseUrl: string
  readonly upstreamModel: string
  /** `platform`, or the id of a workspace's own. */
  readonly credentialId: string
}

export interface RouteKey extends RouteNames {
  /** Shared by every credential: a provider that is down is down for all. */
  readonly breaker: Breaker
  /** Shared by every model of the credential. */
  readonly credential: ParkingSpot
  /** Shared by every endpoint of the provider: the credential at this model. */
  readonly throttle: ParkingSpot
  readonly route: ParkingSpot
  readonly latency: Latency
  /** When a response of any status last came, as monotonic milliseconds; written by the attempt. */
  respondedMs: number
}

export interface RouteKeys {
  /** The same object for the same names, also after the configuration was read again. */
  find(names: RouteNames): RouteKey
  /** Nothing that was said of the old credential holds for the new one. */
  renewCredential(owner: Pick<RouteNames, 'providerId' | 'credentialId'>, nowMs: number): void
  all(): Iterable<RouteKey>
}

/** Routes of workspaces' own credentials, of which there may be any number; 3 KB each once they have been used. */
const ownMax = 10_000

export function createRouteKeys(): RouteKeys {
  /** As many as the configuration names. */
  const platform = new Table<RouteKey>(Number.POSITIVE_INFINITY)
  /** One that is dropped while somebody holds it goes on working; whoever asks next begins anew. */
  const own = new Table<RouteKey>(ownMax)
  const breakers = new Table<Breaker>(ownMax)
  const spots = new Table<ParkingSpot>(2 * ownMax)
  const makeSpot = (): ParkingSpot => new ParkingSpot()

  return {
    find(names) {
      const { providerId, baseUrl, upstreamModel, credentialId } = names
      const table = credentialId === platformCredential ? platform : own
      return table.find([providerId, baseUrl, upstreamModel, credentialId], () => ({
        providerId,
        baseUrl,
        upstreamModel,
        credentialId,
        breaker: breakers.find([providerId, baseUrl, upstreamModel], () => new Breaker()),
        credential: spots.find([providerId, credentialId], makeSpot),
        throttle: spots.find([providerId, credentialId, upstreamModel], makeSpot),
        route: new ParkingSpot(),
        latency: new Latency(),
        respondedMs: Number.NEGATIVE_INFINITY,
      }))
    },
    renewCredential({ providerId, credentialId }, nowMs) {
      for (const table of [platform, own]) {
        for (const key of table.values()) {
          if (key.providerId !== providerId || key.credentialId !== credentialId) continue
          for (const spot of [key.credential, key.throttle, key.route]) spot.renew(nowMs)
        }
      }
    },
    *all() {
      yield* platform.values()
      yield* own.values()
    },
  }
}

/** Values by name, the longest unasked dropped first. */
class Table<Value> {
  readonly #max: number
  readonly #values = new Map<string, Value>()

  constructor(max: number) {
    this.#max = max
  }

  find(names: readonly string[], make: () => Value): Value {
    const name = JSON.stringify(names)
    const value = this.#values.get(name) ?? make()
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
