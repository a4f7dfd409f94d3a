// Rows of the request log at chosen times, with ids as they would have had.

import type { RequestId } from '../../src/kernel/ids.ts'
import type { Database } from '../../src/store/database.ts'
import { insertRows } from '../../src/store/insert-rows.ts'
import { firstIdAt } from '../../src/telemetry/id-at.ts'
import type { RequestRecord } from '../../src/telemetry/request-record.ts'
import { requestRow } from '../../src/telemetry/request-row.ts'
import { answeredRequest } from './observed-records.ts'

/** `at` is told apart from others of the same millisecond by its place in the list. */
export async function storeRequests(
  database: Database,
  requests: readonly (Partial<RequestRecord> & { readonly startedAt: number })[],
): Promise<readonly RequestId[]> {
  const rows = requests.map((facts, place) => {
    const id = `${firstIdAt(facts.startedAt).slice(0, -6)}${String(place + 1).padStart(6, '0')}` as RequestId
    return { id, row: requestRow(answeredRequest({ ...facts, id })) }
  })
  await database.transaction((sql) =>
    insertRows(
      sql,
      'requests',
      rows.flatMap(({ row }) => (row ? [row.columns] : [])),
    ),
  )
  return rows.map(({ id }) => id)
}
