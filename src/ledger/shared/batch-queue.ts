// Batches by back-pressure: while one transaction runs, operations queue, and the next one takes them all, so that a hot
// wallet costs one statement per batch instead of one per request. One transaction at a time is faster than several, in
// throughput and in CPU: the batches are larger, and the database is asked less often.

import type { Clock } from '../../kernel/clock.ts'
import type { Database } from '../../store/database.ts'
import { isContention, isStoreUnavailable } from '../../store/sql-error.ts'
import type { Gate } from '../gate.ts'
import type { Pace } from '../pace.ts'
import { unavailable } from '../unavailable.ts'
import { applyBatch } from './apply-batch.ts'
import type { Owner } from './hold-rows.ts'
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

export interface BatchQueue {
  submit(operation: SharedOperation): void
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
}

interface Entry {
  readonly operation: SharedOperation
  readonly submittedMs: number
}

export function createBatchQueue(options: BatchQueueOptions): BatchQueue {
  const { clock, pace } = options
  let queue: Entry[] = []
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
  const commitWatched = async (batch: readonly Entry[]) => {
    const watch = setInterval(() => {
      // How the running ones end nobody knows yet; their answers then come too late, and the caller has to clear up.
      stillPatient(batch, hangMs)
      queue = stillPatient(queue, hangMs)
    }, watchMs)
    try {
      return await commit(options, batch)
    } finally {
      clearInterval(watch)
    }
  }
  const work = async () => {
    let pauseMs = firstRetryMs
    while (queue.length > 0) {
      const batch = takeBatch(queue)
      if ((await commitWatched(batch)) === undefined) {
        pauseMs = firstRetryMs
        continue
      }
      queue.unshift(...stillPatient(batch, 0))
      if (queue.length > 0) await pace.wait(pauseMs)
      pauseMs = Math.min(2 * pauseMs, retryMaxMs)
    }
    busy = undefined
  }
  return {
    submit(operation) {
      queue.push({ operation, submittedMs: clock.monotonicMs() })
      // Not at once: what is submitted in the same breath shares the transaction.
      busy ??= Promise.resolve().then(work)
    },
    async drain() {
      patienceMaxMs = settlePatienceMs
      await busy
    },
  }
}

/** What comes first, up to an operation on a request that is in the batch already: its turn is after the commit. */
function takeBatch(queue: Entry[]): Entry[] {
  const seen = new Set<string>()
  let size = 0
  for (const { operation } of queue) {
    if (size === batchMax || seen.has(operation.requestId)) break
    seen.add(operation.requestId)
    size++
  }
  return queue.splice(0, size)
}

/** undefined = every operation was answered, or failed by its own fault; otherwise nothing was committed, as far as known. */
async function commit(options: BatchQueueOptions, batch: readonly Entry[]): Promise<'unavailable' | undefined> {
  try {
    const answers = await transact(options, batch)
    for (const answer of answers) answer()
    return undefined
  } catch (thrown) {
    if (isStoreUnavailable(thrown) || isContention(thrown)) return 'unavailable'
    return await commitEach(options, batch, thrown)
  }
}

/** One of them is at fault, and the others must not suffer for it. */
async function commitEach(
  options: BatchQueueOptions,
  batch: readonly Entry[],
  thrown: unknown,
): Promise<'unavailable' | undefined> {
  if (batch.length === 1) {
    batch[0]?.operation.fail(thrown)
    return undefined
  }
  for (const entry of batch) {
    while ((await commit(options, [entry])) !== undefined) {
      if (options.clock.monotonicMs() - entry.submittedMs >= entry.operation.patienceMs) {
        entry.operation.answer(unavailable)
        break
      }
      await options.pace.wait(retryMaxMs)
    }
  }
  return undefined
}

async function transact({ database, clock, gate, pace, random, owner }: BatchQueueOptions, batch: readonly Entry[]) {
  const operations = batch.map((entry) => entry.operation)
  for (let retries = 0; ; retries++) {
    const end = gate.begin()
    try {
      const answers = await database.transaction((sql) => applyBatch(sql, owner(), operations, clock.now()))
      end('committed')
      return answers
    } catch (thrown) {
      const isRetried = isContention(thrown) && retries < contentionRetriesMax
      end(isStoreUnavailable(thrown) ? 'failed' : 'undecided')
      if (!isRetried) throw thrown
      await pace.wait(contentionPauseMs * (1 + random()))
    }
  }
}
