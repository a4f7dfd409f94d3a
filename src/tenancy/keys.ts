// Keys: created, rotated, revoked, read. A secret leaves here once, in the answer to the call that made it; what is read
// later holds its last four characters. What writes runs inside a transaction of the caller's, who afterwards
// invalidates the key where requests are authenticated.

import { assert } from '../kernel/assert.ts'
import { type Failure, invalidRequest } from '../kernel/failure.ts'
import { isId, type KeyId, type ProjectId, type WorkspaceId } from '../kernel/ids.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import { checkModels, modelsFromSql } from './allowlist.ts'
import { type ApiKey, type ComputeVerifier, createApiKey } from './api-key.ts'
import { type Act, appendAudit } from './audit.ts'
import { checkName } from './check-name.ts'
import { auditedLimits, checkLimits, type Limits, limitsFromSql } from './limits.ts'
import { type ManagedBy, managerOf, refuseChange } from './managed.ts'
import { afterCursor, type Page, type PageQuery, pageOf, rowsWanted } from './page.ts'
import { getProject } from './projects.ts'
import { insertKey } from './records.ts'
import { replaceSecret } from './replace-secret.ts'
import { checkSources, sourcesFromSql } from './sources.ts'

export interface KeyInfo {
  readonly id: KeyId
  readonly projectId: ProjectId
  readonly workspaceId: WorkspaceId
  readonly name: string
  readonly last4: string
  /** Its own allowlist, beside its project's; undefined = all that the project allows. */
  readonly models: readonly string[] | undefined
  readonly limits: Limits
  /** Addresses and ranges it may be used from; undefined = anywhere. */
  readonly sources: readonly string[] | undefined
  readonly createdAt: number
  /** undefined = never, as for the two below. */
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
  /** To within a minute or two. */
  readonly lastUsedAt: number | undefined
  readonly managedBy: ManagedBy
}

interface KeyInfoRow {
  readonly id: KeyId
  readonly project_id: ProjectId
  readonly workspace_id: WorkspaceId
  readonly name: string
  readonly last4: string
  readonly models: string | null
  readonly limits: string | null
  readonly sources: string | null
  readonly created_at: bigint
  readonly expires_at: bigint | null
  readonly revoked_at: bigint | null
  readonly last_used_at: bigint | null
  readonly managed_by: ManagedBy
}

export interface KeyWish {
  readonly projectId: string
  readonly name: string
  /** Narrows the project's allowlist; undefined = all that the project allows. */
  readonly models?: readonly string[] | undefined
  readonly limits?: Limits | undefined
  readonly expiresAt?: number | undefined
  /** Addresses and ranges it may be used from; undefined = anywhere. */
  readonly sources?: readonly string[] | undefined
}

export interface KeyWithSecret {
  readonly key: KeyInfo
  readonly secret: ApiKey
}

const overlapSecondsMax = 30 * 24 * 60 * 60

/** `not found`: the project. */
export async function createKey(
  sql: Sql,
  wish: KeyWish,
  act: Act,
  computeVerifier: ComputeVerifier,
): Promise<KeyWithSecret | 'not found' | Failure> {
  const wrong = checkWish(wish, act)
  if (wrong) return wrong
  const project = await getProject(sql, wish.projectId)
  if (project === 'not found') return project
  const secret = createApiKey()
  const row = { ...wish, projectId: project.id, key: secret, createdAt: act.at, managedBy: managerOf(act) }
  const id = await insertKey(sql, row, computeVerifier)
  const details = {
    project: project.id,
    models: wish.models ?? null,
    limits: auditedLimits(wish.limits ?? {}),
    expires_at: wish.expiresAt ?? null,
    from_anywhere: wish.sources === undefined,
  }
  await appendAudit(sql, { ...act, action: 'key.create', object: id, details })
  return { key: await readBack(sql, id), secret }
}

function checkWish({ name, models, limits, expiresAt, sources }: KeyWish, act: Act): Failure | undefined {
  const wrong =
    checkName(name) ?? checkModels(models ?? []) ?? checkLimits(limits ?? {}, 'limits.') ?? checkSources(sources)
  if (wrong) return wrong
  if (expiresAt === undefined || (Number.isSafeInteger(expiresAt) && expiresAt > act.at)) return undefined
  return invalidRequest('`expires_at` must be a time in the future.', 'expires_at')
}

/** A key that was revoked before stays as it is. */
export async function revokeKey(sql: Sql, id: string, act: Act): Promise<KeyInfo | 'not found' | Failure> {
  const key = await getKey(sql, id)
  if (key === 'not found') return key
  const refusal = refuseChange('key', key, act)
  if (refusal) return refusal
  const revoked = await sql`UPDATE api_keys SET revoked_at = ${timeToSql(act.at)}
    WHERE id = ${key.id} AND revoked_at IS NULL RETURNING id`
  if (revoked.length === 1) await appendAudit(sql, { ...act, action: 'key.revoke', object: key.id })
  return await readBack(sql, key.id)
}

export interface Rotation {
  /** How long the old secret lives on beside the new one; none = it ends at once. */
  readonly overlapSeconds?: number | undefined
}

/** The same key with a new secret. Also of a key that a file declares: files say nothing about secrets. */
export async function rotateKey(
  sql: Sql,
  id: string,
  { overlapSeconds = 0 }: Rotation,
  act: Act,
  computeVerifier: ComputeVerifier,
): Promise<KeyWithSecret | 'not found' | Failure> {
  if (!Number.isInteger(overlapSeconds) || overlapSeconds < 0 || overlapSeconds > overlapSecondsMax) {
    const message = `\`overlap_seconds\` must be a whole number from 0 to ${overlapSecondsMax} (30 days).`
    return invalidRequest(message, 'overlap_seconds')
  }
  const key = await getKey(sql, id)
  if (key === 'not found') return key
  if (key.expiresAt !== undefined && key.expiresAt <= act.at) return endedKey('expired')
  const secret = createApiKey()
  if (!(await replaceSecret(sql, key.id, { secret, overlapMs: overlapSeconds * 1000, act, computeVerifier }))) {
    return endedKey('revoked')
  }
  const details = { overlap_seconds: overlapSeconds }
  await appendAudit(sql, { ...act, action: 'key.rotate', object: key.id, details })
  return { key: await readBack(sql, key.id), secret }
}

function endedKey(how: 'revoked' | 'expired'): Failure {
  return invalidRequest(`This key is ${how}: a new secret would not bring it back. Create a new key.`)
}

async function readBack(sql: Sql, id: KeyId): Promise<KeyInfo> {
  const key = await getKey(sql, id)
  assert(key !== 'not found', 'a key that was just written can be read')
  return key
}

export interface KeyQuery {
  readonly workspaceId?: WorkspaceId | undefined
  /** Decides alone where both are given: a project belongs to one workspace. */
  readonly projectId?: ProjectId | undefined
  readonly page: PageQuery
}

/** Three statements and not one with optional conditions: each is served by an index of its own. */
export async function listKeys(sql: Sql, query: KeyQuery): Promise<Page<KeyInfo>> {
  const rows = await listRows(sql, query)
  return pageOf(rows.map(keyFromRow), query.page)
}

function listRows(sql: Sql, { workspaceId, projectId, page }: KeyQuery): Promise<KeyInfoRow[]> {
  const after = afterCursor(page)
  const count = rowsWanted(page)
  if (projectId !== undefined) {
    return sql`SELECT k.*, u.last_used_at FROM api_keys k LEFT JOIN key_uses u ON u.key_id = k.id
      WHERE k.project_id = ${projectId} AND k.id > ${after} ORDER BY k.id LIMIT ${count}`
  }
  if (workspaceId !== undefined) {
    return sql`SELECT k.*, u.last_used_at FROM api_keys k LEFT JOIN key_uses u ON u.key_id = k.id
      WHERE k.workspace_id = ${workspaceId} AND k.id > ${after} ORDER BY k.id LIMIT ${count}`
  }
  return sql`SELECT k.*, u.last_used_at FROM api_keys k LEFT JOIN key_uses u ON u.key_id = k.id
    WHERE k.id > ${after} ORDER BY k.id LIMIT ${count}`
}

export async function getKey(sql: Sql, id: string): Promise<KeyInfo | 'not found'> {
  if (!isId('key', id)) return 'not found'
  const [row] = await sql<KeyInfoRow>`SELECT k.*, u.last_used_at FROM api_keys k
    LEFT JOIN key_uses u ON u.key_id = k.id WHERE k.id = ${id}`
  return row ? keyFromRow(row) : 'not found'
}

/** Field by field: the row holds the verifier too. */
function keyFromRow(row: KeyInfoRow): KeyInfo {
  return {
    id: row.id,
    projectId: row.project_id,
    workspaceId: row.workspace_id,
    name: row.name,
    last4: row.last4,
    models: modelsFromSql(row.models),
    limits: limitsFromSql(row.limits),
    sources: sourcesFromSql(row.sources),
    createdAt: timeFromSql(row.created_at),
    expiresAt: timeFromSql(row.expires_at),
    revokedAt: timeFromSql(row.revoked_at),
    lastUsedAt: timeFromSql(row.last_used_at),
    managedBy: row.managed_by,
  }
}
