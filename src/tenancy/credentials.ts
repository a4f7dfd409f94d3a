// What a credential is to the rest of the house: a provider's key that a workspace brought. Its secret is written once
// and from then on only opened for dispatch; people see the last four characters.

import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import { Secret } from '../kernel/secret.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import { type Belonging, type CredentialId, type Envelope, type KeyRing, openEnvelope, sealSecret } from './envelope.ts'

export interface NewCredential {
  readonly workspaceId: WorkspaceId
  readonly provider: string
  /** Checked by how its provider takes it; apiKeyFault where it travels in a header. */
  readonly apiKey: Secret
  /** What people tell it by where the secret itself has no telling end; its last four characters are shown. */
  readonly name?: string
  /** The only place it may be sent to: the origin of `baseUrl`, or of the provider's own endpoint. */
  readonly origin: string
  /** Without a trailing slash; absent = the provider's own. Must have passed the egress guard. */
  readonly baseUrl?: string
  readonly storedAt: number
}

/** All that can be read of a credential. */
export interface CredentialSummary {
  readonly id: CredentialId
  readonly provider: string
  /** Empty for a secret so short that four characters would be most of it. */
  readonly last4: string
  readonly baseUrl: string | undefined
  readonly createdAt: number
  /** When the secret was last replaced. */
  readonly updatedAt: number
}

/** Ready for dispatch. */
export interface OpenedCredential {
  readonly id: CredentialId
  readonly apiKey: Secret
  readonly baseUrl: string | undefined
  /** Dispatch compares it with the origin it is about to call; see mayBeSentTo. */
  readonly origin: string
}

/** There is one, and it cannot be used. Never a reason to use somebody else's key without saying so. */
export interface BrokenCredential {
  readonly id: CredentialId
  /**
   * `unknown_secret`: encrypted under a master secret this process was not given, such as one left out too early in a
   * rotation. `altered`: the row is not what was written; only storing the key again helps.
   */
  readonly fault: 'unknown_secret' | 'altered'
}

/** By provider. */
export type WorkspaceCredentials = ReadonlyMap<string, OpenedCredential | BrokenCredential>

/** Long enough for any provider's key and short enough for one header. */
const apiKeyLengthMax = 4096

/** Why a text cannot be a key; undefined = it can. It travels in a header, so only visible ASCII passes. */
export function apiKeyFault(text: string): string | undefined {
  if (text === '') return 'must not be empty'
  if (text.length > apiKeyLengthMax) return `must have at most ${apiKeyLengthMax} characters`
  if (!/^[\x21-\x7e]+$/.test(text)) return 'must be letters, digits and signs only, without spaces and line breaks'
  return undefined
}

/** Whether a URL is where the credential was stored for; anywhere else would be giving the key away. */
export function mayBeSentTo(credential: OpenedCredential, url: string): boolean {
  return URL.parse(url)?.origin === credential.origin
}

// Reads and writes the rows of credentials, always of one workspace. Writing takes a secret; reading gives what may be
// shown, or the row as it is stored, still encrypted.

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

// A workspace's credentials, decrypted and remembered for a few seconds, so that a request costs no promise, no query
// and no decryption. The only place where opened secrets stay, and they do not stay long.

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

export interface CredentialCache {
  /** A promise only when the database has to be asked; it rejects as the database does. */
  open(workspaceId: WorkspaceId): WorkspaceCredentials | Promise<WorkspaceCredentials>
  /** After a credential was written or deleted here, once that is committed. */
  forget(workspaceId: WorkspaceId): void
}

interface Entry {
  readonly credentials: WorkspaceCredentials
  readonly loadedMs: number
}

export function createCredentialCache(options: CredentialCacheOptions): CredentialCache {
  const { database, keys, clock, ttlMs = 5000 } = options
  assert(ttlMs <= ttlLimitMs, 'opened secrets are kept for a minute at most')
  /** In the order of loading: the first is the oldest. */
  const entries = new Map<WorkspaceId, Entry>()
  /** One query per workspace at a time, however many requests wait for it. */
  const loading = new Map<WorkspaceId, Promise<WorkspaceCredentials>>()

  const isFresh = (entry: Entry) => clock.monotonicMs() - entry.loadedMs < ttlMs

  async function load(workspaceId: WorkspaceId): Promise<WorkspaceCredentials> {
    const sealed = await readSealed(database.sql, workspaceId)
    return new Map(sealed.map((credential) => [credential.provider, openCredential(credential, keys)]))
  }

  function startLoading(workspaceId: WorkspaceId): Promise<WorkspaceCredentials> {
    // The age counts from the question: what is read may have changed while it travelled.
    const loadedMs = clock.monotonicMs()
    const answer = load(workspaceId)
      .then((credentials) => {
        // Not remembered if it was forgotten in between: the answer may be from before the change.
        if (loading.get(workspaceId) === answer) remember(workspaceId, { credentials, loadedMs })
        return credentials
      })
      .finally(() => {
        if (loading.get(workspaceId) === answer) loading.delete(workspaceId)
      })
    loading.set(workspaceId, answer)
    return answer
  }

  function remember(workspaceId: WorkspaceId, entry: Entry): void {
    entries.delete(workspaceId)
    entries.set(workspaceId, entry)
    // Also drops the secrets of workspaces that no longer ask.
    for (const [oldest, { loadedMs }] of entries) {
      if (entries.size <= workspacesMax && clock.monotonicMs() - loadedMs < ttlMs) break
      entries.delete(oldest)
    }
  }

  return {
    open(workspaceId) {
      const entry = entries.get(workspaceId)
      if (entry !== undefined && isFresh(entry)) return entry.credentials
      return loading.get(workspaceId) ?? startLoading(workspaceId)
    },
    forget(workspaceId) {
      entries.delete(workspaceId)
      loading.delete(workspaceId)
    },
  }
}

function openCredential(sealed: SealedCredential, keys: KeyRing): OpenedCredential | BrokenCredential {
  const { id, baseUrl, origin } = sealed
  const opened = openEnvelope(sealed, sealed, keys)
  return opened instanceof Secret ? { id, apiKey: opened, baseUrl, origin } : { id, fault: opened }
}
