// Faults between a process and its store, thrown by dice: a commit that fails, one that was written though it
// seemed to fail, one that takes long, and times at which nothing works at all.

import type { Dice } from './dice.ts'

export type CommitFault = 'none' | 'fails' | 'fails though written'

export class StoreFaults {
  /** No commit works before. */
  outageUntil = 0
  /** How the last batch of the process ended, as far as it knows. */
  lastCommitFailed = false
  /** Turned off for the end of a world. */
  enabled: boolean
  readonly #dice: Dice

  constructor(dice: Dice, enabled: boolean) {
    this.#dice = dice
    this.enabled = enabled
  }

  isOut(now: number): boolean {
    return this.enabled && now < this.outageUntil
  }

  /** Whether the outage is one of syncs: every second one. What is committed is written, and reported as failed. */
  isSyncOut(now: number): boolean {
    return this.isOut(now) && this.outageUntil % 2 === 0
  }

  /** `fails though written`: the connection breaks after the commit has arrived, or the log cannot be synced. */
  commit(now: number): CommitFault {
    if (!this.enabled) return 'none'
    if (this.isOut(now)) return 'fails'
    if (this.#dice.chance(0.03)) return 'fails'
    return this.#dice.chance(0.02) ? 'fails though written' : 'none'
  }

  /** How long a commit takes, in milliseconds; 0 = the usual. */
  delayMs(): number {
    if (!this.enabled || this.#dice.chance(0.95)) return 0
    return this.#dice.chance(0.3) ? this.#dice.int(20_000, 45_000) : this.#dice.int(500, 6000)
  }
}
