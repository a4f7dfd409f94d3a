// The one way a hold of the embedded engine becomes a charge: claimed in memory, written with everything that belongs
// to it in one operation, and only then taken from the balance.

import { unreachable } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Failpoint } from '../../kernel/failpoint.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Database } from '../../store/database.ts'
import { timeToSql } from '../../store/sql.ts'
import { InsertSteps, type WriteOperation, type WriteStep } from '../../store/write-batch.ts'
import { walletOf } from '../account.ts'
import { splitBudgetName } from '../budget.ts'
import type { Settlement, SettleOutcome } from '../ledger.ts'
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
}

export function createSettle(dependencies: SettleDependencies): (settlement: Settlement) => Promise<SettleOutcome> {
  const { book, database, tally } = dependencies
  const inserts = new InsertSteps()
  return settleOnce(async (settlement) => {
    const { requestId, charge, told } = settlement
    const claim = book.claim(requestId, charge, told)
    if (!claim) return storedOutcome(await readTransfersOf(database.sql, requestId))
    const outcome = await settleClaim(dependencies, inserts, claim, settlement)
    tally.settled(settlement, outcome, claim.held)
    return outcome
  })
}

async function settleClaim(
  { book, commits, database, clock, reach }: SettleDependencies,
  inserts: InsertSteps,
  claim: Claim,
  settlement: Settlement,
): Promise<SettleOutcome> {
  let transfers: SettledTransfers
  let operation: WriteOperation
  try {
    await reach('before_settle')
    transfers = settledTransfers(settlement, claim.workspaceId, { charged: claim.charged, now: clock.now() })
    operation = settleOperation(inserts, claim, transfers, settlement)
  } catch (thrown) {
    // A claim that nothing was written for is nobody else's to end.
    book.drop(claim)
    throw thrown
  }
  const end = await commit(commits, book, claim, operation)
  switch (end) {
    case 'committed':
      await reach('after_commit')
      return {
        kind: 'settled',
        transfer: transfers.charge,
        posted: book.wallet(claim.workspaceId).posted,
        writtenOff: claim.writtenOff,
        repeated: false,
      }
    case 'given up':
      return unavailable
    case 'refused':
      return await endRefused(book, database, claim, transfers)
    default:
      return unreachable(end)
  }
}

/** A commit that was taken for failed, though it was written, is found by its retry, which is refused. */
async function endRefused(
  book: WalletBook,
  database: Database,
  claim: Claim,
  { charge }: SettledTransfers,
): Promise<SettleOutcome> {
  let end = () => book.drop(claim)
  try {
    const stored = storedOutcome(await readTransfersOf(database.sql, claim.requestId))
    if (stored.kind === 'settled' && stored.transfer.id === charge.id) end = () => book.commit(claim)
    if (stored.kind === 'settled') return stored
    throw new Error(`the database refused the settlement of ${claim.requestId}; it was not charged`)
  } finally {
    end()
  }
}

/** After `refused` the claim is still open. */
function commit(
  commits: GroupCommit,
  book: WalletBook,
  claim: Claim,
  operation: WriteOperation,
): Promise<'committed' | 'refused' | 'given up'> {
  return new Promise((resolve) =>
    commits.submit({
      operation,
      onCommitted() {
        book.commit(claim)
        resolve('committed')
      },
      onRefused: () => resolve('refused'),
      onGivenUp(ended) {
        if (ended) book.drop(claim)
        resolve('given up')
      },
    }),
  )
}

const pay = 'UPDATE balances SET posted = posted - ? WHERE account_id = ?'
const spend = `INSERT INTO budgets (spent, scope_id, time_window, held) VALUES (?, ?, ?, 0)
  ON CONFLICT (scope_id, time_window) DO UPDATE SET spent = budgets.spent + excluded.spent`

function settleOperation(
  inserts: InsertSteps,
  { workspaceId, charged, walletMissing, budgetNames }: Claim,
  { charge, writeoff }: SettledTransfers,
  settlement: Settlement,
): WriteOperation {
  const wallet = walletOf(workspaceId)
  const steps: WriteStep[] = walletMissing ? makeWallet(workspaceId, charge.createdAt) : []
  steps.push(inserts.of({ table: 'transfers', columns: transferColumns(charge, budgetNames) }))
  if (charged > 0n) {
    steps.push({ text: pay, values: [charged, wallet], addsUp: true })
    for (const name of budgetNames) {
      steps.push({ text: spend, values: [charged, ...splitBudgetName(name)], addsUp: true })
    }
  }
  if (writeoff) steps.push(inserts.of({ table: 'transfers', columns: transferColumns(writeoff) }))
  for (const row of settlement.rows?.(charged) ?? []) steps.push(inserts.of(row))
  return steps
}

/** Also right if it is there: every step must change one row, so "do nothing" is written as a change to the same. */
function makeWallet(workspaceId: WorkspaceId, now: number): WriteStep[] {
  const wallet = walletOf(workspaceId)
  return [
    {
      text: `INSERT INTO accounts (id, kind, workspace_id, created_at) VALUES (?, 'wallet', ?, ?)
        ON CONFLICT (id) DO UPDATE SET kind = 'wallet'`,
      values: [wallet, workspaceId, timeToSql(now)],
    },
    {
      text: `INSERT INTO balances (account_id, posted, held) VALUES (?, 0, 0)
        ON CONFLICT (account_id) DO UPDATE SET held = 0`,
      values: [wallet],
    },
  ]
}
