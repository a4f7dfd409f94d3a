// The ledger of one process on the embedded engine. The process is the only writer, so holds live in memory and are
// decided at once; only what moves money is committed. After a crash the holds are gone and nobody was charged for them.

import type { Clock } from '../../kernel/clock.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import { timeToSql } from '../../store/sql.ts'
import { isStoreUnavailable } from '../../store/sql-error.ts'
import type { BatchWriter, WriteStep } from '../../store/write-batch.ts'
import { type WalletId, workspaceOf } from '../account.ts'
import { type Funding, type FundOutcome, recordFunding } from '../fund.ts'
import { createGate, type Gate } from '../gate.ts'
import type { HoldOutcome, Ledger } from '../ledger.ts'
import type { LedgerOptions } from '../options.ts'
import { listTransfers, readTransfersOf } from '../transfer.ts'
import { unavailable } from '../unavailable.ts'
import { createGroupCommit, type GroupCommit } from './group-commit.ts'
import { createSettle } from './settle.ts'
import { createWalletBook, type WalletBook } from './wallet-book.ts'

const maintenanceMs = 1000
const held: HoldOutcome = { kind: 'held' }

export async function createEmbeddedLedger(options: LedgerOptions, writer: BatchWriter): Promise<Ledger> {
  const { database, clock, pace, reach, holdLifetimeMs } = options
  const book = createWalletBook(await readPosted(database))
  const gate = createGate(clock)
  const commits = createGroupCommit({ writer, clock, gate, pace })

  const insufficient = (workspaceId: WorkspaceId): HoldOutcome => {
    const { posted, held: reserved } = book.wallet(workspaceId)
    return { kind: 'insufficient', posted, held: reserved }
  }
  const reap = async () => {
    await reach('in_reap')
    return book.releaseExpired(clock.now())
  }
  const stopMaintenance = pace.every(maintenanceMs, async () => {
    if (gate.failed()) await probe(commits, clock)
    await reap()
  })

  return {
    hold({ requestId, workspaceId, amount, lifetimeMs = holdLifetimeMs }) {
      if (!gate.admits()) return unavailable
      const expiresAt = clock.now() + lifetimeMs
      if (!book.hold(requestId, workspaceId, { amount, expiresAt })) return insufficient(workspaceId)
      const pause = reach('after_hold')
      return pause ? pause.then(() => held) : held
    },
    // A closed gate is no reason to end what is running: the hold is in memory, and its settlement is tried for long.
    extend(requestId, more) {
      const extension = book.extend(requestId, more)
      if (!extension) return { kind: 'gone' }
      return extension.granted ? held : insufficient(extension.workspaceId)
    },
    markSent: (requestId) => book.markSent(requestId),
    settle: createSettle({ book, commits, database, clock, reach }),
    release: (requestId) => (book.release(requestId) ? { kind: 'released' } : { kind: 'gone' }),
    fund: (funding) => fund(options, { book, gate }, funding),
    wallet: async (workspaceId) => book.wallet(workspaceId),
    transfers: (workspaceId, query) => listTransfers(database.sql, workspaceId, query),
    transfersOf: (requestId) => readTransfersOf(database.sql, requestId),
    reap,
    admits: () => gate.admits(),
    async close() {
      stopMaintenance()
      await commits.idle()
    },
  }
}

async function readPosted(database: Database): Promise<(readonly [WorkspaceId, Nano])[]> {
  const rows = await database.sql<{ account_id: WalletId; posted: bigint }>`SELECT account_id, posted
    FROM balances JOIN accounts ON accounts.id = balances.account_id WHERE accounts.kind = 'wallet'`
  return rows.map((row) => [workspaceOf(row.account_id), row.posted as Nano] as const)
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

/** A failed commit closes the gate; with nothing left to commit, only a try can open it again. */
function probe(commits: GroupCommit, clock: Clock): Promise<void> {
  const step: WriteStep = {
    text: `INSERT INTO replicas (id, epoch, heartbeat_at) VALUES ('embedded', 1, ?)
      ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at`,
    values: [timeToSql(clock.now())],
  }
  return new Promise((resolve) => {
    const onEnd = () => resolve()
    commits.submit({ operation: [step], onCommitted: onEnd, onRefused: onEnd, onGivenUp: onEnd })
  })
}
