// How often wallets are held from in this replica, so that it knows which of them are worth a lease and how large.

import type { WalletId } from '../account.ts'

const windowMs = 1000
const forgottenMs = 10_000

export interface Heat {
  /** In the busier of this second and the one before. */
  readonly holds: number
  readonly amount: bigint
  /** Of one hold; 0 = nothing was held. */
  readonly average: bigint
  readonly idleMs: number
}

interface Count {
  startMs: number
  lastHoldMs: number
  holds: number
  amount: bigint
  holdsBefore: number
  amountBefore: bigint
}

export class LeaseHeat {
  readonly #counts = new Map<WalletId, Count>()

  note(wallet: WalletId, amount: bigint, nowMs: number): void {
    const count = this.#counts.get(wallet) ?? this.#add(wallet, nowMs)
    roll(count, nowMs)
    count.lastHoldMs = nowMs
    count.holds++
    count.amount += amount
  }

  of(wallet: WalletId, nowMs: number): Heat {
    const count = this.#counts.get(wallet)
    if (!count) return { holds: 0, amount: 0n, average: 0n, idleMs: Number.POSITIVE_INFINITY }
    roll(count, nowMs)
    const isMore = count.holds >= count.holdsBefore
    const [holds, amount] = isMore ? [count.holds, count.amount] : [count.holdsBefore, count.amountBefore]
    const average = holds === 0 ? 0n : amount / BigInt(holds)
    return { holds, amount, average, idleMs: nowMs - count.lastHoldMs }
  }

  forgetIdle(nowMs: number): void {
    for (const [wallet, { lastHoldMs }] of this.#counts) {
      if (nowMs - lastHoldMs > forgottenMs) this.#counts.delete(wallet)
    }
  }

  #add(wallet: WalletId, nowMs: number): Count {
    const fresh = { startMs: nowMs, lastHoldMs: nowMs, holds: 0, amount: 0n, holdsBefore: 0, amountBefore: 0n }
    this.#counts.set(wallet, fresh)
    return fresh
  }
}

function roll(count: Count, nowMs: number): void {
  const ageMs = nowMs - count.startMs
  if (ageMs < windowMs) return
  const isFresh = ageMs < 2 * windowMs
  count.holdsBefore = isFresh ? count.holds : 0
  count.amountBefore = isFresh ? count.amount : 0n
  count.startMs = nowMs
  count.holds = 0
  count.amount = 0n
}
