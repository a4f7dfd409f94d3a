// What several replicas share: limits, and news of what one of them changed. A process on the embedded engine is alone,
// and then none of it costs anything.

import type { Config } from '../config/config.ts'
import type { Clock } from '../kernel/clock.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import type { Limiter } from '../limits/limiter.ts'
import { createMemoryLimiter } from '../limits/memory-limiter.ts'
import { createRedisLoads } from '../limits/redis-loads.ts'
import { createSharedLimiter, type LimiterMode, type SharedLimiter } from '../limits/shared-limiter.ts'
import { createLiveReplicas, createSqlLoads } from '../limits/sql-loads.ts'
import { openRedis } from '../store/redis.ts'
import type { Log } from '../telemetry/log.ts'
import { type Change, changeOf } from '../tenancy/changes/change.ts'
import { type Changes, createChanges } from '../tenancy/changes/changes.ts'
import { errorFields } from './error-fields.ts'
import type { Ground } from './ground.ts'
import type { People } from './people.ts'

export interface FleetDependencies {
  readonly ground: Ground
  readonly people: People
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  /** A replica has changed a price. */
  onPriceChange(): void
  /** What keys and projects can use may be something else now, by this replica or another. */
  onAccessChange(): void
}

export interface Fleet {
  readonly limiter: Limiter
  /** undefined while limits are counted where they should be. */
  degraded(): string | undefined
  /** share: their common store is away, and this process lets through its part of each limit. */
  limiterMode(): 'shared' | 'share'
  /** After a key, a project or a workspace changed: here at once, on the others within seconds. */
  invalidate: People['invalidate']
  forgetCredentials(workspaceId: WorkspaceId): void
  /** Of prices: told with the change itself, because nobody would notice one that was not. */
  readonly changes: Pick<Changes, 'record' | 'tell'>
  close(): Promise<void>
}

export function createFleet(deps: FleetDependencies): Fleet {
  const { ground, people, config, clock, log, onPriceChange, onAccessChange } = deps
  const { database } = ground
  const isShared = database.engine === 'postgres'
  const report = (line: string): void => log.warn(line)
  const redis = isShared && config.redisUrl ? openRedis({ url: config.redisUrl.reveal(), report }) : undefined
  const live = createLiveReplicas(database)
  const onMode = (mode: LimiterMode): void => {
    report(describeMode(mode))
    // The share is that of those who live now, not of those who did some seconds ago.
    if (mode.kind === 'share') void live.refresh()
  }
  let shared: SharedLimiter | undefined
  if (isShared) {
    const store = redis ? createRedisLoads(redis) : createSqlLoads(database)
    shared = createSharedLimiter({ store, clock, liveReplicas: () => live.count(), onMode })
  }
  const changes = createChanges({
    database,
    ...(redis && { redis }),
    clock,
    onChange: (change) => follow(change, deps),
    // What is remembered of keys lives for seconds only, which is shorter than a gap that is noticed.
    onGap() {
      onPriceChange()
      onAccessChange()
    },
    onFault: (error) => log.warn('changes of other replicas could not be read', errorFields(error)),
  })
  const announce = (change: Change): void =>
    void changes.announce(change).catch((error) => log.warn('a change was not announced', errorFields(error)))
  return {
    limiter: shared ?? createMemoryLimiter(clock),
    limiterMode: () => (shared?.mode.kind === 'share' ? 'share' : 'shared'),
    degraded: () => (shared && shared.mode.kind !== 'shared' ? describeMode(shared.mode) : undefined),
    invalidate(id) {
      people.invalidate(id)
      onAccessChange()
      announce(changeOf(id))
    },
    forgetCredentials(workspaceId) {
      people.credentials.forget(workspaceId)
      onAccessChange()
      announce({ kind: 'credential', id: workspaceId })
    },
    changes,
    async close() {
      await shared?.close()
      await changes.close()
      live.close()
      redis?.close()
    },
  }
}

function follow(change: Change, { people, onAccessChange, onPriceChange }: FleetDependencies): void {
  switch (change.kind) {
    case 'key':
    case 'project':
    case 'workspace':
      people.invalidate(change.id)
      return onAccessChange()
    case 'credential':
      people.credentials.forget(change.id)
      return onAccessChange()
    case 'price':
      return onPriceChange()
    case 'config':
      // Every replica watches its own file.
      return
  }
}

function describeMode(mode: LimiterMode): string {
  if (mode.kind === 'shared') return 'limits are counted together again'
  return `limits are counted per replica, each with a share of one in ${mode.replicas}: ${mode.why}`
}
