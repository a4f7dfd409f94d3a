// How many lines of batches one process runs at a time, and when each begins: requests of people come first.

import type { Clock } from '../kernel/clock.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'

export interface SlotsOptions {
  readonly clock: Clock
  /** How many lines run at a time. */
  max(): number
  /** Whether other requests are kept waiting. */
  isBusy(): boolean
}

const busyMs = 20
/** A turn of the event loop that takes longer has much to do besides lines. */
const turnMs = 5
/** The next line waits this many times as long as such a turn took, up to a limit, so that lines go on under any load. */
const pauseFactor = 4
const pauseMaxMs = 100

export class Slots {
  #running = 0
  readonly #waiting: (() => void)[] = []
  #begun: Promise<void> = Promise.resolve()

  constructor(private readonly options: SlotsOptions) {}

  /** In the order of the calls. Each needs one `release`. */
  async take(): Promise<void> {
    if (this.#running >= this.options.max()) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running++
    this.#begun = this.#begun.then(() => this.#turn())
    await this.#begun
  }

  release(): void {
    const next = this.#running <= this.options.max() ? this.#waiting.shift() : undefined
    if (next) next()
    else this.#running--
  }

  /** Each line begins in a turn of its own, behind the requests that have arrived meanwhile. */
  async #turn(): Promise<void> {
    const { clock, isBusy } = this.options
    const startedMs = clock.monotonicMs()
    await yieldToEventLoop()
    const tookMs = clock.monotonicMs() - startedMs
    if (tookMs > turnMs) await Bun.sleep(Math.min(pauseMaxMs, tookMs * pauseFactor))
    while (isBusy()) await Bun.sleep(busyMs)
  }
}
