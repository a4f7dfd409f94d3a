// A workspace's credentials, decrypted and remembered for a few seconds, so that a request costs no promise, no query
// and no decryption. The only place where opened secrets stay, and they do not stay long.

import { assert } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import { Secret } from '../../kernel/secret.ts'
import type { Database } from '../../store/database.ts'
import type { BrokenCredential, OpenedCredential, WorkspaceCredentials } from './credential.ts'
import { readSealed, type SealedCredential } from './credential-records.ts'
import { openEnvelope } from './envelope.ts'
import type { KeyRing } from './key-ring.ts'

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
