// Who may call and how much: keys, the credentials that workspaces bring, and rate limits. Replicas on PostgreSQL share limits
// and notify each other of changes; a process on the embedded database is alone and pays nothing for that.

import type { KeyId, PersonId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import type { Limiter } from '../limits/limiter.ts'
import { createMemoryLimiter } from '../limits/memory-limiter.ts'
import { createRedisLoads } from '../limits/redis-loads.ts'
import { type LimiterMode, SharedLimiter } from '../limits/shared-limiter.ts'
import { createLiveReplicas, createSqlLoads } from '../limits/sql-loads.ts'
import { openRedis } from '../store/redis.ts'
import { createSharedCache } from '../store/shared-cache.ts'
import { createAccessTokens } from '../tenancy/access-tokens.ts'
import { createVerifier } from '../tenancy/api-key.ts'
import { createAuthenticator, createLastUsed, lastUsedFlushMs } from '../tenancy/authenticate.ts'
import { type Change, changeOf, createChanges } from '../tenancy/changes.ts'
import { createCredentialCache } from '../tenancy/credentials.ts'
import { createKeyRing } from '../tenancy/sealing.ts'
import { type Base, errorFields, type Storage } from './open-storage.ts'

interface AuthDependencies extends Base {
  readonly storage: Storage
  /** Another replica changed a price. */
  onPriceChange(): void
  /** This replica or another changed what keys and projects may use. */
  onAccessChange(): void
}

export type Auth = ReturnType<typeof createAuth>

const embeddedKeysMs = 10 * 60_000

export function createAuth(deps: AuthDependencies) {
  const { storage, source, clock, log, onAccessChange } = deps
  const { database } = storage
  const pepper = storage.subkeys('api-key-pepper')
  const accessTokens = createAccessTokens(storage.subkeys('access-token'))
  const lastUsed = createLastUsed({
    database,
    clock,
    onFault: (error) => log.warn('cannot write when keys were last used', errorFields(error)),
  })
  const flushing = setInterval(() => void lastUsed.flush(), lastUsedFlushMs)
  const authenticator = createAuthenticator({
    database,
    pepper: pepper.current,
    previousPepper: pepper.previous,
    accessTokens,
    clock,
    keyLimits: () => source.current.limits,
    noteUse: lastUsed.note,
    // Without replicas every change is made in this process, which forgets what it concerns.
    ...(database.engine === 'sqlite' && { cacheTtlMs: embeddedKeysMs }),
  })
  // Cached keys carry the default limits of the time they were looked up.
  let limits = JSON.stringify(source.current.limits)
  source.onChange((config) => {
    const changed = JSON.stringify(config.limits)
    if (changed !== limits) authenticator.invalidateAll()
    limits = changed
    return undefined
  })
  const keyRing = createKeyRing(storage.secret, storage.previousSecret)
  const credentials = createCredentialCache({ database, keys: keyRing, clock })
  const applyChange = (change: Change): void => {
    if (change.kind === 'price') return deps.onPriceChange()
    // Every replica watches its own configuration file.
    if (change.kind === 'config') return
    if (change.kind === 'credential') credentials.delete(change.id)
    else authenticator.invalidate(change.id)
    onAccessChange()
  }
  const { close: closeReplication, ...replication } = createReplication(deps, applyChange)
  const changed = (change: Change): void => {
    applyChange(change)
    void replication.changes.announce(change)
  }
  return {
    ...replication,
    authenticate: authenticator.authenticate,
    authenticateKey: authenticator.authenticateKey,
    accessTokens,
    computeVerifier: createVerifier(pepper.current),
    keyRing,
    credentials,
    /** Applies a changed key, project, workspace or role of a person: immediately here, within a second on other replicas. */
    invalidate: (id: KeyId | ProjectId | WorkspaceId | PersonId) => changed(changeOf(id)),
    forgetCredentials: (id: WorkspaceId) => changed({ kind: 'credential', id }),
    async close(): Promise<void> {
      await closeReplication()
      clearInterval(flushing)
      await lastUsed.flush()
    },
  }
}

function createReplication(
  { storage: { database }, source, clock, log, onPriceChange, onAccessChange }: AuthDependencies,
  onChange: (change: Change) => void,
) {
  const { redisUrl } = source.current
  const isShared = database.engine === 'postgres'
  const report = (line: string): void => log.warn(line)
  const redis = isShared && redisUrl ? openRedis({ url: redisUrl.reveal(), report }) : undefined
  const live = createLiveReplicas(database)
  const onMode = (mode: LimiterMode): void => {
    report(describeMode(mode))
    // The share must come from the replicas that are alive now, not some seconds ago.
    if (mode.kind === 'share') void live.refresh()
  }
  let shared: SharedLimiter | undefined
  if (isShared) {
    const store = redis ? createRedisLoads(redis) : createSqlLoads(database)
    shared = new SharedLimiter({ store, clock, liveReplicas: () => live.count(), onMode })
  }
  const changes = createChanges({
    database,
    ...(redis && { redis }),
    clock,
    onChange,
    // Cached keys expire within seconds, sooner than a gap is noticed, so only the rest is reloaded.
    onGap() {
      onPriceChange()
      onAccessChange()
    },
    onFault: (error) => log.warn('cannot read the changes made by other replicas', errorFields(error)),
  })
  const limiter: Limiter = shared ?? createMemoryLimiter(clock)
  return {
    limiter,
    /** share: the shared store is unreachable, and this process allows its share of each limit. */
    limiterMode: () => shared?.mode.kind ?? 'shared',
    /** undefined while limits are counted where they should be. */
    degraded: () => (shared && shared.mode.kind !== 'shared' ? describeMode(shared.mode) : undefined),
    changes,
    /** State that replicas share beyond limits; undefined without Redis. */
    sharedCache: (name: string) => redis && createSharedCache(redis, name),
    async close(): Promise<void> {
      await shared?.close()
      await changes.close()
      live.close()
      redis?.close()
    },
  }
}

function describeMode(mode: LimiterMode): string {
  if (mode.kind === 'shared') return 'limits are counted together again'
  return `limits are counted per replica, each with a share of one in ${mode.replicas}: ${mode.why}`
}
