// The database handle: the only way to the tables. The schema and most queries are one text for both engines (portable
// SQL, see sql.ts). Code for one engine is in `ledger/embedded`, `ledger/shared`, `limits/sql-loads.ts`, and where
// `engine` is asked.

import type { Clock } from '../kernel/clock.ts'
import type { Journal } from './journal.ts'
import type { Engine, Sql } from './sql.ts'

export interface Database {
  readonly engine: Engine
  /** Reads of committed rows. A write here is refused by both engines: writes belong in a transaction. */
  readonly sql: Sql
  /**
   * Runs the work in one transaction: committed durably when it resolves, rolled back when it throws. On SQLite one
   * runs at a time, so the work must only await its own statements and must not start another transaction.
   */
  transaction<T>(work: (sql: Sql) => Promise<T>, shape?: TransactionShape): Promise<T>
  /** Commits charges that are decided; undefined where several processes write to the database. */
  readonly journal: Journal | undefined
  /** Reads that all see one moment, without a time limit; for sums over whole tables. */
  snapshot<T>(work: (sql: Sql) => Promise<T>): Promise<T>
  /**
   * The transaction that may change tables: without a time limit, and alone across all processes on this database.
   * `busy` says that another process is in it, or that another transaction uses a table for long; nothing was changed.
   */
  schemaTransaction<T>(work: SchemaWork<T>): Promise<{ readonly result: T } | 'busy'>
  close(): Promise<void>
}

/**
 * `at_once`: the work makes all its statements before it waits for any of them, and only a statement that fails undoes
 * them, not what the work throws afterwards. PostgreSQL then gets all of it, begin and commit included, in one message.
 * `beside_charges`: the work uses no table that the journal is applied to, so SQLite does not apply it first.
 */
export type TransactionShape = 'at_once' | 'beside_charges'

export type SchemaWork<T> = (sql: Sql, runScript: RunScript) => Promise<T>

/** Runs constant text: several statements, no parameters. */
export type RunScript = (text: string) => Promise<void>

// The common time of all processes on one database: replicas' clocks differ, and each reads what others wrote.

/** Epoch milliseconds of PostgreSQL's clock. */
export async function databaseNow(sql: Sql): Promise<bigint> {
  const [row] = await sql<{ now: bigint }>`SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now`
  return row?.now ?? 0n
}

/** When the transaction began, by the same clock: the time of a snapshot, however long it is read. */
export async function snapshotNow(sql: Sql): Promise<bigint> {
  const [row] = await sql<{
    now: bigint
  }>`SELECT CAST(EXTRACT(EPOCH FROM transaction_timestamp()) * 1000 AS BIGINT) AS now`
  return row?.now ?? 0n
}

/** The embedded database runs in this process and uses its clock. */
export async function storeNow({ engine, sql }: Pick<Database, 'engine' | 'sql'>, clock: Clock): Promise<number> {
  return engine === 'postgres' ? Number(await databaseNow(sql)) : clock.now()
}
