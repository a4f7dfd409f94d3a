// How many lines of batches one process runs at a time, and when it starts none because requests of people would wait for them.

import { yieldToEventLoop } from '../kernel/timers.ts'

export interface SlotsOptions {
  /** How many lines run at a time. */
  max(): number
  /** Whether other requests are kept waiting. */
  isBusy(): boolean
}

const busyMs = 20

export class Slots {
  #running = 0
  readonly #waiting: (() => void)[] = []

  constructor(private readonly options: SlotsOptions) {}

  /** In the order of the calls. Each needs one `release`. */
  async take(): Promise<void> {
    if (this.#running >= this.options.max()) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running++
    // A request that has arrived meanwhile comes first.
    await yieldToEventLoop()
    while (this.options.isBusy()) await Bun.sleep(busyMs)
  }

  release(): void {
    const next = this.#running <= this.options.max() ? this.#waiting.shift() : undefined
    if (next) next()
    else this.#running--
  }
}
