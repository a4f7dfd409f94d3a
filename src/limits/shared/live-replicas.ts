// How many processes live on the database, for the share that each has of a limit while their common store is away. A
// number remembered from the last time the database answered; asked for in the background, never while a request waits.

import type { Database } from '../../store/database.ts'

export interface LiveReplicas {
  /** This process included; at least 1. */
  count(): number
  /** Asks once; the number stays where the database does not answer. */
  refresh(): Promise<void>
  close(): void
}

const refreshMs = 5000
/** Four heartbeats, as the ledger judges it. */
const silenceOfDeathMs = 20_000n

export function createLiveReplicas(database: Database): LiveReplicas {
  let last = 1
  const refresh = async (): Promise<void> => {
    // The embedded engine has one process.
    if (database.engine === 'sqlite') return
    try {
      const [row] = await database.sql<{ live: bigint }>`SELECT COUNT(*) AS live FROM replicas
        WHERE heartbeat_at >= CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) - ${silenceOfDeathMs}`
      last = Math.max(1, Number(row?.live ?? 1n))
    } catch {
      // As many as before: a database that is away says nothing about the others.
    }
  }
  const timer = setInterval(() => void refresh(), refreshMs)
  timer.unref()
  void refresh()
  return { count: () => last, refresh, close: () => clearInterval(timer) }
}
