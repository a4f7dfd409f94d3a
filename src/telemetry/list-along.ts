// Reads requests along one of their lists, newest first. What was not counted yet is in no list; it is looked for at the
// end of the log, which is short.

import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import type { Sql } from '../store/sql.ts'
import type { StoredRow } from './request-row.ts'
import { readCursors } from './rollups/uncounted.ts'

export interface ListQuery {
  readonly workspace: WorkspaceId | null
  readonly project: ProjectId | null
  readonly key: KeyId | null
  readonly model: string | null
  /** 1 = only those without a code, or only those with one. */
  readonly wantsOk: bigint
  readonly wantsFailed: bigint
  /** Ids: the first one that is meant, and the first one that is not any more. */
  readonly since: string
  readonly before: string
  readonly limit: bigint
}

/** `list` has all that are meant, and maybe others. */
export async function listAlong(sql: Sql, list: string, query: ListQuery): Promise<StoredRow[]> {
  const found = new Map<string, StoredRow>()
  const take = (rows: readonly StoredRow[]): void => {
    for (const row of rows) found.set(row.id, row)
  }
  const cursors = await readCursors(sql)
  // The end of the log first: what is counted meanwhile is then found twice, and not missed.
  take(await readShortEnd(sql, startingAfter(cursors.short, query)))
  take(await readLongEnd(sql, startingAfter(cursors.long < cursors.longest ? cursors.long : cursors.longest, query)))
  take(await readListed(sql, list, query))
  return [...found.values()].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, Number(query.limit))
}

function startingAfter(cursor: string, query: ListQuery): ListQuery {
  return cursor < query.since ? query : { ...query, since: `${cursor}!` }
}

function readListed(sql: Sql, list: string, query: ListQuery): Promise<StoredRow[]> {
  const { workspace, project, key, model, wantsOk, wantsFailed, since, before, limit } = query
  // Crossed, not joined: SQLite then reads the list first, which is in order.
  return sql<StoredRow>`SELECT requests.* FROM request_lists CROSS JOIN requests
    WHERE requests.id = request_lists.id AND request_lists.list = ${list}
      AND request_lists.id >= ${since} AND request_lists.id < ${before}
      AND (CAST(${workspace} AS TEXT) IS NULL OR request_lists.workspace_id = ${workspace})
      AND (CAST(${project} AS TEXT) IS NULL OR project_id = ${project})
      AND (CAST(${key} AS TEXT) IS NULL OR key_id = ${key}) AND (CAST(${model} AS TEXT) IS NULL OR model = ${model})
      AND (${wantsOk} = 0 OR code IS NULL) AND (${wantsFailed} = 0 OR code IS NOT NULL)
    ORDER BY request_lists.id DESC LIMIT ${limit}`
}

function readShortEnd(sql: Sql, query: ListQuery): Promise<StoredRow[]> {
  const { workspace, project, key, model, wantsOk, wantsFailed, since, before, limit } = query
  return sql<StoredRow>`SELECT * FROM requests WHERE id >= ${since} AND id < ${before} AND total_ms <= 60000
      AND (CAST(${workspace} AS TEXT) IS NULL OR workspace_id = ${workspace})
      AND (CAST(${project} AS TEXT) IS NULL OR project_id = ${project})
      AND (CAST(${key} AS TEXT) IS NULL OR key_id = ${key}) AND (CAST(${model} AS TEXT) IS NULL OR model = ${model})
      AND (${wantsOk} = 0 OR code IS NULL) AND (${wantsFailed} = 0 OR code IS NOT NULL)
    ORDER BY id DESC LIMIT ${limit}`
}

/** Along the index of long ones, whose bound stands here word for word. */
function readLongEnd(sql: Sql, query: ListQuery): Promise<StoredRow[]> {
  const { workspace, project, key, model, wantsOk, wantsFailed, since, before, limit } = query
  return sql<StoredRow>`SELECT * FROM requests WHERE id >= ${since} AND id < ${before} AND total_ms > 60000
      AND (CAST(${workspace} AS TEXT) IS NULL OR workspace_id = ${workspace})
      AND (CAST(${project} AS TEXT) IS NULL OR project_id = ${project})
      AND (CAST(${key} AS TEXT) IS NULL OR key_id = ${key}) AND (CAST(${model} AS TEXT) IS NULL OR model = ${model})
      AND (${wantsOk} = 0 OR code IS NULL) AND (${wantsFailed} = 0 OR code IS NOT NULL)
    ORDER BY id DESC LIMIT ${limit}`
}
