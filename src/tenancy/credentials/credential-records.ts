// Reads and writes the rows of credentials, always of one workspace. Writing takes a secret; reading gives what may be
// shown, or the row as it is stored, still encrypted.

import { assert } from '../../kernel/assert.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import { type Sql, timeFromSql, timeToSql } from '../../store/sql.ts'
import type { CredentialId, CredentialSummary, NewCredential } from './credential.ts'
import { type Belonging, type Envelope, sealSecret } from './envelope.ts'
import type { KeyRing } from './key-ring.ts'

/** A shorter secret is not shown in part: four characters would be more than half of it. */
const shownLengthMin = 8

/** Replaces the workspace's credential for this provider, if there is one. Afterwards: `forget` in the cache. */
export async function putCredential(sql: Sql, credential: NewCredential, keys: KeyRing): Promise<CredentialSummary> {
  const { workspaceId, provider, apiKey, name = apiKey.reveal(), origin, baseUrl, storedAt } = credential
  assert(apiKey.reveal() !== '', 'a stored key says something')
  assert(originOf(baseUrl ?? origin) === origin, 'a credential goes to the origin of its base URL')
  const id: CredentialId = `cred_${Bun.randomUUIDv7().replaceAll('-', '')}`
  const envelope = sealSecret(apiKey, { id, workspaceId, provider, origin, baseUrl }, keys.current)
  const last4 = name.length < shownLengthMin ? '' : name.slice(-4)
  const row = {
    workspace_id: workspaceId,
    provider,
    id,
    origin,
    base_url: baseUrl ?? null,
    ciphertext: envelope.ciphertext,
    wrapped_key: envelope.wrappedKey,
    key_version: envelope.keyVersion,
    last4,
    created_at: timeToSql(storedAt),
    updated_at: timeToSql(storedAt),
  }
  const [stored] = await sql<{ created_at: bigint }>`
    INSERT INTO credentials ${sql([row])}
    ON CONFLICT (workspace_id, provider) DO UPDATE SET
      id = excluded.id, origin = excluded.origin, base_url = excluded.base_url, ciphertext = excluded.ciphertext,
      wrapped_key = excluded.wrapped_key, key_version = excluded.key_version, last4 = excluded.last4,
      updated_at = excluded.updated_at
    RETURNING created_at`
  assert(stored !== undefined, 'a credential is stored or the statement throws')
  return { id, provider, last4, baseUrl, createdAt: timeFromSql(stored.created_at), updatedAt: storedAt }
}

/** False: there was none. Afterwards: `forget` in the cache. */
export async function deleteCredential(sql: Sql, workspaceId: WorkspaceId, provider: string): Promise<boolean> {
  const deleted = await sql`
    DELETE FROM credentials WHERE workspace_id = ${workspaceId} AND provider = ${provider} RETURNING id`
  return deleted.length === 1
}

interface SummaryRow {
  readonly id: CredentialId
  readonly provider: string
  readonly last4: string
  readonly base_url: string | null
  readonly created_at: bigint
  readonly updated_at: bigint
}

/** Sorted by provider. */
export async function listCredentials(sql: Sql, workspaceId: WorkspaceId): Promise<readonly CredentialSummary[]> {
  const rows = await sql<SummaryRow>`
    SELECT id, provider, last4, base_url, created_at, updated_at FROM credentials WHERE workspace_id = ${workspaceId}`
  return rows
    .map((row) => ({
      id: row.id,
      provider: row.provider,
      last4: row.last4,
      baseUrl: row.base_url ?? undefined,
      createdAt: timeFromSql(row.created_at),
      updatedAt: timeFromSql(row.updated_at),
    }))
    .sort((a, b) => (a.provider < b.provider ? -1 : 1))
}

/** A row as it is stored, with what it must be bound to in order to open. */
export type SealedCredential = Belonging & Envelope

export interface SealedRow {
  readonly id: CredentialId
  readonly workspace_id: WorkspaceId
  readonly provider: string
  readonly origin: string
  readonly base_url: string | null
  readonly ciphertext: string
  readonly wrapped_key: string
  readonly key_version: string
}

export async function readSealed(sql: Sql, workspaceId: WorkspaceId): Promise<readonly SealedCredential[]> {
  const rows = await sql<SealedRow>`
    SELECT id, workspace_id, provider, origin, base_url, ciphertext, wrapped_key, key_version
    FROM credentials WHERE workspace_id = ${workspaceId}`
  return rows.map(sealedFromRow)
}

export function sealedFromRow(row: SealedRow): SealedCredential {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    provider: row.provider,
    origin: row.origin,
    baseUrl: row.base_url ?? undefined,
    ciphertext: row.ciphertext,
    wrappedKey: row.wrapped_key,
    keyVersion: row.key_version,
  }
}

function originOf(url: string): string | undefined {
  return URL.parse(url)?.origin
}
