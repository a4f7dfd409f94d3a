// The holds of this replica: which requests are open here, and what is asked of the database about them. The first call
// that ends a hold takes it out of the list, so that two ends of one request cannot both be on their way.

import { assert } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Failpoint } from '../../kernel/failpoint.ts'
import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import { noBudgets } from '../budget.ts'
import type { HoldOutcome, HoldRequest, Ledger, Settlement, SettleOutcome } from '../ledger.ts'
import { settleOnce } from '../settle-once.ts'
import { storedOutcome } from '../settlement-transfers.ts'
import type { HoldStats } from '../stats.ts'
import type { Tally } from '../tally.ts'
import { readTransfersOf } from '../transfer.ts'
import { type BatchQueue, settlePatienceMs as patienceMs } from './batch-queue.ts'
import { createOpenHolds, type OpenHold } from './open-holds.ts'
import type { SharedOperation } from './operation.ts'

export interface OwnHolds extends Pick<Ledger, 'hold' | 'extend' | 'markSent' | 'settle' | 'release'> {
  /** Holds that others have ended. */
  forget(requestIds: Iterable<RequestId>): void
  stats(): HoldStats
}

export interface OwnHoldsDependencies {
  readonly queue: BatchQueue
  readonly database: Database
  readonly reach: Failpoint
  readonly holdLifetimeMs: number
  readonly clock: Clock
  readonly tally: Tally
}

export function createOwnHolds(dependencies: OwnHoldsDependencies): OwnHolds {
  const { queue, database, reach, holdLifetimeMs, clock, tally } = dependencies
  const open = createOpenHolds()

  /** For what may be committed or not: if it is, it must end. Tried for as long as the hold could live. */
  const releaseLater = (requestId: RequestId, workspaceId: WorkspaceId): void => {
    const release = { kind: 'release', requestId, workspaceId, patienceMs: holdLifetimeMs } as const
    submit(queue, release).catch(() => {})
  }
  const hold = async (request: HoldRequest): Promise<HoldOutcome> => {
    const { requestId, workspaceId, amount, lifetimeMs = holdLifetimeMs, budgets = noBudgets } = request
    const outcome = await submit(queue, { kind: 'hold', requestId, workspaceId, patienceMs: 0, request, lifetimeMs })
    if (outcome.kind === 'unavailable') releaseLater(requestId, workspaceId)
    if (outcome.kind !== 'held') return outcome
    open.add(requestId, { workspaceId, budgets, heldAt: clock.now(), amount })
    await reach('after_hold')
    return outcome
  }
  const extend = async (requestId: RequestId, own: OpenHold, more: Nano) => {
    const { workspaceId, budgets } = own
    const outcome = await submit(queue, { kind: 'extend', requestId, workspaceId, patienceMs: 0, more, budgets })
    if (outcome.kind === 'held') open.raise(own, more)
    return outcome
  }
  const settle = async (settlement: Settlement): Promise<SettleOutcome> => {
    const { requestId, charge } = settlement
    assert(charge >= 0n, 'a charge is not negative')
    const own = open.take(requestId)
    if (own === undefined) return storedOutcome(await readTransfersOf(database.sql, requestId))
    const { workspaceId } = own
    try {
      await reach('before_settle')
      const outcome = await submit(queue, { kind: 'settle', requestId, workspaceId, patienceMs, settlement })
      tally.settled(settlement, outcome, own.amount)
      if (outcome.kind === 'unavailable') releaseLater(requestId, workspaceId)
      else await reach('after_commit')
      return outcome
    } catch (thrown) {
      releaseLater(requestId, workspaceId)
      throw thrown
    }
  }

  return {
    hold(request) {
      assert(request.amount >= 0n, 'a hold is not negative')
      return hold(request)
    },
    extend(requestId, more) {
      assert(more >= 0n, 'an extension is not negative')
      const own = open.find(requestId)
      return own ? extend(requestId, own, more) : { kind: 'gone' }
    },
    markSent(requestId) {
      const own = open.find(requestId)
      if (own === undefined) return
      submit(queue, { kind: 'sent', requestId, workspaceId: own.workspaceId, patienceMs: 0 }).catch(() => {})
    },
    settle: settleOnce(settle),
    release(requestId) {
      const own = open.take(requestId)
      if (own === undefined) return { kind: 'gone' }
      return submit(queue, { kind: 'release', requestId, workspaceId: own.workspaceId, patienceMs })
    },
    forget(requestIds) {
      for (const requestId of requestIds) open.take(requestId)
    },
    stats: open.stats,
  }
}

type Asked<Operation> = Operation extends SharedOperation ? Omit<Operation, 'answer' | 'fail'> : never
type OutcomeOf<Kind> =
  Extract<SharedOperation, { kind: Kind }> extends { answer(outcome: infer Outcome): void } ? Outcome : never

function submit<Kind extends SharedOperation['kind']>(
  queue: BatchQueue,
  operation: Asked<Extract<SharedOperation, { kind: Kind }>> & { readonly kind: Kind },
): Promise<OutcomeOf<Kind>> {
  return new Promise((resolve, reject) => {
    queue.submit({ ...operation, answer: resolve, fail: reject } as unknown as SharedOperation)
  })
}
