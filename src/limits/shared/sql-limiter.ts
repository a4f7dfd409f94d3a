// Counts in PostgreSQL, for replicas without Redis: a row per scope, locked in the order of ids, changed by the whole
// batch and written back in one transaction. The time is the database's. What is lost with the table is a minute's count.

import { assert } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Database } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import { isContention } from '../../store/sql-error.ts'
import { applyBatch } from './apply-batch.ts'
import type { AdmitAnswer, Batch, LoadStore } from './batch.ts'
import { type LoadState, lifetimeMs, newLoad } from './load-state.ts'
import { createSharedLimiter, type LimiterMode, type SharedLimiter } from './shared-limiter.ts'

export interface SqlLimiterOptions {
  /** PostgreSQL: the embedded engine has one process, which counts in memory. */
  readonly database: Database
  readonly clock: Clock
  /** This and what follows: see SharedLimiterOptions. */
  liveReplicas(): number
  readonly onMode?: ((mode: LimiterMode) => void) | undefined
  readonly patienceMs?: number
  readonly leaseMs?: number
  /** For tests: in place of the database's time. */
  nowMs?(): number
}

/** Rows are waited for while other replicas have them; as long as the store is only slow, it counts for all. */
const defaultPatienceMs = 1000
const contentionRetriesMax = 3
const cleanEveryMs = 60_000
const cleanMax = 1000n

export function createSqlLimiter(options: SqlLimiterOptions): SharedLimiter {
  const { database, clock, liveReplicas, onMode, leaseMs, patienceMs = defaultPatienceMs } = options
  assert(database.engine === 'postgres', 'limits are shared through PostgreSQL')
  const store = createSqlStore(options)
  const limiter = createSharedLimiter({ store, clock, liveReplicas, patienceMs, leaseMs, onMode })
  // A failed round leaves rows that say nothing, for the next one.
  const cleaning = setInterval(() => void clearDrained(database).catch(() => {}), cleanEveryMs)
  cleaning.unref()
  return {
    arrive: limiter.arrive,
    admit: limiter.admit,
    get mode() {
      return limiter.mode
    },
    get scopeCount() {
      return limiter.scopeCount
    },
    settled: limiter.settled,
    async close() {
      clearInterval(cleaning)
      await limiter.close()
    },
  }
}

function createSqlStore({ database, nowMs }: SqlLimiterOptions): LoadStore {
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
  }
}

async function applyInRows(sql: Sql, batch: Batch, testMs: number | undefined): Promise<readonly AdmitAnswer[]> {
  const rows = await lockRows(
    sql,
    batch.scopes.map(({ id }) => id),
  )
  const nowMs = testMs ?? Number(await databaseNow(sql))
  const loads = batch.scopes.map(({ id }) => parseLoad(rows.get(id), nowMs))
  const answers = applyBatch(loads, batch, nowMs)
  const written = batch.scopes.map(({ id }, at) => {
    const load = loads[at] ?? newLoad(nowMs)
    return { scope_id: id, state: JSON.stringify(load), drained_at: nowMs + lifetimeMs(load, nowMs) }
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

/** One that is not there yet is made first: what is not there cannot be locked. Between the two it may be cleared again. */
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

/** A place that nobody keeps any more is left out here, and so out of what is written. */
function parseLoad(state: string | undefined, nowMs: number): LoadState {
  if (!state) return newLoad(nowMs)
  const load = JSON.parse(state) as LoadState
  const kept = Object.entries(load.places).filter(([, { untilMs }]) => untilMs > nowMs)
  return { ...load, places: Object.fromEntries(kept) }
}

async function databaseNow(sql: Sql): Promise<bigint> {
  const [row] = await sql<{ now: bigint }>`SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now`
  return row?.now ?? 0n
}

/** Rows that say nothing a new one would not. Those in use are left for the next time. */
export async function clearDrained(database: Database): Promise<number> {
  const rows = await database.transaction(async (sql) => {
    const now = await databaseNow(sql)
    return await sql`DELETE FROM limit_loads WHERE scope_id IN (SELECT scope_id FROM limit_loads
      WHERE drained_at < ${now} ORDER BY drained_at LIMIT ${cleanMax} FOR UPDATE SKIP LOCKED) RETURNING 1 AS removed`
  })
  return rows.length
}
