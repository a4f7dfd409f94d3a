// Forgets the request log of one workspace, in small portions, so that charges of others do not wait behind it. What was
// counted by hour and day stays: it holds numbers and ids, and no request.

import type { WorkspaceId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { listsOf, type PlacedRow } from './request-lists.ts'

/** A few milliseconds of writing: on the embedded engine charges wait behind it. */
const portionMax = 200

/** Answers with how many there were. What ends meanwhile may be left; so may the rest, if this is broken off. */
export async function forgetRequests(database: Database, workspaceId: WorkspaceId): Promise<number> {
  let forgotten = 0
  for (;;) {
    const portion = await database.transaction((sql) => forgetPortion(sql, workspaceId))
    forgotten += portion
    if (portion < portionMax) return forgotten
  }
}

async function forgetPortion(sql: Sql, workspaceId: WorkspaceId): Promise<number> {
  const rows = await sql<PlacedRow>`DELETE FROM requests WHERE id IN (SELECT id FROM requests
    WHERE workspace_id = ${workspaceId} ORDER BY id LIMIT ${BigInt(portionMax)})
    RETURNING id, workspace_id, key_id, model, code`
  for (const row of rows) {
    for (const list of listsOf(row)) await sql`DELETE FROM request_lists WHERE list = ${list} AND id = ${row.id}`
  }
  return rows.length
}
