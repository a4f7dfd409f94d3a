// The holds of this replica: which requests are open here, and what is asked of the database about them. The first call
// that ends a hold takes it out of the list, so that two ends of one request cannot both be on their way.

import { assert } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Failpoint } from '../../kernel/failpoint.ts'
import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import { isStoreUnavailable } from '../../store/sql-error.ts'
import { walletOf } from '../account.ts'
import { noBudgets } from '../budget.ts'
import type {
  ExtendOutcome,
  HoldOutcome,
  HoldRequest,
  Ledger,
  ReapReport,
  ReleaseOutcome,
  Settlement,
  SettleOutcome,
} from '../ledger.ts'
import { settleOnce } from '../settle-once.ts'
import { storedOutcome } from '../settlement-transfers.ts'
import type { HoldStats } from '../stats.ts'
import type { Tally } from '../tally.ts'
import { readTransfersOf } from '../transfer.ts'
import { unavailable } from '../unavailable.ts'
import { type BatchQueue, settlePatienceMs as patienceMs } from './batch-queue.ts'
import type { LeaseBook, LeasedPart } from './lease-book.ts'
import type { LeaseKeeper } from './lease-keeper.ts'
import type { LeaseTally } from './lease-tally.ts'
import { createOpenHolds, type OpenHold } from './open-holds.ts'
import type { SharedOperation } from './operation.ts'
import { shareOf } from './take-leased.ts'

export interface OwnHolds extends Pick<Ledger, 'hold' | 'extend' | 'markSent' | 'settle' | 'release'> {
  /** Holds that others have ended. */
  forget(requestIds: Iterable<RequestId>): void
  /** Ends what was admitted from leases and is past its lifetime. */
  reapLeased(): readonly ReapReport[]
  stats(): HoldStats
}

export interface OwnHoldsDependencies {
  readonly queue: BatchQueue
  readonly database: Database
  readonly reach: Failpoint
  readonly holdLifetimeMs: number
  readonly clock: Clock
  readonly tally: Tally
  readonly leaseTally: LeaseTally
  readonly book: LeaseBook
  readonly keeper: LeaseKeeper
}

export function createOwnHolds(dependencies: OwnHoldsDependencies): OwnHolds {
  const { queue, database, reach, holdLifetimeMs, clock, tally, leaseTally, book, keeper } = dependencies
  const open = createOpenHolds()

  const addOpen = (request: HoldRequest, leased: LeasedPart | undefined): void => {
    const { requestId, workspaceId, amount, lifetimeMs = holdLifetimeMs, budgets = noBudgets } = request
    const heldAt = clock.now()
    const times = { heldAt, expiresAtMs: clock.monotonicMs() + lifetimeMs }
    const hasRow = leased === undefined
    open.add(requestId, { workspaceId, budgets, amount, request, leased, hasRow, sent: false, ...times })
  }
  /** For what may be committed or not: if it is, it must end. Tried for as long as the hold could live. */
  const releaseLater = (requestId: RequestId, workspaceId: WorkspaceId): void => {
    const release = { kind: 'release', requestId, workspaceId, patienceMs: holdLifetimeMs, hasRow: true } as const
    submit(queue, release).catch(() => {})
  }
  const holdLeased = (request: HoldRequest): boolean => {
    const { workspaceId, amount, roomLeast = amount, budgets = noBudgets, isFenced = false } = request
    // A budget is one row for all replicas, so what counts in one is decided there. And what a lease admitted is paid
    // even if the lease is gone: only a row of its own is lost to a process that was taken for dead.
    if (budgets.length > 0 || isFenced) return false
    const wallet = walletOf(workspaceId)
    keeper.note(wallet, amount)
    const part = book.take(wallet, amount, roomLeast > amount ? roomLeast : amount)
    if (part) {
      addOpen(request, part)
      leaseTally.holds++
    } else keeper.ranOut(wallet)
    return part !== undefined
  }
  const holdExact = async (request: HoldRequest): Promise<HoldOutcome> => {
    const { requestId, workspaceId, lifetimeMs = holdLifetimeMs } = request
    const outcome = await submit(queue, { kind: 'hold', requestId, workspaceId, patienceMs: 0, request, lifetimeMs })
    if (outcome.kind === 'unavailable') releaseLater(requestId, workspaceId)
    if (outcome.kind !== 'held') return outcome
    addOpen(request, undefined)
    await reach('after_hold')
    return outcome
  }
  const extendRow = async (requestId: RequestId, own: OpenHold, more: Nano): Promise<ExtendOutcome> => {
    const { workspaceId, budgets } = own
    const outcome = await submit(queue, { kind: 'extend', requestId, workspaceId, patienceMs: 0, more, budgets })
    if (outcome.kind === 'held') open.raise(own, more)
    return outcome
  }
  /** What the lease has no room for becomes a row of its own beside the leased part. */
  const addRow = async (requestId: RequestId, own: OpenHold, more: Nano): Promise<ExtendOutcome> => {
    const { workspaceId } = own
    const lifetimeMs = Math.max(0, own.expiresAtMs - clock.monotonicMs())
    const request = { ...own.request, amount: more, roomLeast: more }
    own.hasRow = true
    const outcome = await submit(queue, { kind: 'hold', requestId, workspaceId, patienceMs: 0, request, lifetimeMs })
    if (outcome.kind === 'held') open.raise(own, more)
    else if (outcome.kind !== 'unavailable') own.hasRow = false
    return outcome
  }
  /** In the moment of the answer, before anything else looks at the lease. */
  const end = (leased: LeasedPart | undefined, isSure: boolean, spent: bigint): void => {
    if (!leased) return
    if (isSure) book.giveBack(leased, spent)
    else book.drop(leased)
  }
  const settle = async (settlement: Settlement): Promise<SettleOutcome> => {
    const { requestId, charge } = settlement
    assert(charge >= 0n, 'a charge is not negative')
    const own = open.take(requestId)
    if (own === undefined) return await readStored(database, requestId)
    const { workspaceId, leased, hasRow } = own
    const operation = { kind: 'settle', requestId, workspaceId, patienceMs, settlement, leased, hasRow } as const
    try {
      await reach('before_settle')
      const outcome = await submit(queue, operation, ({ kind }) =>
        end(leased, kind !== 'unavailable', leased ? shareOf({ kind: 'settle', settlement, leased }) : 0n),
      )
      if (outcome.kind !== 'unknown') tally.settled(settlement, outcome, own.amount)
      if (outcome.kind === 'unavailable' && hasRow) releaseLater(requestId, workspaceId)
      if (outcome.kind !== 'unavailable') await reach('after_commit')
      return outcome
    } catch (thrown) {
      end(leased, false, 0n)
      if (hasRow) releaseLater(requestId, workspaceId)
      throw thrown
    }
  }
  const release = (requestId: RequestId, own: OpenHold): ReleaseOutcome | Promise<ReleaseOutcome> => {
    const { workspaceId, leased, hasRow } = own
    if (leased && !hasRow && !leased.lease.isClosing) {
      book.giveBack(leased, 0n)
      return { kind: 'released' }
    }
    return submit(queue, { kind: 'release', requestId, workspaceId, patienceMs, leased, hasRow }, ({ kind }) =>
      end(leased, kind !== 'unavailable', 0n),
    )
  }

  return {
    hold(request) {
      assert(request.amount >= 0n, 'a hold is not negative')
      if (!holdLeased(request)) return holdExact(request)
      const pause = reach('after_hold')
      return pause ? pause.then(() => ({ kind: 'held' })) : { kind: 'held' }
    },
    extend(requestId, more) {
      assert(more >= 0n, 'an extension is not negative')
      const own = open.find(requestId)
      if (!own) return { kind: 'gone' }
      if (own.leased && book.raise(own.leased, more)) {
        open.raise(own, more)
        return { kind: 'held' }
      }
      return own.hasRow ? extendRow(requestId, own, more) : addRow(requestId, own, more)
    },
    markSent(requestId) {
      const own = open.find(requestId)
      if (own === undefined) return
      own.sent = true
      if (own.leased) return
      submit(queue, { kind: 'sent', requestId, workspaceId: own.workspaceId, patienceMs: 0 }).catch(() => {})
    },
    settle: settleOnce(settle),
    release(requestId) {
      const own = open.take(requestId)
      return own ? release(requestId, own) : { kind: 'gone' }
    },
    forget(requestIds) {
      for (const requestId of requestIds) end(open.take(requestId)?.leased, true, 0n)
    },
    reapLeased() {
      return open.expired(clock.monotonicMs()).map(([requestId, own]) => {
        open.take(requestId)
        const released = release(requestId, own)
        if (released instanceof Promise) released.catch(() => {})
        return { requestId, amount: own.amount as Nano, sent: own.sent }
      })
    },
    stats: open.stats,
  }
}

/** What an earlier call has come to; a database that cannot be asked is an answer too. */
async function readStored(database: Database, requestId: RequestId): Promise<SettleOutcome> {
  try {
    return storedOutcome(await readTransfersOf(database.sql, requestId))
  } catch (thrown) {
    if (isStoreUnavailable(thrown)) return unavailable
    throw thrown
  }
}

type Asked<Operation> = Operation extends SharedOperation ? Omit<Operation, 'answer' | 'fail'> : never
type OutcomeOf<Kind> =
  Extract<SharedOperation, { kind: Kind }> extends { answer(outcome: infer Outcome): void } ? Outcome : never

function submit<Kind extends SharedOperation['kind']>(
  queue: BatchQueue,
  operation: Asked<Extract<SharedOperation, { kind: Kind }>> & { readonly kind: Kind },
  onAnswer: (outcome: OutcomeOf<Kind>) => void = () => {},
): Promise<OutcomeOf<Kind>> {
  return new Promise((resolve, reject) => {
    const answer = (outcome: OutcomeOf<Kind>) => {
      onAnswer(outcome)
      resolve(outcome)
    }
    queue.submit({ ...operation, answer, fail: reject } as unknown as SharedOperation)
  })
}
