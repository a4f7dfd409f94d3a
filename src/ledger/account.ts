// The accounts and the transfers allowed between them. A workspace has one wallet, whose id is derived from the
// workspace's id, so it needs no lookup.

import type { WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { type Sql, timeToSql } from '../store/sql.ts'

export type WalletId = `wallet:${WorkspaceId}`
export type AccountId = WalletId | 'revenue' | 'funding' | 'grants' | 'plans' | 'writeoff'

export function walletOf(workspaceId: WorkspaceId): WalletId {
  return `wallet:${workspaceId}`
}

export function workspaceOf(wallet: WalletId): WorkspaceId {
  return wallet.slice('wallet:'.length) as WorkspaceId
}

/** One transfer moves at most a million dollars; the database checks it too. */
export const transferMax = 1_000_000_000_000_000n as Nano

/** The maximum of a wallet: nine billion dollars, so that no sum comes near 2^63. */
export const postedMax = 9_000_000_000_000_000_000n as Nano

/** Makes the wallet where there is none; the workspace must exist. */
export async function ensureWallet(sql: Sql, workspaceId: WorkspaceId, now: number): Promise<void> {
  const id = walletOf(workspaceId)
  await sql`INSERT INTO accounts (id, kind, workspace_id, created_at)
    VALUES (${id}, 'wallet', ${workspaceId}, ${timeToSql(now)}) ON CONFLICT DO NOTHING`
  await sql`INSERT INTO balances (account_id, posted, held) VALUES (${id}, 0, 0) ON CONFLICT DO NOTHING`
}

/** The wallet can pay once `posted - held` covers the amount; if even `posted` does not, waiting does not help. */
export interface Insufficient {
  readonly kind: 'insufficient'
  readonly posted: Nano
  readonly held: Nano
}

// The result of every ledger call that could not be carried out because no commit was confirmed; the caller may try again.
// For holds, extensions, releases and top-ups, a commit whose reply was lost may have been made all the same, so a repeated
// call has to find it. A settlement in that state is `unknown`, never this.

export interface Unavailable {
  readonly kind: 'unavailable'
  readonly retryAfterMs: number
}

export const unavailable: Unavailable = { kind: 'unavailable', retryAfterMs: 1000 }
