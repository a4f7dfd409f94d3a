// The wallets of the embedded engine in memory: an authoritative copy of every posted balance, and the holds, which
// exist only here. Pure bookkeeping, decided at once; what is durable is decided by who calls it.

import { assert } from '../../kernel/assert.ts'
import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { ReapReport, Wallet } from '../ledger.ts'

interface Balance {
  posted: bigint
  held: bigint
  /** Whether the database knows the wallet: one that was never funded can still make calls that cost nothing. */
  stored: boolean
}

interface Hold {
  readonly workspaceId: WorkspaceId
  readonly balance: Balance
  readonly expiresAt: number
  amount: bigint
  sent: boolean
  claimed: boolean
}

/** A hold that is being settled: nobody else can end it. */
export interface Claim {
  readonly requestId: RequestId
  readonly workspaceId: WorkspaceId
  /** What leaves the wallet; covered by the hold. */
  readonly charged: Nano
  /** What the wallet could not cover. */
  readonly writtenOff: Nano
  /** The wallet must be made in the database with the charge. */
  readonly walletMissing: boolean
}

export interface HoldTerms {
  readonly amount: Nano
  readonly expiresAt: number
}

export interface WalletBook {
  wallet(workspaceId: WorkspaceId): Wallet
  /** False: the free part does not cover it. */
  hold(requestId: RequestId, workspaceId: WorkspaceId, terms: HoldTerms): boolean
  /** undefined: there is no such open hold. */
  extend(requestId: RequestId, more: Nano): { readonly granted: boolean; readonly workspaceId: WorkspaceId } | undefined
  markSent(requestId: RequestId): void
  /** undefined: there is no such open hold. */
  claim(requestId: RequestId, charge: Nano): Claim | undefined
  /** The claim's charge is durable. */
  commit(claim: Claim): void
  /** The claim came to nothing: the hold ends without a charge. */
  drop(claim: Claim): void
  release(requestId: RequestId): boolean
  credit(workspaceId: WorkspaceId, amount: Nano): void
  /** Ends what is past its lifetime and not being settled. */
  releaseExpired(now: number): readonly ReapReport[]
}

export function createWalletBook(posted: Iterable<readonly [WorkspaceId, Nano]>): WalletBook {
  return new Book(posted)
}

class Book implements WalletBook {
  readonly #balances = new Map<WorkspaceId, Balance>()
  readonly #holds = new Map<RequestId, Hold>()

  constructor(posted: Iterable<readonly [WorkspaceId, Nano]>) {
    for (const [workspaceId, amount] of posted) {
      this.#balances.set(workspaceId, { posted: amount, held: 0n, stored: true })
    }
  }

  wallet(workspaceId: WorkspaceId): Wallet {
    const { posted, held } = this.#balances.get(workspaceId) ?? { posted: 0n, held: 0n }
    return { posted: posted as Nano, held: held as Nano, available: (posted - held) as Nano }
  }

  hold(requestId: RequestId, workspaceId: WorkspaceId, { amount, expiresAt }: HoldTerms): boolean {
    assert(amount >= 0n, 'a hold is not negative')
    assert(!this.#holds.has(requestId), `${requestId} holds already`)
    const balance = this.#balanceOf(workspaceId)
    if (!reserve(balance, amount)) return false
    this.#holds.set(requestId, { workspaceId, balance, expiresAt, amount, sent: false, claimed: false })
    return true
  }

  extend(requestId: RequestId, more: Nano): { granted: boolean; workspaceId: WorkspaceId } | undefined {
    assert(more >= 0n, 'an extension is not negative')
    const hold = this.#open(requestId)
    if (!hold) return undefined
    const granted = reserve(hold.balance, more)
    if (granted) hold.amount += more
    return { granted, workspaceId: hold.workspaceId }
  }

  markSent(requestId: RequestId): void {
    const hold = this.#open(requestId)
    if (hold) hold.sent = true
  }

  claim(requestId: RequestId, charge: Nano): Claim | undefined {
    assert(charge >= 0n, 'a charge is not negative')
    const hold = this.#open(requestId)
    if (!hold) return undefined
    hold.claimed = true
    const rest = charge - hold.amount
    // The rest is reserved at once, so that what is committed later is covered whatever happens until then.
    if (rest > 0n && reserve(hold.balance, rest)) hold.amount += rest
    const charged = (charge < hold.amount ? charge : hold.amount) as Nano
    const writtenOff = (charge - charged) as Nano
    return { requestId, workspaceId: hold.workspaceId, charged, writtenOff, walletMissing: !hold.balance.stored }
  }

  commit({ requestId, charged }: Claim): void {
    const { balance } = this.#end(requestId)
    balance.posted -= charged
    balance.stored = true
    assert(balance.posted >= balance.held, `${requestId} was charged more than it held`)
  }

  drop({ requestId }: Claim): void {
    this.#end(requestId)
  }

  release(requestId: RequestId): boolean {
    if (!this.#open(requestId)) return false
    this.#end(requestId)
    return true
  }

  credit(workspaceId: WorkspaceId, amount: Nano): void {
    const balance = this.#balanceOf(workspaceId)
    balance.posted += amount
    balance.stored = true
  }

  releaseExpired(now: number): readonly ReapReport[] {
    const reports: ReapReport[] = []
    for (const [requestId, { claimed, expiresAt, sent, amount }] of this.#holds) {
      if (claimed || expiresAt > now) continue
      this.#end(requestId)
      reports.push({ requestId, amount: amount as Nano, sent })
    }
    return reports
  }

  #balanceOf(workspaceId: WorkspaceId): Balance {
    const known = this.#balances.get(workspaceId)
    if (known) return known
    const fresh = { posted: 0n, held: 0n, stored: false }
    this.#balances.set(workspaceId, fresh)
    return fresh
  }

  #open(requestId: RequestId): Hold | undefined {
    const hold = this.#holds.get(requestId)
    return hold?.claimed ? undefined : hold
  }

  /** Takes the hold out, and its amount from what is held. */
  #end(requestId: RequestId): Hold {
    const hold = this.#holds.get(requestId)
    assert(hold, `no hold of ${requestId}`)
    this.#holds.delete(requestId)
    hold.balance.held -= hold.amount
    assert(hold.balance.held >= 0n, `the holds of ${hold.workspaceId} do not add up`)
    return hold
  }
}

function reserve(balance: Balance, amount: bigint): boolean {
  if (balance.posted - balance.held < amount) return false
  balance.held += amount
  return true
}
