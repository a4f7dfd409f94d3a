// The credit that plans grant: part of a workspace's balance, spent before other money, the first to expire before the others.
// Each use names the transfer that took it, so what remains of a grant can be added up again. Whoever calls this has locked the
// wallet's balance, on PostgreSQL; SQLite has one writer, and `store/journal` spends credit for the charges there.

import { createId, type TransferId, type WorkspaceId } from '../kernel/ids.ts'
import { type Nano, zeroNano } from '../kernel/money.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import { walletOf } from './account.ts'
import { fundingColumns } from './transfer.ts'

export interface Credit {
  /** Of the transfer that granted it. */
  readonly id: TransferId
  readonly planId: string
  /** The period it was granted for, `month:2026-11`, or the payment: `invoice:in_…`. */
  readonly window: string
  readonly granted: Nano
  readonly remaining: Nano
  readonly expiresAt: number
}

/** What remains of a workspace's credit, first to expire first. */
export async function listCredits(sql: Sql, workspaceId: WorkspaceId): Promise<readonly Credit[]> {
  const rows = await sql<{
    id: TransferId
    plan_id: string
    time_window: string
    amount: Nano
    remaining: Nano
    expires_at: bigint
  }>`SELECT credits.id, plan_id, time_window, amount, remaining, expires_at
    FROM credits JOIN fundings ON fundings.id = credits.id
    WHERE credits.workspace_id = ${workspaceId} AND remaining > 0 ORDER BY expires_at, credits.id`
  return rows.map((row) => ({
    id: row.id,
    planId: row.plan_id,
    window: row.time_window,
    granted: row.amount,
    remaining: row.remaining,
    expiresAt: timeFromSql(row.expires_at),
  }))
}

/** The part of the balance that expires. */
export async function creditOf(sql: Sql, workspaceId: WorkspaceId): Promise<Nano> {
  const [row] = await sql<{ credit: Nano }>`SELECT credit FROM balances WHERE account_id = ${walletOf(workspaceId)}`
  return row?.credit ?? zeroNano
}

/** How much of each credit a transfer used. */
export async function usesOf(
  sql: Sql,
  transferId: string,
): Promise<readonly (Omit<CreditUse, 'transferId'> & UsedCredit)[]> {
  return await sql<Omit<CreditUse, 'transferId'> & UsedCredit>`
    SELECT credit_id AS "creditId", credit_uses.amount, plan_id AS "planId", time_window AS "window"
    FROM credit_uses JOIN credits ON credits.id = credit_uses.credit_id
    WHERE transfer_id = ${transferId} ORDER BY expires_at, credits.id`
}

interface UsedCredit {
  readonly planId: string
  readonly window: string
}

interface CreditUse {
  readonly creditId: string
  readonly transferId: string
  readonly amount: Nano
}

export interface Spending {
  readonly transferId: string
  readonly amount: bigint
}

interface OpenCredit {
  readonly id: string
  readonly plan_id: string
  readonly time_window: string
  readonly remaining: bigint
}

/** Takes what these transfers move from the workspace's credit, as far as there is credit. */
export async function spendCredit(sql: Sql, workspaceId: WorkspaceId, spendings: readonly Spending[]): Promise<void> {
  const open = await sql<OpenCredit>`SELECT id, plan_id, time_window, remaining FROM credits
    WHERE workspace_id = ${workspaceId} AND remaining > 0 ORDER BY expires_at, id`
  await writeUses(sql, workspaceId, takeInOrder(open, spendings))
}

function takeInOrder(open: readonly OpenCredit[], spendings: readonly Spending[]): readonly CreditUse[] {
  const uses: CreditUse[] = []
  let at = 0
  let left = open[0]?.remaining ?? 0n
  for (const { transferId, amount } of spendings) {
    for (let due = amount; due > 0n && at < open.length; ) {
      const used = due < left ? due : left
      if (used > 0n) uses.push({ creditId: open[at]?.id ?? '', transferId, amount: used as Nano })
      due -= used
      left -= used
      if (left === 0n) left = open[++at]?.remaining ?? 0n
    }
  }
  return uses
}

async function writeUses(sql: Sql, workspaceId: WorkspaceId, uses: readonly CreditUse[]): Promise<void> {
  let total = 0n
  for (const [creditId, own] of Map.groupBy(uses, (use) => use.creditId)) {
    const used = own.reduce((sum, { amount }) => sum + amount, 0n)
    await sql`UPDATE credits SET remaining = remaining - ${used} WHERE id = ${creditId}`
    total += used
  }
  for (const { creditId, transferId, amount } of uses) {
    await sql`INSERT INTO credit_uses (credit_id, transfer_id, amount) VALUES (${creditId}, ${transferId}, ${amount})`
  }
  if (total > 0n) {
    await sql`UPDATE balances SET credit = credit - ${total} WHERE account_id = ${walletOf(workspaceId)}`
  }
}

/** After money was taken back from a wallet: other money went first, and what that did not cover came out of the credit. */
export async function spendCreditBeyondBalance(sql: Sql, workspaceId: WorkspaceId, transferId: string): Promise<void> {
  const [row] = await sql<{ posted: bigint; credit: bigint }>`SELECT posted, credit FROM balances
    WHERE account_id = ${walletOf(workspaceId)}`
  if (row && row.credit > row.posted) {
    await spendCredit(sql, workspaceId, [{ transferId, amount: row.credit - row.posted }])
  }
}

export interface Grant {
  readonly planId: string
  readonly window: string
  readonly amount: Nano
  readonly expiresAt: number
}

/** Returns the amount; 0 if the period has its credit already, or the wallet cannot take it. Locks the balance. */
export async function grantCredit(
  sql: Sql,
  workspaceId: WorkspaceId,
  { planId, window, amount, expiresAt }: Grant,
  { now, max }: { readonly now: number; readonly max: Nano },
): Promise<Nano> {
  const wallet = walletOf(workspaceId)
  const rows = await sql`UPDATE balances SET posted = posted + ${amount}, credit = credit + ${amount}
    WHERE account_id = ${wallet} AND posted <= ${max - amount} AND NOT EXISTS (
      SELECT 1 FROM credits WHERE workspace_id = ${workspaceId} AND time_window = ${window}) RETURNING posted`
  if (rows.length === 0) return zeroNano
  const id = createId('tr')
  await sql`INSERT INTO credits (id, workspace_id, plan_id, time_window, remaining, expires_at)
    VALUES (${id}, ${workspaceId}, ${planId}, ${window}, ${amount}, ${timeToSql(expiresAt)})`
  const row = { id, kind: 'plan_credit', amount, debitAccount: 'plans', creditAccount: wallet } as const
  await insertMove(sql, workspaceId, { ...row, reference: referenceOf(planId, window), createdAt: now })
  return amount
}

export interface ExpiryTerms {
  readonly now: number
  /** Credit that expires until then. */
  readonly expiresBy: number
  /**
   * On the embedded engine: reserves in memory what of the due credit no request holds, and returns how much that is. On
   * PostgreSQL the row of the balance says.
   */
  reserve?(due: Nano): Nano
}

/**
 * Takes expired credit out of the wallet, and returns how much. As much as running requests hold stays: they began before it
 * expired, and may use it. The rest of that is taken when they have ended.
 */
export async function expireCredit(sql: Sql, workspaceId: WorkspaceId, terms: ExpiryTerms): Promise<Nano> {
  const { now, expiresBy, reserve } = terms
  const wallet = walletOf(workspaceId)
  const [balance] = await sql<{ held: Nano }>`SELECT held FROM balances WHERE account_id = ${wallet} FOR NO KEY UPDATE`
  const due = await sql<OpenCredit>`SELECT id, plan_id, time_window, remaining FROM credits
    WHERE workspace_id = ${workspaceId} AND remaining > 0 AND expires_at <= ${timeToSql(expiresBy)}
    ORDER BY expires_at, id`
  const total = due.reduce((sum, { remaining }) => sum + remaining, 0n) as Nano
  const held = balance?.held ?? zeroNano
  const taken = reserve ? reserve(total) : ((total > held ? total - held : 0n) as Nano)
  if (taken === 0n) return zeroNano
  const uses: CreditUse[] = []
  // Requests use the first to expire first, so that is what stays for them.
  let kept = total - taken
  for (const { id, plan_id: planId, time_window: window, remaining } of due) {
    const amount = (remaining > kept ? remaining - kept : 0n) as Nano
    kept -= remaining - amount
    if (amount === 0n) continue
    const transferId = createId('tr')
    const row = { id: transferId, kind: 'expiry', amount, debitAccount: wallet, creditAccount: 'plans' } as const
    await insertMove(sql, workspaceId, { ...row, reference: referenceOf(planId, window), createdAt: now })
    uses.push({ creditId: id, transferId, amount })
  }
  await sql`UPDATE balances SET posted = posted - ${taken} WHERE account_id = ${wallet}`
  await writeUses(sql, workspaceId, uses)
  return taken
}

/** `pro, 2026-11` */
function referenceOf(planId: string, window: string): string {
  return `${planId}, ${periodShown(window)}`
}

/** `month:2026-11` → `2026-11` */
export function periodShown(window: string): string {
  return window.replace(/^.*:/, '')
}

type Move = Pick<Parameters<typeof fundingColumns>[1], 'id' | 'kind' | 'amount' | 'debitAccount' | 'creditAccount'> & {
  readonly reference: string
  readonly createdAt: number
}

async function insertMove(sql: Sql, workspaceId: WorkspaceId, move: Move): Promise<void> {
  const none = { requestId: undefined, priceVersion: undefined, usage: undefined, estimated: false } as const
  await sql`INSERT INTO fundings ${sql([fundingColumns(workspaceId, { ...move, ...none, paymentId: undefined })])}`
}
