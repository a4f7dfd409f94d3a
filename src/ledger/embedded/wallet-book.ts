// The wallets of the embedded engine in memory: an authoritative copy of every posted balance, and the holds, which
// exist only here. Pure bookkeeping, decided at once; what is durable is decided by who calls it.

import { assert } from '../../kernel/assert.ts'
import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Insufficient } from '../account.ts'
import { type Budget, BudgetCounters, type BudgetName, budgetNames, noBudgets, type OverBudget } from '../budget.ts'
import type { Held, HoldStats, ReapReport, SettleOutcome, Wallet } from '../ledger.ts'

interface Balance {
  posted: bigint
  held: bigint
}

interface Hold {
  readonly workspaceId: WorkspaceId
  readonly balance: Balance
  readonly budgets: readonly Budget[]
  readonly budgetNames: readonly BudgetName[]
  readonly heldAt: number
  readonly expiresAtMs: number
  amount: bigint
  /** The part of the amount that was added when the charge was known. */
  covered: bigint
  sent: boolean
  claimed: boolean
  /** The outcome of the settlement of a claimed hold. */
  settling: Promise<SettleOutcome> | undefined
}

/** A hold that is being settled; nothing else can end it. */
export interface Claim {
  readonly requestId: RequestId
  readonly workspaceId: WorkspaceId
  /** The amount held before the cost was known. */
  readonly heldBeforeCost: bigint
  /** The amount that leaves the wallet; covered by the hold. */
  readonly charge: Nano
  /** The budgets that count the charge. */
  readonly budgetNames: readonly BudgetName[]
}

export interface HoldTerms {
  readonly amount: Nano
  readonly requiredFree: Nano | undefined
  readonly now: number
  /** By the monotonic clock: a clock that is set must end no hold. */
  readonly expiresAtMs: number
  readonly budgets: readonly Budget[] | undefined
}

export type Reservation = Held | Insufficient | OverBudget

const held: Reservation = { kind: 'held' }

export class WalletBook {
  readonly budgets: BudgetCounters
  readonly #balances = new Map<WorkspaceId, Balance>()
  /** In the order in which they were held. */
  readonly #holds = new Map<RequestId, Hold>()
  #heldTotal = 0n

  constructor(posted: Iterable<readonly [WorkspaceId, Nano]>, budgets = new BudgetCounters()) {
    this.budgets = budgets
    for (const [workspaceId, amount] of posted) {
      this.#balances.set(workspaceId, { posted: amount, held: 0n })
    }
  }

  wallet(workspaceId: WorkspaceId): Wallet {
    const { posted, held } = this.#balances.get(workspaceId) ?? { posted: 0n, held: 0n }
    return { posted: posted as Nano, held: held as Nano, available: (posted - held) as Nano }
  }

  stats(): HoldStats {
    const oldest = this.#holds.values().next().value
    return { openHolds: this.#holds.size, heldTotal: this.#heldTotal as Nano, oldestHoldAt: oldest?.heldAt }
  }

  hold(requestId: RequestId, workspaceId: WorkspaceId, terms: HoldTerms): Reservation {
    const { amount, requiredFree = amount, now, expiresAtMs, budgets = noBudgets } = terms
    assert(amount >= 0n, 'a hold is not negative')
    assert(!this.#holds.has(requestId), `${requestId} holds already`)
    const hold: Hold = {
      workspaceId,
      balance: this.#balanceOf(workspaceId),
      budgets,
      budgetNames: budgetNames(budgets),
      heldAt: now,
      expiresAtMs,
      amount: 0n,
      covered: 0n,
      sent: false,
      claimed: false,
      settling: undefined,
    }
    const uses = budgets.length === 0 ? undefined : this.budgets.uses(budgets)
    const reservation = this.#reserve(hold, amount, requiredFree)
    if (reservation.kind !== 'held') return reservation
    this.#holds.set(requestId, hold)
    return uses ? { kind: 'held', budgets: uses } : reservation
  }

  /** undefined: there is no such open hold. */
  extend(requestId: RequestId, more: Nano): Reservation | undefined {
    assert(more >= 0n, 'an extension is not negative')
    const hold = this.#open(requestId)
    return hold && this.#reserve(hold, more)
  }

  /** Holds more for what was delivered, as far as the wallet has it, whatever the budgets say; returns how much. */
  cover(requestId: RequestId, more: Nano): Nano {
    const hold = this.#open(requestId)
    return (hold ? this.#cover(hold, more) : 0n) as Nano
  }

  markSent(requestId: RequestId): void {
    const hold = this.#open(requestId)
    if (hold) hold.sent = true
  }

  /** `due`: what the wallet pays if it can. undefined: there is no such open hold. */
  claim(requestId: RequestId, due: Nano): Claim | undefined {
    assert(due >= 0n, 'a charge is not negative')
    const hold = this.#open(requestId)
    if (!hold) return undefined
    hold.claimed = true
    const { workspaceId, budgetNames } = hold
    // The rest is reserved at once, so that what is committed later is covered whatever happens until then.
    this.#cover(hold, due - hold.amount)
    const charge = (due < hold.amount ? due : hold.amount) as Nano
    return { requestId, workspaceId, heldBeforeCost: hold.amount - hold.covered, charge, budgetNames }
  }

  settling(requestId: RequestId): Promise<SettleOutcome> | undefined {
    return this.#holds.get(requestId)?.settling
  }

  setSettling({ requestId }: Claim, outcome: Promise<SettleOutcome>): void {
    const hold = this.#holds.get(requestId)
    if (hold) hold.settling = outcome
  }

  /** The claim's charge is durable. */
  commit({ requestId, charge, budgetNames }: Claim): void {
    const { balance } = this.#end(requestId)
    balance.posted -= charge
    this.budgets.spend(budgetNames, charge)
    assert(balance.posted >= balance.held, `${requestId} was charged more than it held`)
  }

  /** The claim came to nothing: the hold ends without a charge. */
  drop({ requestId }: Claim): void {
    this.#end(requestId)
  }

  release(requestId: RequestId): boolean {
    if (!this.#open(requestId)) return false
    this.#end(requestId)
    return true
  }

  credit(workspaceId: WorkspaceId, amount: Nano): void {
    this.#balanceOf(workspaceId).posted += amount
  }

  /** Ends what is past its lifetime and not being settled. */
  releaseExpired(nowMs: number): readonly ReapReport[] {
    const reports: ReapReport[] = []
    for (const [requestId, { claimed, expiresAtMs, sent, amount }] of this.#holds) {
      if (claimed || expiresAtMs > nowMs) continue
      this.#end(requestId)
      reports.push({ requestId, amount: amount as Nano, sent })
    }
    return reports
  }

  #balanceOf(workspaceId: WorkspaceId): Balance {
    const known = this.#balances.get(workspaceId)
    if (known) return known
    const fresh = { posted: 0n, held: 0n }
    this.#balances.set(workspaceId, fresh)
    return fresh
  }

  #open(requestId: RequestId): Hold | undefined {
    const hold = this.#holds.get(requestId)
    return hold?.claimed ? undefined : hold
  }

  #reserve(hold: Hold, amount: bigint, requiredFree = amount): Reservation {
    const { posted, held: reserved } = hold.balance
    const needed = requiredFree > amount ? requiredFree : amount
    if (posted - reserved < needed) return { kind: 'insufficient', posted: posted as Nano, held: reserved as Nano }
    const over = this.budgets.refusal(hold.budgets, needed)
    if (over) return over
    this.#add(hold, amount)
    return held
  }

  #cover(hold: Hold, more: bigint): bigint {
    const { posted, held: reserved } = hold.balance
    const amount = more < posted - reserved ? more : posted - reserved
    if (amount <= 0n) return 0n
    hold.covered += amount
    this.#add(hold, amount)
    return amount
  }

  #add(hold: Hold, amount: bigint): void {
    hold.amount += amount
    hold.balance.held += amount
    this.#heldTotal += amount
    this.budgets.hold(hold.budgetNames, amount)
  }

  /** Takes the hold out, and its amount from what is held. */
  #end(requestId: RequestId): Hold {
    const hold = this.#holds.get(requestId)
    assert(hold, `no hold of ${requestId}`)
    this.#holds.delete(requestId)
    hold.balance.held -= hold.amount
    this.#heldTotal -= hold.amount
    this.budgets.free(hold.budgetNames, hold.amount)
    assert(hold.balance.held >= 0n, `the holds of ${hold.workspaceId} do not add up`)
    return hold
  }
}
