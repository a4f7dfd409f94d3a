import { expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { findRedisProgram, startRedis } from '../../test/parts/redis.ts'
import { openRedis } from '../store/redis.ts'
import { createSharedCache } from '../store/shared-cache.ts'
import { createRoutes } from './route.ts'
import { createStickyRoutes } from './sticky.ts'

const minute = 60

function createBench() {
  const clock = createJumpClock()
  const keys = createRoutes()
  const at = (providerId: string) =>
    keys.find({ providerId, baseUrl: 'https://x', upstreamModel: 'm', credentialId: 'platform' })
  return { clock, sticky: createStickyRoutes({ clock }), a: at('a'), b: at('b') }
}

test('remembers a route for five minutes since its last use', () => {
  const { clock, sticky, a } = createBench()
  expect(sticky.find('talk')).toBeUndefined()
  sticky.remember('talk', a, 'short')
  clock.jump(4 * minute)
  expect(sticky.find('talk')).toBe(a.name)
  sticky.remember('talk', a, 'short')
  clock.jump(5 * minute - 1)
  expect(sticky.find('talk')).toBe(a.name)
  clock.jump(1)
  expect(sticky.find('talk')).toBeUndefined()
})

test('remembers for an hour after a long cache write, also if later turns only read it', () => {
  const { clock, sticky, a } = createBench()
  sticky.remember('talk', a, 'long')
  clock.jump(59 * minute)
  sticky.remember('talk', a, 'short')
  clock.jump(59 * minute)
  expect(sticky.find('talk')).toBe(a.name)
  clock.jump(minute)
  expect(sticky.find('talk')).toBeUndefined()
})

test('a different route replaces it, without the long cache', () => {
  const { clock, sticky, a, b } = createBench()
  sticky.remember('talk', a, 'long')
  sticky.remember('talk', b, 'short')
  expect(sticky.find('talk')).toBe(b.name)
  clock.jump(5 * minute)
  expect(sticky.find('talk')).toBeUndefined()
})

test('evicts the least recently used conversation', () => {
  const { sticky, a } = createBench()
  for (let n = 0; n < 20_000; n++) sticky.remember(`talk ${n}`, a, 'short')
  sticky.remember('talk 0', a, 'short')
  sticky.remember('one more', a, 'short')
  expect(sticky.size()).toBe(20_000)
  expect(sticky.find('talk 0')).toBe(a.name)
  expect(sticky.find('talk 1')).toBeUndefined()
  expect(sticky.find('talk 2')).toBe(a.name)
})

test.skipIf(findRedisProgram() === undefined)(
  'replicas share it through Redis, and continue alone without it',
  async () => {
    const { a, b } = createBench()
    await using server = await startRedis()
    const replicas = [0, 1].map(() => {
      const redis = openRedis({ url: server.url })
      return {
        redis,
        sticky: createStickyRoutes({ clock: createJumpClock(), shared: createSharedCache(redis, 'sticky') }),
      }
    })
    const [first, second] = replicas as [(typeof replicas)[0], (typeof replicas)[0]]
    while (!first.redis.connected || !second.redis.connected) await Bun.sleep(5)
    first.sticky.remember('talk', a, 'short')
    await expectRoute(second.sticky, a.name)
    // The second replica fails over.
    second.sticky.remember('talk', b, 'short')
    await expectRoute(first.sticky, b.name)
    await server.kill()
    while (first.redis.connected) await Bun.sleep(5)
    expect(await first.sticky.find('talk')).toBe(b.name)
    expect(await first.sticky.find('other')).toBeUndefined()
    for (const { redis } of replicas) redis.close()
  },
)

/** Writes are not awaited. */
async function expectRoute(sticky: ReturnType<typeof createStickyRoutes>, name: string): Promise<void> {
  while ((await sticky.find('talk')) !== name) await Bun.sleep(5)
}
