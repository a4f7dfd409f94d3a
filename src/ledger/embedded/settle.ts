// The one way a hold of the embedded engine becomes a charge: claimed in memory, written with everything that belongs
// to it in one operation, and only then taken from the balance.

import type { Clock } from '../../kernel/clock.ts'
import type { Failpoint } from '../../kernel/failpoint.ts'
import type { Database } from '../../store/database.ts'
import type { WriteOperation } from '../../store/write-batch.ts'
import { walletOf } from '../account.ts'
import { splitBudgetName } from '../budget.ts'
import type { SettleEnd, Settlement, SettleOutcome } from '../ledger.ts'
import { settleOnce } from '../settle-once.ts'
import { type SettledTransfers, settledTransfers, storedOutcome } from '../settlement-transfers.ts'
import type { Tally } from '../tally.ts'
import { readTransfersOf, transferColumns } from '../transfer.ts'
import { unavailable } from '../unavailable.ts'
import type { GroupCommit } from './group-commit.ts'
import type { Claim, WalletBook } from './wallet-book.ts'

export interface SettleDependencies {
  readonly book: WalletBook
  readonly commits: GroupCommit
  readonly database: Database
  readonly clock: Clock
  readonly reach: Failpoint
  readonly tally: Tally
  /** A settlement whose outcome was unknown could not be ended properly. */
  onFault(what: string, error: unknown): void
}

export function createSettle(dependencies: SettleDependencies): (settlement: Settlement) => Promise<SettleOutcome> {
  const { book, database } = dependencies
  return settleOnce(async (settlement) => {
    const { requestId, charge, told } = settlement
    const claim = book.claim(requestId, charge, told)
    if (!claim) return storedOutcome(await readTransfersOf(database.sql, requestId))
    return await settleClaim(dependencies, claim, settlement)
  })
}

async function settleClaim(
  dependencies: SettleDependencies,
  claim: Claim,
  settlement: Settlement,
): Promise<SettleOutcome> {
  const { book, commits, clock, reach, onFault } = dependencies
  let transfers: SettledTransfers
  let operation: WriteOperation
  try {
    await reach('before_settle')
    transfers = settledTransfers(settlement, claim.workspaceId, { charged: claim.charged, now: clock.now() })
    operation = settleOperation(claim, transfers, settlement)
  } catch (thrown) {
    // A claim that nothing was written for is nobody else's to end.
    book.drop(claim)
    throw thrown
  }
  const finish = async (end: CommitEnd): Promise<SettleEnd> => {
    const outcome = await endOf(dependencies, claim, transfers, end)
    dependencies.tally.settled(settlement, outcome, claim.held)
    return outcome
  }
  const end = await commit(commits, book, claim, operation)
  if (typeof end === 'string') return await finish(end)
  const known = end.later.then(finish).catch((thrown) => {
    onFault(`the settlement of ${claim.requestId} could not be ended`, thrown)
    return undefined
  })
  return { kind: 'unknown', retryAfterMs: unavailable.retryAfterMs, end: known }
}

async function endOf(
  { book, database, reach }: SettleDependencies,
  claim: Claim,
  transfers: SettledTransfers,
  end: CommitEnd,
): Promise<SettleEnd> {
  if (end === 'given up') return unavailable
  if (end === 'refused') return await endRefused(book, database, claim, transfers)
  await reach('after_commit')
  return {
    kind: 'settled',
    transfer: transfers.charge,
    posted: book.wallet(claim.workspaceId).posted,
    writtenOff: claim.writtenOff,
    repeated: false,
  }
}

/** A commit that was taken for failed, though it was written, is found by its retry, which is refused. */
async function endRefused(
  book: WalletBook,
  database: Database,
  claim: Claim,
  { charge }: SettledTransfers,
): Promise<SettleEnd> {
  // If this read fails, nobody knows whether the claim was charged, and it stays open.
  const stored = storedOutcome(await readTransfersOf(database.sql, claim.requestId))
  if (stored.kind === 'settled' && stored.transfer.id === charge.id) book.commit(claim)
  else book.drop(claim)
  if (stored.kind === 'settled') return stored
  throw new Error(`the database refused the settlement of ${claim.requestId}; it was not charged`)
}

type CommitEnd = 'committed' | 'refused' | 'given up'

/** `later`: how a commit ends that was not confirmed in time. After `refused` the claim is still open. */
function commit(
  commits: GroupCommit,
  book: WalletBook,
  claim: Claim,
  operation: WriteOperation,
): Promise<CommitEnd | { readonly later: Promise<CommitEnd> }> {
  return new Promise((resolve) => {
    let report: (end: CommitEnd) => void = resolve
    commits.submit({
      operation,
      onCommitted() {
        // The charge is durable, whatever is wrong with the book: the caller gets what was paid for.
        try {
          book.commit(claim)
        } finally {
          report('committed')
        }
      },
      onRefused: () => report('refused'),
      onGivenUp() {
        try {
          book.drop(claim)
        } finally {
          report('given up')
        }
      },
      onOverdue() {
        const { promise: later, resolve: reportLater } = Promise.withResolvers<CommitEnd>()
        report = reportLater
        resolve({ later })
      },
    })
  })
}

function settleOperation(
  { workspaceId, charged, walletMissing, budgetNames }: Claim,
  { charge, writeoff }: SettledTransfers,
  settlement: Settlement,
): WriteOperation {
  return {
    wallet: walletOf(workspaceId),
    amount: charged,
    budgets: budgetNames.map(splitBudgetName),
    ...(walletMissing && { newWallet: { workspaceId, createdAt: charge.createdAt } }),
    transfers: [transferColumns(charge, budgetNames), ...(writeoff ? [transferColumns(writeoff)] : [])],
    requests: settlement.rows?.(charged) ?? [],
  }
}
