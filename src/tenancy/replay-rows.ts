// The rows of callers' idempotency keys: one for each key, from its first request until a day after.

import type { ReplicaId, RequestId, WorkspaceId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeToSql } from '../store/sql.ts'

export interface KeyedGeneration {
  readonly workspaceId: WorkspaceId
  readonly key: string
  /** Of the path and the body. */
  readonly bodySha256: string
  readonly requestId: RequestId
}

export const lifetimeMs = 24 * 60 * 60 * 1000

export interface ReplayRow {
  readonly body_sha256: string
  readonly state: 'running' | 'done'
  /** The sealed answer; while the request runs, the replica in which it does. */
  readonly response: string | null
  readonly request_id: RequestId
  readonly expires_at: bigint
}

interface Entering {
  readonly request: KeyedGeneration
  readonly owner: ReplicaId | undefined
  readonly now: number
}

/** undefined = it was taken when this wanted it, and is not any more. */
export async function insertOrRead(
  sql: Sql,
  { request, owner, now }: Entering,
): Promise<ReplayRow | 'claimed' | undefined> {
  const { key, bodySha256, requestId } = request
  const scope = scopeOf(request)
  await sql`DELETE FROM idempotency WHERE scope = ${scope} AND key = ${key} AND expires_at <= ${timeToSql(now)}`
  const claimed = await sql`INSERT INTO idempotency (scope, key, body_sha256, state, response, request_id, expires_at)
    VALUES (${scope}, ${key}, ${bodySha256}, 'running', ${owner ?? null}, ${requestId}, ${timeToSql(now + lifetimeMs)})
    ON CONFLICT DO NOTHING RETURNING key`
  return claimed.length === 1 ? 'claimed' : await readReplay(sql, request)
}

export async function readReplay(sql: Sql, request: KeyedGeneration): Promise<ReplayRow | undefined> {
  const [row] = await sql<ReplayRow>`SELECT body_sha256, state, response, request_id, expires_at FROM idempotency
    WHERE scope = ${scopeOf(request)} AND key = ${request.key}`
  return row
}

/** Every answer that is kept for a workspace, inside a transaction of the caller's. */
export async function forgetReplays(sql: Sql, workspaceId: WorkspaceId): Promise<void> {
  await sql`DELETE FROM idempotency WHERE scope = ${scopeOf({ workspaceId })}`
}

export async function removeReplay(database: Database, request: KeyedGeneration): Promise<void> {
  await database.transaction((sql) => {
    return sql`DELETE FROM idempotency
      WHERE scope = ${scopeOf(request)} AND key = ${request.key} AND request_id = ${request.requestId}`
  })
}

/** As it was read: one that was confirmed or renewed since then is looked at again. */
export async function removeDead(
  database: Database,
  request: KeyedGeneration,
  { request_id: requestId, expires_at: expiresAt }: ReplayRow,
): Promise<void> {
  await database.transaction((sql) => {
    return sql`DELETE FROM idempotency WHERE scope = ${scopeOf(request)} AND key = ${request.key}
      AND request_id = ${requestId} AND state = 'running' AND expires_at = ${expiresAt}`
  })
}

export function scopeOf({ workspaceId }: Pick<KeyedGeneration, 'workspaceId'>): string {
  return `generation:${workspaceId}`
}
