// When each key was used last: noted in memory on the request's path, written in the background. What was noted since
// the last flush is lost in a crash, and nothing depends on it.

import type { Clock } from '../kernel/clock.ts'
import type { KeyId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeToSql } from '../store/sql.ts'

/** How often to flush: each key is written at most once in that time. */
export const lastUsedFlushMs = 60_000

export interface LastUsed {
  note(keyId: KeyId): void
  /** Writes what was noted; never throws. What could not be written is kept for the next time. */
  flush(): Promise<void>
}

export interface LastUsedOptions {
  readonly database: Database
  readonly clock: Clock
  onFault(thrown: unknown): void
}

/** Rows in one transaction: on the embedded engine it keeps the commits of settlements waiting. */
const portionMax = 128

export function createLastUsed({ database, clock, onFault }: LastUsedOptions): LastUsed {
  let noted = new Map<KeyId, number>()

  return {
    note: (keyId) => void noted.set(keyId, clock.now()),
    async flush() {
      const pending = noted
      noted = new Map()
      // Replicas write the same keys; in one order none of them waits for another in a circle.
      const uses = [...pending].sort(([a], [b]) => (a < b ? -1 : 1))
      while (uses.length > 0) {
        const portion = uses.slice(0, portionOf(uses.length))
        try {
          await database.transaction((sql) => writeUses(sql, portion))
        } catch (thrown) {
          for (const [keyId, at] of uses) if (!noted.has(keyId)) noted.set(keyId, at)
          return onFault(thrown)
        }
        uses.splice(0, portion.length)
      }
    },
  }
}

async function writeUses(sql: Sql, uses: readonly (readonly [KeyId, number])[]): Promise<void> {
  const rows = uses.map(([keyId, at]) => ({ key_id: keyId, last_used_at: timeToSql(at) }))
  await sql`INSERT INTO key_uses ${sql(rows)} ON CONFLICT (key_id) DO UPDATE
    SET last_used_at = excluded.last_used_at WHERE excluded.last_used_at > key_uses.last_used_at`
}

/** Powers of two: PostgreSQL keeps every text it has prepared, so there are eight of them. */
function portionOf(count: number): number {
  return Math.min(portionMax, 2 ** Math.floor(Math.log2(count)))
}
