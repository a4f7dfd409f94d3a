// Runs batches in the background: claims those that nobody runs, says that this process lives, and learns what callers want of
// them. With several processes each batch is run by one of them.

import type { Clock } from '../kernel/clock.ts'
import { createId } from '../kernel/ids.ts'
import { createRounds, type Every } from '../kernel/timers.ts'
import { type Database, storeNow } from '../store/database.ts'
import type { Batch } from '../tenancy/batches.ts'
import { BatchRun, type RunBatchDependencies } from './run-batch.ts'

export interface BatchRunnerOptions extends RunBatchDependencies {
  readonly database: Database
  readonly clock: Clock
  readonly every?: Every
  isEnabled(): boolean
  onFault(error: unknown): void
}

const roundMs = 500
/** A process that is silent for longer has lost its batches. */
const claimMs = 15_000
const renewMs = 4_000
/** Batches that one process runs at a time; their lines share its slots. */
const batchesMax = 8

export type BatchRunner = ReturnType<typeof startBatchRunner>

export function startBatchRunner(options: BatchRunnerOptions) {
  const { database, clock, store, isEnabled, onFault, every } = options
  // The embedded engine has one process, so whoever had a batch before is dead.
  const alone = database.engine === 'sqlite'
  const owner = createId('rep')
  const runs = new Map<string, BatchRun>()
  let renewedMs = clock.monotonicMs()
  let isClosing = false

  async function claim(now: number): Promise<void> {
    const free = batchesMax - runs.size
    if (isClosing || free <= 0 || !isEnabled()) return
    for (const id of await store.unclaimed(owner, { now, limit: free, alone })) {
      if (runs.has(id)) continue
      const claimed = await store.claim(id, owner, { now, until: now + claimMs, alone })
      if (!claimed || isClosing) continue
      const run = new BatchRun(options, claimed.batch, { id, epoch: claimed.epoch })
      runs.set(id, run)
      void run.done
        .catch(async (error) => {
          onFault(error)
          await store.giveUp(run.claim).catch(() => {})
        })
        .finally(() => void runs.delete(id))
    }
  }

  async function renew(now: number): Promise<void> {
    for (const run of runs.values()) {
      const batch = await store.renew(run.claim, { until: now + claimMs, waitsFor: run.waitsFor })
      if (!batch) run.stop('handed over')
      else if (batch.outcome !== undefined) run.stop(batch.outcome)
      else if (now >= batch.expiresAt) run.stop('expired')
      await run.flush()
    }
  }

  const rounds = createRounds({ milliseconds: roundMs, every, onFault }, async () => {
    if (!isEnabled() && runs.size === 0) return
    const now = await storeNow(database, clock)
    if (!isEnabled()) for (const run of runs.values()) run.stop('handed over')
    if (clock.monotonicMs() - renewedMs >= renewMs) {
      await renew(now)
      renewedMs = clock.monotonicMs()
    }
    await claim(now)
  })

  /** Looks for new batches now, and at what callers want of the running ones. */
  async function wake(): Promise<void> {
    renewedMs = Number.NEGATIVE_INFINITY
    await rounds.run()
  }

  return {
    wake,
    /** Returns the batch as it is then. No line is started here any more; on other replicas within seconds. */
    async cancel(batch: Batch): Promise<Batch> {
      await store.cancel(batch.workspaceId, batch.id, clock.now())
      await wake()
      return (await store.find(batch.workspaceId, batch.id)) ?? batch
    },
    /** Starts no further line; the running ones are finished, and other processes go on. */
    async close(): Promise<void> {
      isClosing = true
      for (const run of runs.values()) run.stop('handed over')
      await rounds.close()
      await Promise.allSettled([...runs.values()].map(({ done }) => done))
    },
  }
}
