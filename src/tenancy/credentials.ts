// Credentials: provider keys that a workspace brings. A secret is written once and only decrypted for dispatch; what can
// be read of it are its last four characters. Every statement is limited to one workspace.

import type { Clock } from '../kernel/clock.ts'
import { assert } from '../kernel/failure.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import { Secret } from '../kernel/secret.ts'
import { type ItemIn, optional, rowFormat, text, time } from '../store/columns.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeFromSql } from '../store/sql.ts'
import { LoadingCache } from './loading-cache.ts'
import { type CredentialId, type KeyRing, openEnvelope, sealSecret } from './sealing.ts'

export interface NewCredential {
  readonly workspaceId: WorkspaceId
  readonly provider: string
  /** Already validated; by `apiKeyFault` if it is sent in a header. */
  readonly apiKey: Secret
  /** Identifies a secret whose end says nothing, such as a key file; its last four characters are shown. */
  readonly name?: string
  /** The only origin it may be sent to: that of `baseUrl`, or of the provider's endpoint. */
  readonly origin: string
  /** Without a trailing slash; absent = the provider's. Must have passed the egress guard. */
  readonly baseUrl?: string
  readonly storedAt: number
}

/** Everything that can be read of a credential. */
const summaryRow = rowFormat({
  id: text<CredentialId>(),
  provider: text(),
  /** Empty if the secret is so short that four characters would be most of it. */
  last4: text(),
  baseUrl: optional(text()),
  createdAt: time,
  /** When the secret was last replaced. */
  updatedAt: time,
})

export type CredentialSummary = ItemIn<typeof summaryRow>

/** Ready for dispatch. */
export interface OpenedCredential {
  readonly id: CredentialId
  readonly apiKey: Secret
  readonly baseUrl: string | undefined
  /** Dispatch compares it with the origin it is about to call; see mayBeSentTo. */
  readonly origin: string
}

/** Cannot be used. The operator's key must not silently take its place. */
export interface BrokenCredential {
  readonly id: CredentialId
  /**
   * `unknown_secret`: encrypted under a master secret that this process does not have, for example because a rotation was
   * ended too early. `altered`: the row is not what was written; the key must be stored again.
   */
  readonly fault: 'unknown_secret' | 'altered'
}

/** By provider. */
export type WorkspaceCredentials = ReadonlyMap<string, OpenedCredential | BrokenCredential>

/** Long enough for any provider's key and short enough for one header. */
const apiKeyLengthMax = 4096

/** Why a text cannot be a key; undefined = it can. It is sent in a header, so only visible ASCII is valid. */
export function apiKeyFault(text: string): string | undefined {
  if (text === '') return 'must not be empty'
  if (text.length > apiKeyLengthMax) return `must have at most ${apiKeyLengthMax} characters`
  if (!/^[\x21-\x7e]+$/.test(text)) return 'must be letters, digits and signs only, without spaces and line breaks'
  return undefined
}

/** Whether a URL has the origin that the credential was stored for. Any other would receive a key that is not its own. */
export function mayBeSentTo(credential: OpenedCredential, url: string): boolean {
  return URL.parse(url)?.origin === credential.origin
}

/** In a shorter secret, four characters would be more than half. */
const shownLengthMin = 8

/** Replaces the workspace's credential for this provider, if there is one. Call `delete` of the cache afterwards. */
export async function putCredential(sql: Sql, credential: NewCredential, keys: KeyRing): Promise<CredentialSummary> {
  const { workspaceId, provider, apiKey, name = apiKey.reveal(), origin, baseUrl, storedAt } = credential
  assert(apiKey.reveal() !== '', 'a stored key is not empty')
  assert(URL.parse(baseUrl ?? origin)?.origin === origin, 'a credential goes to the origin of its base URL')
  const id: CredentialId = `cred_${Bun.randomUUIDv7().replaceAll('-', '')}`
  const envelope = sealSecret(apiKey, { id, workspaceId, provider, origin, baseUrl }, keys.current)
  const last4 = name.length < shownLengthMin ? '' : name.slice(-4)
  const summary = { id, provider, last4, baseUrl, createdAt: storedAt, updatedAt: storedAt }
  const row = {
    ...sealedRow.write({ ...envelope, id, workspaceId, provider, origin, baseUrl }),
    ...summaryRow.write(summary),
  }
  const [stored] = await sql<{ created_at: bigint }>`
    INSERT INTO credentials ${sql([row])}
    ON CONFLICT (workspace_id, provider) DO UPDATE SET
      id = excluded.id, origin = excluded.origin, base_url = excluded.base_url, ciphertext = excluded.ciphertext,
      wrapped_key = excluded.wrapped_key, key_version = excluded.key_version, last4 = excluded.last4,
      updated_at = excluded.updated_at
    RETURNING created_at`
  assert(stored !== undefined, 'a credential is stored or the statement throws')
  return { ...summary, createdAt: timeFromSql(stored.created_at) }
}

/** false = there was none. Call `delete` of the cache afterwards. */
export async function deleteCredential(sql: Sql, workspaceId: WorkspaceId, provider: string): Promise<boolean> {
  const deleted = await sql`
    DELETE FROM credentials WHERE workspace_id = ${workspaceId} AND provider = ${provider} RETURNING id`
  return deleted.length === 1
}

/** Sorted by provider. */
export async function listCredentials(sql: Sql, workspaceId: WorkspaceId): Promise<readonly CredentialSummary[]> {
  const rows = await sql`
    SELECT id, provider, last4, base_url, created_at, updated_at FROM credentials WHERE workspace_id = ${workspaceId}`
  return summaryRow.all(rows).sort((a, b) => (a.provider < b.provider ? -1 : 1))
}

/** A stored row, still encrypted, with what it is bound to. */
export const sealedRow = rowFormat({
  id: text<CredentialId>(),
  workspaceId: text<WorkspaceId>(),
  provider: text(),
  origin: text(),
  baseUrl: optional(text()),
  ciphertext: text(),
  wrappedKey: text(),
  keyVersion: text(),
})

export type SealedCredential = ItemIn<typeof sealedRow>

export async function readSealed(sql: Sql, workspaceId: WorkspaceId): Promise<readonly SealedCredential[]> {
  return sealedRow.all(await sql`SELECT * FROM credentials WHERE workspace_id = ${workspaceId}`)
}

/** Mostly empty maps; with ten credentials of 500 bytes each 50 MB, and a key file more for each that is one. */
const workspacesMax = 10_000
const ttlLimitMs = 60_000

export interface CredentialCacheOptions {
  readonly database: Database
  readonly keys: KeyRing
  readonly clock: Clock
  /** How long a change made by another replica may go unnoticed; at most a minute. */
  readonly ttlMs?: number
}

/**
 * The only place that keeps decrypted secrets, for a few seconds. Call `delete` after a credential was written or deleted
 * here, once that is committed.
 */
export type CredentialCache = LoadingCache<WorkspaceId, WorkspaceCredentials>

export function createCredentialCache(options: CredentialCacheOptions): CredentialCache {
  const { database, keys, clock, ttlMs = 5000 } = options
  assert(ttlMs <= ttlLimitMs, 'opened secrets are kept for a minute at most')
  return new LoadingCache({
    ...{ clock, ttlMs, max: workspacesMax },
    async load(workspaceId) {
      const sealed = await readSealed(database.sql, workspaceId)
      return new Map(sealed.map((credential) => [credential.provider, openCredential(credential, keys)]))
    },
  })
}

function openCredential(sealed: SealedCredential, keys: KeyRing): OpenedCredential | BrokenCredential {
  const { id, baseUrl, origin } = sealed
  const opened = openEnvelope(sealed, sealed, keys)
  return opened instanceof Secret ? { id, apiKey: opened, baseUrl, origin } : { id, fault: opened }
}
