// Takes out of a workspace what may belong to a person: names, keys, addresses, provider keys, kept answers. The rows
// stay under their ids, because charges and the audit log name them; the money stays as it is. Requests are elsewhere.

import type { Failure } from '../kernel/failure.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { type Act, appendAudit } from './audit.ts'
import { refuseChange } from './managed.ts'
import { forgetReplays } from './replay-rows.ts'
import { getWorkspace } from './workspaces.ts'

/** What stands in place of every name. */
export const erasedName = 'erased'

export interface Erased {
  readonly id: WorkspaceId
  /** Ended for good, and not erased before. */
  readonly keys: number
  readonly credentials: number
}

/** Inside a transaction of the caller's, who afterwards forgets what is cached of the workspace. May be repeated. */
export async function eraseWorkspace(sql: Sql, id: string, act: Act): Promise<Erased | 'not found' | Failure> {
  const known = await getWorkspace(sql, id)
  if (known === 'not found') return known
  const refusal = refuseChange('workspace', known, act)
  if (refusal) return refusal
  await sql`UPDATE workspaces SET name = ${erasedName} WHERE id = ${known.id}`
  await sql`UPDATE projects SET name = ${erasedName} WHERE workspace_id = ${known.id}`
  await sql`DELETE FROM rotated_secrets WHERE key_id IN (SELECT id FROM api_keys WHERE workspace_id = ${known.id})`
  await sql`DELETE FROM key_uses WHERE key_id IN (SELECT id FROM api_keys WHERE workspace_id = ${known.id})`
  // No key has such a verifier: it is no hash.
  const keys = await sql`UPDATE api_keys SET name = ${erasedName}, verifier = 'erased ' || id, last4 = '',
      sources = NULL, revoked_at = COALESCE(revoked_at, ${timeToSql(act.at)})
    WHERE workspace_id = ${known.id} AND verifier <> 'erased ' || id RETURNING id`
  const credentials = await sql`DELETE FROM credentials WHERE workspace_id = ${known.id} RETURNING id`
  await forgetReplays(sql, known.id)
  const counts = { keys: keys.length, credentials: credentials.length }
  await appendAudit(sql, { ...act, action: 'workspace.erase', object: known.id, details: counts })
  return { id: known.id, ...counts }
}
