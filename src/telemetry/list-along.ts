// Reads requests along one of their lists, newest first. What was not counted yet is in no list; it is looked for at the
// end of the log, which is short.

import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import type { Sql } from '../store/sql.ts'
import type { StoredRow } from './request-row.ts'
import { type Cursors, readCursors } from './rollups/uncounted.ts'

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
  // Whatever is counted from here on is still at the end of the log for us; it may be found twice, and is not missed.
  const cursors = await readCursors(sql)
  const [uncounted, listed] = await Promise.all([readEnds(sql, cursors, query), readListed(sql, list, query)])
  const found = new Map([...uncounted, ...listed].map((row) => [row.id, row]))
  return [...found.values()].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, Number(query.limit))
}

/** Read at once where other filters leave out some. */
const portionMin = 200n

async function readListed(sql: Sql, list: string, query: ListQuery): Promise<readonly StoredRow[]> {
  const found: StoredRow[] = []
  let { before } = query
  for (;;) {
    const isSure = query.project === null && query.wantsOk === 0n && (query.key === null || query.model === null)
    const portion = isSure || query.limit > portionMin ? query.limit : portionMin
    const places = await readPlaces(sql, list, { ...query, before, limit: portion })
    for (const place of places) if (place.id !== null && isMeant(place, query)) found.push(place)
    before = places.at(-1)?.place ?? before
    if (found.length >= Number(query.limit) || places.length < Number(portion)) return found
  }
}

type Place = { readonly place: string } & (StoredRow | { readonly id: null })

/** The list by itself first, which both engines then read along its index, whatever they believe about its length. */
function readPlaces(sql: Sql, list: string, { workspace, since, before, limit }: ListQuery): Promise<Place[]> {
  return sql<Place>`SELECT places.place, requests.* FROM (SELECT id AS place FROM request_lists
      WHERE list = ${list} AND id >= ${since} AND id < ${before}
        AND (CAST(${workspace} AS TEXT) IS NULL OR workspace_id = ${workspace})
      ORDER BY id DESC LIMIT ${limit}) places
    LEFT JOIN requests ON requests.id = places.place ORDER BY places.place DESC`
}

function isMeant(row: StoredRow, { project, key, model, wantsOk, wantsFailed }: ListQuery): boolean {
  return (
    (project === null || row.project_id === project) &&
    (key === null || row.key_id === key) &&
    (model === null || row.model === model) &&
    (wantsOk === 0n || row.code === null) &&
    (wantsFailed === 0n || row.code !== null)
  )
}

/** In one statement, of which each half has its own index: the bound on the time is that of the index, word for word. */
function readEnds(sql: Sql, cursors: Cursors, query: ListQuery): Promise<StoredRow[]> {
  const { workspace, project, key, model, wantsOk, wantsFailed, before, limit } = query
  // The lowest digit behind it makes the first place after an id, in whatever order the database has for text.
  const after = (cursor: string): string => (cursor < query.since ? query.since : `${cursor}0`)
  const short = after(cursors.short)
  const long = after(cursors.long < cursors.longest ? cursors.long : cursors.longest)
  return sql<StoredRow>`SELECT * FROM (SELECT * FROM requests
      WHERE id >= ${short} AND id < ${before} AND total_ms <= 60000
        AND (CAST(${workspace} AS TEXT) IS NULL OR workspace_id = ${workspace})
        AND (CAST(${project} AS TEXT) IS NULL OR project_id = ${project})
        AND (CAST(${key} AS TEXT) IS NULL OR key_id = ${key}) AND (CAST(${model} AS TEXT) IS NULL OR model = ${model})
        AND (${wantsOk} = 0 OR code IS NULL) AND (${wantsFailed} = 0 OR code IS NOT NULL)
      ORDER BY id DESC LIMIT ${limit}) short_ones
    UNION ALL SELECT * FROM (SELECT * FROM requests
      WHERE id >= ${long} AND id < ${before} AND total_ms > 60000
        AND (CAST(${workspace} AS TEXT) IS NULL OR workspace_id = ${workspace})
        AND (CAST(${project} AS TEXT) IS NULL OR project_id = ${project})
        AND (CAST(${key} AS TEXT) IS NULL OR key_id = ${key}) AND (CAST(${model} AS TEXT) IS NULL OR model = ${model})
        AND (${wantsOk} = 0 OR code IS NULL) AND (${wantsFailed} = 0 OR code IS NOT NULL)
      ORDER BY id DESC LIMIT ${limit}) long_ones`
}
