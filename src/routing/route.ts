// The health of one route: its circuit breaker, its cooldowns, and the state that follows from them. A RouteHealth is created
// once per route and reused, so that no request builds a name. Routes share what they have in common: the breaker of a model
// at an endpoint, the cooldown of a credential.

import type { FaultClass } from './faults.ts'
import { Latency } from './latency.ts'

/** The operator's credential, of which every provider has at most one. */
export const platformCredential = 'platform'

export interface RouteNames {
  readonly providerId: string
  /** Base URL of the endpoint, because regions fail independently. */
  readonly baseUrl: string
  readonly upstreamModel: string
  /** `platform`, or the id of a workspace's own credential. */
  readonly credentialId: string
}

export interface RouteHealth extends RouteNames {
  /** All its names joined; the same on every replica. */
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
  /** When the attempt began that says how the route is now, and what was wrong with it; undefined = it was answered. */
  judgedMs: number
  fault: FaultClass | undefined
}

/** Bounds the routes of workspaces' own credentials; 3 KB each once used. */
const ownMax = 10_000

export function createRoutes() {
  /** As many as the configuration names. */
  const platform = new LruTable<RouteHealth>(Number.POSITIVE_INFINITY)
  /** An evicted route that is still in use keeps working; the next lookup creates a new one. */
  const own = new LruTable<RouteHealth>(ownMax)
  const breakers = new LruTable<Breaker>(ownMax)
  const cooldowns = new LruTable<Cooldown>(2 * ownMax)
  const createCooldown = (): Cooldown => new Cooldown()

  return {
    /** The same object for the same names, also after a configuration reload. */
    find({ providerId, baseUrl, upstreamModel, credentialId }: RouteNames): RouteHealth {
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
        judgedMs: Number.NEGATIVE_INFINITY,
        fault: undefined,
      }))
    },
    /** Clears the cooldowns of a credential that has a new value or passed a test, and what was wrong with it before. */
    renewCredential(
      { providerId, credentialId }: Pick<RouteNames, 'providerId' | 'credentialId'>,
      nowMs: number,
    ): void {
      for (const table of [platform, own]) {
        for (const route of table.values()) {
          if (route.providerId !== providerId || route.credentialId !== credentialId) continue
          for (const cooldown of cooldownsOf(route)) cooldown.renew(nowMs)
          if (route.fault === undefined || !causesCooldown(route.fault)) continue
          route.fault = undefined
          route.judgedMs = nowMs
        }
      }
    },
    *all(): Iterable<RouteHealth> {
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
  /** The minimum time until this can change; absent while healthy. */
  readonly waitMs?: number
  /** The cause: the last fault, or the reason of the cooldown. */
  readonly why?: FaultClass
  /** The cooldown's duration is our own guess: if no other route is left, one request at a time may probe. */
  readonly isGuess?: true
}

export const healthy: RouteState = Object.freeze({ state: 'healthy', factor: 1 })

/** Allocates nothing for a healthy route. */
export function routeState(route: RouteHealth, nowMs: number): RouteState {
  return parkedState(route, nowMs) ?? (route.breaker.isHealthy(nowMs) ? healthy : breakerState(route, nowMs))
}

/** The longest active cooldown; undefined = none. */
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

// ── The breaker ──

// The circuit breaker of a model at an endpoint: faults eject it for a while, real requests probe it one by one, and its
// weight returns slowly. Time is passed in; what counts as a fault is decided elsewhere.

const faultsInRowMax = 5
const windowAttemptsMin = 20
const windowFaultShare = 0.5

const ejectionMs = 15_000
const ejectionMaxMs = 300_000
/** Plus or minus, so that replicas do not return at the same moment. */
const ejectionJitter = 0.2
/** After this long without an ejection the next one is half as long. */
const quietMs = 300_000

const probeSpacingMs = 5_000
const probeSuccesses = 3
/** The longest an attempt may take; a probe without a result for longer was lost. */
const probeLostMs = 600_000

const slowStartFactor = 0.1
const slowStartMs = 30_000

/** After a 503 or 529 the route is up but overloaded. */
const overloadFactor = 0.5
const overloadMs = 30_000

type BreakerState = 'closed' | 'slow start' | 'ejected' | 'half open'

export class Breaker {
  readonly #window = new AttemptWindow()
  /** Faults since the last success. */
  #faultsInRow = 0
  #isOpen = false
  #ejectedUntilMs = Number.NEGATIVE_INFINITY
  /** The n of 15 s × 2ⁿ. */
  #ejections = 0
  #closedMs = Number.NEGATIVE_INFINITY
  /** Attempts that began earlier are ignored: they belong to a time before the ejection ended or the breaker closed. */
  #judgesFromMs = Number.NEGATIVE_INFINITY
  #probeStartedMs: number | undefined
  #probedMs = Number.NEGATIVE_INFINITY
  #probeSuccesses = 0
  #overloadedUntilMs = Number.NEGATIVE_INFINITY
  /** From then on it is closed and at full weight. A healthy route needs only this comparison. */
  #healthyFromMs = Number.NEGATIVE_INFINITY
  #why: FaultClass | undefined

  /** Whether it is closed and at full weight. */
  isHealthy(nowMs: number): boolean {
    return nowMs >= this.#healthyFromMs
  }

  state(nowMs: number): BreakerState {
    if (this.#isOpen) return nowMs < this.#ejectedUntilMs ? 'ejected' : 'half open'
    return nowMs < this.#closedMs + slowStartMs ? 'slow start' : 'closed'
  }

  /** The share of its weight while it is closed. */
  factor(nowMs: number): number {
    const passed = Math.min(1, (nowMs - this.#closedMs) / slowStartMs)
    const started = slowStartFactor + (1 - slowStartFactor) * passed
    return nowMs < this.#overloadedUntilMs ? started * overloadFactor : started
  }

  /** The class of the last fault that counted. */
  get why(): FaultClass | undefined {
    return this.#why
  }

  /** How long the ejection, the wait for the next probe, the slow start or the reduced weight lasts. */
  waitMs(nowMs: number): number {
    const untilMs = {
      ejected: this.#ejectedUntilMs,
      'half open': this.#probedMs + probeSpacingMs,
      'slow start': this.#healthyFromMs,
      closed: this.#healthyFromMs,
    }[this.state(nowMs)]
    return Math.max(0, untilMs - nowMs)
  }

  /** Whether a request may probe it now; used only while half open. */
  isProbeFree(nowMs: number): boolean {
    const isProbing = this.#probeStartedMs !== undefined && nowMs - this.#probeStartedMs < probeLostMs
    return !isProbing && nowMs - this.#probedMs >= probeSpacingMs
  }

  startProbe(nowMs: number): void {
    this.#probeStartedMs = nowMs
    this.#probedMs = nowMs
  }

  /** An attempt ended without a verdict on the route. */
  recordNothing(startedMs: number): void {
    if (startedMs === this.#probeStartedMs) this.#probeStartedMs = undefined
  }

  /** Returns whether this closed it. */
  recordSuccess(startedMs: number, nowMs: number): boolean {
    if (startedMs < this.#judgesFromMs) return false
    if (this.#isOpen) return this.#recordProbeSuccess(startedMs, nowMs)
    this.#faultsInRow = 0
    this.#window.addAttempt(nowMs)
    return false
  }

  /** Returns whether this opened it. `draw` is a number in [0, 1). */
  recordFault(why: FaultClass, startedMs: number, nowMs: number, draw: number): boolean {
    if (startedMs < this.#judgesFromMs) return false
    if (!this.#isOpen) this.#window.addAttempt(nowMs)
    return this.#countFault(why, nowMs, draw)
  }

  /** A fault after the attempt was recorded as a success, when it began to answer: one attempt, not two. */
  recordInterruption(why: FaultClass, startedMs: number, nowMs: number, draw: number): boolean {
    return startedMs >= this.#judgesFromMs && this.#countFault(why, nowMs, draw)
  }

  recordOverload(nowMs: number): void {
    this.#overloadedUntilMs = nowMs + overloadMs
    this.#healthyFromMs = Math.max(this.#healthyFromMs, this.#overloadedUntilMs)
  }

  #countFault(why: FaultClass, nowMs: number, draw: number): boolean {
    this.#why = why
    if (!this.#isOpen) {
      this.#faultsInRow++
      this.#window.addFault(nowMs)
      const { attempts, faults } = this.#window
      const isMostly = attempts >= windowAttemptsMin && faults >= attempts * windowFaultShare
      if (this.#faultsInRow < faultsInRowMax && !isMostly) return false
      this.#ejections = Math.max(0, this.#ejections - Math.floor((nowMs - this.#closedMs) / quietMs))
    }
    this.#open(nowMs, draw)
    return true
  }

  #open(nowMs: number, draw: number): void {
    const jitter = 1 + ejectionJitter * (2 * draw - 1)
    this.#ejectedUntilMs = nowMs + Math.min(ejectionMaxMs, ejectionMs * 2 ** this.#ejections * jitter)
    this.#ejections++
    this.#isOpen = true
    this.#judgesFromMs = this.#ejectedUntilMs
    this.#healthyFromMs = Number.POSITIVE_INFINITY
    this.#faultsInRow = 0
    this.#window.clear()
    this.#probeStartedMs = undefined
    this.#probeSuccesses = 0
  }

  #recordProbeSuccess(startedMs: number, nowMs: number): boolean {
    this.recordNothing(startedMs)
    this.#probeSuccesses++
    if (this.#probeSuccesses < probeSuccesses) return false
    this.#isOpen = false
    this.#closedMs = nowMs
    this.#judgesFromMs = nowMs
    this.#healthyFromMs = nowMs + slowStartMs
    return true
  }
}

const windowSeconds = 30

/**
 * Attempts and faults of the last 30 seconds, by second in fixed arrays: it is written on every attempt, so it must
 * neither allocate nor iterate.
 */
class AttemptWindow {
  attempts = 0
  faults = 0
  readonly #attempts = new Uint32Array(windowSeconds)
  readonly #faults = new Uint32Array(windowSeconds)
  #second = 0

  addAttempt(nowMs: number): void {
    const slot = this.#roll(nowMs)
    this.#attempts[slot] = (this.#attempts[slot] ?? 0) + 1
    this.attempts++
  }

  addFault(nowMs: number): void {
    const slot = this.#roll(nowMs)
    this.#faults[slot] = (this.#faults[slot] ?? 0) + 1
    this.faults++
  }

  clear(): void {
    this.#attempts.fill(0)
    this.#faults.fill(0)
    this.attempts = 0
    this.faults = 0
  }

  /** Drops the seconds that have left the window; returns the slot of this second. */
  #roll(nowMs: number): number {
    const second = Math.floor(nowMs / 1000)
    const passed = Math.min(second - this.#second, windowSeconds)
    for (let n = 0; n < passed; n++) {
      const slot = (second - n) % windowSeconds
      this.attempts -= this.#attempts[slot] ?? 0
      this.faults -= this.#faults[slot] ?? 0
      this.#attempts[slot] = 0
      this.#faults[slot] = 0
    }
    this.#second = second
    return second % windowSeconds
  }
}

// ── Cooldowns ──

// Cooldowns: a credential, a credential at one model, or a route that is not called until a given time because its
// provider said so. Each has its own Cooldown, which knows why and until when.

interface Wait {
  readonly firstMs: number
  /** Doubles each time in a row, up to this. */
  readonly maxMs: number
  /** How a `Retry-After` is used. */
  readonly retryAfter: 'exact' | 'minimum' | 'ignored'
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** A probe without a result does not block others for longer. */
const probeMaxMs = 30_000
/** Some providers ask for more by mistake; after this we try again, which costs a round trip. */
const retryAfterMaxMs = hourMs

const waits = {
  throttled: { firstMs: 1_000, maxMs: minuteMs, retryAfter: 'exact' },
  // Some also send their rate limit's header, but an empty account is not refilled in a second.
  'out of quota': { firstMs: 15 * minuteMs, maxMs: 6 * hourMs, retryAfter: 'minimum' },
  // Trying again costs a round trip and no money, and providers reject good keys while their login is down.
  'refused our credential': { firstMs: minuteMs, maxMs: hourMs, retryAfter: 'ignored' },
  'does not know the model': { firstMs: 10 * minuteMs, maxMs: 10 * minuteMs, retryAfter: 'ignored' },
} as const satisfies Partial<Record<FaultClass, Wait>>

export type CooldownCause = keyof typeof waits

export function causesCooldown(faultClass: FaultClass): faultClass is CooldownCause {
  return faultClass in waits
}

export interface CooldownReason {
  readonly why: CooldownCause
  /** The wait that the provider asked for. */
  readonly retryAfterMs: number | undefined
  /** When the attempt began that reported it. */
  readonly startedMs: number
}

export class Cooldown {
  #untilMs = Number.NEGATIVE_INFINITY
  #why: CooldownCause | undefined
  /** The n of first × 2ⁿ. */
  #timesInRow = 0
  /** Whether the provider gave the duration. */
  #hasRetryAfter = false
  #probeBegunMs = Number.NEGATIVE_INFINITY
  /** Attempts that began earlier say nothing new: thirty parallel 429s are one. */
  #judgesFromMs = Number.NEGATIVE_INFINITY

  isActive(nowMs: number): boolean {
    return nowMs < this.#untilMs
  }

  waitMs(nowMs: number): number {
    return Math.max(0, this.#untilMs - nowMs)
  }

  get why(): CooldownCause | undefined {
    return this.#why
  }

  /** How often in a row it started for the same reason without a duration from the provider. */
  get timesInRow(): number {
    return this.#timesInRow
  }

  /**
   * Whether the duration is our own guess, so that the cause may already be fixed: if no other route is left, a request may
   * probe. A rate limit passes in seconds and is waited out.
   */
  isGuess(): boolean {
    return !this.#hasRetryAfter && this.#why !== 'throttled'
  }

  /** One probe at a time. */
  isProbeFree(nowMs: number): boolean {
    return nowMs >= this.#probeBegunMs + probeMaxMs
  }

  startProbe(nowMs: number): void {
    this.#probeBegunMs = nowMs
  }

  /** Ends the probe if it is the attempt that began then. */
  endProbe(startedMs: number): void {
    if (startedMs === this.#probeBegunMs) this.#probeBegunMs = Number.NEGATIVE_INFINITY
  }

  isNews(startedMs: number): boolean {
    return startedMs >= this.#judgesFromMs
  }

  /** Returns whether this changed anything. */
  start({ why, retryAfterMs, startedMs }: CooldownReason, nowMs: number): boolean {
    const wait = waits[why]
    const isIgnored = wait.retryAfter === 'ignored' || retryAfterMs === undefined
    const askedMs = isIgnored ? undefined : Math.min(retryAfterMs, retryAfterMaxMs)
    // Only a probe can begin during a cooldown; that the cause persists is no reason to wait longer.
    if (!this.isNews(startedMs) || (this.isActive(startedMs) && why === this.#why)) {
      const isExtension = this.isActive(nowMs) && why === this.#why && askedMs !== undefined
      if (isExtension) this.#untilMs = Math.max(this.#untilMs, nowMs + askedMs)
      return false
    }
    if (why !== this.#why) this.#timesInRow = 0
    const isExact = wait.retryAfter === 'exact' && askedMs !== undefined
    const ownMs = Math.min(wait.maxMs, wait.firstMs * 2 ** this.#timesInRow)
    this.#untilMs = nowMs + (isExact ? askedMs : Math.max(ownMs, askedMs ?? 0))
    this.#timesInRow = isExact ? 0 : this.#timesInRow + 1
    this.#why = why
    this.#hasRetryAfter = askedMs !== undefined
    this.#judgesFromMs = nowMs
    return true
  }

  recordSuccess(startedMs: number): void {
    if (this.#why !== undefined && this.isNews(startedMs)) this.#reset()
  }

  /** Starts over, for example with a new credential under the same name. */
  renew(nowMs: number): void {
    this.#reset()
    this.#judgesFromMs = nowMs
  }

  #reset(): void {
    this.#untilMs = Number.NEGATIVE_INFINITY
    this.#why = undefined
    this.#hasRetryAfter = false
    this.#timesInRow = 0
    this.#probeBegunMs = Number.NEGATIVE_INFINITY
  }
}

/** After this many, a 429 with neither a reason nor a duration is not a short rate limit. */
const unexplainedMax = 3

/**
 * Words of a 429 about a temporary rate limit. A caller who makes a provider quote them only shortens the wait. Signs of an
 * empty account are checked first.
 */
const throttleWords = new RegExp(
  [
    'rate.?limit|limit_requests|request rate|too.?many.?requests|too many tokens|throttl|slow.?down',
    'RESOURCE_EXHAUSTED|overloaded|capacity|concurren|frequen|allocated quota',
    '(try|wait).{0,20}again|retry (in|after|later)',
    '\\b[RT]P[MSD]\\b|per[ _-](second|minute|min|hour|day|base[ _-]model)',
  ].join('|'),
  'i',
)

export function namesThrottle(words: string): boolean {
  return throttleWords.test(words)
}

/**
 * Whether an unexplained 429 is treated as an account without credit, for this model only: it may be a limit of the model,
 * and other models must not suffer from a guess (docs/decisions/0017).
 */
export function isRepeatedUnexplained429(cooldown: Cooldown, { retryAfterMs, startedMs }: CooldownReason): boolean {
  const isRow = cooldown.why === 'out of quota' || cooldown.timesInRow >= unexplainedMax - 1
  return retryAfterMs === undefined && cooldown.isNews(startedMs) && isRow
}
