// The engine for several replicas. Settings that the promises depend on are sent with every connection, so that a
// server's own defaults cannot weaken them.

import { SQL } from 'bun'
import type { Database, SchemaWork } from './database.ts'
import type { Sql } from './sql.ts'
import { CommitUnknown, isRowLocked } from './sql-error.ts'
import { causeText, StartRefusal } from './start-refusal.ts'

const defaultPoolSize = 10
const connectTimeoutSeconds = 5
const statementTimeoutMs = 2000
/** Can apply twice within one statement: first in the queue for the row, then for its lock. */
const lockTimeoutMs = 900
/**
 * How long a change of tables waits for a table that another transaction reads or writes. Every other statement on that table
 * waits behind it, so this must stay well below lockTimeoutMs.
 */
const schemaLockTimeoutMs = 200
/** A process that is idle for this long inside a transaction is frozen or disconnected, and others wait for its rows. */
const idleInTransactionMs = 5000
/** Connecting, the statement, and a second of margin: no answer will come after that. */
const silentSecondsMax = connectTimeoutSeconds + statementTimeoutMs / 1000 + 1

/** Connections are read-only by default, so that a write outside a transaction fails here as it does on SQLite. */
const readWrite = 'ISOLATION LEVEL READ COMMITTED READ WRITE'

/** Names Tollgate's schema lock among the advisory locks of a database: the bytes of "tollgate". */
const schemaLock = 0x746f6c6c67617465n

export interface PostgresOptions {
  /** For tests: how long a second lasts while waiting for an answer. */
  readonly turnMs?: number
  /** For tests: how many times as long the server may take, so that they pass on a busy machine. */
  readonly timeoutFactor?: number
  /** For tests: the number of connections, all of which are opened with the first statement. */
  readonly poolSize?: number
}

export async function openPostgres(url: string, options: PostgresOptions = {}): Promise<Database> {
  const { turnMs = 1000, timeoutFactor = 1, poolSize = defaultPoolSize } = options
  const target = parseUrl(url)
  const openPool = (max: number) =>
    new SQL({
      adapter: 'postgres',
      url,
      // Given here because PGDATABASE in the environment would win over the URL.
      database: decodeURIComponent(target.pathname.slice(1) || target.username),
      bigint: true,
      max,
      connectionTimeout: timeoutFactor * connectTimeoutSeconds,
      connection: {
        application_name: 'tollgate',
        statement_timeout: timeoutFactor * statementTimeoutMs,
        lock_timeout: timeoutFactor * lockTimeoutMs,
        idle_in_transaction_session_timeout: timeoutFactor * idleInTransactionMs,
        synchronous_commit: 'on',
        // Otherwise the planner expects the groups of a report not to fit into `work_mem`, and sorts all of its rows.
        hash_mem_multiplier: 8,
        default_transaction_read_only: 'on',
        // The server, too, must notice a connection that is lost, within 60 + 3 × 10 s and not two hours: it would
        // count against max_connections. Asking also keeps firewalls from forgetting one that is only idle.
        tcp_keepalives_idle: 60,
        tcp_keepalives_interval: 10,
        tcp_keepalives_count: 3,
      },
    })
  const close = (given: SQL) => given.close({ timeout: statementTimeoutMs / 1000 })
  const pool = createWatchedPool({
    turnMs,
    turnsMax: timeoutFactor * silentSecondsMax,
    open: () => openPool(poolSize),
    close,
  })
  try {
    await pool.sql`SELECT 1`
  } catch (thrown) {
    await pool.close()
    throw new StartRefusal(
      `Cannot use PostgreSQL at ${maskedUrl(target)}: ${connectFault(thrown)}. Check DATABASE_URL and the server, or unset DATABASE_URL to use the embedded database.`,
      { cause: thrown },
    )
  }
  return postgresDatabase(pool, createPatientPool({ open: () => openPool(1), close }))
}

function parseUrl(url: string): URL {
  const target = URL.parse(url)
  if (target === null || !/^postgres(ql)?:$/.test(target.protocol) || target.hostname + target.search === '') {
    // The text is not shown: a mistyped URL may have its password anywhere.
    throw new StartRefusal('DATABASE_URL is not of the form postgres://USER:PASSWORD@HOST:PORT/DATABASE.')
  }
  return target
}

/** Host, user and database for a message; the password and all options left out. */
function maskedUrl(target: URL): string {
  const user = target.username && `${target.username}${target.password && ':***'}@`
  return `${target.protocol}//${user}${target.host}${target.pathname}`
}

function connectFault(thrown: unknown): string {
  const code = thrown instanceof SQL.PostgresError ? thrown.code : undefined
  if (code === 'ERR_POSTGRES_CONNECTION_REFUSED') return 'nothing answers at this address'
  if (code === 'ERR_POSTGRES_CONNECTION_TIMEOUT') return `no answer within ${connectTimeoutSeconds} s`
  return causeText(thrown)
}

function postgresDatabase(pool: WatchedPool, patient: PatientPool): Database {
  return {
    engine: 'postgres',
    sql: pool.sql,
    journal: undefined,
    transaction: (work, shape) => (shape === 'at_once' ? transactAtOnce(pool, work) : transact(pool, work)),
    schemaTransaction: (work) => patient.use((own) => changeSchema(own, work)),
    snapshot: <T>(work: (sql: Sql) => Promise<T>) =>
      patient.use(
        async (own) =>
          (await own.begin('ISOLATION LEVEL REPEATABLE READ READ ONLY', async (transaction) => {
            await takeTime(transaction)
            return await work(transaction as Sql)
          })) as T,
      ),
    async close() {
      await patient.close()
      await pool.close()
    },
  }
}

async function changeSchema<T>(own: SQL, work: SchemaWork<T>): Promise<{ readonly result: T } | 'busy'> {
  let isTableInUse = false
  const outcome = own.begin(readWrite, async (transaction) => {
    await takeTime(transaction)
    await transaction`SELECT set_config('lock_timeout', ${String(schemaLockTimeoutMs)}, true)`
    const [lock] = await transaction<{ held: boolean }[]>`SELECT pg_try_advisory_xact_lock(${schemaLock}) AS held`
    if (!lock?.held) return 'busy' as const
    const runScript = async (text: string) => {
      try {
        await transaction.unsafe(text)
      } catch (thrown) {
        isTableInUse = isRowLocked(thrown)
        throw thrown
      }
    }
    return { result: await work(transaction as Sql, runScript) }
  })
  return await outcome.catch((thrown: unknown) => {
    if (isTableInUse) return 'busy' as const
    throw thrown
  })
}

/** No timeouts: long work may wait, and may pause between its statements. */
async function takeTime(transaction: SQL): Promise<void> {
  await transaction`SET LOCAL statement_timeout = 0`
  await transaction`SET LOCAL lock_timeout = 0`
  await transaction`SET LOCAL idle_in_transaction_session_timeout = 0`
}

async function transact<T>(pool: WatchedPool, work: (sql: Sql) => Promise<T>): Promise<T> {
  const { sql, release } = await pool.reserve()
  let isCommitting = false
  try {
    await sql`BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`
    const result = await work(sql)
    isCommitting = true
    await sql`COMMIT`
    return result
  } catch (thrown) {
    const isRolledBack = await sql`ROLLBACK`.then(
      () => true,
      () => false,
    )
    // Only a server that reports a failure and still answers has decided. One that cannot sync or write its log reports that
    // and ends (PANIC), and may find the commit in the log when it recovers.
    const isReported = thrown instanceof SQL.PostgresError && thrown.errno !== undefined
    throw isCommitting && !(isReported && isRolledBack) ? new CommitUnknown(thrown) : thrown
  } finally {
    release()
  }
}

/** One round trip: the server works through the statements in order, and a commit after one that failed undoes them. */
async function transactAtOnce<T>(pool: WatchedPool, work: (sql: Sql) => Promise<T>): Promise<T> {
  const { sql, release } = await pool.reserve()
  try {
    const begun = sql`BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`
    const worked = work(sql)
    const committed = sql`COMMIT`
    const ends = await Promise.allSettled([worked, begun, committed] as const)
    for (const end of ends) if (end.status === 'rejected') throw end.reason
    return await worked
  } finally {
    release()
  }
}

// Two kinds of pools. Short statements share one that is replaced when an answer does not come: PostgreSQL ends statements
// that take too long, but a connection whose peer is gone never answers, and everything that waits for it would hang.
// Work that may take minutes has its own connections, so that nothing cuts it off.

interface WatchedPool {
  readonly sql: Sql
  /** A connection for one transaction. */
  reserve(): Promise<{ readonly sql: Sql; release(): void }>
  close(): Promise<void>
}

interface PoolOptions {
  open(): SQL
  /** Waits for running statements, and fails those that do not end. */
  close(pool: SQL): Promise<void>
}

interface WatchedPoolOptions extends PoolOptions {
  /** How long a statement may wait for its answer. */
  readonly turnMs: number
  readonly turnsMax: number
}

function createWatchedPool({ turnMs, turnsMax, open, close }: WatchedPoolOptions): WatchedPool {
  let current = make()

  function make(): { readonly pool: SQL; readonly watch: SilenceWatch } {
    const pool = open()
    const watch = createSilenceWatch({
      turnMs,
      turnsMax,
      // Its other connections may be dead too, so later statements use new ones.
      onSilence() {
        current = make()
        // The statement's own promise reports the error.
        void close(pool).catch(() => {})
      },
    })
    return { pool, watch }
  }

  /** Waiting for a free connection is our own queue, not silence of the server, so only the statement is watched. */
  async function reserve(): Promise<{ readonly sql: Sql; release(): void }> {
    const { pool, watch } = current
    const connection = await pool.reserve()
    return { sql: watched(connection, watch), release: () => connection.release() }
  }

  async function runAlone(args: Parameters<Sql>): Promise<unknown> {
    const { sql, release } = await reserve()
    try {
      return await sql(...args)
    } finally {
      release()
    }
  }

  return {
    sql: ((...args: Parameters<Sql>) =>
      isStatement(args) ? runAlone(args) : (current.pool as unknown as Sql)(...args)) as Sql,
    reserve,
    async close() {
      current.watch.close()
      await close(current.pool)
    },
  }
}

function isStatement([first]: readonly unknown[]): boolean {
  return Array.isArray(first) && 'raw' in first
}

/** Bun's statements are lazy: these start in the order in which they are made, and are waited for from then on. */
function watched(connection: SQL, { watch }: SilenceWatch): Sql {
  const call = connection as unknown as (...args: unknown[]) => SQL.Query<unknown>
  const tag = (...args: unknown[]) => {
    const made = call(...args)
    return isStatement(args) ? watch(made.execute()) : made
  }
  return tag as unknown as Sql
}

interface PatientPool {
  use<T>(work: (pool: SQL) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/**
 * A new connection for each use: a long statement looks like a lost one, and a lost connection must not block the next
 * use.
 */
function createPatientPool({ open, close }: PoolOptions): PatientPool {
  const pools = new Set<SQL>()
  return {
    async use(work) {
      const own = open()
      pools.add(own)
      try {
        return await work(own)
      } finally {
        pools.delete(own)
        await close(own)
      }
    },
    async close() {
      await Promise.all([...pools].map((pool) => close(pool)))
    },
  }
}

// Notices statements that get no answer: a host that vanished, or a firewall that dropped a connection, sends nothing at
// all. It counts timer ticks instead of reading a clock, so that a suspended process does not blame its connections.

interface SilenceWatch {
  /** The same answer, which is waited for from now on. */
  watch<T>(answer: PromiseLike<T>): Promise<T>
  close(): void
}

interface SilenceWatchOptions {
  readonly turnMs: number
  /** How many turns a statement may wait for its answer. */
  readonly turnsMax: number
  /** Called once; after that nothing is watched any more. */
  onSilence(): void
}

interface Waiting {
  readonly sinceTurn: number
}

export function createSilenceWatch({ turnMs, turnsMax, onSilence }: SilenceWatchOptions): SilenceWatch {
  /** In the order in which they began. */
  const waiting = new Set<Waiting>()
  let turn = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let isClosed = false

  function close(): void {
    isClosed = true
    clearTimeout(timer)
  }

  function start(): void {
    timer ??= setTimeout(look, turnMs)
    // While a statement is pending, its connection already keeps the process alive.
    timer.unref()
  }

  function look(): void {
    turn++
    timer = undefined
    const [oldest] = waiting
    if (oldest === undefined) return
    if (turn - oldest.sinceTurn <= turnsMax) return start()
    close()
    onSilence()
  }

  return {
    async watch(answer) {
      const one: Waiting = { sinceTurn: turn }
      waiting.add(one)
      if (!isClosed) start()
      try {
        return await answer
      } finally {
        waiting.delete(one)
      }
    },
    close,
  }
}
