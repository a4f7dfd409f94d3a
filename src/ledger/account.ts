// The accounts and what may flow between them. A workspace has one wallet, whose id follows from the workspace's, so
// that no one has to look it up.

import type { WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { type Sql, timeToSql } from '../store/sql.ts'

export type WalletId = `wallet:${WorkspaceId}`
export type AccountId = WalletId | 'revenue' | 'funding' | 'grants' | 'writeoff'

export function walletOf(workspaceId: WorkspaceId): WalletId {
  return `wallet:${workspaceId}`
}

export function workspaceOf(wallet: WalletId): WorkspaceId {
  return wallet.slice('wallet:'.length) as WorkspaceId
}

/** One transfer moves at most a million dollars; the database checks it too. */
export const transferMax = 1_000_000_000_000_000n as Nano

/** What a wallet can contain: nine billion dollars, so that no sum comes near 2^63. */
export const postedMax = 9_000_000_000_000_000_000n as Nano

/** Makes the wallet where there is none; the workspace must exist. */
export async function ensureWallet(sql: Sql, workspaceId: WorkspaceId, now: number): Promise<void> {
  const id = walletOf(workspaceId)
  await sql`INSERT INTO accounts (id, kind, workspace_id, created_at)
    VALUES (${id}, 'wallet', ${workspaceId}, ${timeToSql(now)}) ON CONFLICT DO NOTHING`
  await sql`INSERT INTO balances (account_id, posted, held) VALUES (${id}, 0, 0) ON CONFLICT DO NOTHING`
}
