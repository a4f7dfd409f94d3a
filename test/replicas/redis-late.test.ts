// Redis that is there but slow, seen through a network that delays its answers. As long as it answers at all it counts
// for all; who goes on with a share says so to it, and keeps to what was left.

import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../src/kernel/clock.ts'
import type { Admission, RateScope } from '../../src/limits/limiter.ts'
import { createRedisLoads } from '../../src/limits/redis-loads.ts'
import { SharedLimiter } from '../../src/limits/shared-limiter.ts'
import { openRedis } from '../../src/store/redis.ts'
import { findRedisProgram, startRedis } from '../parts/redis.ts'
import { type SlowNetwork, startSlowNetwork } from '../parts/slow-network.ts'

const atOnce = 12
const keyScope = (id: `key_${string}`): RateScope => {
  return { kind: 'key', id, name: 'ci', limits: { concurrentRequests: atOnce } }
}
const scope = keyScope('key_1')
/** So long that an answer is in time on any machine. */
const longTimeoutMs = 60_000
/** Short, so that a delayed answer is late soon. */
const timeoutMs = 500
/** Always later than that: both timers run in this process, in the order in which they are due. */
const lateMs = 1200

interface Replica {
  readonly network: SlowNetwork
  readonly limiter: SharedLimiter
}

interface Replicas extends AsyncDisposable {
  readonly all: readonly [Replica, Replica, Replica]
}

/** Three limiters with so much patience, each with a separate network to one Redis. */
async function startReplicas(timeoutsMs: readonly [number, number, number]): Promise<Replicas> {
  const server = await startRedis()
  const target = Number(new URL(server.url).port)
  const started = await Promise.all(
    timeoutsMs.map(async (timeoutMs) => {
      const network = startSlowNetwork(target, 0)
      const redis = openRedis({ url: `redis://127.0.0.1:${network.port}` })
      while (!redis.connected) await Bun.sleep(5)
      const limiter = new SharedLimiter({
        store: createRedisLoads(redis),
        clock: systemClock,
        liveReplicas: () => 3,
        timeoutMs,
      })
      // Its script is known to the server from here on.
      const first = await limiter.admit([keyScope('key_0')], 0)
      if (first.kind === 'admitted') first.end(0)
      await untilShared(limiter)
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

/** On a slow machine an answer that was not delayed may be late too. */
async function untilShared(...limiters: readonly SharedLimiter[]): Promise<void> {
  while (limiters.some(({ mode }) => mode.kind !== 'shared')) await Bun.sleep(5)
  for (const limiter of limiters) await limiter.settled()
}

/** All at once; the admissions. */
async function ask({ limiter }: Replica, count: number): Promise<readonly Admission[]> {
  const verdicts = await Promise.all(Array.from({ length: count }, () => limiter.admit([scope], 0)))
  return verdicts.filter((verdict) => verdict.kind === 'admitted')
}

/** One, again if the answer was late. */
async function askInTime(replica: Replica): Promise<readonly Admission[]> {
  for (;;) {
    const admissions = await ask(replica, 1)
    if (replica.limiter.mode.kind === 'shared') return admissions
    endAll(admissions)
    await untilShared(replica.limiter)
  }
}

const endAll = (admissions: readonly Admission[]) => {
  for (const admission of admissions) admission.end(0)
}

describe.skipIf(findRedisProgram() === undefined)('redis that answers late', () => {
  test('counts for all replicas as long as it answers in time', async () => {
    await using replicas = await startReplicas([longTimeoutMs, longTimeoutMs, longTimeoutMs])
    const { all } = replicas
    for (const [at, { network }] of all.entries()) network.delayMs = [0, 250, 500][at] ?? 0
    const admitted = (await Promise.all(all.map((replica) => ask(replica, 50)))).flat()
    expect(admitted).toHaveLength(atOnce)
    expect(all.map(({ limiter }) => limiter.mode.kind)).toEqual(['shared', 'shared', 'shared'])
    endAll(admitted)
  })

  test('for two of three: they have their shares and no more, and the third leaves them room', async () => {
    await using replicas = await startReplicas([longTimeoutMs, timeoutMs, timeoutMs])
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
    await untilShared(second.limiter, third.limiter)
    endAll(late)
    await Promise.all(replicas.all.map(({ limiter }) => limiter.settled()))
    endAll(await ask(first, 50))
  })

  test('to one who knows that all is taken: it admits none, and of what was left it takes its part', async () => {
    await using replicas = await startReplicas([longTimeoutMs, timeoutMs, timeoutMs])
    const [first, second] = replicas.all
    const early = await ask(first, 9)
    // The reply to the one that it gets says that three were left.
    const one = await askInTime(second)
    expect([early.length, one.length]).toEqual([9, 1])
    second.network.delayMs = lateMs
    // Two of twelve are free: one for each, and nine and one run.
    const more = await ask(second, 50)
    expect(second.limiter.mode.kind).toBe('share')
    expect(more).toHaveLength(1)
    endAll([...early, ...one, ...more])
  })
})
