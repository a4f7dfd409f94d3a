// The health of routes: every attempt's outcome is recorded here, and every plan reads it. The state
// is local to the process and is lost on restart. Nothing here calls a provider.

import type { Clock } from '../kernel/clock.ts'
import type { Provider } from '../providers/provider.ts'
import { onlyRoute } from '../telemetry/request-record.ts'
import type { AttemptFault, FaultClass } from './faults.ts'
import { firstEventLimitMs, type Quantiles, sampleAgeMaxMs } from './latency.ts'
import { type Excluded, type HealthPlan, type PlanPreferences, planWithHealth, type Rankable } from './plan.ts'
import {
  type Cooldown,
  type CooldownReason,
  causesCooldown,
  cooldownsOf,
  createRoutes,
  healthy,
  isRepeatedUnexplained429,
  namesThrottle,
  parkedState,
  platformCredential,
  type RouteHealth,
  type RouteNames,
  type RouteState,
  routeState,
} from './route.ts'

type Effect =
  /** Counts against the model at this endpoint. */
  'fault' | 'park the credential at this model' | 'park the credential' | 'disable the route' | 'none'

/**
 * The effect of each class of fault. It affects only what is at fault: the model at this endpoint, the credential, or the
 * route. A bad request affects nothing.
 */
export const effects = {
  unreachable: 'fault',
  broken: 'fault',
  'timed out': 'fault',
  failing: 'fault',
  garbled: 'fault',
  throttled: 'park the credential at this model',
  'refused our credential': 'park the credential',
  'out of quota': 'park the credential',
  'does not know the model': 'disable the route',
  'lacks what was asked for': 'none',
  redirecting: 'fault',
  'too large': 'none',
  "caller's fault": 'none',
  'cannot carry the request': 'none',
  'had too little time': 'none',
  'client left': 'none',
  'shut down': 'none',
  superseded: 'none',
} as const satisfies Record<FaultClass, Effect>

/** An overloaded provider: a fault, and half the weight for a while. */
const overloadStatuses: ReadonlySet<number | undefined> = new Set([503, 529])
/** With fewer tokens, the speed depends more on the network than on the model. */
const speedTokensMin = 10

export interface HealthDependencies {
  readonly clock: Clock
  /** A number in [0, 1). */
  random(): number
  /** For the log: a change that operators may want to know about. */
  onNotice?(notice: HealthNotice): void
}

export interface HealthNotice {
  readonly route: RouteHealth
  readonly what: 'ejected' | 'recovered' | 'credential parked' | 'credential parked at this model' | 'route disabled'
  readonly why: FaultClass | undefined
  readonly waitMs: number
}

/**
 * The state of a route as every page, the API and the command line show it. `failing`: the latest attempt or connection test
 * failed, and the route is still tried; `unused`: nothing in the last hour shows how it is.
 */
export interface Standing {
  readonly state: 'available' | 'recovering' | 'failing' | 'cooldown' | 'paused' | 'unused' | 'simulated'
  /** What was wrong with the latest attempt or test; absent = nothing. */
  readonly why?: string
}

/** Of the operator's key at a provider. */
interface FailedTest {
  readonly why: string
  readonly atMs: number
}

export interface RouteReading {
  /** Its base URL is for operators only. */
  readonly route: RouteHealth
  readonly state: RouteState
  /** undefined = no streamed answer in the last hour. */
  readonly firstEventMs: Quantiles | undefined
  readonly tokensPerSecond: Quantiles | undefined
}

export type Health = ReturnType<typeof createHealth>

const noneExcluded: readonly Excluded<never>[] = []
const onlyRouteReasons: readonly string[] = [onlyRoute]

export function createHealth(deps: HealthDependencies) {
  const { clock, random } = deps
  const routes = createRoutes()
  /** By provider; a test that passes removes its entry. */
  const failedTests = new Map<string, FailedTest>()

  /** Whether the attempt is the latest one whose outcome says something about the route. */
  function judge(route: RouteHealth, startedMs: number, fault: FaultClass | undefined): void {
    if (startedMs < route.judgedMs) return
    route.judgedMs = startedMs
    route.fault = fault
  }

  function notice(route: RouteHealth, what: HealthNotice['what'], why: FaultClass | undefined): void {
    deps.onNotice?.({ route, what, why, waitMs: routeState(route, clock.monotonicMs()).waitMs ?? 0 })
  }

  function countFault(route: RouteHealth, startedMs: number, { class: why, status }: AttemptFault): void {
    const nowMs = clock.monotonicMs()
    if (overloadStatuses.has(status)) route.breaker.recordOverload(nowMs)
    if (route.breaker.recordFault(why, startedMs, nowMs, random())) notice(route, 'ejected', why)
  }

  function park(route: RouteHealth, cooldown: Cooldown, reason: CooldownReason): void {
    if (!cooldown.start(reason, clock.monotonicMs())) return
    const ofOne = cooldown === route.disabled ? 'route disabled' : 'credential parked at this model'
    notice(route, cooldown === route.credential ? 'credential parked' : ofOne, reason.why)
  }

  function parkThrottled(route: RouteHealth, reason: CooldownReason, { provider }: AttemptFault): void {
    const isNamed = namesThrottle(`${provider?.type ?? ''} ${provider?.code ?? ''} ${provider?.message ?? ''}`)
    // No notice for rate limits, because they come and go all day.
    if (isNamed || !isRepeatedUnexplained429(route.throttle, reason)) route.throttle.start(reason, clock.monotonicMs())
    else park(route, route.throttle, { ...reason, why: 'out of quota' })
  }

  function renewCredential(owner: Pick<RouteNames, 'providerId' | 'credentialId'>): void {
    if (owner.credentialId === platformCredential) failedTests.delete(owner.providerId)
    routes.renewCredential(owner, clock.monotonicMs())
  }

  return {
    /** The health of a route: the same object for the same names. */
    route: (names: RouteNames): RouteHealth => routes.find(names),
    plan<Item extends Rankable>(
      candidates: readonly Item[],
      preferences?: Omit<PlanPreferences, 'random'>,
    ): HealthPlan<Item> {
      const nowMs = clock.monotonicMs()
      const [only] = candidates
      if (candidates.length === 1 && only && routeState(only.health, nowMs) === healthy) {
        return { ordered: candidates, reasons: onlyRouteReasons, excluded: noneExcluded, mode: 'ordinary' }
      }
      const rated = candidates.map((candidate) => ({
        candidate,
        state: routeState(candidate.health, nowMs),
        firstEvent: candidate.health.latency.firstEventMs.reliable(nowMs),
      }))
      return planWithHealth(rated, { ...preferences, random })
    },
    /** The start time of the attempt, to pass with its outcome; or the state that forbids the attempt. */
    begin(route: RouteHealth, mode: HealthPlan<unknown>['mode']): number | RouteState {
      const nowMs = clock.monotonicMs()
      const parked = parkedState(route, nowMs)
      if (parked && (mode !== 'panic' || !parked.isGuess || !startProbes(route, nowMs))) return parked
      const { breaker } = route
      if (breaker.isHealthy(nowMs) || breaker.state(nowMs) !== 'half open') return nowMs
      if (breaker.isProbeFree(nowMs)) breaker.startProbe(nowMs)
      else if (mode === 'ordinary') return routeState(route, nowMs)
      return nowMs
    },
    state: (route: RouteHealth): RouteState => routeState(route, clock.monotonicMs()),
    firstEventLimitMs: (route: RouteHealth, kind: 'reasoning' | 'ordinary'): number =>
      firstEventLimitMs(route.latency.firstEventMs.reliable(clock.monotonicMs()), kind),
    /** The provider began to answer. `firstEventMs` only for a streamed answer. */
    recordOk(route: RouteHealth, startedMs: number, firstEventMs?: number): void {
      const nowMs = clock.monotonicMs()
      route.answeredMs = startedMs
      judge(route, startedMs, undefined)
      if (firstEventMs !== undefined) route.latency.firstEventMs.add(firstEventMs, nowMs)
      route.credential.recordSuccess(startedMs)
      route.throttle.recordSuccess(startedMs)
      route.disabled.recordSuccess(startedMs)
      if (route.breaker.recordSuccess(startedMs, nowMs)) notice(route, 'recovered', undefined)
    },
    /** A bug in Tollgate ended the attempt, or its fault does not count. If it was the route's probe, another may follow. */
    recordNothing(route: RouteHealth, startedMs: number): void {
      endProbes(route, startedMs)
      route.breaker.recordNothing(startedMs)
    },
    /** `silentMs`: how long a streamed attempt had waited. */
    recordFault(route: RouteHealth, startedMs: number, fault: AttemptFault, silentMs?: number): void {
      endProbes(route, startedMs)
      const why = fault.class
      const effect = effects[why]
      // Without timed-out waits, a route would look faster the more often it hangs.
      if (why === 'timed out' && silentMs !== undefined) route.latency.firstEventMs.add(silentMs, clock.monotonicMs())
      // A slip of the model depends on the prompt: a caller who provokes one must not eject a route. A stale pooled socket says
      // nothing about the provider; the replay over a fresh connection does.
      if (effect === 'fault' && !fault.provider?.isInvalidOutput && !fault.isStale) {
        judge(route, startedMs, why)
        return countFault(route, startedMs, fault)
      }
      // Anything else says nothing about the provider.
      route.breaker.recordNothing(startedMs)
      if (!causesCooldown(why)) return
      judge(route, startedMs, why)
      const reason: CooldownReason = { why, retryAfterMs: fault.provider?.retryAfterMs, startedMs }
      if (effect === 'disable the route') park(route, route.disabled, reason)
      else if (effect === 'park the credential')
        park(route, fault.provider?.isRelayed ? route.throttle : route.credential, reason)
      else parkThrottled(route, reason, fault)
    },
    /** The provider broke off after `recordOk`. */
    recordInterrupted(route: RouteHealth, startedMs: number, why: FaultClass): void {
      if (effects[why] !== 'fault') return
      judge(route, startedMs, why)
      if (route.breaker.recordInterruption(why, startedMs, clock.monotonicMs(), random())) notice(route, 'ejected', why)
    },
    /** The speed of an answer from its first event to its end. */
    recordSpeed(route: RouteHealth, outputTokens: number, tookMs: number): void {
      if (outputTokens < speedTokensMin || tookMs <= 0) return
      route.latency.tokensPerSecond.add((outputTokens * 1000) / tookMs, clock.monotonicMs())
    },
    /** The credential has a new value. */
    renewCredential,
    /** A connection test of the operator's key ended; undefined = the provider accepts it, so that it may be used again. */
    recordTest(providerId: string, why: string | undefined): void {
      if (why === undefined) renewCredential({ providerId, credentialId: platformCredential })
      else failedTests.set(providerId, { why, atMs: clock.monotonicMs() })
    },
    /** The one place that decides which state of a route is shown. `route` is undefined until it is first used. */
    standing(route: RouteHealth | undefined, { id, ignoresHealth }: Pick<Provider, 'id' | 'ignoresHealth'>): Standing {
      if (ignoresHealth) return { state: 'simulated' }
      const nowMs = clock.monotonicMs()
      const test = route === undefined || route.credentialId === platformCredential ? failedTests.get(id) : undefined
      return standingOf(route, test, nowMs)
    },
    snapshot(): readonly RouteReading[] {
      const nowMs = clock.monotonicMs()
      return Array.from(routes.all(), (route) => ({
        route,
        state: routeState(route, nowMs),
        firstEventMs: route.latency.firstEventMs.quantiles(nowMs),
        tokensPerSecond: route.latency.tokensPerSecond.quantiles(nowMs),
      }))
    },
  }
}

function standingOf(route: RouteHealth | undefined, test: FailedTest | undefined, nowMs: number): Standing {
  const state = route ? routeState(route, nowMs) : healthy
  const why = test && test.atMs >= (route?.judgedMs ?? test.atMs) ? test.why : route?.fault
  const cause = why === undefined ? {} : { why }
  if (state.state === 'parked') return { state: 'paused', ...cause, ...(state.why !== undefined && { why: state.why }) }
  if (state.state === 'ejected') return { state: 'cooldown', ...cause }
  // Also after the wait is over: until the route answers, nothing shows that it works again.
  if (why !== undefined) return { state: 'failing', why }
  if (state !== healthy && state.state !== 'healthy') return { state: 'recovering' }
  const isProven = route?.answeredMs !== undefined && nowMs - route.answeredMs <= sampleAgeMaxMs
  return { state: isProven ? 'available' : 'unused' }
}

/** Starts a probe in every active cooldown of the route, so that one request tests a credential, not one per model. */
function startProbes(route: RouteHealth, nowMs: number): boolean {
  const active = cooldownsOf(route).filter((cooldown) => cooldown.isActive(nowMs))
  if (!active.every((cooldown) => cooldown.isProbeFree(nowMs))) return false
  for (const cooldown of active) cooldown.startProbe(nowMs)
  return true
}

function endProbes(route: RouteHealth, startedMs: number): void {
  for (const cooldown of cooldownsOf(route)) cooldown.endProbe(startedMs)
}
