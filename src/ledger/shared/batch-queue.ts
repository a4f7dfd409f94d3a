// Commits operations in batches. While one transaction runs, operations queue; the next transaction takes all of them, so
// a hot wallet costs one statement per batch instead of one per request. One transaction at a time is faster than several,
// in throughput and in CPU: batches are larger and the database does less. A wallet whose row is locked, or an operation
// that cannot be carried out, is retried alone, so that it does not keep the others from being committed.

import type { Clock } from '../../kernel/clock.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Database } from '../../store/database.ts'
import { CommitUnknown, isContention, isRowLocked, isStoreUnavailable, isTimedOut } from '../../store/sql-error.ts'
import { unavailable } from '../account.ts'
import type { Timers } from '../ledger.ts'
import { commitEndOf, type WriteHealth } from '../settlement.ts'
import { type Answer, applyBatch } from './apply-batch.ts'
import type { SharedOperation } from './holds.ts'
import type { Owner } from './replica.ts'

const batchMax = 256
const firstRetryMs = 50
const retryMaxMs = 1000
const contentionRetriesMax = 3
const contentionPauseMs = 20
/** How long settlements and releases are retried. */
export const settleRetryMs = 30_000
/** How often a hanging transaction is checked, and how long operations that are not retried wait for it. */
const watchMs = 1000
const hangMs = 5000
/** How long operations that are not retried wait for a wallet whose row is locked. */
const lockWaitMs = 2000
/** The pause between two attempts at a wallet that is known to be locked. */
const lockedRestMs = 500
/** How long an attempt waits for a lock on a wallet that met one before. All other commits wait as long. */
const shortLockMs = 250

export interface BatchQueue {
  submit(operation: SharedOperation): void
  /** Resolves when nothing is queued or running. From now on nothing is retried for longer than a settlement. */
  drain(): Promise<void>
}

export interface BatchQueueOptions {
  readonly database: Database
  readonly clock: Clock
  readonly writeHealth: WriteHealth
  readonly timers: Timers
  /** In [0, 1). */
  random(): number
  owner(): Owner
}

export function createBatchQueue(options: BatchQueueOptions): BatchQueue {
  const { clock, timers } = options
  const locks = new LockedWallets(timers)
  let queue: Entry[] = []
  let wake = () => {}
  let running: Promise<void> | undefined
  let operationRetryMaxMs = Number.POSITIVE_INFINITY

  /** Answers the operations that have waited too long, and returns the others. `isRunning`: they are being committed. */
  const stillWaiting = (entries: readonly Entry[], atLeastMs: number, isRunning = false) =>
    entries.filter(({ operation, submittedMs, mayBeCommitted }) => {
      const retryMs = Math.max(Math.min(operation.retryMs, operationRetryMaxMs), atLeastMs)
      if (clock.monotonicMs() - submittedMs < retryMs) return true
      if (operation.kind === 'settle' && (isRunning || mayBeCommitted)) operation.answer({ kind: 'unknown' })
      else operation.answer(unavailable)
      return false
    })
  /** `batch`: the operations that the work is about. */
  const watched = async <T>(batch: readonly Entry[], work: () => Promise<T>): Promise<T> => {
    const watch = setInterval(() => {
      // How the running ones end is not known yet. Their later answers are ignored, and the caller has to clean up.
      stillWaiting(batch, hangMs, true)
      queue = stillWaiting(queue, hangMs)
    }, watchMs)
    try {
      return await work()
    } finally {
      clearInterval(watch)
    }
  }
  const woken = () => new Promise<void>((resolve) => (wake = resolve))

  const run = async () => {
    let pauseMs = firstRetryMs
    /** Set after an attempt that met a lock: many locked wallets would otherwise take all of the time. */
    let skipsLocked = false
    while (queue.length > 0) {
      const isWaiting = (id: WorkspaceId) => locks.isResting(id) || (skipsLocked && locks.isLocked(id))
      const batch = takeBatch(queue, { isWaiting, isApart: (id) => locks.isApart(id) })
      const skippedLocked = skipsLocked
      skipsLocked = false
      if (batch.length === 0) {
        if (!skippedLocked) await watched([], () => Promise.race([...locks.resting(), woken()]))
        continue
      }
      const end = await watched(batch, () => commitBatch(options, locks, batch))
      if (end === 'done') {
        pauseMs = firstRetryMs
      } else if (end === 'apart') {
        const entries = [...stillWaiting(batch, lockWaitMs), ...queue]
        // Resting wallets go last. The operations of each wallet stay in their order.
        const [resting = [], others = []] = [true, false].map((isResting) =>
          entries.filter(({ operation }) => locks.isResting(operation.workspaceId) === isResting),
        )
        queue = [...others, ...resting]
        skipsLocked = true
      } else {
        queue.unshift(...stillWaiting(batch, 0))
        if (queue.length > 0) await timers.wait(pauseMs)
        pauseMs = Math.min(2 * pauseMs, retryMaxMs)
      }
    }
    running = undefined
  }
  return {
    submit(operation) {
      queue.push({ operation, submittedMs: clock.monotonicMs(), isAlone: false, mayBeCommitted: false })
      wake()
      // Not at once, so that operations submitted in the same turn share the transaction.
      running ??= Promise.resolve().then(run)
    },
    async drain() {
      operationRetryMaxMs = settleRetryMs
      await running
    },
  }
}

export interface Entry {
  readonly operation: SharedOperation
  readonly submittedMs: number
  /** It was in a batch in which one operation could not be carried out, so it is retried alone. */
  isAlone: boolean
  /** The reply to a COMMIT of it was lost. */
  mayBeCommitted: boolean
}

export interface BatchRules {
  /** Operations of this wallet stay in the queue. */
  isWaiting(workspaceId: WorkspaceId): boolean
  /** Operations of this wallet share a batch with no other wallet's. */
  isApart(workspaceId: WorkspaceId): boolean
}

/**
 * Takes the next batch from the front of the queue. It ends before a second operation on a request that is already in it,
 * which has to wait for the commit. Only the mark that a body was sent is replaced by the end of its request.
 */
export function takeBatch(queue: Entry[], { isWaiting, isApart }: BatchRules): Entry[] {
  const batch: Entry[] = []
  const places = new Map<string, number>()
  let from = 0
  /** Set if the batch is for one wallet only. */
  let only: WorkspaceId | undefined
  const left: Entry[] = []
  for (; from < queue.length && batch.length < batchMax; from++) {
    const entry = queue[from] as Entry
    const { operation } = entry
    const { workspaceId } = operation
    const isOthers = only !== undefined ? workspaceId !== only : batch.length > 0 && isApart(workspaceId)
    if (isOthers || isWaiting(workspaceId)) {
      left.push(entry)
      continue
    }
    if (batch.length > 0 && (entry.isAlone || batch[0]?.isAlone)) break
    const place = places.get(operation.requestId) ?? batch.length
    const earlier = batch[place]?.operation
    const endsRequest = operation.kind === 'settle' || operation.kind === 'release'
    if (earlier && (earlier.kind !== 'sent' || !endsRequest)) break
    earlier?.answer(undefined)
    places.set(operation.requestId, place)
    batch[place] = entry
    if (isApart(workspaceId)) only = workspaceId
  }
  queue.splice(0, from, ...left)
  return batch
}

/**
 * `done`: every operation was answered, or failed by its own fault. Otherwise nothing was committed, as far as known.
 * `apart`: only some of the operations are the cause, so the others can be retried at once.
 */
type BatchEnd = 'done' | 'unavailable' | 'apart'

async function commitBatch(
  options: BatchQueueOptions,
  locks: LockedWallets,
  batch: readonly Entry[],
): Promise<BatchEnd> {
  const workspaces = new Set(batch.map(({ operation }) => operation.workspaceId))
  try {
    const answers = await transact(options, locks, batch)
    locks.clear(workspaces)
    for (const answer of answers) answer()
    return 'done'
  } catch (thrown) {
    if (isRowLocked(thrown) || isTimedOut(thrown)) {
      locks.met(workspaces)
      return 'apart'
    }
    if (thrown instanceof CommitUnknown) for (const entry of batch) entry.mayBeCommitted = true
    if (isStoreUnavailable(thrown) || isContention(thrown)) return 'unavailable'
    const [only] = batch
    if (batch.length === 1 && only) {
      only.operation.fail(thrown)
      return 'done'
    }
    // One of them is at fault, and the others must not suffer for it.
    for (const entry of batch) entry.isAlone = true
    return 'apart'
  }
}

async function transact(
  { database, writeHealth, timers, random, owner }: BatchQueueOptions,
  locks: LockedWallets,
  batch: readonly Entry[],
): Promise<readonly Answer[]> {
  const operations = batch.map((entry) => entry.operation)
  const mayBeLocked = operations.some(({ workspaceId }) => locks.isApart(workspaceId))
  for (let retries = 0; ; retries++) {
    const end = writeHealth.begin()
    try {
      const answers = await database.transaction(async (sql) => {
        if (mayBeLocked) await sql`SELECT set_config('lock_timeout', ${String(shortLockMs)}, true)`
        return await applyBatch(sql, owner(), operations)
      })
      end('committed')
      return answers
    } catch (thrown) {
      end(commitEndOf(thrown), thrown)
      if (!isContention(thrown) || retries === contentionRetriesMax) throw thrown
      await timers.wait(contentionPauseMs * (1 + random()))
    }
  }
}

/**
 * Wallets whose rows somebody else has locked: a replica that froze in the middle of a transaction, or a person at the
 * database. Their operations are retried apart from the others, so that all other wallets are served meanwhile.
 */
class LockedWallets {
  readonly #timers: Timers
  /** Retried apart until committed. True: it met a lock when it was tried alone. */
  readonly #apart = new Map<WorkspaceId, boolean>()
  readonly #resting = new Map<WorkspaceId, Promise<void>>()

  constructor(timers: Timers) {
    this.#timers = timers
  }

  /** A batch met a lock. With several wallets in it, it is not known which of them is locked. */
  met(workspaces: ReadonlySet<WorkspaceId>): void {
    if (workspaces.size > 1) {
      for (const id of workspaces) if (!this.#apart.has(id)) this.#apart.set(id, false)
      return
    }
    for (const id of workspaces) {
      this.#apart.set(id, true)
      this.#resting.set(
        id,
        this.#timers.wait(lockedRestMs).then(() => void this.#resting.delete(id)),
      )
    }
  }

  clear(workspaces: Iterable<WorkspaceId>): void {
    if (this.#apart.size === 0) return
    for (const id of workspaces) this.#apart.delete(id)
  }

  isApart(workspaceId: WorkspaceId): boolean {
    return this.#apart.has(workspaceId)
  }

  isLocked(workspaceId: WorkspaceId): boolean {
    return this.#apart.get(workspaceId) === true
  }

  isResting(workspaceId: WorkspaceId): boolean {
    return this.#resting.has(workspaceId)
  }

  /** One promise for each resting wallet, until it may be tried again. */
  resting(): Iterable<Promise<void>> {
    return this.#resting.values()
  }
}
