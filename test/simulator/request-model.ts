// The conditions on one request's money, from money.md alone: how much of its wallet is reserved, at least and at most,
// while answers are on their way, and how it may end.

import type { Room } from './room.ts'

export interface AskedSettlement {
  /** Its cost, by the simulator's own arithmetic. */
  readonly charge: bigint
  /** The amount quoted to the caller: the wallet pays no more. */
  readonly quoted: bigint
}

export interface KnownCharge {
  readonly amount: bigint
  readonly writtenOff: bigint
}

export interface CappedRoom {
  readonly room: Room
  readonly cap: bigint
}

export class RequestModel {
  /** `asked`: no answer to the hold yet. `unknown`: there will be none. */
  state: 'asked' | 'open' | 'refused' | 'unknown' | 'ended' = 'asked'
  held: bigint
  /** Extensions without an answer, and those whose answer never came. */
  readonly extending = new Set<{ readonly more: bigint }>()
  extendedMaybe = 0n
  readonly asked: AskedSettlement[] = []
  settling = 0
  releasing = 0
  charge: KnownCharge | undefined
  /** Answers that say "this call charged"; another process may have seen the charge before. */
  chargers = 0
  /** It may end by itself now: its time is over, or its process may have been taken for dead. */
  isLoose = false
  /** Settlements whose answer never came, or did not say how they ended: it may have been charged. */
  isUnclear = false
  /** A settlement ended with the word that nothing was charged, so nothing may ever be. */
  isUncharged = false

  constructor(
    readonly id: string,
    readonly process: string,
    readonly wallet: Room,
    readonly budgets: readonly CappedRoom[],
    readonly amount: bigint,
    readonly expiresAt: number,
    /** Whether commits may fail in this world: then what is being settled may end unpaid. */
    readonly hasFaults: boolean,
  ) {
    this.held = amount
  }

  heldMost(): bigint {
    return [...this.extending].reduce((sum, { more }) => sum + more, this.held + this.extendedMaybe)
  }

  /** Why it may have ended, or be about to, without the one who asks having done it. */
  mayBeGone(): boolean {
    return this.state !== 'open' || this.isLoose || this.isUnclear || this.settling > 0 || this.releasing > 0
  }

  end(charge?: KnownCharge): void {
    this.state = 'ended'
    this.charge = charge
    this.refresh()
  }

  refresh(): void {
    const { low, high } = this.#spokenFor()
    this.wallet.set(this.id, low, high)
    for (const { room } of this.budgets) room.set(this.id, low, high)
  }

  #spokenFor(): { readonly low: bigint; readonly high: bigint } {
    if (this.charge) return { low: -this.charge.amount, high: -this.charge.amount }
    if (this.state === 'refused' || this.state === 'ended') return { low: 0n, high: 0n }
    let low = -this.heldMost()
    let high = this.state === 'open' ? -this.held : 0n
    if (this.settling > 0 || this.isUnclear) {
      for (const { quoted } of this.asked) {
        if (-quoted < low) low = -quoted
        if (-quoted > high) high = -quoted
      }
      if (this.hasFaults) high = 0n
    }
    if (this.isLoose || this.isUnclear || this.releasing > 0) high = 0n
    return { low, high }
  }
}
