// The keys, projects and workspaces whose spend limits were set and whose earlier charges are not all counted yet. `putLimits`
// writes the rows with the limits, so that a process that dies loses none.

import type { SpendLimit } from '../kernel/spend-limit.ts'
import type { Sql } from '../store/sql.ts'
import { limitsFromSql } from './limits.ts'

export interface PendingRecount {
  readonly owner: string
  readonly limits: readonly SpendLimit[]
  readonly startsAt: number | undefined
  /** Set again = another one. */
  readonly setAt: number
}

export async function pendingRecounts(sql: Sql): Promise<readonly PendingRecount[]> {
  const rows = await sql<{ owner: string; set_at: bigint; limits: string | null }>`SELECT r.owner, r.set_at,
      COALESCE(k.limits, p.limits, w.limits) AS limits FROM limit_recounts r
    LEFT JOIN api_keys k ON k.id = r.owner LEFT JOIN projects p ON p.id = r.owner
    LEFT JOIN workspaces w ON w.id = r.owner`
  return rows.map(({ owner, set_at, limits: stored }) => {
    const { spend: limits = [], startsAt } = limitsFromSql(stored)
    return { owner, limits, startsAt, setAt: Number(set_at) }
  })
}

export async function finishRecount(
  sql: Sql,
  { owner, setAt }: Pick<PendingRecount, 'owner' | 'setAt'>,
): Promise<void> {
  await sql`DELETE FROM limit_recounts WHERE owner = ${owner} AND set_at = ${BigInt(setAt)}`
}
