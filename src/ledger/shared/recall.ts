// Before a wallet is told that it cannot pay, the slices that replicas have of it are asked for. They answer within a
// fraction of a second; of one that does not, the slice is taken once its time is over, which is soon.

import type { Database } from '../../store/database.ts'
import { isContention, isStoreUnavailable } from '../../store/sql-error.ts'
import type { WalletId } from '../account.ts'
import type { Pace } from '../pace.ts'
import { takeBackExpired } from './lease-rows.ts'

const pollMs = 50

export interface RecallOptions {
  readonly database: Database
  readonly pace: Pace
  /** The slice of this replica itself. */
  closeOwn(wallet: WalletId): Promise<void>
  onFault(what: string, error: unknown): void
}

/** true when no slice of the wallet is idle any more; false = it cannot be said, because the database does not answer. */
export async function recallSlices(options: RecallOptions, wallet: WalletId): Promise<boolean> {
  try {
    await askBack(options, wallet)
    return true
  } catch (thrown) {
    if (!isStoreUnavailable(thrown) && !isContention(thrown)) options.onFault('slices could not be asked for', thrown)
    return false
  }
}

async function askBack({ database, pace, closeOwn }: RecallOptions, wallet: WalletId): Promise<void> {
  await database.transaction(
    (sql) => sql`UPDATE leases SET state = 'wanted' WHERE state = 'open' AND (wallet_id, owner, epoch) IN (
      SELECT wallet_id, owner, epoch FROM leases WHERE wallet_id = ${wallet} AND state = 'open'
      ORDER BY wallet_id, owner, epoch FOR UPDATE)`,
  )
  await closeOwn(wallet)
  for (;;) {
    await database.transaction((sql) => takeBackExpired(sql, wallet))
    const [idle] = await database.sql`SELECT 1 FROM leases WHERE wallet_id = ${wallet} AND state <> 'closing' LIMIT 1`
    if (idle === undefined) return
    await pace.wait(pollMs)
  }
}
