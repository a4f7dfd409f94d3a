// What a wallet has, to people's eyes: without what leases have spent and the wallet's row does not know yet, and with
// what is idle in leases, since that comes back when it is asked for.

import type { ReplicaId, WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import { walletOf } from '../account.ts'
import type { Wallet } from '../ledger.ts'
import type { LeaseBook } from './lease-book.ts'

interface WalletRow {
  readonly posted: bigint
  readonly held: bigint
  /** Of leases: what running requests of other replicas hold, as they have last told. */
  readonly elsewhere: bigint
}

export async function readWallet(
  database: Database,
  workspaceId: WorkspaceId,
  { owner, book }: { readonly owner: ReplicaId; readonly book: LeaseBook },
): Promise<Wallet> {
  const wallet = walletOf(workspaceId)
  // One statement, so that all of it is of one moment.
  const [row] = await database.sql<WalletRow>`SELECT posted - COALESCE(spent, 0) AS posted,
      held - COALESCE(amount, 0) AS held, COALESCE(elsewhere, 0) AS elsewhere
    FROM balances LEFT JOIN (SELECT wallet_id, CAST(SUM(amount) AS BIGINT) AS amount,
        CAST(SUM(spent) AS BIGINT) AS spent,
        CAST(SUM(CASE WHEN owner = ${owner} THEN 0 ELSE in_use END) AS BIGINT) AS elsewhere
      FROM leases WHERE wallet_id = ${wallet} GROUP BY wallet_id) AS slices ON wallet_id = account_id
    WHERE account_id = ${wallet}`
  const { posted, held, elsewhere } = row ?? { posted: 0n, held: 0n, elsewhere: 0n }
  const reserved = held + elsewhere + (book.find(wallet)?.inUse ?? 0n)
  const available = posted > reserved ? posted - reserved : 0n
  return { posted: posted as Nano, held: reserved as Nano, available: available as Nano }
}
