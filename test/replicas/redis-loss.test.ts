// Redis is killed, started empty, and made to hang under load: three limiters go on with their shares, never without a
// limit, and come back by themselves.

import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../src/kernel/clock.ts'
import type { RateScope } from '../../src/limits/limiter.ts'
import { createRedisLoads } from '../../src/limits/redis-loads.ts'
import { type LimiterMode, SharedLimiter } from '../../src/limits/shared-limiter.ts'
import { openRedis, type Redis } from '../../src/store/redis.ts'
import { findRedisProgram, startRedis } from '../parts/redis.ts'

const limit = 600
const scope: RateScope = { kind: 'key', id: 'key_1', name: 'ci', limits: { requestsPerMinute: limit } }

interface Load extends AsyncDisposable {
  readonly limiters: readonly SharedLimiter[]
  readonly admitted: number
  readonly askedInAll: number
  /**
   * The limit over the elapsed time, and one more limit for each loss of Redis. A slow machine may
   * lose it more often than the test takes it away.
   */
  allowed(): number
}

/** Three replicas, each asking all the time. */
async function startLoad(url: string): Promise<Load> {
  const clients = [1, 2, 3].map(() => openRedis({ url }))
  while (!clients.every(({ connected }) => connected)) await Bun.sleep(5)
  const losses = new Map<Redis, number>()
  const limiters = clients.map((redis) => {
    const onMode = ({ kind }: LimiterMode) => {
      if (kind === 'share') losses.set(redis, (losses.get(redis) ?? 0) + 1)
    }
    return new SharedLimiter({
      store: createRedisLoads(redis),
      clock: systemClock,
      liveReplicas: () => 3,
      timeoutMs: 500,
      onMode,
    })
  })
  const startedMs = systemClock.monotonicMs()
  const load = { limiters, admitted: 0, askedInAll: 0 }
  let stopped = false
  const ask = async (limiter: SharedLimiter) => {
    while (!stopped) {
      load.askedInAll++
      const verdict = await limiter.admit([scope], 0)
      if (verdict.kind === 'admitted') {
        load.admitted++
        verdict.end(0)
      }
      await Bun.sleep(1)
    }
  }
  const asking = limiters.map(ask)
  return Object.assign(load, {
    allowed: () => limit * (1 + (systemClock.monotonicMs() - startedMs) / 60_000 + Math.max(0, ...losses.values())),
    async [Symbol.asyncDispose]() {
      stopped = true
      await Promise.all(asking)
      for (const limiter of limiters) await limiter.close()
      for (const client of clients) client.close()
    },
  })
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(5)
}

const allIn = (load: Load, kind: 'shared' | 'share') => load.limiters.every(({ mode }) => mode.kind === kind)

describe.skipIf(findRedisProgram() === undefined)('redis under load', () => {
  test('killed and started empty: one more limit at most, and all are back', async () => {
    await using server = await startRedis()
    await using load = await startLoad(server.url)
    await until(() => load.admitted >= limit / 2)
    await server.kill()
    await until(() => allIn(load, 'share'))
    const before = load.askedInAll
    // Requests go on being answered.
    await until(() => load.askedInAll > before + 3000)
    expect(load.admitted).toBeLessThanOrEqual(load.allowed())
    await server.start()
    await until(() => allIn(load, 'shared'))
    const back = load.askedInAll
    await until(() => load.askedInAll > back + 3000 && allIn(load, 'shared'))
    expect(load.admitted).toBeLessThanOrEqual(load.allowed())
  })

  test('that hangs delays no request, and all are back when it goes on', async () => {
    await using server = await startRedis()
    await using load = await startLoad(server.url)
    await until(() => load.admitted >= limit / 2)
    server.hang()
    await until(() => allIn(load, 'share'))
    const before = load.askedInAll
    await until(() => load.askedInAll > before + 3000)
    server.goOn()
    await until(() => allIn(load, 'shared'))
    // Its earlier counts are still there.
    expect(load.admitted).toBeLessThanOrEqual(load.allowed())
  })
})
