// Plans: the operator's offers of credit for every day, week or month, and which workspace has which. A workspace has one plan at
// most. Its periods are those of the calendar, in UTC. A plan begins with its workspace's first period at once; another plan, or
// none, begins with the next period.

import type { WorkspaceId } from '../kernel/ids.ts'
import { type Nano, zeroNano } from '../kernel/money.ts'
import type { Period } from '../kernel/spend-limit.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import { ensureWallet, postedMax } from './account.ts'
import { windowAt, windowEnd, windowStart } from './budget.ts'
import { type ExpiryTerms, expireCredit, grantCredit } from './credit.ts'
import { grantPaid } from './plan-payments.ts'

const dayMs = 86_400_000
/** The longest life of credit, and a day. Older periods that were missed would have nothing left to grant. */
const missedMaxMs = 367 * dayMs
/** A period that begins later than this was begun by a clock that was wrong. Below that, a clock was set back by some hours. */
const aheadMaxMs = dayMs

export const renewMs = 5000

export interface Plan {
  /** Chosen by the operator. */
  readonly id: string
  readonly name: string
  /** Granted in every period. */
  readonly credit: Nano
  readonly period: Period
  /** Credit expires so many days after it was granted; undefined = at the end of its period. */
  readonly expiresDays: number | undefined
  /** What the operator charges for a period; undefined = not stated. */
  readonly price: Nano | undefined
}

interface PlanRow {
  readonly id: string
  readonly name: string
  readonly credit: Nano
  readonly period: Period
  readonly expires_days: bigint | null
  readonly price: Nano | null
}

function planFromRow(row: PlanRow): Plan {
  const expiresDays = row.expires_days === null ? undefined : Number(row.expires_days)
  const { id, name, credit, period } = row
  return { id, name, credit, period, expiresDays, price: row.price ?? undefined }
}

export async function listPlans(sql: Sql): Promise<readonly Plan[]> {
  const rows = await sql<PlanRow>`SELECT id, name, credit, period, expires_days, price FROM plans ORDER BY id`
  return rows.map(planFromRow)
}

export async function readPlan(sql: Sql, id: string): Promise<Plan | undefined> {
  const [row] = await sql<PlanRow>`SELECT id, name, credit, period, expires_days, price FROM plans WHERE id = ${id}`
  return row && planFromRow(row)
}

/** Adds the plan, or changes it: workspaces that have it get the change with their next period. */
export async function putPlan(sql: Sql, { id, name, credit, period, ...rest }: Plan, now: number): Promise<void> {
  const expiresDays = rest.expiresDays === undefined ? null : BigInt(rest.expiresDays)
  const price = rest.price ?? null
  await sql`INSERT INTO plans (id, name, credit, period, expires_days, price, created_at)
    VALUES (${id}, ${name}, ${credit}, ${period}, ${expiresDays}, ${price}, ${timeToSql(now)})
    ON CONFLICT (id) DO UPDATE SET name = excluded.name, credit = excluded.credit, period = excluded.period,
      expires_days = excluded.expires_days, price = excluded.price`
}

/** The workspaces that have the plan, or will have it in the next period. */
export async function workspacesWith(sql: Sql, planId: string): Promise<readonly WorkspaceId[]> {
  const rows = await sql<{ workspace_id: WorkspaceId }>`SELECT workspace_id FROM workspace_plans
    WHERE plan_id = ${planId} OR next_plan_id = ${planId}
    UNION SELECT workspace_id FROM subscriptions WHERE plan_id = ${planId} ORDER BY workspace_id`
  return rows.map((row) => row.workspace_id)
}

/** No workspace may have it. Credit that it granted stays until it expires. */
export async function deletePlan(sql: Sql, planId: string): Promise<boolean> {
  const rows = await sql`DELETE FROM plans WHERE id = ${planId} RETURNING id`
  return rows.length === 1
}

export interface WorkspacePlan {
  /** undefined = the first period has not begun. */
  readonly planId: string | undefined
  /** Of the current period; 0 before the first. */
  readonly startsAt: number
  readonly endsAt: number
  /** From the next period on; undefined = the plan ends then. */
  readonly nextPlanId: string | undefined
}

interface WorkspacePlanRow {
  readonly plan_id: string | null
  readonly starts_at: bigint
  readonly ends_at: bigint
  readonly next_plan_id: string | null
}

/** undefined = the workspace has no plan. */
export async function readWorkspacePlan(sql: Sql, workspaceId: WorkspaceId): Promise<WorkspacePlan | undefined> {
  const [row] = await sql<WorkspacePlanRow>`SELECT plan_id, starts_at, ends_at, next_plan_id FROM workspace_plans
    WHERE workspace_id = ${workspaceId}`
  if (!row) return undefined
  return {
    planId: row.plan_id ?? undefined,
    startsAt: timeFromSql(row.starts_at),
    endsAt: timeFromSql(row.ends_at),
    nextPlanId: row.next_plan_id ?? undefined,
  }
}

/**
 * From the next period on; at once if the workspace has no plan, with `Ledger.renewPlans`. undefined = the plan ends with its
 * period. The plan and the workspace must exist.
 */
export async function setWorkspacePlan(sql: Sql, workspaceId: WorkspaceId, planId: string | undefined): Promise<void> {
  if (planId === undefined) {
    await sql`DELETE FROM workspace_plans WHERE workspace_id = ${workspaceId} AND plan_id IS NULL`
    await sql`UPDATE workspace_plans SET next_plan_id = NULL WHERE workspace_id = ${workspaceId}`
    return
  }
  await sql`INSERT INTO workspace_plans (workspace_id, plan_id, starts_at, ends_at, next_plan_id)
    VALUES (${workspaceId}, NULL, 0, 0, ${planId})
    ON CONFLICT (workspace_id) DO UPDATE SET next_plan_id = excluded.next_plan_id`
}

/** Workspaces whose next period has begun, or whose credit has expired. */
export async function dueWorkspaces(sql: Sql, now: number, expiresBy: number): Promise<readonly WorkspaceId[]> {
  const rows = await sql<{ workspace_id: WorkspaceId }>`SELECT workspace_id FROM workspace_plans
    WHERE ends_at <= ${timeToSql(now)} OR starts_at > ${timeToSql(now + aheadMaxMs)}
    UNION SELECT workspace_id FROM plan_payments WHERE is_granted = 0
    UNION SELECT workspace_id FROM credits WHERE remaining > 0 AND expires_at <= ${timeToSql(expiresBy)}
    ORDER BY workspace_id`
  return rows.map((row) => row.workspace_id)
}

export interface Renewed {
  readonly granted: Nano
  readonly expired: Nano
}

/** Begins the periods that are due and takes back what has expired, in a transaction of the caller's. */
export async function renewPlan(sql: Sql, workspaceId: WorkspaceId, terms: ExpiryTerms): Promise<Renewed> {
  await sql`SELECT 1 FROM workspace_plans WHERE workspace_id = ${workspaceId} FOR NO KEY UPDATE`
  const own = await readWorkspacePlan(sql, workspaceId)
  // Before the new credit, so that a statement shows them in this order.
  const expired = await expireCredit(sql, workspaceId, terms)
  const begun = own ? await beginPeriods(sql, workspaceId, own, terms.now) : zeroNano
  const paid = await grantPaid(sql, workspaceId, terms.now)
  return { granted: (begun + paid) as Nano, expired }
}

async function beginPeriods(sql: Sql, workspaceId: WorkspaceId, own: WorkspacePlan, now: number): Promise<Nano> {
  const next = own.nextPlanId === undefined ? undefined : await readPlan(sql, own.nextPlanId)
  let start = nextStart(own, now)
  if (start > now) return zeroNano
  if (!next) {
    await sql`DELETE FROM workspace_plans WHERE workspace_id = ${workspaceId}`
    return zeroNano
  }
  await ensureWallet(sql, workspaceId, now)
  let granted = 0n
  let [startsAt, endsAt] = [own.startsAt, own.endsAt]
  while (start <= now) {
    const window = windowAt(next.period, start)
    ;[startsAt, endsAt] = [windowStart(window) ?? start, windowEnd(window) ?? start]
    const expiresAt = next.expiresDays === undefined ? endsAt : start + next.expiresDays * dayMs
    const grant = { planId: next.id, window, amount: next.credit, expiresAt }
    // A period that was missed, while no gateway ran, and whose credit would have expired by now is left out.
    if (expiresAt > now) granted += await grantCredit(sql, workspaceId, grant, { now, max: postedMax })
    start = endsAt
  }
  await sql`UPDATE workspace_plans SET plan_id = ${next.id}, starts_at = ${timeToSql(startsAt)},
    ends_at = ${timeToSql(endsAt)} WHERE workspace_id = ${workspaceId}`
  return granted as Nano
}

/** When the next period begins. */
function nextStart({ startsAt, endsAt }: WorkspacePlan, now: number): number {
  if (endsAt === 0 || startsAt > now + aheadMaxMs) return now
  return Math.max(endsAt, now - missedMaxMs)
}
