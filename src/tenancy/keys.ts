// API keys: create, rotate, revoke, read. A secret is returned once, by the call that creates it; later reads have its last
// four characters. Functions that write run inside the caller's transaction; the caller invalidates the key afterwards. The
// key of a person who signs in has no secret; its name is read from the person, so that removing them removes it.

import { assert, type Failure, invalidRequest } from '../kernel/failure.ts'
import { createId, isId, type KeyId, type PersonId, type ProjectId, type WorkspaceId } from '../kernel/ids.ts'
import { type ItemIn, optional, rowFormat, text, time } from '../store/columns.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { checkModels, checkSources, listColumn } from './allowlist.ts'
import { type ApiKey, type ComputeVerifier, createApiKey, lastFour } from './api-key.ts'
import { appendAudit } from './audit.ts'
import { checkLimits, type Limits, limitsColumn, limitsToSql, shownLimits } from './limits.ts'
import {
  type Act,
  afterCursor,
  checkManager,
  checkName,
  type ManagedBy,
  managerOf,
  notFound,
  type Page,
  type PageQuery,
  pageOf,
  rowsWanted,
} from './management.ts'
import { denyApproved } from './people.ts'
import { checkInUse, lockProject, refuseNamesake } from './workspaces.ts'

const keyRow = rowFormat({
  id: text<KeyId>(),
  /** `person`: stands for its owner, who signs in; it has no secret. */
  kind: text<'secret' | 'person'>(),
  projectId: text<ProjectId>(),
  workspaceId: text<WorkspaceId>(),
  name: text(),
  last4: text(),
  /** Narrows the project's allowlist; undefined = all that the project allows. */
  models: listColumn,
  limits: limitsColumn,
  /** Addresses and ranges from which it may be used; undefined = anywhere. */
  sources: listColumn,
  createdAt: time,
  /** undefined = never, also for the next two. */
  expiresAt: optional(time),
  revokedAt: optional(time),
  /** Accurate to a minute or two. */
  lastUsedAt: optional(time),
  managedBy: text<ManagedBy>(),
  /** The person who created it; undefined = the installation. */
  ownerId: optional(text<PersonId>()),
})

export type KeyInfo = ItemIn<typeof keyRow>

/** As lists, reports and errors call the key of a person. */
export function personKeyName(email: string): string {
  return `${email} (signs in)`
}

function keyFrom(row: unknown): KeyInfo {
  const key = keyRow.read(row)
  const { email } = row as { readonly email: string | null }
  return email === null ? key : { ...key, name: personKeyName(email) }
}

/** What a key is called; null = there is no such key. */
export async function nameOfKey(sql: Sql, id: string): Promise<string | null> {
  const [row] = await sql<{ name: string; email: string | null }>`SELECT k.name, o.email FROM api_keys k
    LEFT JOIN people o ON k.kind = 'person' AND o.id = k.name WHERE k.id = ${id}`
  return row ? (row.email === null ? row.name : personKeyName(row.email)) : null
}

export interface KeyInput {
  readonly projectId: string
  readonly name: string
  /** Narrows the project's allowlist; undefined = all that the project allows. */
  readonly models?: readonly string[] | undefined
  readonly limits?: Limits | undefined
  readonly expiresAt?: number | undefined
  /** Addresses and ranges it may be used from; undefined = anywhere. */
  readonly sources?: readonly string[] | undefined
  /** The person who creates it; it ends when they leave the workspace. */
  readonly ownerId?: PersonId | undefined
}

export interface KeyWithSecret {
  readonly key: KeyInfo
  readonly secret: ApiKey
}

const overlapSecondsMax = 30 * 24 * 60 * 60

export async function createKey(
  sql: Sql,
  input: KeyInput,
  act: Act,
  computeVerifier: ComputeVerifier,
): Promise<KeyWithSecret> {
  checkInput(input, act)
  const project = await lockProject(sql, input.projectId)
  checkInUse(project)
  const { name } = input
  const namesakes = () => sql`SELECT id FROM api_keys WHERE project_id = ${project.id} AND name = ${name}
    AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ${timeToSql(act.at)}) LIMIT 1`
  await refuseNamesake(sql, { kind: 'key', name, namesakes, act })
  const secret = createApiKey()
  const row = { ...input, projectId: project.id, key: secret, createdAt: act.at, managedBy: managerOf(act) }
  const id = await insertKey(sql, row, computeVerifier)
  const details = {
    project: project.id,
    models: input.models ?? null,
    limits: shownLimits(input.limits ?? {}),
    expires_at: input.expiresAt ?? null,
    from_anywhere: input.sources === undefined,
  }
  await appendAudit(sql, { ...act, action: 'key.create', object: id, details })
  return { key: await getKey(sql, id), secret }
}

function checkInput({ name, models, limits, expiresAt, sources }: KeyInput, act: Act): void {
  checkName(name)
  checkModels(models ?? [])
  checkLimits(limits ?? {}, 'limits.', 'key')
  checkSources(sources)
  if (expiresAt === undefined || (Number.isSafeInteger(expiresAt) && expiresAt > act.at)) return
  throw invalidRequest('`expires_at` must be a time in the future.', 'expires_at')
}

/** A key that is already revoked stays unchanged. */
export async function revokeKey(sql: Sql, id: string, act: Act): Promise<KeyInfo> {
  const key = await getKey(sql, id)
  checkManager('key', key, act)
  if (key.kind === 'person') await denyApproved(sql, { personId: key.ownerId, projectId: key.projectId })
  const revoked = await sql`UPDATE api_keys SET revoked_at = ${timeToSql(act.at)}
    WHERE id = ${key.id} AND revoked_at IS NULL RETURNING id`
  if (revoked.length === 1) await appendAudit(sql, { ...act, action: 'key.revoke', object: key.id })
  return await getKey(sql, key.id)
}

export interface Rotation {
  /** How long the old secret stays valid; default: not at all. */
  readonly overlapSeconds?: number | undefined
}

/** Gives the key a new secret. Allowed for keys that a file declares too: files contain no secrets. */
export async function rotateKey(
  sql: Sql,
  id: string,
  { overlapSeconds = 0 }: Rotation,
  act: Act,
  computeVerifier: ComputeVerifier,
): Promise<KeyWithSecret> {
  if (!Number.isInteger(overlapSeconds) || overlapSeconds < 0 || overlapSeconds > overlapSecondsMax) {
    const message = `\`overlap_seconds\` must be a whole number from 0 to ${overlapSecondsMax} (30 days).`
    throw invalidRequest(message, 'overlap_seconds')
  }
  const key = await getKey(sql, id)
  if (key.kind === 'person') {
    throw invalidRequest(
      'This key has no secret: its person signs in. End it, or one of the sign-ins, in place of that.',
    )
  }
  if (key.expiresAt !== undefined && key.expiresAt <= act.at) throw endedKey('expired')
  const secret = createApiKey()
  if (!(await replaceSecret(sql, key.id, { secret, overlapMs: overlapSeconds * 1000, act, computeVerifier }))) {
    throw endedKey('revoked')
  }
  const details = { overlap_seconds: overlapSeconds }
  await appendAudit(sql, { ...act, action: 'key.rotate', object: key.id, details })
  return { key: await getKey(sql, key.id), secret }
}

function endedKey(how: 'revoked' | 'expired'): Failure {
  return invalidRequest(`This key is ${how}, and a new secret would not change that. Create a new key.`)
}

export interface KeyQuery {
  readonly workspaceId?: WorkspaceId | undefined
  readonly projectId?: ProjectId | undefined
  /** Only keys of this person. */
  readonly ownerId?: PersonId | undefined
  readonly page: PageQuery
}

/** Separate statements, not one with optional conditions, because each uses a different index. */
export async function listKeys(sql: Sql, query: KeyQuery): Promise<Page<KeyInfo>> {
  const rows = await listRows(sql, query)
  return pageOf(rows.map(keyFrom), query.page)
}

function listRows(sql: Sql, { workspaceId, projectId, ownerId, page }: KeyQuery): Promise<unknown[]> {
  const after = afterCursor(page)
  const count = rowsWanted(page)
  if (ownerId !== undefined) {
    return sql`SELECT k.*, u.last_used_at, o.email FROM api_keys k LEFT JOIN key_uses u ON u.key_id = k.id
      LEFT JOIN people o ON k.kind = 'person' AND o.id = k.name
      WHERE k.owner_id = ${ownerId} AND k.workspace_id = ${workspaceId ?? ''}
      AND k.project_id = COALESCE(${projectId ?? null}, k.project_id) AND k.id > ${after} ORDER BY k.id LIMIT ${count}`
  }
  if (projectId !== undefined) {
    return sql`SELECT k.*, u.last_used_at, o.email FROM api_keys k LEFT JOIN key_uses u ON u.key_id = k.id
      LEFT JOIN people o ON k.kind = 'person' AND o.id = k.name
      WHERE k.project_id = ${projectId} AND k.workspace_id = COALESCE(${workspaceId ?? null}, k.workspace_id)
      AND k.id > ${after} ORDER BY k.id LIMIT ${count}`
  }
  if (workspaceId !== undefined) {
    return sql`SELECT k.*, u.last_used_at, o.email FROM api_keys k LEFT JOIN key_uses u ON u.key_id = k.id
      LEFT JOIN people o ON k.kind = 'person' AND o.id = k.name
      WHERE k.workspace_id = ${workspaceId} AND k.id > ${after} ORDER BY k.id LIMIT ${count}`
  }
  return sql`SELECT k.*, u.last_used_at, o.email FROM api_keys k LEFT JOIN key_uses u ON u.key_id = k.id
      LEFT JOIN people o ON k.kind = 'person' AND o.id = k.name
    WHERE k.id > ${after} ORDER BY k.id LIMIT ${count}`
}

/** The owner of each key that belongs to a person. */
export async function ownersOfKeys(sql: Sql, workspaceId?: WorkspaceId): Promise<ReadonlyMap<string, [PersonId]>> {
  interface Row {
    readonly id: KeyId
    readonly owner_id: PersonId
  }
  const rows = await (workspaceId === undefined
    ? sql<Row>`SELECT id, owner_id FROM api_keys WHERE owner_id IS NOT NULL`
    : sql<Row>`SELECT id, owner_id FROM api_keys WHERE owner_id IS NOT NULL AND workspace_id = ${workspaceId}`)
  return new Map(rows.map(({ id, owner_id: owner }) => [id, [owner]]))
}

/** For the requests of one person; their keys are few. */
export async function keysOfOwner(sql: Sql, workspaceId: WorkspaceId, ownerId: PersonId): Promise<readonly KeyId[]> {
  const rows = await sql<{ id: KeyId }>`SELECT id FROM api_keys WHERE owner_id = ${ownerId}
    AND workspace_id = ${workspaceId} ORDER BY id`
  return rows.map(({ id }) => id)
}

export async function getKey(sql: Sql, id: string): Promise<KeyInfo> {
  if (!isId('key', id)) throw notFound('key', id)
  const [row] = await sql`SELECT k.*, u.last_used_at, o.email FROM api_keys k LEFT JOIN key_uses u ON u.key_id = k.id
    LEFT JOIN people o ON k.kind = 'person' AND o.id = k.name WHERE k.id = ${id}`
  if (!row) throw notFound('key', id)
  return keyFrom(row)
}

export interface NewSecret {
  readonly secret: ApiKey
  readonly overlapMs: number
  readonly act: Act
  readonly computeVerifier: ComputeVerifier
}

/** False if the key is revoked. */
export async function replaceSecret(sql: Sql, id: KeyId, replacement: NewSecret): Promise<boolean> {
  const { secret, overlapMs, act, computeVerifier } = replacement
  // Written before it is read: a twin on another replica then replaces the secret that this one leaves behind.
  const [old] = await sql<{ verifier: string; pepper_version: bigint }>`UPDATE api_keys SET last4 = ${lastFour(secret)}
    WHERE id = ${id} AND revoked_at IS NULL RETURNING verifier, pepper_version`
  if (!old) return false
  const endsAt = timeToSql(act.at + overlapMs)
  // Secrets of earlier rotations must not outlive the one they led to: without an overlap only the new one is good.
  await sql`UPDATE rotated_secrets SET ends_at = CASE WHEN rotated_at > ${endsAt} THEN rotated_at ELSE ${endsAt} END
    WHERE key_id = ${id} AND ends_at > ${endsAt}`
  const row = {
    verifier: old.verifier,
    key_id: id,
    pepper_version: old.pepper_version,
    rotated_at: timeToSql(act.at),
    ends_at: endsAt,
  }
  await sql`INSERT INTO rotated_secrets ${sql([row])}`
  await sql`UPDATE api_keys SET verifier = ${computeVerifier(secret)}, pepper_version = ${computeVerifier.version}
    WHERE id = ${id}`
  return true
}

export interface NewKey extends KeyInput {
  readonly key: ApiKey
  readonly createdAt: number
  readonly managedBy?: ManagedBy
}

export async function insertKey(sql: Sql, key: NewKey, computeVerifier: ComputeVerifier): Promise<KeyId> {
  const id = createId('key')
  await sql`INSERT INTO api_keys (id, project_id, workspace_id, name, verifier, pepper_version, last4, created_at,
      expires_at, models, limits, sources, managed_by, owner_id)
    VALUES (${id}, ${key.projectId}, (SELECT workspace_id FROM projects WHERE id = ${key.projectId}), ${key.name},
      ${computeVerifier(key.key)}, ${computeVerifier.version}, ${lastFour(key.key)}, ${timeToSql(key.createdAt)},
      ${key.expiresAt === undefined ? null : timeToSql(key.expiresAt)}, ${listColumn.toSql(key.models)},
      ${limitsToSql(key.limits ?? {})}, ${listColumn.toSql(key.sources)},
      ${key.managedBy ?? 'api'}, ${key.ownerId ?? null})`
  return id
}

/**
 * The key of a person in a project, which the first sign-in creates. A new one has the limits of the last: ending a key and
 * signing in again must not lift them.
 */
export async function personKeyOf(
  sql: Sql,
  { personId, projectId, at }: { readonly personId: PersonId; readonly projectId: ProjectId; readonly at: number },
): Promise<KeyId> {
  // Of two sign-ins at the same moment the second waits, and then finds the key of the first.
  await sql`INSERT INTO api_keys (id, project_id, workspace_id, kind, name, last4, created_at, owner_id, limits)
    VALUES (${createId('key')}, ${projectId}, (SELECT workspace_id FROM projects WHERE id = ${projectId}), 'person',
      ${personId}, '', ${timeToSql(at)}, ${personId}, (SELECT limits FROM api_keys WHERE project_id = ${projectId}
        AND owner_id = ${personId} AND kind = 'person' ORDER BY id DESC LIMIT 1)) ON CONFLICT DO NOTHING`
  const [key] = await sql<{ id: KeyId }>`SELECT id FROM api_keys WHERE project_id = ${projectId}
    AND owner_id = ${personId} AND kind = 'person' AND revoked_at IS NULL`
  assert(key, 'a person has a key after signing in')
  return key.id
}
