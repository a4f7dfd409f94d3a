// Looks a key up by its verifier. The answer says what is stored, not whether the key is good: that depends on the time
// and is judged anew for every request.

import { timingSafeEqual } from 'node:crypto'
import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { timeFromSql } from '../store/sql.ts'
import { type Allowlist, createAllowlistPool } from './allowlist.ts'
import type { Caller } from './caller.ts'
import { hasLimits, type LimitScope, type Limits, limitsFromSql } from './limits.ts'
import { rangesOf, sourcesFromSql } from './sources.ts'

export interface StoredKey {
  readonly caller: Caller
  /** From then on it is not accepted; undefined = never. */
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
  /** The secret that was sent is not the key's any more; undefined = it is. */
  readonly rotated: { readonly at: number; readonly endsAt: number } | undefined
}

interface KeyRow {
  readonly verifier: string
  readonly rotated_at: bigint | null
  readonly ends_at: bigint | null
  readonly key_id: KeyId
  readonly key_name: string
  readonly expires_at: bigint | null
  readonly revoked_at: bigint | null
  readonly key_models: string | null
  readonly key_limits: string | null
  readonly sources: string | null
  readonly project_id: ProjectId
  readonly project_name: string
  readonly project_models: string | null
  readonly project_limits: string | null
  readonly workspace_id: WorkspaceId
  readonly workspace_name: string
  readonly workspace_limits: string | null
  readonly shares_routes: bigint
}

/** `previous`: the verifier under the pepper that a rotation of the master secret leaves behind. */
export type FindKey = (verifier: string, previous?: string) => Promise<StoredKey | undefined>

/** A key that was found under the previous pepper. */
export interface StaleVerifier {
  readonly stored: string
  readonly replacement: string
}

/** `keyLimits`: what holds for a key that sets nothing else itself. `onStale` must cost next to nothing. */
export function createFindKey(
  database: Database,
  keyLimits: () => Limits,
  onStale: (stale: StaleVerifier) => void = () => {},
): FindKey {
  const allowlistOf = createAllowlistPool()
  return async (verifier, previous = verifier) => {
    const row = await readKey(database, verifier, previous)
    if (row === undefined) return undefined
    // The database compared with its own rules (collation, early exit); this comparison is ours.
    if (!sameVerifier(row.verifier, verifier)) {
      if (!sameVerifier(row.verifier, previous)) return undefined
      onStale({ stored: row.verifier, replacement: verifier })
    }
    return {
      caller: Object.freeze({
        keyId: row.key_id,
        keyName: row.key_name,
        projectId: row.project_id,
        projectName: row.project_name,
        workspaceId: row.workspace_id,
        workspaceName: row.workspace_name,
        allow: Object.freeze([row.project_models, row.key_models].map(allowlistOf).filter(isList)),
        limits: limitsOf(row, keyLimits()),
        sharesRoutes: row.shares_routes === 1n,
        sources: rangesOf(sourcesFromSql(row.sources)),
      }),
      expiresAt: timeFromSql(row.expires_at),
      revokedAt: timeFromSql(row.revoked_at),
      rotated:
        row.rotated_at === null || row.ends_at === null
          ? undefined
          : { at: timeFromSql(row.rotated_at), endsAt: timeFromSql(row.ends_at) },
    }
  }
}

/**
 * One statement, by unique indexes alone: the secret in use, or one that a rotation replaced. Also for both peppers: a
 * verifier that changes between two questions would be found by neither.
 */
async function readKey({ sql }: Database, verifier: string, previous: string): Promise<KeyRow | undefined> {
  const [row] = await sql<KeyRow>`
    SELECT s.verifier, s.rotated_at, s.ends_at, k.id AS key_id, k.name AS key_name, k.expires_at, k.revoked_at,
      k.models AS key_models, k.limits AS key_limits, k.sources,
      p.id AS project_id, p.name AS project_name, p.models AS project_models, p.limits AS project_limits,
      w.id AS workspace_id, w.name AS workspace_name, w.limits AS workspace_limits, w.shares_routes
    FROM (SELECT verifier, id AS key_id, CAST(NULL AS BIGINT) AS rotated_at, CAST(NULL AS BIGINT) AS ends_at
        FROM api_keys WHERE verifier IN (${verifier}, ${previous})
      UNION ALL SELECT verifier, key_id, rotated_at, ends_at FROM rotated_secrets
        WHERE verifier IN (${verifier}, ${previous})) s
    JOIN api_keys k ON k.id = s.key_id JOIN projects p ON p.id = k.project_id
    JOIN workspaces w ON w.id = p.workspace_id`
  return row
}

function sameVerifier(stored: string, computed: string): boolean {
  return stored.length === computed.length && timingSafeEqual(Buffer.from(stored), Buffer.from(computed))
}

function isList(list: Allowlist | undefined): list is Allowlist {
  return list !== undefined
}

const unlimited: readonly LimitScope[] = Object.freeze([])

function limitsOf(row: KeyRow, keyLimits: Limits): readonly LimitScope[] {
  const ofKey = Object.freeze({ ...keyLimits, ...limitsFromSql(row.key_limits) })
  const scopes: LimitScope[] = [
    { kind: 'key', id: row.key_id, name: row.key_name, limits: ofKey },
    { kind: 'project', id: row.project_id, name: row.project_name, limits: limitsFromSql(row.project_limits) },
    { kind: 'workspace', id: row.workspace_id, name: row.workspace_name, limits: limitsFromSql(row.workspace_limits) },
  ]
  const limited = scopes.filter(({ limits }) => hasLimits(limits))
  return limited.length === 0 ? unlimited : Object.freeze(limited.map((scope) => Object.freeze(scope)))
}
