// The table through which replicas tell each other of changes. Rows are read by time and not by number alone: a
// transaction with a lower number may be committed after one with a higher, and would be passed over.

import type { Database } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import { databaseNow } from '../../store/store-now.ts'
import { type Change, readChange } from './change.ts'

/** A row is committed within two statements of at most 2 s each, or after 5 s of silence never. */
export const overlapMs = 10_000n
const keptMs = 3_600_000n
const cleanMax = 1000n

export interface ChangesRead {
  readonly changes: readonly { readonly change: Change; readonly sequence: bigint }[]
  /** Of the database's clock. */
  readonly nowMs: bigint
}

/** To be the last before the commit: its time is that of the row, and readers look back for so long only. */
export async function writeChange(sql: Sql, { kind, id }: Change): Promise<bigint | undefined> {
  const at = await databaseNow(sql)
  const [row] = await sql<{ sequence: bigint }>`INSERT INTO changes (kind, object, at)
    VALUES (${kind}, ${id}, ${at}) RETURNING sequence`
  return row?.sequence
}

/** Those of the last seconds before `sinceMs`, too: they may have become visible since. undefined = since now. */
export async function readChanges(sql: Sql, sinceMs: bigint | undefined): Promise<ChangesRead> {
  // Asked first: what is committed after this is read the next time.
  const nowMs = await databaseNow(sql)
  const rows = await sql<{ sequence: bigint; kind: string; object: string }>`SELECT sequence, kind, object
    FROM changes WHERE at >= ${(sinceMs ?? nowMs) - overlapMs} ORDER BY sequence`
  const changes = rows.flatMap(({ sequence, kind, object }) => {
    const change = readChange(kind, object)
    return change ? [{ change, sequence }] : []
  })
  return { changes, nowMs }
}

export async function clearOldChanges(database: Database): Promise<number> {
  const rows = await database.transaction(async (sql) => {
    const hourAgo = (await databaseNow(sql)) - keptMs
    return await sql`DELETE FROM changes WHERE sequence IN (
      SELECT sequence FROM changes WHERE at < ${hourAgo} ORDER BY sequence LIMIT ${cleanMax}) RETURNING 1 AS removed`
  })
  return rows.length
}
