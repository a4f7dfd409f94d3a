// Batches by back-pressure: while one transaction runs, operations queue, and the next one takes them all, so that a hot
// wallet costs one statement per batch instead of one per request. One transaction at a time is faster than several, in
// throughput and in CPU: the batches are larger, and the database is asked less often.

import type { Clock } from '../../kernel/clock.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Database } from '../../store/database.ts'
import { isContention, isStoreUnavailable } from '../../store/sql-error.ts'
import { type WalletId, walletOf } from '../account.ts'
import type { Gate } from '../gate.ts'
import type { Pace } from '../pace.ts'
import { unavailable } from '../unavailable.ts'
import { applyBatch } from './apply-batch.ts'
import type { Owner } from './hold-rows.ts'
import { SlicesOut } from './judge-refusals.ts'
import type { SharedOperation } from './operation.ts'

const batchMax = 256
const contentionRetriesMax = 3
const contentionPauseMs = 20
const firstRetryMs = 50
const retryMaxMs = 1000
/** How long settlements and releases are tried. */
export const settlePatienceMs = 30_000
/** A transaction that does not come back is looked at this often, and waited for this long by those without patience. */
const watchMs = 1000
const hangMs = 5000

/** A wallet that was asked about so recently is told what it has. */
const recallFreshMs = 1000

export interface BatchQueue {
  submit(operation: SharedOperation): void
  /** Runs the work while no batch does. */
  alone(work: () => Promise<void>): Promise<void>
  /** Resolves when nothing is queued or running; nothing is tried for longer than a settlement any more. */
  drain(): Promise<void>
}

export interface BatchQueueOptions {
  readonly database: Database
  readonly clock: Clock
  readonly gate: Gate
  readonly pace: Pace
  random(): number
  owner(): Owner
  /** Asks for the slices of a wallet; true when there are none left to ask for. Never throws. */
  recall(wallet: WalletId): Promise<boolean>
}

interface Entry {
  readonly operation: SharedOperation
  readonly submittedMs: number
  /** It may have been committed by a commit whose answer was lost. */
  tried: boolean
}

/** undefined = every operation was answered, or failed by its own fault; otherwise nothing was committed, as far as known. */
type BatchEnd = undefined | 'unavailable' | SlicesOut

export function createBatchQueue(options: BatchQueueOptions): BatchQueue {
  const { clock, pace } = options
  let queue: Entry[] = []
  const turns: (() => Promise<void>)[] = []
  const recalls = createRecalls(options)
  let wake = () => {}
  let busy: Promise<void> | undefined
  let patienceMaxMs = Number.POSITIVE_INFINITY

  const ageMs = (entry: Entry) => clock.monotonicMs() - entry.submittedMs
  /** Answers those whose patience is over, and returns the others. */
  const stillPatient = (entries: readonly Entry[], atLeastMs: number) =>
    entries.filter((entry) => {
      const patienceMs = Math.min(entry.operation.patienceMs, patienceMaxMs)
      if (ageMs(entry) < Math.max(patienceMs, atLeastMs)) return true
      entry.operation.answer(unavailable)
      return false
    })
  /** `batch`: what the work is about. */
  const watched = async <T>(batch: readonly Entry[], work: () => Promise<T>): Promise<T> => {
    const watch = setInterval(() => {
      // How the running ones end nobody knows yet; their answers then come too late, and the caller has to clear up.
      stillPatient(batch, hangMs)
      queue = stillPatient(queue, hangMs)
    }, watchMs)
    try {
      return await work()
    } finally {
      clearInterval(watch)
    }
  }
  const work = async () => {
    let pauseMs = firstRetryMs
    while (queue.length > 0 || turns.length > 0) {
      const turn = turns.shift()
      if (turn) await watched([], turn)
      const batch = takeBatch(queue, recalls)
      if (batch.length === 0) {
        if (queue.length > 0 && turns.length === 0)
          await watched([], () => Promise.race([...recalls.running(), woken()]))
        continue
      }
      const end = await watched(batch, () => commit(options, batch, recalls.isFresh))
      if (end === undefined) {
        pauseMs = firstRetryMs
        continue
      }
      if (end instanceof SlicesOut) {
        queue.unshift(...batch)
        for (const wallet of end.wallets) recalls.begin(wallet)
        continue
      }
      queue.unshift(...stillPatient(batch, 0))
      if (queue.length > 0) await pace.wait(pauseMs)
      pauseMs = Math.min(2 * pauseMs, retryMaxMs)
    }
    busy = undefined
  }
  const woken = () => new Promise<void>((resolve) => (wake = resolve))
  const begin = () => {
    wake()
    // Not at once: what is submitted in the same breath shares the transaction.
    busy ??= Promise.resolve().then(work)
  }
  return {
    submit(operation) {
      queue.push({ operation, submittedMs: clock.monotonicMs(), tried: false })
      begin()
    },
    alone(work) {
      return new Promise((resolve, reject) => {
        turns.push(() => work().then(resolve, reject))
        begin()
      })
    },
    async drain() {
      patienceMaxMs = settlePatienceMs
      await busy
    },
  }
}

interface Recalls {
  begin(wallet: WalletId): void
  isRunning(workspaceId: WorkspaceId): boolean
  /** Whether the wallet's slices have just been asked for. */
  isFresh(wallet: WalletId): boolean
  running(): Iterable<Promise<void>>
}

function createRecalls({ clock, recall }: BatchQueueOptions): Recalls {
  const running = new Map<WalletId, Promise<void>>()
  const endedMs = new Map<WalletId, number>()
  return {
    begin(wallet) {
      for (const [known, atMs] of endedMs) if (clock.monotonicMs() - atMs > recallFreshMs) endedMs.delete(known)
      const ending = recall(wallet).then((isDone) => {
        running.delete(wallet)
        if (isDone) endedMs.set(wallet, clock.monotonicMs())
      })
      running.set(wallet, ending)
    },
    isRunning: (workspaceId) => running.size > 0 && running.has(walletOf(workspaceId)),
    isFresh: (wallet) => clock.monotonicMs() - (endedMs.get(wallet) ?? Number.NEGATIVE_INFINITY) <= recallFreshMs,
    running: () => running.values(),
  }
}

/** What comes first, up to an operation on a request that is in the batch already: its turn is after the commit. */
function takeBatch(queue: Entry[], recalls: Recalls): Entry[] {
  const batch: Entry[] = []
  const seen = new Set<string>()
  let from = 0
  // Those whose wallet's slices are being asked for stay where they are.
  const waiting: Entry[] = []
  for (; from < queue.length && batch.length < batchMax; from++) {
    const entry = queue[from] as Entry
    const { operation } = entry
    if (recalls.isRunning(operation.workspaceId)) {
      waiting.push(entry)
      continue
    }
    if (seen.has(operation.requestId)) break
    seen.add(operation.requestId)
    batch.push(entry)
  }
  queue.splice(0, from, ...waiting)
  return batch
}

async function commit(
  options: BatchQueueOptions,
  batch: readonly Entry[],
  isFinal: (wallet: WalletId) => boolean,
): Promise<BatchEnd> {
  try {
    const answers = await transact(options, batch, isFinal)
    for (const answer of answers) answer()
    return undefined
  } catch (thrown) {
    if (thrown instanceof SlicesOut) return thrown
    for (const entry of batch) entry.tried = true
    if (isStoreUnavailable(thrown) || isContention(thrown)) return 'unavailable'
    return await commitEach(options, batch, thrown)
  }
}

/** One of them is at fault, and the others must not suffer for it. */
async function commitEach(options: BatchQueueOptions, batch: readonly Entry[], thrown: unknown): Promise<undefined> {
  if (batch.length === 1) {
    batch[0]?.operation.fail(thrown)
    return undefined
  }
  for (const entry of batch) {
    while ((await commit(options, [entry], () => true)) !== undefined) {
      if (options.clock.monotonicMs() - entry.submittedMs >= entry.operation.patienceMs) {
        entry.operation.answer(unavailable)
        break
      }
      await options.pace.wait(retryMaxMs)
    }
  }
  return undefined
}

async function transact(
  { database, clock, gate, pace, random, owner }: BatchQueueOptions,
  batch: readonly Entry[],
  isFinal: (wallet: WalletId) => boolean,
) {
  const operations = batch.map((entry) => entry.operation)
  const tried = new Set(batch.flatMap((entry) => (entry.tried ? [entry.operation.requestId] : [])))
  for (let retries = 0; ; retries++) {
    const end = gate.begin()
    try {
      const answers = await database.transaction((sql) =>
        applyBatch(sql, owner(), operations, { now: clock.now(), tried, isFinal }),
      )
      end('committed')
      return answers
    } catch (thrown) {
      const isRetried = isContention(thrown) && retries < contentionRetriesMax
      end(thrown instanceof SlicesOut ? 'withdrawn' : isStoreUnavailable(thrown) ? 'failed' : 'undecided')
      if (!isRetried) throw thrown
      await pace.wait(contentionPauseMs * (1 + random()))
    }
  }
}
