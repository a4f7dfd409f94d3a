// A key that is revoked on one replica is refused by all, although each remembers it: through PostgreSQL, and through
// Redis without looking at a table.

import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../src/kernel/clock.ts'
import { Failure } from '../../src/kernel/failure.ts'
import type { Database } from '../../src/store/database.ts'
import { openRedis, type Redis } from '../../src/store/redis.ts'
import { createVerifier } from '../../src/tenancy/api-key.ts'
import { createAuthenticator } from '../../src/tenancy/authenticate.ts'
import { changeOf, createChanges } from '../../src/tenancy/changes.ts'
import { createKey, revokeKey } from '../../src/tenancy/keys.ts'
import { insertProject, insertWorkspace } from '../../src/tenancy/workspaces.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { findRedisProgram, startRedis } from '../parts/redis.ts'
import { openPostgresStore } from './postgres-store.ts'

const pepper = Uint8Array.from({ length: 32 }, (_, at) => at)
const act = { actor: 'test', at: 0 }

/** It remembers keys for an hour: whatever it notices before, it was notified of. */
function startReplica(database: Database, redis?: Redis) {
  const authenticator = createAuthenticator({ database, pepper, clock: systemClock, cacheTtlMs: 3_600_000 })
  const changes = createChanges({
    database,
    redis,
    clock: systemClock,
    onChange: (change) => {
      if (change.kind === 'key') authenticator.invalidate(change.id)
    },
    onGap: () => {},
    pollMs: redis ? 0 : 50,
  })
  return { changes, authenticator }
}

async function addKey(database: Database) {
  const made = await database.transaction(async (sql) => {
    const workspaceId = await insertWorkspace(sql, { name: 'acme', createdAt: 0 })
    const projectId = await insertProject(sql, { workspaceId, name: 'web', createdAt: 0 })
    return await createKey(sql, { projectId, name: 'ci' }, act, createVerifier(pepper))
  })
  return { id: made.key.id, headers: new Headers({ authorization: `Bearer ${made.secret}` }) }
}

async function revokeEverywhere(database: Database, redis?: Redis): Promise<void> {
  const replicas = [1, 2, 3].map(() => startReplica(database, redis))
  const { id, headers } = await addKey(database)
  const ask = () => Promise.all(replicas.map(({ authenticator }) => authenticator.authenticate(headers)))
  expect((await ask()).some((verdict) => verdict instanceof Failure)).toBe(false)
  const [here] = replicas
  await database.transaction((sql) => revokeKey(sql, id, act))
  // Each still remembers it.
  expect((await ask()).some((verdict) => verdict instanceof Failure)).toBe(false)
  here?.authenticator.invalidate(id)
  await here?.changes.announce(changeOf(id))
  while (!(await ask()).every((verdict) => verdict instanceof Failure)) await Bun.sleep(5)
  for (const { changes } of replicas) changes.close()
}

describe.skipIf(findPostgresPrograms() === undefined)('a revoked key is refused by all replicas', () => {
  test('on postgres alone', async () => {
    await using store = await openPostgresStore()
    await revokeEverywhere(store.database)
  })

  test.skipIf(findRedisProgram() === undefined)('at once with redis', async () => {
    await using store = await openPostgresStore()
    await using server = await startRedis()
    const redis = openRedis({ url: server.url })
    while (!redis.connected) await Bun.sleep(5)
    await revokeEverywhere(store.database, redis)
    redis.close()
  })
})
