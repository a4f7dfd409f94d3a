// Looks a key up by its verifier. The answer says what is stored, not whether the key is good: that depends on the time
// and is judged anew for every request.

import { timingSafeEqual } from 'node:crypto'
import { assert } from '../kernel/assert.ts'
import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { timeFromSql } from '../store/sql.ts'
import type { Caller } from './caller.ts'

export interface StoredKey {
  readonly caller: Caller
  /** From then on it is not accepted; undefined = never. */
  readonly expiresAt: number | undefined
  /** The same, by someone's decision; in the future while a rotated key is in its overlap. */
  readonly revokedAt: number | undefined
}

interface KeyRow {
  readonly verifier: string
  readonly key_id: KeyId
  readonly key_name: string
  readonly expires_at: bigint | null
  readonly revoked_at: bigint | null
  readonly project_id: ProjectId
  readonly models: string | null
  readonly workspace_id: WorkspaceId
  readonly workspace_name: string
}

export async function findKey(database: Database, verifier: string): Promise<StoredKey | undefined> {
  const [row] = await database.sql<KeyRow>`
    SELECT k.verifier, k.id AS key_id, k.name AS key_name, k.expires_at, k.revoked_at,
      p.id AS project_id, p.models, w.id AS workspace_id, w.name AS workspace_name
    FROM api_keys k JOIN projects p ON p.id = k.project_id JOIN workspaces w ON w.id = p.workspace_id
    WHERE k.verifier = ${verifier}`
  // The database compared with its own rules (collation, early exit); this comparison is ours.
  if (row === undefined || !sameVerifier(row.verifier, verifier)) return undefined
  return {
    caller: Object.freeze({
      keyId: row.key_id,
      keyName: row.key_name,
      projectId: row.project_id,
      workspaceId: row.workspace_id,
      workspaceName: row.workspace_name,
      models: row.models === null ? undefined : parseModels(row.models),
    }),
    expiresAt: timeFromSql(row.expires_at),
    revokedAt: timeFromSql(row.revoked_at),
  }
}

function sameVerifier(stored: string, computed: string): boolean {
  return stored.length === computed.length && timingSafeEqual(Buffer.from(stored), Buffer.from(computed))
}

/** A list that cannot be read must not turn into "every model". */
function parseModels(json: string): readonly string[] {
  const models: unknown = JSON.parse(json)
  assert(Array.isArray(models) && models.every((model) => typeof model === 'string'), 'a model list holds strings')
  return Object.freeze(models)
}
