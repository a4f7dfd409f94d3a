// One gateway process of a simulated world: the real ledger on a simulated store, clock and timers. It can be called, stand
// still, and die between any two of its steps; the outcome of a call to a dead one is `lost`.

import type { Failpoint } from '../../src/kernel/failpoint.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import type { Database } from '../../src/store/database.ts'
import type { Dice } from './dice.ts'
import type { LedgerParts } from './ledger-parts.ts'
import type { Scheduler, Turns } from './scheduler.ts'
import { virtualClock, virtualPace } from './virtual-time.ts'

export interface ProcessOptions {
  readonly name: string
  readonly scheduler: Scheduler
  readonly dice: Dice
  readonly parts: LedgerParts
  readonly skewMs: number
  readonly holdLifetimeMs: number
  readonly hasFaults: boolean
  openStore(owner: Turns): Database
  /** Whether a failpoint kills now. */
  killsAt(name: string): boolean
}

export const lost = { kind: 'lost' } as const
export type Lost = typeof lost

export class SimulatedProcess implements Turns {
  readonly name: string
  isDead = false
  frozenUntil = 0
  ledger: Ledger | undefined
  readonly database: Database
  readonly now: () => number
  readonly #options: ProcessOptions
  readonly #waiting = new Set<() => void>()

  constructor(options: ProcessOptions) {
    this.name = options.name
    this.#options = options
    this.database = options.openStore(this)
    this.now = virtualClock(options.scheduler, options.skewMs).now
  }

  /** It can be called when this resolves; never resolves if it dies on the way. */
  async start(): Promise<void> {
    const { scheduler, parts, skewMs, holdLifetimeMs } = this.#options
    await scheduler.turn(this, 'starts')
    this.ledger = await parts.createLedger({
      // The oracle knows no charges from before a limit.
      seedsBudgets: false,
      database: this.database,
      clock: virtualClock(scheduler, skewMs),
      timers: virtualPace(scheduler, this),
      failpoint: this.#reach,
      holdLifetimeMs,
    })
  }

  /** A message to the process; what `work` does happens in one turn of it. */
  call<T>(label: string, work: (ledger: Ledger) => T | Promise<T>): Promise<T | Lost> {
    const { scheduler } = this.#options
    return new Promise((resolve, reject) => {
      const lose = () => resolve(lost)
      if (this.isDead || !this.ledger) return lose()
      this.#waiting.add(lose)
      scheduler.soon(this, label, () => {
        const { ledger } = this
        if (!ledger) return lose()
        Promise.resolve()
          .then(() => work(ledger))
          .finally(() => this.#waiting.delete(lose))
          .then(resolve, reject)
      })
    })
  }

  /** As a power cut would end it. */
  die(): void {
    this.isDead = true
    this.#options.scheduler.forget(this)
    for (const lose of this.#waiting) lose()
    this.#waiting.clear()
  }

  readonly #reach: Failpoint = (name) => {
    const { dice, scheduler, hasFaults, killsAt } = this.#options
    if (killsAt(name)) {
      this.die()
      return new Promise(() => {})
    }
    // A throw in a reap is not caught, and neither is one in the product.
    if (hasFaults && name !== 'in_reap' && name !== 'after_hold' && dice.chance(0.02))
      throw new Error(`failpoint ${name}`)
    return dice.chance(0.3) ? scheduler.turn(this, name) : undefined
  }
}
