// Moves keys from the pepper of the previous master secret to the current one: a key's secret is known only while it is
// used, so each moves when it is. In the background and a few at a time; what is not written now is met again.

import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import type { StaleVerifier } from './find-key.ts'

/** Rows in one transaction: on the embedded engine it keeps the commits of settlements waiting. */
const portionMax = 50
/** More than are waiting at once in any orderly rotation; what does not fit moves at a later use. */
const waitingMax = 10_000

export function createRehash(database: Database, version: bigint): (stale: StaleVerifier) => void {
  /** By the verifier that is stored. */
  const waiting = new Map<string, string>()
  let isRunning = false

  async function run(): Promise<void> {
    isRunning = true
    try {
      while (waiting.size > 0) {
        const portion = [...waiting].slice(0, portionMax)
        for (const [stored] of portion) waiting.delete(stored)
        await database.transaction((sql) => move(sql, portion, version))
      }
    } catch {
      // The database is busy or closing. Whoever uses the key next is found under the previous pepper again.
      waiting.clear()
    } finally {
      isRunning = false
    }
  }

  return ({ stored, replacement }) => {
    if (waiting.size < waitingMax) waiting.set(stored, replacement)
    if (!isRunning) void run()
  }
}

/** In one order on every replica, so that none waits for another in a circle. */
async function move(sql: Sql, portion: readonly (readonly [string, string])[], version: bigint): Promise<void> {
  for (const [stored, replacement] of portion.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const moved = await sql`UPDATE api_keys SET verifier = ${replacement}, pepper_version = ${version}
      WHERE verifier = ${stored} RETURNING id`
    if (moved.length > 0) continue
    await sql`UPDATE rotated_secrets SET verifier = ${replacement}, pepper_version = ${version}
      WHERE verifier = ${stored}`
  }
}
