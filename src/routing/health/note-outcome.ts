// What the end of an attempt does to the health of its route: looks the fault up in the table of effects and carries it
// out. Called on every request; a success on a healthy route allocates nothing.

import type { Clock } from '../../kernel/clock.ts'
import type { AttemptFault, FaultClass } from '../fault.ts'
import { effects, overloadStatuses } from './effect.ts'
import { isParkedFor, isThirdVague, namesThrottle, type ParkingReason, type ParkingSpot } from './parking.ts'
import type { RouteKey } from './route-key.ts'
import { standingOf } from './standing.ts'

export interface HealthDependencies {
  readonly clock: Clock
  /** A number in [0, 1). */
  random(): number
  /** For the log: a change that an operator may want to know of. */
  onNotice?(notice: HealthNotice): void
}

export interface HealthNotice {
  readonly key: RouteKey
  readonly what: 'ejected' | 'recovered' | 'credential parked' | 'credential parked at this model' | 'route disabled'
  readonly why: FaultClass | undefined
  readonly waitMs: number
}

export interface Outcomes {
  /** The provider began to answer. `firstEventMs` only where the answer is streamed. */
  noteOk(key: RouteKey, startedMs: number, firstEventMs?: number): void
  /** `silentMs`: how long a streamed attempt had waited, where it timed out. */
  noteFault(key: RouteKey, startedMs: number, fault: AttemptFault, silentMs?: number): void
  /** The attempt ended without an outcome, by a defect of ours: if it was the route's probe, another may follow. */
  noteNothing(key: RouteKey, startedMs: number): void
  /** The provider broke off after `noteOk`. */
  noteInterrupted(key: RouteKey, startedMs: number, why: FaultClass): void
  /** How fast an answer came, from its first event to its end. */
  noteSpeed(key: RouteKey, outputTokens: number, tookMs: number): void
}

/** Fewer tell more about the network than about the model. */
const speedTokensMin = 10

export function createOutcomes(deps: HealthDependencies): Outcomes {
  const { clock, random } = deps

  function notice(key: RouteKey, what: HealthNotice['what'], why: FaultClass | undefined): void {
    deps.onNotice?.({ key, what, why, waitMs: standingOf(key, clock.monotonicMs()).waitMs ?? 0 })
  }

  function countFault(key: RouteKey, startedMs: number, { class: why, status }: AttemptFault): void {
    const nowMs = clock.monotonicMs()
    if (overloadStatuses.has(status)) key.breaker.noteOverload(nowMs)
    if (key.breaker.noteFault(why, startedMs, nowMs, random())) notice(key, 'ejected', why)
  }

  function park(key: RouteKey, spot: ParkingSpot, reason: ParkingReason): void {
    if (!spot.park(reason, clock.monotonicMs())) return
    const ofOne = spot === key.route ? 'route disabled' : 'credential parked at this model'
    notice(key, spot === key.credential ? 'credential parked' : ofOne, reason.why)
  }

  function parkThrottled(key: RouteKey, reason: ParkingReason, { provider }: AttemptFault): void {
    const isNamed = namesThrottle(`${provider?.type ?? ''} ${provider?.code ?? ''} ${provider?.message ?? ''}`)
    // Throttles come and go all day: nobody is told.
    if (isNamed || !isThirdVague(key.throttle, reason)) key.throttle.park(reason, clock.monotonicMs())
    else park(key, key.throttle, { ...reason, why: 'out of quota' })
  }

  return {
    noteOk(key, startedMs, firstEventMs) {
      const nowMs = clock.monotonicMs()
      if (firstEventMs !== undefined) key.latency.firstEventMs.add(firstEventMs, nowMs)
      key.credential.noteSuccess(startedMs)
      key.throttle.noteSuccess(startedMs)
      key.route.noteSuccess(startedMs)
      if (key.breaker.noteSuccess(startedMs, nowMs)) notice(key, 'recovered', undefined)
    },
    noteNothing(key, startedMs) {
      endParkingProbes(key, startedMs)
      key.breaker.noteNothing(startedMs)
    },
    noteFault(key, startedMs, fault, silentMs) {
      endParkingProbes(key, startedMs)
      const why = fault.class
      const effect = effects[why]
      // Without the waits that were given up, a route would look the faster the more often it hangs.
      if (why === 'timed out' && silentMs !== undefined) key.latency.firstEventMs.add(silentMs, clock.monotonicMs())
      // A slip of the model depends on the prompt: a caller who can provoke one must not eject a route. A stale pooled socket
      // says nothing about the provider; the replay over a fresh connection does.
      if (effect === 'fault' && !fault.provider?.isChance && !fault.isStale) return countFault(key, startedMs, fault)
      // Whatever else it says, it is no verdict on the provider.
      key.breaker.noteNothing(startedMs)
      if (!isParkedFor(why)) return
      const reason: ParkingReason = { why, askedMs: fault.provider?.retryAfterMs, startedMs }
      if (effect === 'disable the route') park(key, key.route, reason)
      else if (effect === 'park the credential')
        park(key, fault.provider?.isRelayed ? key.throttle : key.credential, reason)
      else parkThrottled(key, reason, fault)
    },
    noteInterrupted(key, startedMs, why) {
      if (effects[why] !== 'fault') return
      if (key.breaker.noteInterruption(why, startedMs, clock.monotonicMs(), random())) notice(key, 'ejected', why)
    },
    noteSpeed(key, outputTokens, tookMs) {
      if (outputTokens < speedTokensMin || tookMs <= 0) return
      key.latency.tokensPerSecond.add((outputTokens * 1000) / tookMs, clock.monotonicMs())
    },
  }
}

function endParkingProbes({ credential, throttle, route }: RouteKey, startedMs: number): void {
  for (const spot of [credential, throttle, route]) spot.endProbe(startedMs)
}
