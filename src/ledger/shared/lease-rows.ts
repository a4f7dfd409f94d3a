// The statements on the rows of leases. A lease's row is locked before its wallet's balance, like that of a hold. Its
// owner finds it only under the lease's own epoch, so that one which was taken back cannot be charged against.

import type { ReplicaId } from '../../kernel/ids.ts'
import type { Sql } from '../../store/sql.ts'
import { databaseNow } from '../../store/store-now.ts'
import type { WalletId } from '../account.ts'

/** Short: so long a wallet may have to wait for the slice of a replica that says nothing. */
export const leaseLifetimeMs = 3000

export interface LeaseName {
  readonly wallet: WalletId
  readonly owner: ReplicaId
  readonly epoch: bigint
}

export interface LeaseRow {
  readonly amount: bigint
  readonly spent: bigint
  readonly state: 'open' | 'wanted' | 'closing'
}

export interface BalanceRow {
  readonly posted: bigint
  readonly held: bigint
}

export async function lockLease(sql: Sql, { wallet, owner, epoch }: LeaseName): Promise<LeaseRow | undefined> {
  const [row] = await sql<LeaseRow>`SELECT amount, spent, state FROM leases
    WHERE wallet_id = ${wallet} AND owner = ${owner} AND epoch = ${epoch} FOR UPDATE`
  return row
}

export async function lockBalance(sql: Sql, wallet: WalletId): Promise<BalanceRow | undefined> {
  const [row] = await sql<BalanceRow>`SELECT posted, held FROM balances WHERE account_id = ${wallet} FOR UPDATE`
  return row
}

/** undefined = the lease is not there any more, or not with so much in it; nothing was charged to it then. */
export async function spendFromLease(
  sql: Sql,
  { wallet, owner, epoch }: LeaseName,
  { spent, inUse }: { readonly spent: bigint; readonly inUse: bigint },
): Promise<LeaseRow['state'] | undefined> {
  const [row] = await sql<LeaseRow>`UPDATE leases SET spent = spent + ${spent}, in_use = ${inUse}
    WHERE wallet_id = ${wallet} AND owner = ${owner} AND epoch = ${epoch} AND amount - spent >= ${spent}
    RETURNING state`
  return row?.state
}

export async function insertLease(sql: Sql, { wallet, owner, epoch }: LeaseName, amount: bigint): Promise<void> {
  const expiresAt = (await databaseNow(sql)) + BigInt(leaseLifetimeMs)
  await sql`INSERT INTO leases (wallet_id, owner, epoch, amount, spent, in_use, state, expires_at)
    VALUES (${wallet}, ${owner}, ${epoch}, ${amount}, 0, 0, 'open', ${expiresAt})`
}

/** With what was spent brought home: the wallet's row must be moved by the same transaction. */
export async function writeLease(
  sql: Sql,
  { wallet, owner, epoch }: LeaseName,
  lease: LeaseRow & { readonly inUse: bigint },
): Promise<void> {
  const expiresAt = (await databaseNow(sql)) + BigInt(leaseLifetimeMs)
  await sql`UPDATE leases SET amount = ${lease.amount}, spent = ${lease.spent}, in_use = ${lease.inUse},
      state = ${lease.state}, expires_at = ${expiresAt}
    WHERE wallet_id = ${wallet} AND owner = ${owner} AND epoch = ${epoch}`
}

export async function deleteLease(sql: Sql, { wallet, owner, epoch }: LeaseName): Promise<void> {
  await sql`DELETE FROM leases WHERE wallet_id = ${wallet} AND owner = ${owner} AND epoch = ${epoch}`
}

export async function moveBalance(
  sql: Sql,
  wallet: WalletId,
  { charged, freed }: { readonly charged: bigint; readonly freed: bigint },
): Promise<void> {
  if (charged === 0n && freed === 0n) return
  await sql`UPDATE balances SET posted = posted - ${charged}, held = held - ${freed} WHERE account_id = ${wallet}`
}

export interface WantedLease {
  readonly wallet_id: WalletId
  readonly epoch: bigint
}

export function readWanted(sql: Sql, owner: ReplicaId): Promise<WantedLease[]> {
  return sql<WantedLease>`SELECT wallet_id, epoch FROM leases WHERE owner = ${owner} AND state = 'wanted'`
}

/** All slices of a wallet together. */
export interface SliceSums {
  readonly wallet: WalletId
  readonly amount: bigint
  readonly spent: bigint
  readonly inUse: bigint
  /** What might come back if it were asked for. */
  readonly idleMost: bigint
}

export async function sumSlices(sql: Sql, wallets: readonly WalletId[]): Promise<ReadonlyMap<WalletId, SliceSums>> {
  const now = await databaseNow(sql)
  const rows = await sql<SliceSums>`SELECT wallet_id AS wallet, CAST(SUM(amount) AS BIGINT) AS amount,
      CAST(SUM(spent) AS BIGINT) AS spent, CAST(SUM(in_use) AS BIGINT) AS "inUse",
      CAST(SUM(CASE WHEN state = 'closing' AND expires_at >= ${now} THEN 0 ELSE amount - spent END) AS BIGINT) AS "idleMost"
    FROM leases WHERE wallet_id = ANY(string_to_array(${wallets.join(',')}, ',')) GROUP BY wallet_id`
  return new Map(rows.map((row) => [row.wallet, row]))
}

interface TakenRow {
  readonly wallet_id: WalletId
  readonly amount: bigint
  readonly spent: bigint
}

/** Of one wallet: those past their time. */
export async function takeBackExpired(sql: Sql, wallet: WalletId): Promise<number> {
  return await takeBack(sql, wallet, await databaseNow(sql))
}

/** Of one wallet: those whose time was over before. */
export async function takeBack(sql: Sql, wallet: WalletId, before: bigint): Promise<number> {
  const rows = await sql<TakenRow>`DELETE FROM leases WHERE (wallet_id, owner, epoch) IN (
      SELECT wallet_id, owner, epoch FROM leases WHERE wallet_id = ${wallet} AND expires_at < ${before}
      ORDER BY wallet_id, owner, epoch FOR UPDATE) AND expires_at < ${before} RETURNING wallet_id, amount, spent`
  for (const row of rows) await moveBalance(sql, row.wallet_id, { charged: row.spent, freed: row.amount })
  return rows.length
}

/** Wallets with leases whose owners have said nothing for so long that they must be dead. */
export async function readSilentWallets(sql: Sql, deadSince: bigint): Promise<readonly WalletId[]> {
  const rows = await sql<{ wallet_id: WalletId }>`SELECT DISTINCT wallet_id FROM leases
    WHERE expires_at < ${deadSince} ORDER BY wallet_id`
  return rows.map((row) => row.wallet_id)
}
