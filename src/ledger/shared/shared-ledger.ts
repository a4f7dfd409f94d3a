// The ledger of one replica among several on PostgreSQL. Holds are rows, committed before anything goes upstream. This
// process only remembers which of them are its own; the database decides everything.

import { certainTime } from '../../kernel/clock.ts'
import { assert } from '../../kernel/failure.ts'
import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import { minuteAt } from '../../kernel/spend-limit.ts'
import { type Database, databaseNow } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import { isContention, isStoreUnavailable } from '../../store/sql-error.ts'
import { type Unavailable, unavailable, walletOf } from '../account.ts'
import { type Budget, noBudgets } from '../budget.ts'
import { createBudgetSeeds, seedRoundMs } from '../budget-seeds.ts'
import { clean, cleanMs } from '../clean.ts'
import { recordCorrection, recordFunding } from '../fund.ts'
import type { HoldStats, Ledger, LedgerOptions, SettleEnd, Settlement, SettleOutcome, Wallet } from '../ledger.ts'
import { dueWorkspaces, renewMs, renewPlan } from '../plans.ts'
import {
  commitEndOf,
  createEndCounters,
  createWriteHealth,
  type EndCounters,
  readSettled,
  settleOnce,
  type WriteHealth,
} from '../settlement.ts'
import { listTransfers, readTransfersOf } from '../transfer.ts'
import { readBudget, readLeavesBy } from './balances.ts'
import { type BatchQueue, createBatchQueue, settleRetryMs as retryMs } from './batch-queue.ts'
import {
  awaitHolds,
  clearEnded,
  type ReleaseOperation,
  readStanding,
  reapHolds,
  type SharedOperation,
} from './holds.ts'
import { describeSkew, heartbeatMs, joinReplicas } from './replica.ts'

const probeMs = 1000
const reapMs = 10_000
const contentionRetriesMax = 3

export async function createSharedLedger(options: LedgerOptions): Promise<Ledger> {
  const { database, clock, timers, reach, onFault, random } = options
  const writeHealth = createWriteHealth(clock, (error) =>
    onFault('cannot commit charges, so new requests are refused', error),
  )
  const onSkew = (skewMs: number) => onFault("this machine's clock is wrong", describeSkew(skewMs))
  const replica = await joinReplicas({ database, clock, writeHealth, onSkew })
  const queue = createBatchQueue({ database, clock, writeHealth, timers, random, owner: () => replica.owner() })
  const counters = createEndCounters()
  const keysNow = certainTime(clock)
  const holds = createOwnHolds(options, queue, counters)

  const seeds = createBudgetSeeds({ ...options, isShared: true })
  const onSeedFault = (error: unknown) => onFault('a spend limit could not be brought up to date', error)

  const minute = () => minuteAt(Number(replica.owner().now))
  const admits = () => writeHealth.admits() && replica.mayAdmit()
  const reap = async () => {
    const reports = await reapHolds(database, reach)
    holds.forget(reports.map(({ requestId }) => requestId))
    counters.reaped(reports)
    return reports
  }
  const renewPlans = (workspaceId?: WorkspaceId) => renewAll(options, writeHealth, workspaceId)
  const stops = [
    timers.every(heartbeatMs, () => replica.beat()),
    // Once a commit failed, only a successful one lets new holds in again.
    timers.every(probeMs, async () => void (writeHealth.failed() && (await replica.beat()))),
    timers.every(seedRoundMs, () => seeds.round().catch(onSeedFault)),
    // A round that fails is tried again in the next one.
    timers.every(reapMs, async () => {
      if (!replica.mayJudge()) return
      await reap().catch((error) => onFault('holds of dead replicas could not be ended', error))
    }),
    timers.every(renewMs, () => renewPlans().catch((error) => onFault('plans could not be renewed', error))),
    timers.every(cleanMs, () =>
      clean(options, keysNow())
        .then(() => clearEnded(options))
        .catch((error) => onFault('old rows could not be removed', error)),
    ),
  ]

  return {
    hold(request) {
      if (!admits()) return unavailable
      const seeding = seeds.ensure(request.budgets)
      return seeding ? seeding.then((isDone) => (isDone ? holds.hold(request) : unavailable)) : holds.hold(request)
    },
    extend: holds.extend,
    coverOverrun: () => undefined,
    markSent: holds.markSent,
    settle: holds.settle,
    release: holds.release,
    takePart: holds.takePart,
    standing: (requestId) => readStanding(database, requestId),
    endStanding: holds.endStanding,
    fund: (funding) => commit(options, writeHealth, (sql) => recordFunding(sql, funding, clock.now(), reach)),
    correct: (correction) =>
      commit(options, writeHealth, (sql) => recordCorrection(sql, correction, { now: clock.now(), reach })),
    recount: (...limited) => void seeds.recount(...limited).catch(onSeedFault),
    wallet: (workspaceId) => readWallet(database, workspaceId),
    budget: (scopeId, window) => readBudget(database, scopeId, window, minute()),
    async leavesInMs(scopeId, window, amount) {
      const leavesBy = await readLeavesBy(database, scopeId, window, { amount, minute: minute() })
      return leavesBy * 60_000 - Number(replica.owner().now)
    },
    transfers: (workspaceId, query) => listTransfers(database.sql, workspaceId, query),
    transfersOf: (requestId) => readTransfersOf(database.sql, requestId),
    renewPlans,
    reap,
    admits,
    replica,
    stats: () => ({ ...holds.stats(), ...writeHealth.stats(), ...counters.stats, clockSkewMs: replica.clockSkewMs() }),
    async close() {
      for (const stop of stops) stop()
      holds.close()
      await queue.drain()
      // A row that is left here is found dead later.
      await replica.leave().catch(() => {})
    },
  }
}

async function readWallet({ sql }: Database, workspaceId: WorkspaceId): Promise<Wallet> {
  const [row] = await sql<{ posted: bigint; held: bigint }>`SELECT posted, held FROM balances
    WHERE account_id = ${walletOf(workspaceId)}`
  const { posted, held } = row ?? { posted: 0n, held: 0n }
  return { posted: posted as Nano, held: held as Nano, available: (posted - held) as Nano }
}

/** By the clock of the database, which is the same for all replicas. */
async function renewAll(options: LedgerOptions, writeHealth: WriteHealth, only?: WorkspaceId): Promise<boolean> {
  const { database, reach } = options
  const now = Number(await databaseNow(database.sql))
  const due = only ? [only] : await dueWorkspaces(database.sql, now, now)
  let isDone = true
  for (const workspaceId of due) {
    const renewed = await commit(options, writeHealth, async (sql) => {
      await reach('in_topup')
      const changed = await renewPlan(sql, workspaceId, { now, expiresBy: now })
      await reach('in_topup')
      return changed
    })
    if ('kind' in renewed) isDone = false
  }
  return isDone
}

/** Commits outside the batches; for rare operations. */
async function commit<T>(
  { database }: LedgerOptions,
  writeHealth: WriteHealth,
  work: (sql: Sql) => Promise<T>,
): Promise<T | Unavailable> {
  for (let retries = 0; ; retries++) {
    const end = writeHealth.begin()
    try {
      const outcome = await database.transaction(work)
      end('committed')
      return outcome
    } catch (thrown) {
      end(commitEndOf(thrown), thrown)
      if (isContention(thrown) && retries < contentionRetriesMax) continue
      if (isStoreUnavailable(thrown) || isContention(thrown)) return unavailable
      throw thrown
    }
  }
}

// The holds of this replica: which requests are open here, and the operations on them in the database. This is only what
// the process remembers; the rows in the database decide. The first call that ends a hold takes it out of the list, so two
// ends of one request cannot both be on their way.

interface OwnHolds
  extends Pick<Ledger, 'hold' | 'takePart' | 'extend' | 'markSent' | 'settle' | 'release' | 'endStanding'> {
  /** Removes holds that the reaper has ended. */
  forget(requestIds: Iterable<RequestId>): void
  /** Settlements with an unknown outcome are looked up at most once more. */
  close(): void
  stats(): HoldStats
}

function createOwnHolds(options: LedgerOptions, queue: BatchQueue, counters: EndCounters): OwnHolds {
  const { database, reach, holdLifetimeMs, clock, timers } = options
  const open = new OpenHolds()
  let isClosed = false

  /** For a hold that may or may not be committed: if it is, it must end. Retried for as long as the hold could live. */
  const releaseLater = (
    requestId: RequestId,
    workspaceId: WorkspaceId,
    unconfirmed?: ReleaseOperation['unconfirmed'],
  ): void => {
    const terms = { unconfirmed, ...(unconfirmed?.request.isStanding && { isStanding: true as const }) }
    submit(queue, { kind: 'release', requestId, workspaceId, retryMs: holdLifetimeMs, ...terms }).catch(() => {})
  }
  const insistOnStored = async (requestId: RequestId): Promise<SettleEnd | undefined> => {
    while (!isClosed) {
      const end = await readStored(database, requestId)
      if (end.kind !== 'unavailable') return end
      await timers.wait(unavailable.retryAfterMs)
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
    const released = await submit(queue, { kind: 'release', requestId, workspaceId, retryMs: holdLifetimeMs })
    if (released.kind === 'released') return unavailable
    if (released.kind === 'unavailable') return undefined
    const end = await insistOnStored(requestId)
    if (end) counters.settled(settlement, end, own.amount)
    return end
  }
  const settle = async (settlement: Settlement): Promise<SettleOutcome> => {
    const { requestId, cost } = settlement
    assert(cost >= 0n, 'a charge is not negative')
    const own = open.take(requestId)
    if (own === undefined) {
      const end = await readStored(database, requestId)
      return end.kind === 'unavailable' ? unknown(insistOnStored(requestId)) : end
    }
    const { workspaceId, budgets } = own
    try {
      await reach('before_settle')
      const outcome = await submit(queue, { kind: 'settle', requestId, workspaceId, retryMs, settlement, budgets })
      if (outcome.kind === 'unknown') return unknown(findOut(settlement, own))
      counters.settled(settlement, outcome, own.amount)
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
      const outcome = await submit(queue, { kind: 'hold', requestId, workspaceId, retryMs: 0, request, lifetimeMs })
      if (outcome.kind === 'unavailable') releaseLater(requestId, workspaceId, { request, lifetimeMs })
      // A standing hold is not this process's own.
      if (outcome.kind !== 'held' || request.isStanding) return outcome
      open.add(requestId, { workspaceId, budgets, amount, heldAt: clock.now() })
      await reach('after_hold')
      return outcome
    },
    async takePart(from, request) {
      const { requestId, workspaceId, lifetimeMs = holdLifetimeMs, budgets = noBudgets } = request
      const outcome = await submit(queue, {
        ...{ kind: 'part', requestId, workspaceId, retryMs: 0 },
        ...{ from, request, lifetimeMs },
      })
      if (outcome.kind === 'unavailable') releaseLater(requestId, workspaceId, { request, lifetimeMs })
      if (outcome.kind !== 'held') return outcome
      open.add(requestId, { workspaceId, budgets, amount: outcome.amount, heldAt: clock.now() })
      return outcome
    },
    async extend(requestId, more) {
      assert(more >= 0n, 'an extension is not negative')
      const own = open.find(requestId)
      if (!own) return { kind: 'gone' }
      const { workspaceId, budgets } = own
      const outcome = await submit(queue, { kind: 'extend', requestId, workspaceId, retryMs: 0, more, budgets })
      if (outcome.kind === 'held') open.raise(requestId, own, more)
      return outcome
    },
    markSent(requestId) {
      const own = open.find(requestId)
      if (own === undefined) return
      submit(queue, { kind: 'sent', requestId, workspaceId: own.workspaceId, retryMs: 0 }).catch(() => {})
    },
    settle: settleOnce(settle),
    release(requestId) {
      const own = open.take(requestId)
      if (!own) return { kind: 'gone' }
      return submit(queue, { kind: 'release', requestId, workspaceId: own.workspaceId, retryMs })
    },
    endStanding(requestId, workspaceId) {
      return submit(queue, { kind: 'release', requestId, workspaceId, retryMs, isStanding: true })
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

/** Returns the result of an earlier call; `unavailable` = the database cannot be read. */
async function readStored(database: Database, requestId: RequestId): Promise<SettleEnd> {
  try {
    return await database.transaction(async (sql) => {
      await awaitHolds(sql, [requestId])
      return await readSettled(sql, requestId)
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
