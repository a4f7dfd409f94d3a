// Counts in PostgreSQL, for replicas without Redis: a row per scope, locked in the order of ids, changed by the whole
// batch and written back in one transaction. The time is the database's. Losing the table loses a minute's counts.

import { assert } from '../kernel/failure.ts'
import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { isContention } from '../store/sql-error.ts'
import { type AdmitAnswer, applyBatch, type Batch, type LoadStore } from './batch.ts'
import { bucketState, type Load, newLoad } from './load.ts'

const contentionRetriesMax = 3
const cleanEveryMs = 60_000
const cleanMax = 1000n

/** `nowMs`: for tests, in place of the database's time. */
export function createSqlLoads(database: Database, nowMs?: () => number): LoadStore {
  assert(database.engine === 'postgres', 'limits are shared through PostgreSQL')
  // Rows that a failed round leaves behind are removed by the next one.
  const cleaning = setInterval(() => void clearDrained(database).catch(() => {}), cleanEveryMs)
  cleaning.unref()
  return {
    async exchange(batch) {
      for (let retries = 0; ; retries++) {
        try {
          return await database.transaction((sql) => applyInRows(sql, batch, nowMs?.()))
        } catch (thrown) {
          if (!isContention(thrown) || retries === contentionRetriesMax) throw thrown
        }
      }
    },
    close: () => clearInterval(cleaning),
  }
}

async function applyInRows(sql: Sql, batch: Batch, testMs: number | undefined): Promise<readonly AdmitAnswer[]> {
  const ids = batch.scopes.map(({ id }) => id)
  const rows = await lockRows(sql, ids)
  const nowMs = testMs ?? Number(await databaseNow(sql))
  const loads = ids.map((id) => parseLoad(rows.get(id), nowMs))
  const answers = applyBatch(loads, batch, nowMs)
  const written = loads.map((load, at) => {
    return { scope_id: ids[at], state: JSON.stringify(load), drained_at: nowMs + lifetimeMs(load, nowMs) }
  })
  if (written.length > 0) {
    // As TEXT first: a parameter that is JSONB would be written as a JSON string.
    await sql`UPDATE limit_loads SET state = new.state, drained_at = new.drained_at
      FROM jsonb_to_recordset(CAST(CAST(${JSON.stringify(written)} AS TEXT) AS JSONB))
        AS new (scope_id TEXT, state TEXT, drained_at BIGINT)
      WHERE limit_loads.scope_id = new.scope_id`
  }
  return answers
}

/** Inserts missing rows first, because only existing rows can be locked. A row may be cleared between the two. */
async function lockRows(sql: Sql, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const list = ids.join(',')
  for (;;) {
    const rows = await sql<{ scope_id: string; state: string }>`SELECT scope_id, state FROM limit_loads
      WHERE scope_id = ANY(string_to_array(${list}, ',')) ORDER BY scope_id FOR UPDATE`
    if (rows.length === ids.length) return new Map(rows.map(({ scope_id, state }) => [scope_id, state]))
    await sql`INSERT INTO limit_loads (scope_id, state, drained_at)
      SELECT id, '', 0 FROM unnest(string_to_array(${list}, ',')) AS id ORDER BY id ON CONFLICT DO NOTHING`
  }
}

/** Expired slots are dropped here, so they are not written back. */
function parseLoad(state: string | undefined, nowMs: number): Load {
  if (!state) return newLoad(nowMs)
  const load = JSON.parse(state) as Load
  const kept = Object.entries(load.slots).filter(([, { untilMs }]) => untilMs > nowMs)
  return { ...load, slots: Object.fromEntries(kept) }
}

/** How long the state differs from a new one. */
function lifetimeMs(load: Load, nowMs: number): number {
  let lifetime = 0
  for (const bucket of [load.requests, load.tokens]) {
    if (bucket) lifetime = Math.max(lifetime, bucket.atMs - nowMs + bucketState(bucket).resetMs)
  }
  for (const { untilMs } of Object.values(load.slots)) lifetime = Math.max(lifetime, untilMs - nowMs)
  return lifetime
}

async function databaseNow(sql: Sql): Promise<bigint> {
  const [row] = await sql<{ now: bigint }>`SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now`
  return row?.now ?? 0n
}

/** Removes rows whose state equals a new one. Locked rows are left for the next round. */
export async function clearDrained(database: Database): Promise<number> {
  const rows = await database.transaction(async (sql) => {
    const now = await databaseNow(sql)
    return await sql`DELETE FROM limit_loads WHERE scope_id IN (SELECT scope_id FROM limit_loads
      WHERE drained_at < ${now} ORDER BY drained_at LIMIT ${cleanMax} FOR UPDATE SKIP LOCKED) RETURNING 1 AS removed`
  })
  return rows.length
}

const refreshMs = 5000
/** Four heartbeats, as in the ledger. */
const deadAfterMs = 20_000n

/** For the share that each process has of a limit while their store is unreachable. Refreshed in the background. */
export function createLiveReplicas(database: Database) {
  let last = 1
  const refresh = async (): Promise<void> => {
    // The embedded engine has one process.
    if (database.engine === 'sqlite') return
    try {
      const [row] = await database.sql<{ live: bigint }>`SELECT COUNT(*) AS live FROM replicas
        WHERE heartbeat_at >= CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) - ${deadAfterMs}`
      last = Math.max(1, Number(row?.live ?? 1n))
    } catch {
      // Keep the number: an unreachable database says nothing about the other replicas.
    }
  }
  const timer = setInterval(() => void refresh(), refreshMs)
  timer.unref()
  void refresh()
  /** `count`: processes on the database, this one included; at least 1. The number when the database last answered. */
  return { count: () => last, refresh, close: () => clearInterval(timer) }
}
