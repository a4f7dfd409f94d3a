// Whether a model at an endpoint is to be asked at all: faults eject it for a while, real requests test it one by one,
// and it comes back slowly. Knows time only as it is told, and never decides what a fault is.

import type { FaultClass } from '../fault.ts'
import { AttemptWindow } from './attempt-window.ts'

const faultsInRowMax = 5
const windowAttemptsMin = 20
const windowFaultShare = 0.5

const ejectionMs = 15_000
const ejectionMaxMs = 300_000
/** Spread to both sides, so that replicas do not come back all at once. */
const ejectionJitter = 0.2
/** After this long without an ejection the next one is half as long. */
const quietMs = 300_000

const probeSpacingMs = 5_000
const probeSuccesses = 3
/** The longest an attempt may take; a probe that says nothing for longer was lost. */
const probeLostMs = 600_000

export const slowStartFactor = 0.1
const slowStartMs = 30_000

/** A 503 or a 529: it is there, and has too much to do. */
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
  /** What began earlier tells about a time that has been judged already: before an ejection's end, or before closing. */
  #judgesFromMs = Number.NEGATIVE_INFINITY
  #probeStartedMs: number | undefined
  #probedMs = Number.NEGATIVE_INFINITY
  #probeSuccesses = 0
  #overloadedUntilMs = Number.NEGATIVE_INFINITY
  /** Until then something is to be said about it; the one comparison that a healthy route costs. */
  #restlessUntilMs = Number.NEGATIVE_INFINITY
  #why: FaultClass | undefined

  /** Whether it is closed and at full weight. */
  isCalm(nowMs: number): boolean {
    return nowMs >= this.#restlessUntilMs
  }

  state(nowMs: number): BreakerState {
    if (this.#isOpen) return nowMs < this.#ejectedUntilMs ? 'ejected' : 'half open'
    return nowMs < this.#closedMs + slowStartMs ? 'slow start' : 'closed'
  }

  /** What of its weight it gets while it is closed. */
  factor(nowMs: number): number {
    const passed = Math.min(1, (nowMs - this.#closedMs) / slowStartMs)
    const started = slowStartFactor + (1 - slowStartFactor) * passed
    return nowMs < this.#overloadedUntilMs ? started * overloadFactor : started
  }

  /** The class of the last fault that counted. */
  get why(): FaultClass | undefined {
    return this.#why
  }

  /** How long the ejection, the wait for the next probe, the slow start or the halved weight still lasts. */
  waitMs(nowMs: number): number {
    const untilMs = {
      ejected: this.#ejectedUntilMs,
      'half open': this.#probedMs + probeSpacingMs,
      'slow start': this.#restlessUntilMs,
      closed: this.#restlessUntilMs,
    }[this.state(nowMs)]
    return Math.max(0, untilMs - nowMs)
  }

  /** Whether a request may test it now; only asked while it is half open. */
  isProbeFree(nowMs: number): boolean {
    const isUnderWay = this.#probeStartedMs !== undefined && nowMs - this.#probeStartedMs < probeLostMs
    return !isUnderWay && nowMs - this.#probedMs >= probeSpacingMs
  }

  /** Whoever starts an attempt while it is half open and free is the probe. */
  startProbe(nowMs: number): void {
    this.#probeStartedMs = nowMs
    this.#probedMs = nowMs
  }

  /** An attempt ended without telling anything about health. */
  noteNothing(startedMs: number): void {
    if (startedMs === this.#probeStartedMs) this.#probeStartedMs = undefined
  }

  /** Answers whether this closed it. */
  noteSuccess(startedMs: number, nowMs: number): boolean {
    if (startedMs < this.#judgesFromMs) return false
    if (this.#isOpen) return this.#noteProbeSuccess(startedMs, nowMs)
    this.#faultsInRow = 0
    this.#window.addAttempt(nowMs)
    return false
  }

  /** Answers whether this opened it. `draw` is a number in [0, 1). */
  noteFault(why: FaultClass, startedMs: number, nowMs: number, draw: number): boolean {
    if (startedMs < this.#judgesFromMs) return false
    if (!this.#isOpen) this.#window.addAttempt(nowMs)
    return this.#countFault(why, nowMs, draw)
  }

  /** A fault of an attempt whose success was noted before, when it had begun to answer: one attempt, not two. */
  noteInterruption(why: FaultClass, startedMs: number, nowMs: number, draw: number): boolean {
    return startedMs >= this.#judgesFromMs && this.#countFault(why, nowMs, draw)
  }

  noteOverload(nowMs: number): void {
    this.#overloadedUntilMs = nowMs + overloadMs
    this.#restlessUntilMs = Math.max(this.#restlessUntilMs, this.#overloadedUntilMs)
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
    this.#restlessUntilMs = Number.POSITIVE_INFINITY
    this.#faultsInRow = 0
    this.#window.clear()
    this.#probeStartedMs = undefined
    this.#probeSuccesses = 0
  }

  #noteProbeSuccess(startedMs: number, nowMs: number): boolean {
    this.noteNothing(startedMs)
    this.#probeSuccesses++
    if (this.#probeSuccesses < probeSuccesses) return false
    this.#isOpen = false
    this.#closedMs = nowMs
    this.#judgesFromMs = nowMs
    this.#restlessUntilMs = nowMs + slowStartMs
    return true
  }
}
