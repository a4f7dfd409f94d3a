// The engine for several replicas. Settings that the promises depend on are sent with every connection, so that a
// server's own defaults cannot weaken them.

import { SQL } from 'bun'
import type { Database, TransactionShape } from './database.ts'
import type { Sql } from './sql.ts'
import { causeText, StartRefusal } from './start-refusal.ts'

const poolSize = 10
const connectTimeoutSeconds = 5
const statementTimeoutMs = 2000

/** Connections are read-only by default, so that a write outside a transaction fails here as it does on SQLite. */
const readWrite = 'ISOLATION LEVEL READ COMMITTED READ WRITE'

/** Names Tollgate's schema lock among the advisory locks of a database: the bytes of "tollgate". */
const schemaLock = 0x746f6c6c67617465n

export async function openPostgres(url: string): Promise<Database> {
  const target = parseUrl(url)
  const pool = new SQL({
    adapter: 'postgres',
    url,
    // Given here because PGDATABASE in the environment would win over the URL.
    database: decodeURIComponent(target.pathname.slice(1) || target.username),
    bigint: true,
    max: poolSize,
    connectionTimeout: connectTimeoutSeconds,
    connection: {
      application_name: 'tollgate',
      statement_timeout: statementTimeoutMs,
      synchronous_commit: 'on',
      default_transaction_read_only: 'on',
    },
  })
  try {
    await pool`SELECT 1`
  } catch (thrown) {
    await pool.close()
    throw new StartRefusal(
      `Cannot use PostgreSQL at ${maskedUrl(target)}: ${connectFault(thrown)}. Check DATABASE_URL and the server, or unset DATABASE_URL to use the embedded database.`,
      { cause: thrown },
    )
  }
  return postgresDatabase(pool)
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

function postgresDatabase(pool: SQL): Database {
  return {
    engine: 'postgres',
    sql: pool as Sql,
    batches: undefined,
    transaction: async <T>(work: (sql: Sql) => Promise<T>, shape?: TransactionShape) =>
      shape === 'at_once'
        ? await transactAtOnce(pool, work)
        : ((await pool.begin(readWrite, (transaction) => work(transaction as Sql))) as T),
    schemaTransaction: async (work) =>
      await pool.begin(readWrite, async (transaction) => {
        await transaction`SET LOCAL statement_timeout = 0`
        const [lock] = await transaction<{ held: boolean }[]>`SELECT pg_try_advisory_xact_lock(${schemaLock}) AS held`
        if (!lock?.held) return 'busy' as const
        return { result: await work(transaction as Sql, async (text) => void (await transaction.unsafe(text))) }
      }),
    snapshot: async <T>(work: (sql: Sql) => Promise<T>) =>
      (await pool.begin('ISOLATION LEVEL REPEATABLE READ READ ONLY', async (transaction) => {
        await transaction`SET LOCAL statement_timeout = 0`
        return await work(transaction as Sql)
      })) as T,
    close: () => pool.close({ timeout: connectTimeoutSeconds }),
  }
}

/** One round trip: the server works through the statements in order, and a commit after one that failed undoes them. */
async function transactAtOnce<T>(pool: SQL, work: (sql: Sql) => Promise<T>): Promise<T> {
  const connection = await pool.reserve()
  try {
    const begun = connection`BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`.execute()
    const worked = work(eager(connection))
    const committed = connection`COMMIT`.execute()
    const ends = await Promise.allSettled([worked, begun, committed] as const)
    for (const end of ends) if (end.status === 'rejected') throw end.reason
    return await worked
  } finally {
    connection.release()
  }
}

/** Bun's statements are lazy: these start in the order in which they are made. */
function eager(connection: SQL): Sql {
  const call = connection as unknown as (...args: unknown[]) => SQL.Query<unknown>
  const tag = (...args: unknown[]) => {
    const made = call(...args)
    const isStatement = Array.isArray(args[0]) && 'raw' in args[0]
    return isStatement ? made.execute() : made
  }
  return tag as unknown as Sql
}
