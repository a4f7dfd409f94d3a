// Batches by back-pressure: while one transaction runs, operations queue, and the next one takes them all, so that a hot
// wallet costs one statement per batch instead of one per request. One transaction at a time is faster than several, in
// throughput and in CPU: the batches are larger, and the database is asked less often. What keeps one wallet or one
// operation from being committed keeps no other from it: they are tried by themselves.

import type { WorkspaceId } from '../../kernel/ids.ts'
import type { WalletId } from '../account.ts'
import { unavailable } from '../unavailable.ts'
import { createBusyWallets } from './busy-wallets.ts'
import { type CommitOptions, commitBatch } from './commit-batch.ts'
import { commitEndOf } from './commit-end.ts'
import { SlicesOut } from './judge-refusals.ts'
import type { LeaseTally } from './lease-tally.ts'
import type { SharedOperation } from './operation.ts'
import { isPlain, payLeased } from './pay-leased.ts'
import { createRecalls, type RecallsOptions } from './recalls.ts'
import { type Entry, takeBatch } from './take-batch.ts'

const firstRetryMs = 50
const retryMaxMs = 1000
/** How long settlements and releases are tried. */
export const settlePatienceMs = 30_000
/** A transaction that does not come back is looked at this often, and waited for this long by those without patience. */
const watchMs = 1000
const hangMs = 5000
/** For so long a wallet whose row is locked is tried for those without patience. */
const lockPatienceMs = 2000

export interface BatchQueue {
  submit(operation: SharedOperation): void
  /** Runs the work while no batch does. */
  alone(work: () => Promise<void>): Promise<void>
  /** Resolves when nothing is queued or running; nothing is tried for longer than a settlement any more. */
  drain(): Promise<void>
}

export interface BatchQueueOptions extends RecallsOptions, Omit<CommitOptions, 'busyWallets'> {
  readonly leaseTally: LeaseTally
}

export function createBatchQueue(options: BatchQueueOptions): BatchQueue {
  const { clock, pace, leaseTally } = options
  let queue: Entry[] = []
  const turns: (() => Promise<void>)[] = []
  const recalls = createRecalls(options)
  const isFinal = (wallet: WalletId) => {
    leaseTally.refusalsJudged++
    return recalls.isFresh(wallet)
  }
  const busyWallets = createBusyWallets(pace)
  /** After every try that met a lock: many locked wallets would take all of the time otherwise. */
  let isOthersTurn = false
  const rules = {
    isWaiting: (id: WorkspaceId) =>
      recalls.isRunning(id) || busyWallets.isResting(id) || (isOthersTurn && busyWallets.isLocked(id)),
    isApart: busyWallets.isApart,
  }
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
  /** The operations of each wallet stay in their order. */
  const restingLast = (entries: readonly Entry[]): Entry[] => {
    const isResting = ({ operation }: Entry) => busyWallets.isResting(operation.workspaceId)
    return [...entries.filter((entry) => !isResting(entry)), ...entries.filter(isResting)]
  }
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
      const batch = takeBatch(queue, rules)
      const wasOthersTurn = isOthersTurn
      isOthersTurn = false
      if (batch.length === 0) {
        if (wasOthersTurn) continue
        if (queue.length > 0 && turns.length === 0)
          await watched([], () => Promise.race([...recalls.running(), ...busyWallets.resting(), woken()]))
        continue
      }
      const rest = await watched(batch, () => payFromLeases(options, batch))
      const end = await watched(rest, () => commitBatch({ ...options, busyWallets }, rest, isFinal))
      if (end === undefined) {
        pauseMs = firstRetryMs
        continue
      }
      if (end instanceof SlicesOut) {
        queue.unshift(...rest)
        leaseTally.recalls += end.wallets.length
        for (const wallet of end.wallets) recalls.begin(wallet)
        continue
      }
      if (end === 'apart') {
        queue = restingLast([...stillPatient(rest, lockPatienceMs), ...queue])
        isOthersTurn = true
        continue
      }
      queue.unshift(...stillPatient(rest, 0))
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
      queue.push({ operation, submittedMs: clock.monotonicMs(), tried: false, isAlone: false })
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

/** Returns what is not done with; after a failure too, which shows itself again where the rest is committed. */
async function payFromLeases(
  { database, clock, gate, owner }: BatchQueueOptions,
  batch: readonly Entry[],
): Promise<readonly Entry[]> {
  const operations = batch.flatMap(({ operation, tried }) => (!tried && isPlain(operation) ? [operation] : []))
  if (operations.length === 0) return batch
  const paid = new Set<SharedOperation>(operations)
  const end = gate.begin()
  try {
    const unpaid = await payLeased(database, owner(), operations, clock.now())
    end('committed')
    return batch.filter(({ operation }) => unpaid.has(operation) || !paid.has(operation))
  } catch (thrown) {
    end(commitEndOf(thrown))
    for (const entry of batch) if (paid.has(entry.operation)) entry.tried = true
    return batch
  }
}
