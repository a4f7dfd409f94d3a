// Lists requests of the log, newest first, always along an index or a list: the narrowest filter chooses which, the others are
// looked at on the way.

import type { KeyId, ProjectId, RequestId, WorkspaceId } from '../kernel/ids.ts'
import type { Sql } from '../store/sql.ts'
import { endOfLog, firstIdAt } from './id-at.ts'
import { listAlong } from './list-along.ts'
import { listNames } from './request-lists.ts'
import { type LoggedRequest, requestFromRow, type StoredRow } from './request-row.ts'

export interface RequestQuery {
  readonly workspaceId?: WorkspaceId
  readonly projectId?: ProjectId
  readonly keyId?: KeyId
  readonly model?: string
  /** `failed`: something went wrong, also inside a stream. */
  readonly outcome?: 'ok' | 'failed'
  /** When they began, epoch milliseconds; `to` itself is not meant. */
  readonly from?: number
  readonly to?: number
  readonly limit: number
  /** The id of the last one of the page before. */
  readonly before?: RequestId
}

/** A time has 48 bits in an id. */
const lastMoment = 2 ** 48 - 1

export async function listRequests(sql: Sql, query: RequestQuery): Promise<readonly LoggedRequest[]> {
  const { projectId, keyId } = query
  const rows =
    projectId === undefined || keyId !== undefined ? findRows(sql, query) : findOfProject(sql, projectId, query)
  return (await rows).map(requestFromRow)
}

/** Each reads a page along the index of keys; a project with more is looked for among all requests. */
const projectKeysMax = 40

/** There is no index by project, which every request would have to keep: its keys have one. */
async function findOfProject(sql: Sql, project: ProjectId, query: RequestQuery): Promise<StoredRow[]> {
  const keys = await sql<{ id: KeyId }>`SELECT id FROM api_keys WHERE project_id = ${project}
    ORDER BY id LIMIT ${BigInt(projectKeysMax + 1)}`
  if (keys.length > projectKeysMax) return await findRows(sql, query)
  const pages: StoredRow[][] = []
  for (const { id: keyId } of keys) pages.push(await findRows(sql, { ...query, keyId }))
  return pages
    .flat()
    .sort((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, query.limit)
}

function findRows(sql: Sql, query: RequestQuery): Promise<StoredRow[]> {
  const { workspaceId: workspace = null, projectId: project = null, keyId: key = null, model = null } = query
  const [since, before] = stretchOf(query)
  const limit = BigInt(query.limit)
  const wantsOk = query.outcome === 'ok' ? 1n : 0n
  const list = listFor(query)
  if (list !== undefined) {
    const wantsFailed = query.outcome === 'failed' ? 1n : 0n
    return listAlong(sql, list, { workspace, project, key, model, wantsOk, wantsFailed, since, before, limit })
  }
  if (key !== null) {
    return sql<StoredRow>`SELECT * FROM requests WHERE key_id = ${key} AND id >= ${since} AND id < ${before}
      AND (CAST(${model} AS TEXT) IS NULL OR model = ${model})
      AND (CAST(${workspace} AS TEXT) IS NULL OR workspace_id = ${workspace})
      AND (CAST(${project} AS TEXT) IS NULL OR project_id = ${project})
      AND (${wantsOk} = 0 OR code IS NULL)
      ORDER BY id DESC LIMIT ${limit}`
  }
  if (workspace !== null) {
    return sql<StoredRow>`SELECT * FROM requests WHERE workspace_id = ${workspace} AND id >= ${since} AND id < ${before}
      AND (CAST(${project} AS TEXT) IS NULL OR project_id = ${project})
      AND (${wantsOk} = 0 OR code IS NULL)
      ORDER BY id DESC LIMIT ${limit}`
  }
  return sql<StoredRow>`SELECT * FROM requests WHERE id >= ${since} AND id < ${before}
    AND (CAST(${project} AS TEXT) IS NULL OR project_id = ${project})
    AND (${wantsOk} = 0 OR code IS NULL)
    ORDER BY id DESC LIMIT ${limit}`
}

/** The narrowest; undefined = the log has an index for it. */
function listFor({ workspaceId, keyId, model, outcome }: RequestQuery): string | undefined {
  if (outcome === 'failed') {
    if (keyId !== undefined) return listNames.failedOfKey(keyId)
    if (model !== undefined) return listNames.failedOfModel(model)
    return workspaceId === undefined ? listNames.failed() : listNames.failedOfWorkspace(workspaceId)
  }
  return keyId === undefined && model !== undefined ? listNames.model(model) : undefined
}

/** Ids ascend with time, so times are places among them. */
function stretchOf({ from, to, before = endOfLog }: RequestQuery): readonly [string, string] {
  const place = (time: number): string => firstIdAt(Math.min(lastMoment, Math.max(0, Math.floor(time))))
  const end = to === undefined ? endOfLog : place(to)
  return [from === undefined ? '' : place(from), end < before ? end : before]
}
