// The one way a hold becomes a charge on the embedded engine: it is claimed in memory, written with the row of its request,
// and only then taken from the balance. Group commit by back-pressure: while one commit syncs, settlements queue, and the
// next commit takes them all. An idle ledger commits at once, a busy one spends one sync on hundreds.

import type { Clock } from '../../kernel/clock.ts'
import type { Failpoint } from '../../kernel/failpoint.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import type { RequestRow } from '../../store/request-rows.ts'
import { isStoreUnavailable } from '../../store/sql-error.ts'
import type { BatchWriter, Refusal } from '../../store/write-batch.ts'
import { unavailable } from '../account.ts'
import type { SettleEnd, Settlement, SettleOutcome, Timers } from '../ledger.ts'
import { chargedRow, dueOf, readSettled, repeatedOutcome } from '../settlement.ts'
import type { EndCounters, WriteHealth } from '../write-health.ts'
import type { Claim, WalletBook } from './wallet-book.ts'

const batchMax = 512
/**
 * A commit costs as much as several settlements, whatever is in it: two threads are woken and a disk is synced. If the
 * previous batch was large and has just ended, more settlements are likely on their way, so wait a millisecond for them.
 */
const gatherMs = 1
const busyBatchMin = 3
const busyTimeMs = 10
const fullBatch = 64
/** How long a settlement is retried. After that its caller gets `unavailable`, or `unknown` if its commit is still running. */
const retryMs = 30_000
const firstRetryMs = 50
const retryMaxMs = 1000
/** How often a commit that does not return is checked. */
const watchMs = 1000

export interface SettlementsOptions {
  readonly book: WalletBook
  readonly writer: BatchWriter
  readonly database: Database
  readonly clock: Clock
  readonly timers: Timers
  readonly reach: Failpoint
  readonly writeHealth: WriteHealth
  readonly counters: EndCounters
  /** The book could not follow a commit. Called once all other settlements of that commit were answered. */
  onBroken(thrown: unknown): void
  /** A settlement whose outcome was unknown could not be ended properly. */
  onFault(what: string, thrown: unknown): void
}

interface Entry {
  readonly claim: Claim
  readonly settlement: Settlement
  readonly row: RequestRow
  readonly submittedMs: number
  /** Its caller has got `unknown`. */
  isOverdue: boolean
  /** An earlier commit of it seemed to fail. */
  isRetry: boolean
  /** Called once, at the end. */
  resolve(end: SettleEnd | Promise<SettleEnd>): void
  /** Answers the caller before the end is known. */
  answer(outcome: SettleOutcome): void
}

export class Settlements {
  #queue: Entry[] = []
  #running: readonly Entry[] = []
  #busy: Promise<void> | undefined
  #last = { size: 0, endedMs: 0 }

  constructor(private readonly options: SettlementsOptions) {}

  settle(settlement: Settlement): Promise<SettleOutcome> {
    const { book, database, reach } = this.options
    const { requestId } = settlement
    const first = book.settling(requestId)
    // If the first could not read what it came to, this one tries again.
    if (first) return first.then(repeatedOutcome, () => readSettled(database.sql, requestId))
    const claim = book.claim(requestId, dueOf(settlement))
    if (!claim) return readSettled(database.sql, requestId)
    const { promise, resolve, reject } = Promise.withResolvers<SettleOutcome>()
    try {
      const pause = reach('before_settle')
      if (pause)
        pause.then(() => this.#submit(claim, settlement, resolve)).catch((thrown) => this.#drop(claim, reject, thrown))
      else this.#submit(claim, settlement, resolve)
    } catch (thrown) {
      this.#drop(claim, reject, thrown)
    }
    book.setSettling(claim, promise)
    return promise
  }

  /** Nothing was written for this claim, so it ends here. */
  #drop(claim: Claim, reject: (thrown: unknown) => void, thrown: unknown): void {
    this.options.book.drop(claim)
    reject(thrown)
  }

  /** Resolves when nothing is queued or running. */
  async idle(): Promise<void> {
    await this.#busy
  }

  #submit(claim: Claim, settlement: Settlement, answer: Entry['answer']): void {
    const row = chargedRow(settlement, claim.workspaceId, claim.charge, claim.budgetNames)
    const submittedMs = this.options.clock.monotonicMs()
    // A promise that is rejected rejects the call.
    const resolve = answer as Entry['resolve']
    this.#queue.push({ claim, settlement, row, submittedMs, isOverdue: false, isRetry: false, answer, resolve })
    // Not at once: what is submitted in the same turn shares the commit.
    this.#busy ??= Promise.resolve().then(() => this.#work())
  }

  async #work(): Promise<void> {
    const { clock, timers } = this.options
    let pauseMs = firstRetryMs
    while (this.#queue.length > 0) {
      const isBusyTime = this.#last.size >= busyBatchMin && clock.monotonicMs() - this.#last.endedMs < busyTimeMs
      if (isBusyTime && this.#queue.length < fullBatch) await timers.wait(gatherMs)
      const batch = this.#queue.splice(0, batchMax)
      const results = await this.#commit(batch)
      this.#last = { size: batch.length, endedMs: clock.monotonicMs() }
      if (results) {
        this.#endAll(batch, results)
        pauseMs = firstRetryMs
        continue
      }
      // Overdue entries are not retried: their callers have already got an error.
      this.#giveUp(batch.filter((entry) => entry.isOverdue))
      this.#queue.unshift(...batch.filter((entry) => !entry.isOverdue))
      this.#giveUpOld()
      await timers.wait(pauseMs)
      pauseMs = Math.min(2 * pauseMs, retryMaxMs)
    }
    this.#busy = undefined
  }

  /** undefined = the store failed, nothing was written, and the batch may be tried again. */
  async #commit(batch: readonly Entry[]): Promise<readonly (Refusal | undefined)[] | undefined> {
    const { writer, writeHealth } = this.options
    const end = writeHealth.begin()
    this.#running = batch
    const watch = setInterval(() => this.#giveUpOld(), watchMs)
    try {
      const results = await writer.commitBatch(batch.map(({ row }) => row))
      end('committed')
      return results
    } catch (thrown) {
      end('failed', thrown)
      // It may have been written all the same.
      for (const entry of batch) entry.isRetry = true
      // Retrying does not help against a defect of ours.
      return isStoreUnavailable(thrown) ? undefined : batch.map(() => ({ message: String(thrown) }))
    } finally {
      clearInterval(watch)
      this.#running = []
    }
  }

  #endAll(batch: readonly Entry[], results: readonly (Refusal | undefined)[]): void {
    const { book, onBroken } = this.options
    const defects: unknown[] = []
    for (const [at, entry] of batch.entries()) {
      const refusal = results[at]
      if (refusal) {
        entry.resolve(this.#endRefused(entry, refusal))
        continue
      }
      // The charge is durable, whatever is wrong with the book: the caller gets what was paid for.
      try {
        book.commit(entry.claim)
      } catch (thrown) {
        defects.push(thrown)
      }
      entry.resolve(this.#endCommitted(entry))
    }
    for (const thrown of defects) onBroken(thrown)
  }

  #endCommitted({ claim, settlement }: Entry): SettleEnd | Promise<SettleEnd> {
    const { book, reach, counters } = this.options
    const { charge, workspaceId, heldBeforeCost } = claim
    const writtenOff = (settlement.cost - charge) as Nano
    const { posted } = book.wallet(workspaceId)
    const end: SettleEnd = { kind: 'settled', charge, posted, writtenOff, repeated: false }
    counters.settled(settlement, end, heldBeforeCost)
    try {
      const pause = reach('after_commit')
      return pause ? pause.then(() => end) : end
    } catch (thrown) {
      return Promise.reject(thrown)
    }
  }

  /** A commit that was taken for failed, though it was written, is found by its retry, which is refused. */
  async #endRefused({ claim, settlement, isRetry }: Entry, { message }: Refusal): Promise<SettleEnd> {
    const { book, database, counters } = this.options
    // If this read fails, it is unknown whether the claim was charged, and it stays open.
    const stored = await readSettled(database.sql, claim.requestId)
    if (stored.kind === 'settled' && isRetry) book.commit(claim)
    else book.drop(claim)
    counters.settled(settlement, stored, claim.heldBeforeCost)
    if (stored.kind === 'settled') return stored
    throw new Error(`the database refused the settlement of ${claim.requestId}; it was not charged: ${message}`)
  }

  /** Settlements that wait are given up. How one ends that is on its way to the disk is not known yet. */
  #giveUpOld(): void {
    const nowMs = this.options.clock.monotonicMs()
    const isOld = ({ submittedMs }: Entry) => nowMs - submittedMs > retryMs
    const old = this.#queue.filter(isOld)
    if (old.length > 0) this.#queue = this.#queue.filter((entry) => !isOld(entry))
    this.#giveUp(old)
    for (const entry of this.#running) if (!entry.isOverdue && isOld(entry)) this.#answerUnknown(entry)
  }

  /** Not committed, and never will be. */
  #giveUp(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.options.book.drop(entry.claim)
      entry.resolve(unavailable)
    }
  }

  /** Its commit has not come back from the disk in time and may still succeed. */
  #answerUnknown(entry: Entry): void {
    const { promise, resolve } = Promise.withResolvers<SettleEnd>()
    const end = promise.catch((thrown) => {
      this.options.onFault(`the settlement of ${entry.claim.requestId} could not be ended`, thrown)
      return undefined
    })
    entry.isOverdue = true
    entry.resolve = resolve
    entry.answer({ kind: 'unknown', retryAfterMs: unavailable.retryAfterMs, end })
  }
}
