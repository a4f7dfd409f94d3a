// Group commit by back-pressure: while one commit syncs, operations queue, and the next commit takes them all. An idle
// ledger commits at once, a busy one spends one sync on hundreds. Nothing submitted is dropped without being told.

import type { Clock } from '../../kernel/clock.ts'
import type { BatchWriter, OperationRefusal, WriteOperation } from '../../store/write-batch.ts'
import type { Gate } from '../gate.ts'
import type { Pace } from '../pace.ts'

const batchMax = 512
/**
 * A commit costs as much as several operations, whatever is in it: two threads are woken and a disk is synced. When the
 * last one had company, just now, more is on its way, and a millisecond is given to it, unless there is enough already.
 */
const gatherMs = 1
const companyLeast = 3
const companyMs = 10
const enough = 64
/** How long an operation is tried before its submitter is told that it did not work. */
const patienceMs = 30_000
const firstRetryMs = 50
const retryMaxMs = 1000
/** How often a commit that does not come back is looked at. */
const watchMs = 1000

/** Its functions must not throw: the others of the same commit must hear too. */
export interface Submission {
  readonly operation: WriteOperation
  /** Durable. May come after `onGivenUp(false)`, if the disk answers at last. */
  onCommitted(): void
  /** The database refused this operation, and always will. */
  onRefused(refusal: OperationRefusal): void
  /** `ended`: whether it is certain that it will never be committed. */
  onGivenUp(ended: boolean): void
}

export interface GroupCommit {
  submit(submission: Submission): void
  /** Resolves when nothing is queued or running. */
  idle(): Promise<void>
}

interface Entry extends Submission {
  readonly submittedMs: number
  givenUp: boolean
}

export interface GroupCommitOptions {
  readonly writer: BatchWriter
  readonly clock: Clock
  readonly gate: Gate
  readonly pace: Pace
}

export function createGroupCommit({ writer, clock, gate, pace }: GroupCommitOptions): GroupCommit {
  let queue: Entry[] = []
  let running: readonly Entry[] = []
  let busy: Promise<void> | undefined
  let last = { size: 0, endedMs: 0 }

  const isBusyTime = () => last.size >= companyLeast && clock.monotonicMs() - last.endedMs < companyMs
  const isOld = (entry: Entry) => clock.monotonicMs() - entry.submittedMs > patienceMs

  /** Operations that wait are taken out; of those on their way to the disk nobody can say how they will end. */
  const giveUpOld = () => {
    const old = queue.filter(isOld)
    if (old.length > 0) queue = queue.filter((entry) => !old.includes(entry))
    for (const entry of old) entry.onGivenUp(true)
    for (const entry of running) {
      if (entry.givenUp || !isOld(entry)) continue
      entry.givenUp = true
      entry.onGivenUp(false)
    }
  }

  /** undefined = the commit failed, and nothing of it was written. */
  const commitOnce = async (batch: readonly Entry[]) => {
    const end = gate.begin()
    running = batch
    const watch = setInterval(giveUpOld, watchMs)
    try {
      const refusals = await writer.commitBatch(batch.map((entry) => entry.operation))
      end('committed')
      return refusals
    } catch {
      end('failed')
      return undefined
    } finally {
      clearInterval(watch)
      running = []
    }
  }

  const work = async () => {
    let pauseMs = firstRetryMs
    while (queue.length > 0) {
      if (isBusyTime() && queue.length < enough) await pace.wait(gatherMs)
      const batch = queue.splice(0, batchMax)
      const refusals = await commitOnce(batch)
      last = { size: batch.length, endedMs: clock.monotonicMs() }
      if (refusals) {
        tell(batch, refusals)
        pauseMs = firstRetryMs
        continue
      }
      // Nothing of it was written. Whoever was told "unknown" hears no second time, but the hold must end.
      for (const entry of batch) if (entry.givenUp) entry.onGivenUp(true)
      queue.unshift(...batch.filter((entry) => !entry.givenUp))
      giveUpOld()
      await pace.wait(pauseMs)
      pauseMs = Math.min(2 * pauseMs, retryMaxMs)
    }
    busy = undefined
  }

  return {
    submit(submission) {
      queue.push({ ...submission, submittedMs: clock.monotonicMs(), givenUp: false })
      // Not at once: what is submitted in the same breath shares the commit.
      busy ??= Promise.resolve().then(work)
    },
    idle: async () => await busy,
  }
}

function tell(batch: readonly Entry[], refusals: readonly (OperationRefusal | undefined)[]): void {
  for (const [at, entry] of batch.entries()) {
    const refusal = refusals[at]
    if (refusal) entry.onRefused(refusal)
    else entry.onCommitted()
  }
}
