// The holds of this replica: which requests are open here, and what is asked of the database about them. The first call
// that ends a hold takes it out of the list, so that two ends of one request cannot both be on their way.

import { assert } from '../../kernel/assert.ts'
import type { Failpoint } from '../../kernel/failpoint.ts'
import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { Database } from '../../store/database.ts'
import type { HoldOutcome, HoldRequest, Ledger, Settlement, SettleOutcome } from '../ledger.ts'
import { settleOnce } from '../settle-once.ts'
import { storedOutcome } from '../settlement-transfers.ts'
import { readTransfersOf } from '../transfer.ts'
import { type BatchQueue, settlePatienceMs as patienceMs } from './batch-queue.ts'
import type { SharedOperation } from './operation.ts'

export interface OwnHolds extends Pick<Ledger, 'hold' | 'extend' | 'markSent' | 'settle' | 'release'> {
  /** Holds that others have ended. */
  forget(requestIds: Iterable<RequestId>): void
}

export interface OwnHoldsDependencies {
  readonly queue: BatchQueue
  readonly database: Database
  readonly reach: Failpoint
  readonly holdLifetimeMs: number
}

export function createOwnHolds({ queue, database, reach, holdLifetimeMs }: OwnHoldsDependencies): OwnHolds {
  const open = new Map<RequestId, WorkspaceId>()

  /** Takes the hold out of the list, so that nobody else here ends it. */
  const take = (requestId: RequestId): WorkspaceId | undefined => {
    const workspaceId = open.get(requestId)
    open.delete(requestId)
    return workspaceId
  }
  /** For what may be committed or not: if it is, it must end. Tried for as long as the hold could live. */
  const releaseLater = (requestId: RequestId, workspaceId: WorkspaceId): void => {
    const release = { kind: 'release', requestId, workspaceId, patienceMs: holdLifetimeMs } as const
    submit(queue, release).catch(() => {})
  }
  const hold = async (request: HoldRequest): Promise<HoldOutcome> => {
    const { requestId, workspaceId, lifetimeMs = holdLifetimeMs } = request
    const outcome = await submit(queue, { kind: 'hold', requestId, workspaceId, patienceMs: 0, request, lifetimeMs })
    if (outcome.kind === 'unavailable') releaseLater(requestId, workspaceId)
    if (outcome.kind !== 'held') return outcome
    open.set(requestId, workspaceId)
    await reach('after_hold')
    return outcome
  }
  const settle = async (settlement: Settlement): Promise<SettleOutcome> => {
    const { requestId, charge } = settlement
    assert(charge >= 0n, 'a charge is not negative')
    const workspaceId = take(requestId)
    if (workspaceId === undefined) return storedOutcome(await readTransfersOf(database.sql, requestId))
    try {
      await reach('before_settle')
      const outcome = await submit(queue, { kind: 'settle', requestId, workspaceId, patienceMs, settlement })
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
      const workspaceId = open.get(requestId)
      if (workspaceId === undefined) return { kind: 'gone' }
      return submit(queue, { kind: 'extend', requestId, workspaceId, patienceMs: 0, more })
    },
    markSent(requestId) {
      const workspaceId = open.get(requestId)
      if (workspaceId === undefined) return
      submit(queue, { kind: 'sent', requestId, workspaceId, patienceMs: 0 }).catch(() => {})
    },
    settle: settleOnce(settle),
    release(requestId) {
      const workspaceId = take(requestId)
      if (workspaceId === undefined) return { kind: 'gone' }
      return submit(queue, { kind: 'release', requestId, workspaceId, patienceMs })
    },
    forget(requestIds) {
      for (const requestId of requestIds) open.delete(requestId)
    },
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
