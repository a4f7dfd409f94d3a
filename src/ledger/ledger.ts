// The interface of the ledger: amounts, workspaces and request ids go in, results come out. Tokens,
// models and prices are only in the row of the request, which is written with the charge. Amounts are nano-dollars. The cost
// is what a request costs by its price, the quoted amount is the cost in its answer, and the charge is what its wallet pays: at
// most the quoted amount. The rest of the cost is written off.

import type { Clock } from '../kernel/clock.ts'
import type { Failpoint } from '../kernel/failpoint.ts'
import type { KeyId, ProjectId, ReplicaId, RequestId, WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import type { SpendLimit } from '../kernel/spend-limit.ts'
import type { Database } from '../store/database.ts'
import type { RequestRow } from '../store/request-rows.ts'
import type { Insufficient, Unavailable } from './account.ts'
import type { Budget, BudgetState, BudgetUse, OverBudget, Promised } from './budget.ts'
import type { Correction, CorrectOutcome, Funding, FundOutcome } from './fund.ts'
import type { Transfer, TransferPage, TransferQuery } from './transfer.ts'

/** A request on default deadlines takes at most 15 minutes; holds live longer. */
export const usualHoldLifetimeMs = 20 * 60_000

export interface HoldRequest {
  /** Minted for this request; a second hold under the same id is a defect. */
  readonly requestId: RequestId
  readonly workspaceId: WorkspaceId
  readonly keyId: KeyId
  readonly projectId: ProjectId
  /** 0 is always granted, even without a wallet: a call that costs nothing still leaves its transfer. */
  readonly amount: Nano
  /** The amount that must be free in the wallet and the spend limits. Only `amount` is held. */
  readonly requiredFree?: Nano
  /** What must stay free beside that for other holds; absent = nothing. */
  readonly promised?: Promised | undefined
  /** After this long the hold is reaped even if its process lives; must exceed the request's total deadline. */
  readonly lifetimeMs?: number | undefined
  /** Spend limits that must have room too; reserved and charged together with the wallet. Absent = none. */
  readonly budgets?: readonly Budget[] | undefined
  /**
   * It outlives its process: only `endStanding` or its lifetime ends it. The embedded engine keeps holds in memory, so there
   * it has to be placed again after a restart, before anything else is held.
   */
  readonly isStanding?: true
}

export interface Settlement {
  readonly requestId: RequestId
  /** The cost of the request, also if it is more than was held. */
  readonly cost: Nano
  /** The amount in the answer: the wallet pays no more than that. Absent = the cost. */
  readonly quoted?: Nano | undefined
  /** The cost is a guess, because the provider did not report the usage. For metrics. */
  readonly estimated: boolean
  /** The scopes of its budgets in which the charge counts; the hold ends in all of them. Absent = in all. */
  readonly countsIn?: ((scopeId: string) => boolean) | undefined
  /** The request's row with its charge, written and added to the sums in one commit. */
  row(charge: Charge): RequestRow
}

export interface Charge {
  readonly workspaceId: WorkspaceId
  /** The amount that leaves the wallet. */
  readonly charge: Nano
  /** The amount that the wallet or a spend limit did not cover and the operator lost. */
  readonly writtenOff: Nano
  /** The budgets it counts in, as they are stored. */
  readonly budgets: string | null
}

export interface Held {
  readonly kind: 'held'
  /** The spend limits of the hold, as they were when it was granted. Absent = none. */
  readonly budgets?: readonly BudgetUse[] | undefined
  /** Of a part of a standing hold, whose amount is not what was asked for; absent = that is held. */
  readonly amount?: Nano
}

/** An empty wallet is reported before an exhausted budget. */
export type HoldOutcome = Held | Insufficient | OverBudget | Unavailable

/** `gone`: the hold is no longer open (settled, released, or reaped because this process was taken for dead). */
export type ExtendOutcome = HoldOutcome | { readonly kind: 'gone' }

/** `gone`: the standing hold has ended. */
export type PartOutcome = (Held & { readonly amount: Nano }) | { readonly kind: 'gone' } | Unavailable

/** How a settlement ended, once that is certain. */
export type SettleEnd =
  | {
      readonly kind: 'settled'
      /** The amount that the wallet paid, now or at the first call. */
      readonly charge: Nano
      /** The balance afterwards, where this process is the only one to change it. */
      readonly posted?: Nano
      /** The amount that the wallet or a spend limit did not cover and the operator lost. */
      readonly writtenOff: Nano
      /** True if this call did not charge but found the charge of an earlier one. */
      readonly repeated: boolean
    }
  /** The hold had ended without a charge, and stays so. */
  | { readonly kind: 'gone' }
  /** Not committed within the time for retries: the hold ended without a charge. */
  | Unavailable

/** A commit was sent and has not been confirmed in time: the charge may be durable or not. The hold stays open until then. */
export interface UnknownSettlement {
  readonly kind: 'unknown'
  readonly retryAfterMs: number
  /** Never rejects. undefined = this process cannot find out; a later query of the database can. */
  readonly end: Promise<SettleEnd | undefined>
}

export type SettleOutcome = SettleEnd | UnknownSettlement

export type ReleaseOutcome =
  | { readonly kind: 'released' }
  /** Something else has ended the hold before, or is about to. */
  | { readonly kind: 'gone' }
  /** It is released later: by another attempt, or by the reaper. */
  | Unavailable

export interface Wallet {
  readonly posted: Nano
  readonly held: Nano
  readonly available: Nano
}

export interface ReapReport {
  readonly requestId: RequestId
  readonly amount: Nano
  /** Whether the body was sent: then the provider may bill the operator for an uncharged request. */
  readonly sent: boolean
}

export interface ReplicaView {
  readonly id: ReplicaId
  /** False once the process is known to be dead. True while that is unknown, and while its holds can still be charged. */
  isReplicaLive(id: ReplicaId): Promise<boolean>
}

export interface Ledger {
  /**
   * Synchronous on the embedded engine, except for the first hold in a new period of a spend limit. Nothing may go
   * upstream before `held`.
   */
  hold(request: HoldRequest): HoldOutcome | Promise<HoldOutcome>
  extend(requestId: RequestId, more: Nano): ExtendOutcome | Promise<ExtendOutcome>
  /**
   * Extends a hold for output that was already delivered, as far as the balance and the spend limits allow. Returns the
   * added amount; undefined where replicas share the wallet, because only the settlement can decide there.
   */
  coverOverrun(requestId: RequestId, more: Nano): Nano | undefined
  /** The body goes upstream now. Not durable by itself. */
  markSent(requestId: RequestId): void
  /** Resolves when the charge is durable, or after 30 s. A second call returns the charge of the first. */
  settle(settlement: Settlement): Promise<SettleOutcome>
  release(requestId: RequestId): ReleaseOutcome | Promise<ReleaseOutcome>
  /**
   * A hold that takes the place of a part of a standing one: of the amount that is asked for, or of what is left of it. It
   * needs no free money, and counts in the spend limits of the standing one.
   */
  takePart(from: RequestId, request: HoldRequest): PartOutcome | Promise<PartOutcome>
  /** What is left of a standing hold; undefined = it has ended, or was never placed. */
  standing(requestId: RequestId): Promise<Nano | undefined>
  endStanding(requestId: RequestId, workspaceId: WorkspaceId): ReleaseOutcome | Promise<ReleaseOutcome>
  fund(funding: Funding): Promise<FundOutcome>
  /** Takes back a wrong top-up or a payment that was refunded: a new transfer. Refused if less than that is free. */
  correct(correction: Correction): Promise<CorrectOutcome>
  /** Zeros for a workspace that was never funded. */
  wallet(workspaceId: WorkspaceId): Promise<Wallet>
  /**
   * The spend limits of a key, project or workspace were set: earlier charges of the current windows count against them too.
   * Only holds in the plain limits of the owner wait for that; those of its subjects are read from the log.
   */
  recount(owner: string, limits: readonly SpendLimit[], startsAt?: number): void
  /** The amounts that count against a cap of the scope in the window; zeros for one that was never named in a hold. */
  budget(scopeId: string, window: string): Promise<BudgetState>
  /** In how many milliseconds at least so much of what counts in a rolling window now counts no more. */
  leavesInMs(scopeId: string, window: string, amount: bigint): Promise<number>
  /** Newest first. */
  transfers(workspaceId: WorkspaceId, query: TransferQuery): Promise<TransferPage>
  /** The transfers of one request, oldest first. */
  transfersOf(requestId: RequestId): Promise<readonly Transfer[]>
  /**
   * Begins the periods of plans that are due and takes expired credit back; of one workspace, or of all. Runs by itself every
   * few seconds. False = the store did not confirm it, and it is tried again.
   */
  renewPlans(workspaceId?: WorkspaceId): Promise<boolean>
  /** Ends the holds of dead processes and those past their lifetime. Runs by itself every few seconds. */
  reap(): Promise<readonly ReapReport[]>
  /** Whether a hold would be considered at all; the reason for `/readyz`. */
  admits(): boolean
  /** Numbers of this process, for metrics; reads nothing from the database. */
  stats(): LedgerStats
  /** This process among those on one database; undefined where it is alone. */
  readonly replica?: ReplicaView | undefined
  /** Finishes submitted work, then stops. */
  close(): Promise<void>
}

// Numbers for metrics: of this process alone, counted as things happen and never read from the database.

export interface HoldStats {
  readonly openHolds: number
  readonly heldTotal: Nano
  /** Epoch milliseconds; undefined = nothing is held. */
  readonly oldestHoldAt: number | undefined
}

/** Commits of charges, top-ups and, with several replicas, heartbeats; many operations may share one. */
export interface CommitStats {
  readonly commits: number
  readonly commitsFailed: number
  /** 0 before the first. */
  readonly commitMsLast: number
  readonly commitMsTotal: number
}

export interface EndStats {
  readonly charges: number
  /** Charges by estimated usage. */
  readonly estimated: number
  /** Charges above what was held. */
  readonly overruns: number
  /** Amounts that wallets and spend limits did not cover. */
  readonly writtenOff: Nano
  /** Holds that ended because their process died or their lifetime was over, as far as this process ended them. */
  readonly reaped: number
  /** The part of `reaped` whose body had been sent upstream. */
  readonly reapedSent: number
}

export interface LedgerStats extends HoldStats, CommitStats, EndStats {
  /** How far this machine's clock is ahead of the database's (less than 0: behind it); absent where they are one. */
  readonly clockSkewMs?: number
}

/** How the ledger waits. Tests pass their own, so that none of them depends on how long something takes. */
export interface Timers {
  wait(milliseconds: number): Promise<void>
  /** Resolves after the work that is ready now has run. */
  endOfTurn(): Promise<void>
  /** Calls the work again and again, never twice at once; returns a function that stops it. Must not keep a process alive. */
  every(milliseconds: number, work: () => Promise<unknown>): () => void
}

/** Spend limits that were set and whose earlier charges are not all counted yet. */
export interface Recount {
  readonly owner: string
  readonly limits: readonly SpendLimit[]
  readonly startsAt: number | undefined
  /** Tells one setting of the owner's limits from the next. */
  readonly setAt: number
}

export interface Recounts {
  pending(): Promise<readonly Recount[]>
  finish(recount: Recount): Promise<void>
}

export interface LedgerOptions {
  readonly database: Database
  readonly clock: Clock
  readonly timers: Timers
  readonly reach: Failpoint
  /** The default lifetime of holds. */
  readonly holdLifetimeMs: number
  /** Work in the background failed; it is tried again by itself. */
  onFault(what: string, error: unknown): void
  /**
   * The wallets in memory contradict what was committed. Nothing more is admitted; running requests can still be settled.
   * Only a restart, which reads the wallets again, repairs it. Called once.
   */
  onBroken(error: unknown): void
  /** False only in tests: a spend limit then begins with nothing. */
  readonly seedsBudgets: boolean
  /** Absent = a recount ends with its process. */
  readonly recounts?: Recounts | undefined
  /** In [0, 1); spreads the retries of several processes. */
  random(): number
}
