// The ledger of one process on the embedded engine. The process is the only writer, so holds live in memory and are
// decided at once; only movements of money are committed. After a crash the holds are gone, without any charge.

import { assert } from '../../kernel/assert.ts'
import { createId, type WorkspaceId } from '../../kernel/ids.ts'
import { type Nano, zeroNano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import { timeToSql } from '../../store/sql.ts'
import { isStoreUnavailable } from '../../store/sql-error.ts'
import type { BatchWriter } from '../../store/write-batch.ts'
import { type Insufficient, unavailable, type WalletId, workspaceOf } from '../account.ts'
import {
  BudgetCounters,
  type BudgetName,
  type BudgetState,
  budgetName,
  createBudgetSeeds,
  isWindowPast,
  seedRoundMs,
} from '../budget.ts'
import { clean, cleanMs } from '../clean.ts'
import {
  type Correction,
  type CorrectOutcome,
  type Funding,
  type FundOutcome,
  recordCorrection,
  recordFunding,
} from '../fund.ts'
import type { HoldOutcome, HoldRequest, Ledger, LedgerOptions } from '../ledger.ts'
import { listTransfers, readTransfersOf } from '../transfer.ts'
import { createEndCounters, createWriteHealth, type WriteHealth } from '../write-health.ts'
import { Settlements } from './settlements.ts'
import { type Claim, WalletBook } from './wallet-book.ts'

const maintenanceMs = 1000

export async function createEmbeddedLedger(options: LedgerOptions, writer: BatchWriter): Promise<Ledger> {
  const { database, clock, timers, reach, holdLifetimeMs } = options
  const writeHealth = createWriteHealth(clock, (error) =>
    options.onFault('cannot commit charges, so new requests are refused', error),
  )
  let isBroken = false
  const onBroken = (error: unknown) => {
    writeHealth.close()
    if (!isBroken) options.onBroken(error)
    isBroken = true
  }
  const book = new WalletBook(await readPosted(database), new BudgetCounters(await readSpent(database)))
  const counters = createEndCounters()
  const settlements = new Settlements({ ...options, book, writer, writeHealth, counters, onBroken })
  const seeds = createBudgetSeeds({ ...options, onRaised: (name, by) => book.budgets.spend([name], by) })

  const reap = async () => {
    await reach('in_reap')
    const reports = book.releaseExpired(clock.monotonicMs())
    counters.reaped(reports)
    return reports
  }
  const onSeedFault = (error: unknown) => options.onFault('a spend limit could not be brought up to date', error)
  const hold = (request: HoldRequest): HoldOutcome | Promise<HoldOutcome> => {
    const { requestId, workspaceId, amount, requiredFree, lifetimeMs = holdLifetimeMs, budgets } = request
    const expiresAtMs = clock.monotonicMs() + lifetimeMs
    const outcome = book.hold(requestId, workspaceId, { amount, requiredFree, now: clock.now(), expiresAtMs, budgets })
    const pause = outcome.kind === 'held' ? reach('after_hold') : undefined
    return pause ? pause.then(() => outcome) : outcome
  }
  const stops = [
    timers.every(seedRoundMs, () => seeds.round().catch(onSeedFault)),
    timers.every(maintenanceMs, async () => {
      if (writeHealth.failed()) await probe(options, writeHealth)
      await reap()
    }),
    timers.every(cleanMs, async () => {
      book.budgets.forget((window) => isWindowPast(window, clock.now()))
      // A failure is retried in the next round.
      await clean(options).catch((error) => options.onFault('old rows could not be removed', error))
    }),
  ]

  return {
    hold(request) {
      if (!writeHealth.admits()) return unavailable
      const seeding = seeds.ensure(request.budgets)
      return seeding ? seeding.then((isDone) => (isDone ? hold(request) : unavailable)) : hold(request)
    },
    // Failing commits do not end running requests: the hold is in memory, and its settlement is retried.
    extend: (requestId, more) => book.extend(requestId, more) ?? { kind: 'gone' },
    cover: (requestId, more) => book.cover(requestId, more),
    markSent: (requestId) => book.markSent(requestId),
    settle: (settlement) => settlements.settle(settlement),
    release: (requestId) => (book.release(requestId) ? { kind: 'released' } : { kind: 'gone' }),
    fund: (funding) => fund(options, { book, writeHealth }, funding),
    correct: (correction) => correct(options, { book, writeHealth, onBroken }, correction),
    recount: (scopeId, startsAt) => void seeds.recount(scopeId, startsAt).catch(onSeedFault),
    recountAttributed: (...limited) => void seeds.recountAttributed(...limited).catch(onSeedFault),
    wallet: async (workspaceId) => book.wallet(workspaceId),
    budget: async (scopeId, window) => book.budgets.state(budgetName(scopeId, window)),
    transfers: (workspaceId, query) => listTransfers(database.sql, workspaceId, query),
    transfersOf: (requestId) => readTransfersOf(database.sql, requestId),
    reap,
    admits: () => writeHealth.admits(),
    stats: () => ({ ...book.stats(), ...writeHealth.stats(), ...counters.stats }),
    async close() {
      for (const stop of stops) stop()
      await settlements.idle()
    },
  }
}

async function readPosted(database: Database): Promise<(readonly [WorkspaceId, Nano])[]> {
  const rows = await database.sql<{ account_id: WalletId; posted: bigint }>`SELECT account_id, posted
    FROM balances JOIN accounts ON accounts.id = balances.account_id WHERE accounts.kind = 'wallet'`
  return rows.map((row) => [workspaceOf(row.account_id), row.posted as Nano] as const)
}

async function readSpent(database: Database): Promise<(readonly [BudgetName, BudgetState])[]> {
  const rows = await database.sql<{ scope_id: string; time_window: string; spent: bigint }>`
    SELECT scope_id, time_window, spent FROM budgets`
  return rows.map((row) => [budgetName(row.scope_id, row.time_window), { spent: row.spent as Nano, held: zeroNano }])
}

async function fund(
  { database, clock, reach }: LedgerOptions,
  { book, writeHealth }: { readonly book: WalletBook; readonly writeHealth: WriteHealth },
  funding: Funding,
): Promise<FundOutcome> {
  const end = writeHealth.begin()
  try {
    const outcome = await database.transaction((sql) => recordFunding(sql, funding, clock.now(), reach))
    end('committed')
    // Before anything else can happen: the next hold must see the money.
    if (outcome.kind === 'funded' && !outcome.repeated) book.credit(funding.workspaceId, funding.amount)
    return outcome
  } catch (thrown) {
    const isUnavailable = isStoreUnavailable(thrown)
    end(isUnavailable ? 'failed' : 'undecided', thrown)
    if (isUnavailable) return unavailable
    throw thrown
  }
}

/** After a failed commit, and with nothing left to commit, only another attempt can show that commits work again. */
async function probe({ database, clock }: LedgerOptions, writeHealth: WriteHealth): Promise<void> {
  const end = writeHealth.begin()
  try {
    await database.transaction(
      (sql) => sql`INSERT INTO replicas (id, epoch, heartbeat_at) VALUES ('embedded', 1, ${timeToSql(clock.now())})
        ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at`,
    )
    end('committed')
  } catch (thrown) {
    end('failed', thrown)
  }
}

// A correction. What it takes is set aside in memory like the hold of a request, so that no request can be promised it
// meanwhile, and leaves the balance only when the transfer is durable.

interface CorrectDependencies {
  readonly book: WalletBook
  readonly writeHealth: WriteHealth
  /** The correction is committed, and the book could not be changed with it. */
  onBroken(thrown: unknown): void
}

export async function correct(
  { database, clock, reach }: LedgerOptions,
  { book, writeHealth, onBroken }: CorrectDependencies,
  correction: Correction,
): Promise<CorrectOutcome> {
  let claim: Claim | undefined
  const reserve = () => {
    const set = setAside(book, correction, clock.now())
    if ('kind' in set) return set
    claim = set
    return set.charge
  }
  const end = writeHealth.begin()
  let outcome: CorrectOutcome
  try {
    outcome = await database.transaction((sql) =>
      recordCorrection(sql, correction, { now: clock.now(), reach, reserve }),
    )
    end('committed')
  } catch (thrown) {
    // SQLite has undone what it could not commit.
    if (claim) book.drop(claim)
    const isUnavailable = isStoreUnavailable(thrown)
    end(isUnavailable ? 'failed' : 'undecided', thrown)
    if (isUnavailable) return unavailable
    throw thrown
  }
  const isMade = outcome.kind === 'corrected' && !outcome.repeated
  // Before anything else can happen: the next hold must see what the database says.
  try {
    if (claim) isMade ? book.commit(claim) : book.drop(claim)
    else if (isMade) book.credit(correction.workspaceId, correction.amount)
  } catch (thrown) {
    onBroken(thrown)
  }
  return outcome
}

/** Claimed at once: the reaper, which ends holds past their time, must not end this one. */
function setAside(book: WalletBook, correction: Correction, now: number): Claim | Insufficient {
  const { workspaceId, writeOff } = correction
  const { available } = book.wallet(workspaceId)
  const amount = writeOff === 'rest' && available < correction.amount ? available : correction.amount
  const id = createId('req')
  const terms = { amount, requiredFree: undefined, now, expiresAtMs: Number.POSITIVE_INFINITY, budgets: undefined }
  const reservation = book.hold(id, workspaceId, terms)
  if (reservation.kind === 'insufficient') return reservation
  const claim = book.claim(id, amount)
  assert(claim, 'what was just held is open')
  return claim
}
