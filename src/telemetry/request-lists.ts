// Under which lists a request is found besides its key's and its workspace's. They are kept with the counts, in the
// background: as indexes of the log they were the dearest part of writing a request.

import type { KeyId, RequestId, WorkspaceId } from '../kernel/ids.ts'
import type { SqlValue } from '../store/sql.ts'

/** What is read of a request to place it. */
export interface PlacedRow {
  readonly id: RequestId
  readonly workspace_id: WorkspaceId
  readonly key_id: KeyId
  readonly model: string | null
  readonly code: string | null
}

export const listNames = {
  model: (model: string) => `model ${model}`,
  failed: () => 'failed',
  failedOfKey: (id: KeyId) => `failed of key ${id}`,
  failedOfWorkspace: (id: WorkspaceId) => `failed of workspace ${id}`,
  failedOfModel: (model: string) => `failed of model ${model}`,
} as const

export function listsOf({ model, code, key_id, workspace_id }: PlacedRow): readonly string[] {
  const lists = model === null ? [] : [listNames.model(model)]
  if (code === null) return lists
  lists.push(listNames.failed(), listNames.failedOfKey(key_id), listNames.failedOfWorkspace(workspace_id))
  if (model !== null) lists.push(listNames.failedOfModel(model))
  return lists
}

/** Rows of the table, in its order, where neighbours cost little. */
export function placesOf(rows: readonly PlacedRow[]): readonly Readonly<Record<string, SqlValue>>[] {
  const places = rows.flatMap((row) =>
    listsOf(row).map((list) => ({ list, id: row.id, workspace_id: row.workspace_id })),
  )
  return places.sort((a, b) => (a.list === b.list ? (a.id < b.id ? -1 : 1) : a.list < b.list ? -1 : 1))
}

/** The greatest id in each list. */
export function lastPlaces(rows: readonly PlacedRow[]): ReadonlyMap<string, string> {
  const last = new Map<string, string>()
  for (const row of rows) {
    for (const list of listsOf(row)) if (row.id > (last.get(list) ?? '')) last.set(list, row.id)
  }
  return last
}
