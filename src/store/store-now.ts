// What time it is to all processes on one database: the clocks of replicas differ, and what one of them writes is judged
// by the others.

import type { Clock } from '../kernel/clock.ts'
import type { Database } from './database.ts'
import type { Sql } from './sql.ts'

/** Epoch milliseconds of PostgreSQL's clock. */
export async function databaseNow(sql: Sql): Promise<bigint> {
  const [row] = await sql<{ now: bigint }>`SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now`
  return row?.now ?? 0n
}

/** When the transaction began, by the same clock: the time of what is seen in a snapshot, however long it is looked at. */
export async function snapshotNow(sql: Sql): Promise<bigint> {
  const [row] = await sql<{
    now: bigint
  }>`SELECT CAST(EXTRACT(EPOCH FROM transaction_timestamp()) * 1000 AS BIGINT) AS now`
  return row?.now ?? 0n
}

/** The embedded database is this process, and has its clock. */
export async function storeNow({ engine, sql }: Pick<Database, 'engine' | 'sql'>, clock: Clock): Promise<number> {
  return engine === 'postgres' ? Number(await databaseNow(sql)) : clock.now()
}
