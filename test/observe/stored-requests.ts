// Writes rows of the request log at chosen times, with the ids they would have had.

import type { RequestId } from '../../src/kernel/ids.ts'
import { zeroNano } from '../../src/kernel/money.ts'
import type { Database } from '../../src/store/database.ts'
import { writeRequests } from '../../src/store/request-rows.ts'
import type { RequestRecord } from '../../src/telemetry/request-record.ts'
import { firstIdAt, requestRow } from '../../src/telemetry/request-row.ts'
import { answeredRequest } from './observed-records.ts'

/** `at` is told apart from others of the same millisecond by its place in the list. */
export async function storeRequests(
  database: Database,
  requests: readonly (Partial<RequestRecord> & { readonly startedAt: number })[],
): Promise<readonly RequestId[]> {
  const rows = requests.map((facts, place) => {
    const id = `${firstIdAt(facts.startedAt).slice(0, -6)}${String(place + 1).padStart(6, '0')}` as RequestId
    const record = answeredRequest({ ...facts, id })
    const charge =
      record.charge === undefined ? undefined : { charge: record.charge, writtenOff: zeroNano, budgets: null }
    return { id, row: requestRow(record, charge) }
  })
  await database.transaction((sql) =>
    writeRequests(
      sql,
      database.engine,
      rows.flatMap(({ row }) => (row ? [row] : [])),
    ),
  )
  return rows.map(({ id }) => id)
}
