// Responses that callers asked to store (`store: true`), for a workspace and a limited time: the response and its input
// items, compressed and encrypted. A caller who asks for one of another workspace, or for one that has expired, learns no more
// than that there is none.

import { gunzipSync, gzipSync } from 'node:zlib'
import type { Clock } from '../kernel/clock.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import { rowFormat, text } from '../store/columns.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { type Binding, type KeyRing, openBytes, rewrapKey, sealBytes, type WrappingKey } from './sealing.ts'

export interface StoredResponse {
  /** As the caller knows it: `resp_…`. */
  readonly id: string
  /** A JSON list of the items that the model was given. */
  readonly input: string
  /** JSON. */
  readonly response: string
  /** Ids of the items in the response's output. */
  readonly itemIds?: readonly string[]
}

export type StoredResponses = ReturnType<typeof createStoredResponses>

export interface StoredResponsesOptions {
  readonly database: Database
  readonly clock: Clock
  readonly keys: KeyRing
  days(): number
}

/** Maximum of input and response together. More is not stored: charges wait behind the write on the embedded engine. */
export const storedBytesMax = 8 * 1024 * 1024
const dayMs = 24 * 60 * 60 * 1000
/** A third of the time of the default level, for a few percent in size. */
const level = 1

export function createStoredResponses({ database, clock, keys, days }: StoredResponsesOptions) {
  const find = async (workspaceId: WorkspaceId, id: string): Promise<StoredResponse | undefined> => {
    const rows = await database.sql`SELECT ciphertext, wrapped_key, key_version FROM stored_responses
      WHERE workspace_id = ${workspaceId} AND id = ${id} AND expires_at > ${timeToSql(clock.now())}`
    const sealed = envelopeRow.first(rows)
    if (!sealed) return undefined
    const plain = openBytes(sealed, bindingOf(workspaceId, id), keys)
    // Altered, or of a secret that is gone: nothing can be read from it.
    if (typeof plain === 'string') return undefined
    return { id, ...(JSON.parse(gunzipSync(plain).toString()) as Pick<StoredResponse, 'input' | 'response'>) }
  }
  return {
    /** Replaces one of the same id. */
    async keep(workspaceId: WorkspaceId, { id, input, response, itemIds = [] }: StoredResponse): Promise<void> {
      const plain = gzipSync(JSON.stringify({ input, response }), { level })
      const sealed = sealBytes(plain, bindingOf(workspaceId, id), keys.current)
      const expires_at = timeToSql(clock.now() + days() * dayMs)
      const row = { workspace_id: workspaceId, id, ...envelopeRow.write(sealed), expires_at }
      await database.transaction(async (sql) => {
        await sql`INSERT INTO stored_responses ${sql([row])} ON CONFLICT (workspace_id, id) DO UPDATE SET
          ciphertext = excluded.ciphertext, wrapped_key = excluded.wrapped_key, key_version = excluded.key_version,
          expires_at = excluded.expires_at`
        const items = [...new Set(itemIds)].map((item_id) => ({ workspace_id: workspaceId, item_id, response_id: id }))
        if (items.length === 0) return
        await sql`INSERT INTO stored_items ${sql(items)}
          ON CONFLICT (workspace_id, item_id) DO UPDATE SET response_id = excluded.response_id`
      })
    },
    find,
    /** The response whose output has the item. */
    async findByItem(workspaceId: WorkspaceId, itemId: string): Promise<StoredResponse | undefined> {
      const [row] = await database.sql<{ response_id: string }>`SELECT response_id FROM stored_items
        WHERE workspace_id = ${workspaceId} AND item_id = ${itemId}`
      return row && (await find(workspaceId, row.response_id))
    },
    /** All of a workspace, in no particular order. */
    async *list(workspaceId: WorkspaceId): AsyncIterable<StoredResponse> {
      for (let after = ''; ; ) {
        const rows = await database.sql<{ id: string }>`SELECT id FROM stored_responses
          WHERE workspace_id = ${workspaceId} AND id > ${after} ORDER BY id LIMIT ${BigInt(portion)}`
        for (const { id } of rows) {
          const stored = await find(workspaceId, id)
          if (stored) yield stored
        }
        const last = rows.at(-1)
        if (!last) return
        after = last.id
      }
    },
    /** Whether there was one. */
    async remove(workspaceId: WorkspaceId, id: string): Promise<boolean> {
      const rows = await database.transaction((sql) => {
        return sql`DELETE FROM stored_responses WHERE workspace_id = ${workspaceId} AND id = ${id}
          AND expires_at > ${timeToSql(clock.now())} RETURNING id`
      })
      return rows.length > 0
    },
  }
}

const envelopeRow = rowFormat({ ciphertext: text(), wrappedKey: text(), keyVersion: text() })

/** A row copied to another workspace or id does not open. */
function bindingOf(workspaceId: string, id: string): Binding {
  return (purpose) => JSON.stringify(['tollgate-response-1', purpose, workspaceId, id])
}

/** Deletes all of a workspace, inside the caller's transaction. Returns how many. */
export async function deleteStoredResponses(sql: Sql, workspaceId: WorkspaceId): Promise<number> {
  const rows = await sql`DELETE FROM stored_responses WHERE workspace_id = ${workspaceId} RETURNING 1 AS removed`
  return rows.length
}

const portion = 50

/** Moves the keys of stored responses to another master secret. Rows that no secret opens are deleted. */
export async function rewrapResponses(database: Database, keys: { from: WrappingKey; to: WrappingKey }): Promise<void> {
  const { from, to } = keys
  for (;;) {
    const rows = await database.sql<{ workspace_id: string; id: string; wrapped_key: string }>`
      SELECT workspace_id, id, wrapped_key FROM stored_responses WHERE key_version = ${from.version}
      LIMIT ${BigInt(portion)}`
    if (rows.length === 0) return
    await database.transaction(async (sql) => {
      for (const { workspace_id: workspaceId, id, wrapped_key: wrapped } of rows) {
        const moved = rewrapKey(wrapped, bindingOf(workspaceId, id), keys)
        if (moved === 'altered') {
          await sql`DELETE FROM stored_responses
            WHERE workspace_id = ${workspaceId} AND id = ${id} AND wrapped_key = ${wrapped}`
        } else {
          await sql`UPDATE stored_responses SET wrapped_key = ${moved}, key_version = ${to.version}
            WHERE workspace_id = ${workspaceId} AND id = ${id} AND wrapped_key = ${wrapped}`
        }
      }
    })
  }
}
