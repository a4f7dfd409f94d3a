// Redis that is there but slow, seen through a network that delays its answers. As long as it answers at all it counts
// for all; who goes on with a share says so to it, and keeps to what was left.

import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../src/kernel/clock.ts'
import type { LimitScope } from '../../src/limits/limit.ts'
import type { Admission } from '../../src/limits/limiter.ts'
import { createRedisLimiter } from '../../src/limits/shared/redis-limiter.ts'
import type { SharedLimiter } from '../../src/limits/shared/shared-limiter.ts'
import { openRedis } from '../../src/store/redis.ts'
import { findRedisProgram, startRedis } from '../parts/redis.ts'
import { type SlowNetwork, startSlowNetwork } from '../parts/slow-network.ts'

const atOnce = 12
const keyScope = (id: `key_${string}`): LimitScope => {
  return { kind: 'key', id, name: 'ci', limits: { concurrentRequests: atOnce } }
}
const scope = keyScope('key_1')
/** Short, so that what is late is so soon; long enough for an answer that is not delayed. */
const patienceMs = 200
const lateMs = 600

interface Replica {
  readonly network: SlowNetwork
  readonly limiter: SharedLimiter
}

interface Replicas extends AsyncDisposable {
  readonly all: readonly [Replica, Replica, Replica]
}

/** Three limiters, each with a network of its own to one Redis. */
async function startReplicas(options: { readonly patienceMs?: number } = {}): Promise<Replicas> {
  const server = await startRedis()
  const target = Number(new URL(server.url).port)
  const started = await Promise.all(
    [1, 2, 3].map(async () => {
      const network = startSlowNetwork(target, 0)
      const redis = openRedis({ url: `redis://127.0.0.1:${network.port}` })
      while (!redis.connected) await Bun.sleep(5)
      const limiter = createRedisLimiter({ redis, clock: systemClock, liveReplicas: () => 3, ...options })
      // Its script is known to the server from here on.
      const first = await limiter.admit([keyScope('key_0')], 0)
      if (first.kind === 'admitted') first.end(undefined)
      await limiter.settled()
      return { network, limiter, redis }
    }),
  )
  return {
    all: started as unknown as Replicas['all'],
    async [Symbol.asyncDispose]() {
      for (const { limiter, redis, network } of started) {
        network.delayMs = 0
        await limiter.close()
        redis.close()
        network[Symbol.dispose]()
      }
      await server[Symbol.asyncDispose]()
    },
  }
}

/** All at once; the admissions. */
async function ask({ limiter }: Replica, count: number): Promise<readonly Admission[]> {
  const verdicts = await Promise.all(Array.from({ length: count }, () => limiter.admit([scope], 0)))
  return verdicts.filter((verdict) => verdict.kind === 'admitted')
}

const endAll = (admissions: readonly Admission[]) => {
  for (const admission of admissions) admission.end(undefined)
}

describe.skipIf(findRedisProgram() === undefined)('redis that answers late', () => {
  test('counts for all replicas as long as it answers within a second', async () => {
    await using replicas = await startReplicas()
    const { all } = replicas
    for (const [at, { network }] of all.entries()) network.delayMs = [0, 250, 500][at] ?? 0
    const admitted = (await Promise.all(all.map((replica) => ask(replica, 50)))).flat()
    expect(admitted).toHaveLength(atOnce)
    expect(all.map(({ limiter }) => limiter.mode.kind)).toEqual(['shared', 'shared', 'shared'])
    endAll(admitted)
  }, 120_000)

  test('for two of three: they have their shares and no more, and the third leaves them room', async () => {
    await using replicas = await startReplicas({ patienceMs })
    const [first, second, third] = replicas.all
    const early = await ask(first, 50)
    expect(early).toHaveLength(atOnce)
    // New to the key, they cannot know that nothing is left of it.
    for (const { network } of [second, third]) network.delayMs = lateMs
    const late = (await Promise.all([second, third].map((replica) => ask(replica, 50)))).flat()
    expect(late).toHaveLength(8)
    expect([second, third].map(({ limiter }) => limiter.mode.kind)).toEqual(['share', 'share'])

    // From now on Redis knows of the eight, though its answers come too late to be waited for.
    endAll(early)
    await first.limiter.settled()
    const seen = async () => {
      const again = await ask(first, 50)
      endAll(again)
      await first.limiter.settled()
      return again.length
    }
    while ((await seen()) !== 4) await Bun.sleep(20)
    expect([second, third].map(({ limiter }) => limiter.mode.kind)).toEqual(['share', 'share'])
    // Late answers do not bring it back; answers in time do.
    for (const { network } of [second, third]) network.delayMs = 0
    while ([second, third].some(({ limiter }) => limiter.mode.kind !== 'shared')) await Bun.sleep(5)
    endAll(late)
    await Promise.all(replicas.all.map(({ limiter }) => limiter.settled()))
    endAll(await ask(first, 50))
  }, 120_000)

  test('to one who knows that all is taken: it lets nobody through, and of what was left it takes its part', async () => {
    await using replicas = await startReplicas({ patienceMs })
    const [first, second] = replicas.all
    const early = await ask(first, 9)
    // Of three that are left it is told, with the one that it gets.
    const one = await ask(second, 1)
    expect([early.length, one.length]).toEqual([9, 1])
    second.network.delayMs = lateMs
    // Two of twelve are free: one for each, and nine and one run.
    const more = await ask(second, 50)
    expect(second.limiter.mode.kind).toBe('share')
    expect(more).toHaveLength(1)
    endAll([...early, ...one, ...more])
  }, 120_000)
})
