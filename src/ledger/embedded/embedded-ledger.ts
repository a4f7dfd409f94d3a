// The ledger of one process on the embedded engine. The process is the only writer, so holds live in memory and are
// decided at once; only what moves money is committed. After a crash the holds are gone and nobody was charged for them.

import type { WorkspaceId } from '../../kernel/ids.ts'
import { type Nano, zeroNano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import { timeToSql } from '../../store/sql.ts'
import { isStoreUnavailable } from '../../store/sql-error.ts'
import type { BatchWriter } from '../../store/write-batch.ts'
import { type WalletId, workspaceOf } from '../account.ts'
import { type BudgetName, type BudgetState, budgetName, isWindowPast } from '../budget.ts'
import { BudgetCounters } from '../budget-counters.ts'
import { clean, cleanMs } from '../clean.ts'
import { type Funding, type FundOutcome, recordFunding } from '../fund.ts'
import { createGate, type Gate } from '../gate.ts'
import type { HoldOutcome, HoldRequest, Ledger } from '../ledger.ts'
import type { LedgerOptions } from '../options.ts'
import { createBudgetSeeds, seedRoundMs } from '../seed-budgets.ts'
import { createTally } from '../tally.ts'
import { listTransfers, readTransfersOf } from '../transfer.ts'
import { unavailable } from '../unavailable.ts'
import { correct } from './correct.ts'
import { createGroupCommit } from './group-commit.ts'
import { createSettle } from './settle.ts'
import { WalletBook } from './wallet-book.ts'

const maintenanceMs = 1000

export async function createEmbeddedLedger(options: LedgerOptions, writer: BatchWriter): Promise<Ledger> {
  const { database, clock, pace, reach, holdLifetimeMs } = options
  const gate = createGate(clock)
  let isBroken = false
  const onBroken = (error: unknown) => {
    gate.close()
    if (!isBroken) options.onBroken(error)
    isBroken = true
  }
  const book = new WalletBook(await readPosted(database), new BudgetCounters(await readSpent(database)))
  // What throws after a commit leaves the book without what was committed.
  const commits = createGroupCommit({ writer, clock, gate, pace, onDefect: onBroken })
  const tally = createTally()
  const seeds = createBudgetSeeds({ ...options, onRaised: (name, by) => book.budgets.spend([name], by) })

  const reap = async () => {
    await reach('in_reap')
    const reports = book.releaseExpired(clock.monotonicMs())
    tally.reaped(reports)
    return reports
  }
  const onSeedFault = (error: unknown) => options.onFault('a spend limit could not be brought up to date', error)
  const hold = (request: HoldRequest): HoldOutcome | Promise<HoldOutcome> => {
    const { requestId, workspaceId, amount, roomLeast, lifetimeMs = holdLifetimeMs, budgets } = request
    const expiresAtMs = clock.monotonicMs() + lifetimeMs
    const outcome = book.hold(requestId, workspaceId, { amount, roomLeast, now: clock.now(), expiresAtMs, budgets })
    const pause = outcome.kind === 'held' ? reach('after_hold') : undefined
    return pause ? pause.then(() => outcome) : outcome
  }
  const stops = [
    pace.every(seedRoundMs, () => seeds.round().catch(onSeedFault)),
    pace.every(maintenanceMs, async () => {
      if (gate.failed()) await probe(options, gate)
      await reap()
    }),
    pace.every(cleanMs, async () => {
      book.budgets.forget((window) => isWindowPast(window, clock.now()))
      // What fails now is tried again in the next round.
      await clean(options).catch((error) => options.onFault('old rows could not be removed', error))
    }),
  ]

  return {
    hold(request) {
      if (!gate.admits()) return unavailable
      const seeding = seeds.ensure(request.budgets)
      return seeding ? seeding.then((isDone) => (isDone ? hold(request) : unavailable)) : hold(request)
    },
    // A closed gate is no reason to end what is running: the hold is in memory, and its settlement is tried for long.
    extend: (requestId, more) => book.extend(requestId, more) ?? { kind: 'gone' },
    cover: (requestId, more) => book.cover(requestId, more),
    markSent: (requestId) => book.markSent(requestId),
    settle: createSettle({ book, commits, database, clock, reach, tally, onFault: options.onFault }),
    release: (requestId) => (book.release(requestId) ? { kind: 'released' } : { kind: 'gone' }),
    fund: (funding) => fund(options, { book, gate }, funding),
    correct: (correction) => correct(options, { book, gate, onBroken }, correction),
    recount: (scopeId) => void seeds.recount(scopeId).catch(onSeedFault),
    wallet: async (workspaceId) => book.wallet(workspaceId),
    budget: async (scopeId, window) => book.budgets.state(budgetName(scopeId, window)),
    transfers: (workspaceId, query) => listTransfers(database.sql, workspaceId, query),
    transfersOf: (requestId) => readTransfersOf(database.sql, requestId),
    reap,
    admits: () => gate.admits(),
    stats: () => ({ ...book.stats(), ...gate.stats(), ...tally.stats }),
    async close() {
      for (const stop of stops) stop()
      await commits.idle()
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
  { book, gate }: { readonly book: WalletBook; readonly gate: Gate },
  funding: Funding,
): Promise<FundOutcome> {
  const end = gate.begin()
  try {
    const outcome = await database.transaction((sql) => recordFunding(sql, funding, clock.now(), reach))
    end('committed')
    // Before anything else can happen: the next hold must see the money.
    if (outcome.kind === 'funded' && !outcome.repeated) book.credit(funding.workspaceId, funding.amount)
    return outcome
  } catch (thrown) {
    const isUnavailable = isStoreUnavailable(thrown)
    end(isUnavailable ? 'failed' : 'undecided')
    if (isUnavailable) return unavailable
    throw thrown
  }
}

/** A failed commit closes the gate; with nothing left to commit, only another attempt can open it again. */
async function probe({ database, clock }: LedgerOptions, gate: Gate): Promise<void> {
  const end = gate.begin()
  try {
    await database.transaction(
      (sql) => sql`INSERT INTO replicas (id, epoch, heartbeat_at) VALUES ('embedded', 1, ${timeToSql(clock.now())})
        ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at`,
    )
    end('committed')
  } catch {
    end('failed')
  }
}
