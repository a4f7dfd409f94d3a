// The circuit breaker of a model at an endpoint: faults eject it for a while, real requests probe it one by one, and its
// weight returns slowly. Time is passed in; what counts as a fault is decided elsewhere.

import type { FaultClass } from './faults.ts'

const faultsInRowMax = 5
const windowAttemptsMin = 20
const windowFaultShare = 0.5

const ejectionMs = 15_000
const ejectionMaxMs = 300_000
/** In both directions, so that replicas do not return at the same moment. */
const ejectionJitter = 0.2
/** After this long without an ejection the next one is half as long. */
const quietMs = 300_000

const probeSpacingMs = 5_000
const probeSuccesses = 3
/** The longest an attempt may take; a probe without a result for longer was lost. */
const probeLostMs = 600_000

export const slowStartFactor = 0.1
const slowStartMs = 30_000

/** After a 503 or 529 the route is up but overloaded. */
const overloadFactor = 0.5
const overloadMs = 30_000

export type BreakerState = 'closed' | 'slow start' | 'ejected' | 'half open'

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
  /** From then on it is closed and at full weight; the only comparison that a healthy route costs. */
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
