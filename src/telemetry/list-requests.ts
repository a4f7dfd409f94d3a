// Lists requests of the log, newest first, always along an index: the narrowest filter chooses which, the others are
// looked at on the way.

import type { KeyId, RequestId, WorkspaceId } from '../kernel/ids.ts'
import type { Sql } from '../store/sql.ts'
import { firstIdAt } from './id-at.ts'
import { type LoggedRequest, requestFromRow, type StoredRow } from './request-row.ts'

export interface RequestQuery {
  readonly workspaceId?: WorkspaceId
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

/** Greater than every id. */
const endOfLog = 'req_~'
/** A time has 48 bits in an id. */
const lastMoment = 2 ** 48 - 1

export async function listRequests(sql: Sql, query: RequestQuery): Promise<readonly LoggedRequest[]> {
  return (await findRows(sql, query)).map(requestFromRow)
}

function findRows(sql: Sql, query: RequestQuery): Promise<StoredRow[]> {
  const { workspaceId: workspace = null, keyId: key = null, model = null } = query
  const [since, before] = stretchOf(query)
  const limit = BigInt(query.limit)
  const wantsOk = query.outcome === 'ok' ? 1n : 0n
  const wantsFailed = query.outcome === 'failed' ? 1n : 0n
  if (key !== null) {
    return sql<StoredRow>`SELECT * FROM requests WHERE key_id = ${key} AND id >= ${since} AND id < ${before}
      AND (CAST(${model} AS TEXT) IS NULL OR model = ${model})
      AND (CAST(${workspace} AS TEXT) IS NULL OR workspace_id = ${workspace})
      AND (${wantsOk} = 0 OR code IS NULL) AND (${wantsFailed} = 0 OR code IS NOT NULL)
      ORDER BY id DESC LIMIT ${limit}`
  }
  if (query.outcome === 'failed') return findFailed(sql, query)
  if (model !== null) {
    return sql<StoredRow>`SELECT * FROM requests WHERE model = ${model} AND id >= ${since} AND id < ${before}
      AND (CAST(${workspace} AS TEXT) IS NULL OR workspace_id = ${workspace})
      AND (${wantsOk} = 0 OR code IS NULL)
      ORDER BY id DESC LIMIT ${limit}`
  }
  if (workspace !== null) {
    return sql<StoredRow>`SELECT * FROM requests WHERE workspace_id = ${workspace} AND id >= ${since} AND id < ${before}
      AND (${wantsOk} = 0 OR code IS NULL)
      ORDER BY id DESC LIMIT ${limit}`
  }
  return sql<StoredRow>`SELECT * FROM requests WHERE id >= ${since} AND id < ${before}
    AND (${wantsOk} = 0 OR code IS NULL)
    ORDER BY id DESC LIMIT ${limit}`
}

function findFailed(sql: Sql, query: RequestQuery): Promise<StoredRow[]> {
  const { workspaceId: workspace = null, model = null } = query
  const [since, before] = stretchOf(query)
  const limit = BigInt(query.limit)
  if (model !== null) {
    return sql<StoredRow>`SELECT * FROM requests WHERE code IS NOT NULL AND model = ${model}
      AND id >= ${since} AND id < ${before} AND (CAST(${workspace} AS TEXT) IS NULL OR workspace_id = ${workspace})
      ORDER BY id DESC LIMIT ${limit}`
  }
  return workspace === null
    ? sql<StoredRow>`SELECT * FROM requests WHERE code IS NOT NULL AND id >= ${since} AND id < ${before}
        ORDER BY id DESC LIMIT ${limit}`
    : sql<StoredRow>`SELECT * FROM requests WHERE code IS NOT NULL AND workspace_id = ${workspace}
        AND id >= ${since} AND id < ${before} ORDER BY id DESC LIMIT ${limit}`
}

/** Ids ascend with time, so times are places among them. */
function stretchOf({ from, to, before = endOfLog }: RequestQuery): readonly [string, string] {
  const place = (time: number): string => firstIdAt(Math.min(lastMoment, Math.max(0, Math.floor(time))))
  const end = to === undefined ? endOfLog : place(to)
  return [from === undefined ? '' : place(from), end < before ? end : before]
}
