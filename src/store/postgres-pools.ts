// Two kinds of pools. Short statements share one that is thrown away and made anew when an answer does not come: PostgreSQL
// ends what takes too long, but a connection that nobody is behind any more stays silent for ever, and so would all that
// wait for it. What may take minutes has connections of its own, so that nothing cuts it.

import type { SQL } from 'bun'
import { createSilenceWatch, type SilenceWatch } from './silence-watch.ts'
import type { Sql } from './sql.ts'

export interface WatchedPool {
  readonly sql: Sql
  /** A connection for one transaction. */
  reserve(): Promise<{ readonly sql: Sql; release(): void }>
  close(): Promise<void>
}

export interface PoolOptions {
  open(): SQL
  /** Lets what still runs end, and fails what does not. */
  close(pool: SQL): Promise<void>
}

export interface WatchedPoolOptions extends PoolOptions {
  /** How long a statement may wait for its answer. */
  readonly turnMs: number
  readonly turnsMax: number
}

export function createWatchedPool({ turnMs, turnsMax, open, close }: WatchedPoolOptions): WatchedPool {
  let current = make()

  function make(): { readonly pool: SQL; readonly watch: SilenceWatch } {
    const pool = open()
    const watch = createSilenceWatch({
      turnMs,
      turnsMax,
      // Its other connections may be as dead. What comes from now on is sent to new ones.
      onSilence() {
        current = make()
        // Whoever waited is told by the statement; here is nobody to tell.
        void close(pool).catch(() => {})
      },
    })
    return { pool, watch }
  }

  /** Waiting for a connection is our own crowd, not the server's silence: only what follows is watched. */
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

export interface PatientPool {
  use<T>(work: (pool: SQL) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/**
 * A connection for each use: nobody can tell a long statement from a lost one, and one that is lost must not take the
 * place of the next.
 */
export function createPatientPool({ open, close }: PoolOptions): PatientPool {
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
