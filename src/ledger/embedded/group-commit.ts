// Group commit by back-pressure: while one commit syncs, operations queue, and the next commit takes them all. An idle
// ledger commits at once, a busy one spends one sync on hundreds. Every submission is told how it ended, also when the
// callback of another one throws.

import type { Clock } from '../../kernel/clock.ts'
import type { RequestRow } from '../../store/request-rows.ts'
import type { BatchWriter, Refusal } from '../../store/write-batch.ts'
import type { Pace } from '../pace.ts'
import type { WriteHealth } from '../write-health.ts'

const batchMax = 512
/**
 * A commit costs as much as several operations, whatever is in it: two threads are woken and a disk is synced. If the
 * previous batch was large and has just ended, more operations are likely on their way, so wait a millisecond for them.
 */
const gatherMs = 1
const companyLeast = 3
const companyMs = 10
const enough = 64
/** How long an operation is tried. After that its submitter is told that it failed, or that its commit is still running. */
const patienceMs = 30_000
const firstRetryMs = 50
const retryMaxMs = 1000
/** How often a commit that does not come back is looked at. */
const watchMs = 1000

/** Exactly one of `onCommitted`, `onRefused` and `onGivenUp` is called, at the end. */
export interface Submission {
  readonly row: RequestRow
  /** It is durable. */
  onCommitted(): void
  /** The database refused this row, and always will. `isRetry`: an earlier commit of it seemed to fail. */
  onRefused(refusal: Refusal, isRetry: boolean): void
  /** It was not committed and never will be. */
  onGivenUp(): void
  /** Its commit has not come back from the disk in time and may still succeed. Called at most once, before the end. */
  onOverdue(): void
}

export interface GroupCommit {
  submit(submission: Submission): void
  /** Resolves when nothing is queued or running. */
  idle(): Promise<void>
}

interface Entry extends Submission {
  readonly submittedMs: number
  isOverdue: boolean
  isRetry: boolean
}

export interface GroupCommitOptions {
  readonly writer: BatchWriter
  readonly clock: Clock
  readonly writeHealth: WriteHealth
  readonly pace: Pace
  /** The callback of a submission threw. It is called once all the others of that commit have been. */
  onDefect(thrown: unknown): void
  /** The first commit that failed after one that did not. */
  onFailing(thrown: unknown): void
}

export function createGroupCommit({
  writer,
  clock,
  writeHealth,
  pace,
  onDefect,
  onFailing,
}: GroupCommitOptions): GroupCommit {
  let queue: Entry[] = []
  let running: readonly Entry[] = []
  let busy: Promise<void> | undefined
  let last = { size: 0, endedMs: 0 }

  const isBusyTime = () => last.size >= companyLeast && clock.monotonicMs() - last.endedMs < companyMs
  const isOld = (entry: Entry) => clock.monotonicMs() - entry.submittedMs > patienceMs

  const tell = (entries: Iterable<Entry>, call: (entry: Entry, at: number) => void) => {
    const thrown: unknown[] = []
    let at = 0
    for (const entry of entries) {
      try {
        call(entry, at++)
      } catch (error) {
        thrown.push(error)
      }
    }
    for (const error of thrown) onDefect(error)
  }

  /** Operations that wait are given up. How one ends that is on its way to the disk is not known yet. */
  const giveUpOld = () => {
    const old = queue.filter(isOld)
    if (old.length > 0) queue = queue.filter((entry) => !old.includes(entry))
    tell(old, (entry) => entry.onGivenUp())
    const overdue = running.filter((entry) => !entry.isOverdue && isOld(entry))
    tell(overdue, (entry) => {
      entry.isOverdue = true
      entry.onOverdue()
    })
  }

  /** undefined = the commit failed, and nothing of it was written. */
  const commitOnce = async (batch: readonly Entry[]) => {
    const end = writeHealth.begin()
    running = batch
    const watch = setInterval(giveUpOld, watchMs)
    try {
      const refusals = await writer.commitBatch(batch.map((entry) => entry.row))
      end('committed')
      return refusals
    } catch (thrown) {
      if (!writeHealth.failed()) onFailing(thrown)
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
        tell(batch, (entry, at) => {
          const refusal = refusals[at]
          if (refusal) entry.onRefused(refusal, entry.isRetry)
          else entry.onCommitted()
        })
        pauseMs = firstRetryMs
        continue
      }
      // Nothing of it was written. What is overdue is not tried again: its caller has already got an error.
      const overdue = batch.filter((entry) => entry.isOverdue)
      for (const entry of batch) entry.isRetry = true
      queue.unshift(...batch.filter((entry) => !entry.isOverdue))
      tell(overdue, (entry) => entry.onGivenUp())
      giveUpOld()
      await pace.wait(pauseMs)
      pauseMs = Math.min(2 * pauseMs, retryMaxMs)
    }
    busy = undefined
  }

  return {
    submit(submission) {
      queue.push({ ...submission, submittedMs: clock.monotonicMs(), isOverdue: false, isRetry: false })
      // Not at once: what is submitted in the same breath shares the commit.
      busy ??= Promise.resolve().then(work)
    },
    idle: async () => await busy,
  }
}
