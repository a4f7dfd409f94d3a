// What a scope's requests were charged without being counted in one of its budgets, because the limit was not there when
// they were held. Read page by page along the log, with a breath between two: a month of a busy key is a lot.

import type { RequestId } from '../kernel/ids.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { breathe } from './breathe.ts'
import { firstIdAt } from './id-at.ts'

export interface UncountedCharges {
  /** A key, project or workspace. */
  readonly scopeId: string
  /** As it stands in the column `budgets` of the transfers that are counted in it. */
  readonly budget: string
  /** Epoch milliseconds at which the requests began; `from` is in it, `until` is not. */
  readonly from: number
  readonly until: number
}

const pageMax = 1000
/** An id is made a moment before its request's time is taken. */
const marginMs = 60_000

interface ChargeRow {
  readonly id: RequestId
  readonly started_at: bigint
  /** NULL = none, or another project's. */
  readonly amount: bigint | null
  readonly budgets: string | null
}

export async function sumUncountedCharges(sql: Sql, asked: UncountedCharges): Promise<bigint> {
  const { scopeId, budget, from, until } = asked
  const readPage = await pagesOf(sql, scopeId, firstIdAt(until + marginMs))
  let sum = 0n
  let after = firstIdAt(Math.max(0, from - marginMs))
  for (;;) {
    const rows = await readPage(after)
    for (const { started_at: at, amount, budgets } of rows) {
      if (amount === null || at < timeToSql(from) || at >= timeToSql(until)) continue
      if (!budgets?.split(',').includes(budget)) sum += amount
    }
    const last = rows.at(-1)
    if (!last || rows.length < pageMax) return sum
    after = last.id
    await breathe()
  }
}

/** Each along an index of the log; there is none by project, so its workspace's is followed. */
async function pagesOf(sql: Sql, scopeId: string, end: string): Promise<(after: string) => Promise<ChargeRow[]>> {
  const count = BigInt(pageMax)
  if (scopeId.startsWith('key_')) {
    return (after) => sql<ChargeRow>`SELECT r.id, r.started_at, t.amount, t.budgets FROM requests r
      LEFT JOIN transfers t ON t.request_id = r.id AND t.kind = 'charge'
      WHERE r.key_id = ${scopeId} AND r.id > ${after} AND r.id < ${end} ORDER BY r.id LIMIT ${count}`
  }
  const [project] = await sql<{ workspace_id: string }>`SELECT workspace_id FROM projects WHERE id = ${scopeId}`
  if (project === undefined) {
    return (after) => sql<ChargeRow>`SELECT r.id, r.started_at, t.amount, t.budgets FROM requests r
      LEFT JOIN transfers t ON t.request_id = r.id AND t.kind = 'charge'
      WHERE r.workspace_id = ${scopeId} AND r.id > ${after} AND r.id < ${end} ORDER BY r.id LIMIT ${count}`
  }
  // Requests of other projects are read over and not looked up, so that a page is always as much work.
  return (after) => sql<ChargeRow>`SELECT r.id, r.started_at, t.amount, t.budgets FROM requests r
    LEFT JOIN transfers t ON r.project_id = ${scopeId} AND t.request_id = r.id AND t.kind = 'charge'
    WHERE r.workspace_id = ${project.workspace_id} AND r.id > ${after} AND r.id < ${end} ORDER BY r.id LIMIT ${count}`
}
