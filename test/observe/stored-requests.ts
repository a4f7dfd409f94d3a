// Writes rows of the request log at chosen times, with the ids they would have had.

import { firstIdAt, type RequestId } from '../../src/kernel/ids.ts'
import { zeroNano } from '../../src/kernel/money.ts'
import type { Database } from '../../src/store/database.ts'
import { writeRequests } from '../../src/store/request-rows.ts'
import { type RequestRecord, requestRow } from '../../src/telemetry/request-record.ts'
import { answeredRequest } from './observed-records.ts'

/** `at` differs from others of the same millisecond by its place in the list. */
export async function storeRequests(
  database: Database,
  requests: readonly (Partial<RequestRecord> & { readonly startedAt: number })[],
): Promise<readonly RequestId[]> {
  const records = requests.map((facts, place) => {
    const id = `${firstIdAt(facts.startedAt).slice(0, -6)}${String(place + 1).padStart(6, '0')}` as RequestId
    return answeredRequest({ ...facts, id })
  })
  await storeRecords(database, records)
  return records.map(({ id }) => id)
}

/** With the charge that the record has, and its workspace if there is none. */
export async function storeRecords(database: Database, records: readonly RequestRecord[]): Promise<void> {
  const rows = records.flatMap((record) => {
    const { charge } = record
    return requestRow(record, charge === undefined ? undefined : { charge, writtenOff: zeroNano, budgets: null }) ?? []
  })
  await database.transaction(async (sql) => {
    for (const id of new Set(rows.map((row) => row.workspace_id))) {
      await sql`INSERT INTO workspaces (id, name, created_at) VALUES (${id}, ${id}, ${0n}) ON CONFLICT DO NOTHING`
    }
    await writeRequests(sql, database.engine, rows)
  })
}
