// One try to commit a batch, and what its failure means: for the store, for a wallet whose row is locked, or for the one
// operation that cannot be carried out.

import type { Clock } from '../../kernel/clock.ts'
import type { Database } from '../../store/database.ts'
import { isContention, isRowLocked, isStoreUnavailable, isTimedOut } from '../../store/sql-error.ts'
import type { WalletId } from '../account.ts'
import type { Gate } from '../gate.ts'
import type { Pace } from '../pace.ts'
import { applyBatch } from './apply-batch.ts'
import { type BusyWallets, waitLess } from './busy-wallets.ts'
import { commitEndOf } from './commit-end.ts'
import type { Owner } from './hold-rows.ts'
import { SlicesOut } from './judge-refusals.ts'
import type { Entry } from './take-batch.ts'

const contentionRetriesMax = 3
const contentionPauseMs = 20

/**
 * undefined = every operation was answered, or failed by its own fault; otherwise nothing was committed, as far as known:
 * `apart`: because of some of them, so that the others can be tried at once.
 */
export type BatchEnd = undefined | 'unavailable' | 'apart' | SlicesOut

export interface CommitOptions {
  readonly database: Database
  readonly clock: Clock
  readonly gate: Gate
  readonly pace: Pace
  random(): number
  owner(): Owner
  readonly busyWallets: BusyWallets
}

export async function commitBatch(
  options: CommitOptions,
  batch: readonly Entry[],
  isFinal: (wallet: WalletId) => boolean,
): Promise<BatchEnd> {
  if (batch.length === 0) return undefined
  const { busyWallets } = options
  const workspaces = new Set(batch.map(({ operation }) => operation.workspaceId))
  try {
    const answers = await transact(options, batch, isFinal)
    busyWallets.clear(workspaces)
    for (const answer of answers) answer()
    return undefined
  } catch (thrown) {
    if (thrown instanceof SlicesOut) return thrown
    for (const entry of batch) entry.tried = true
    if (isRowLocked(thrown) || isTimedOut(thrown)) {
      const [only] = workspaces
      if (workspaces.size === 1 && only) busyWallets.rest(only)
      else busyWallets.suspect(workspaces)
      return 'apart'
    }
    if (isStoreUnavailable(thrown) || isContention(thrown)) return 'unavailable'
    return blame(batch, thrown)
  }
}

/** One of them is at fault, and the others must not suffer for it. By itself each is tried once as one tried before. */
function blame(batch: readonly Entry[], thrown: unknown): BatchEnd {
  const [only] = batch
  if (batch.length === 1 && only?.isAlone) {
    only.operation.fail(thrown)
    return undefined
  }
  for (const entry of batch) entry.isAlone = true
  return 'apart'
}

async function transact(
  { database, clock, gate, pace, random, owner, busyWallets }: CommitOptions,
  batch: readonly Entry[],
  isFinal: (wallet: WalletId) => boolean,
) {
  const operations = batch.map((entry) => entry.operation)
  const tried = new Set(batch.flatMap((entry) => (entry.tried ? [entry.operation.requestId] : [])))
  const isSuspect = operations.some(({ workspaceId }) => busyWallets.isApart(workspaceId))
  for (let retries = 0; ; retries++) {
    const end = gate.begin()
    try {
      const answers = await database.transaction(async (sql) => {
        if (isSuspect) await waitLess(sql)
        return await applyBatch(sql, owner(), operations, { now: clock.now(), tried, isFinal })
      })
      end('committed')
      return answers
    } catch (thrown) {
      const isRetried = isContention(thrown) && retries < contentionRetriesMax
      end(thrown instanceof SlicesOut ? 'withdrawn' : commitEndOf(thrown))
      if (!isRetried) throw thrown
      await pace.wait(contentionPauseMs * (1 + random()))
    }
  }
}
