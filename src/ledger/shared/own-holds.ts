// The holds of this replica: which requests are open here, and what is asked of the database about them. This is only what
// the process remembers; the rows in the database decide. The first call that ends a hold takes it out of the list, so two
// ends of one request cannot both be on their way.

import { assert } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Failpoint } from '../../kernel/failpoint.ts'
import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import { isStoreUnavailable } from '../../store/sql-error.ts'
import { type Budget, noBudgets } from '../budget.ts'
import type { Ledger, SettleEnd, Settlement, SettleOutcome } from '../ledger.ts'
import type { Pace } from '../pace.ts'
import { settleOnce } from '../settle-once.ts'
import { storedOutcome } from '../settlement-transfers.ts'
import type { HoldStats } from '../stats.ts'
import type { Tally } from '../tally.ts'
import { readTransfersOf } from '../transfer.ts'
import { unavailable } from '../unavailable.ts'
import { type BatchQueue, settlePatienceMs as patienceMs } from './batch-queue.ts'
import { awaitHolds } from './holds.ts'
import type { SharedOperation } from './operation.ts'

export interface OwnHolds extends Pick<Ledger, 'hold' | 'extend' | 'markSent' | 'settle' | 'release'> {
  /** Removes holds that the reaper has ended. */
  forget(requestIds: Iterable<RequestId>): void
  /** Settlements whose outcome is unknown are asked for once more at most. */
  close(): void
  stats(): HoldStats
}

export interface OwnHoldsDependencies {
  readonly queue: BatchQueue
  readonly database: Database
  readonly reach: Failpoint
  readonly holdLifetimeMs: number
  readonly clock: Clock
  readonly pace: Pace
  readonly tally: Tally
}

export function createOwnHolds(dependencies: OwnHoldsDependencies): OwnHolds {
  const { queue, database, reach, holdLifetimeMs, clock, pace, tally } = dependencies
  const open = new OpenHolds()
  let isClosed = false

  /** For a hold that may or may not be committed: if it is, it must end. Retried for as long as the hold could live. */
  const releaseLater = (requestId: RequestId, workspaceId: WorkspaceId): void => {
    submit(queue, { kind: 'release', requestId, workspaceId, patienceMs: holdLifetimeMs }).catch(() => {})
  }
  const insistOnStored = async (requestId: RequestId): Promise<SettleEnd | undefined> => {
    while (!isClosed) {
      const end = await readStored(database, requestId)
      if (end.kind !== 'unavailable') return end
      await pace.wait(unavailable.retryAfterMs)
    }
    return undefined
  }
  /**
   * Ends the hold, unless a commit of the settlement ends it first: whichever locks its row second finds it ended. So no
   * charge can be made any more once this has an answer.
   */
  const findOut = async (settlement: Settlement, own: OpenHold): Promise<SettleEnd | undefined> => {
    const { requestId } = settlement
    const { workspaceId } = own
    const released = await submit(queue, { kind: 'release', requestId, workspaceId, patienceMs: holdLifetimeMs })
    if (released.kind === 'released') return unavailable
    if (released.kind === 'unavailable') return undefined
    const end = await insistOnStored(requestId)
    if (end) tally.settled(settlement, end, own.amount)
    return end
  }
  const settle = async (settlement: Settlement): Promise<SettleOutcome> => {
    const { requestId, charge } = settlement
    assert(charge >= 0n, 'a charge is not negative')
    const own = open.take(requestId)
    if (own === undefined) {
      const end = await readStored(database, requestId)
      return end.kind === 'unavailable' ? unknown(insistOnStored(requestId)) : end
    }
    const { workspaceId } = own
    try {
      await reach('before_settle')
      const outcome = await submit(queue, { kind: 'settle', requestId, workspaceId, patienceMs, settlement })
      if (outcome.kind === 'unknown') return unknown(findOut(settlement, own))
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
    async hold(request) {
      const { requestId, workspaceId, amount, lifetimeMs = holdLifetimeMs, budgets = noBudgets } = request
      assert(amount >= 0n, 'a hold is not negative')
      const outcome = await submit(queue, { kind: 'hold', requestId, workspaceId, patienceMs: 0, request, lifetimeMs })
      if (outcome.kind === 'unavailable') releaseLater(requestId, workspaceId)
      if (outcome.kind !== 'held') return outcome
      open.add(requestId, { workspaceId, budgets, amount, heldAt: clock.now() })
      await reach('after_hold')
      return outcome
    },
    async extend(requestId, more) {
      assert(more >= 0n, 'an extension is not negative')
      const own = open.find(requestId)
      if (!own) return { kind: 'gone' }
      const { workspaceId, budgets } = own
      const outcome = await submit(queue, { kind: 'extend', requestId, workspaceId, patienceMs: 0, more, budgets })
      if (outcome.kind === 'held') open.raise(requestId, own, more)
      return outcome
    },
    markSent(requestId) {
      const own = open.find(requestId)
      if (own === undefined) return
      submit(queue, { kind: 'sent', requestId, workspaceId: own.workspaceId, patienceMs: 0 }).catch(() => {})
    },
    settle: settleOnce(settle),
    release(requestId) {
      const own = open.take(requestId)
      if (!own) return { kind: 'gone' }
      return submit(queue, { kind: 'release', requestId, workspaceId: own.workspaceId, patienceMs })
    },
    forget(requestIds) {
      for (const requestId of requestIds) open.take(requestId)
    },
    close() {
      isClosed = true
    },
    stats: () => open.stats(),
  }
}

interface OpenHold {
  readonly workspaceId: WorkspaceId
  readonly budgets: readonly Budget[]
  readonly heldAt: number
  amount: bigint
}

class OpenHolds {
  /** In the order in which they were held. */
  readonly #holds = new Map<RequestId, OpenHold>()
  #total = 0n

  add(requestId: RequestId, hold: OpenHold): void {
    this.#holds.set(requestId, hold)
    this.#total += hold.amount
  }

  find(requestId: RequestId): OpenHold | undefined {
    return this.#holds.get(requestId)
  }

  /** The hold may have been taken out since it was found. */
  raise(requestId: RequestId, hold: OpenHold, more: bigint): void {
    hold.amount += more
    if (this.#holds.get(requestId) === hold) this.#total += more
  }

  /** Takes the hold out of the list, so that nothing else in this process ends it. */
  take(requestId: RequestId): OpenHold | undefined {
    const hold = this.#holds.get(requestId)
    if (!hold) return undefined
    this.#holds.delete(requestId)
    this.#total -= hold.amount
    return hold
  }

  stats(): HoldStats {
    const oldest = this.#holds.values().next().value
    return { openHolds: this.#holds.size, heldTotal: this.#total as Nano, oldestHoldAt: oldest?.heldAt }
  }
}

function unknown(end: Promise<SettleEnd | undefined>): SettleOutcome {
  // If finding out meets a defect, the next process to look at the request finds out.
  return { kind: 'unknown', retryAfterMs: unavailable.retryAfterMs, end: end.catch(() => undefined) }
}

/** Returns what an earlier call has come to; `unavailable` = the database cannot be asked. */
async function readStored(database: Database, requestId: RequestId): Promise<SettleEnd> {
  try {
    return await database.transaction(async (sql) => {
      await awaitHolds(sql, [requestId])
      return storedOutcome(await readTransfersOf(sql, requestId))
    })
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
): Promise<OutcomeOf<Kind>> {
  return new Promise((answer, fail) => queue.submit({ ...operation, answer, fail } as unknown as SharedOperation))
}
