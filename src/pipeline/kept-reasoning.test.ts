import { expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { findRedisProgram, startRedis } from '../../test/parts/redis.ts'
import { openRedis } from '../store/redis.ts'
import { createSharedCache } from '../store/shared-cache.ts'
import { createKeptReasoning } from './kept-reasoning.ts'

const secret = new Uint8Array(32).fill(7)
test('forgets the least recently used when the memory for it is full', () => {
  const kept = createKeptReasoning({ clock: createJumpClock(), secret, bytesMax: 10_000 })
  const text = 'x'.repeat(2_000)
  for (const name of ['a', 'b', 'c']) kept.keep(name, text)
  expect(kept.find('a')).toEqual(text)
  kept.keep('d', text)
  expect(['a', 'b', 'c', 'd'].map((name) => kept.find(name) !== undefined)).toEqual([true, false, true, true])
  expect(kept.size().entries).toBe(3)
  expect(kept.size().bytes).toBeLessThanOrEqual(10_000)
})

test('frees what has expired, without being asked for it', () => {
  const clock = createJumpClock()
  const kept = createKeptReasoning({ clock, secret })
  for (const name of ['a', 'b', 'c']) kept.keep(name, 'x')
  clock.jump(3600)
  kept.keep('d', 'x')
  expect(kept.size().entries).toBe(1)
})

test('reasoning kept under one key does not open under another key or secret', async () => {
  const values = new Map<string, string>()
  const shared = {
    get: (key: string) => Promise.resolve(values.get(key)),
    set: (key: string, value: string) => void values.set(key, value),
  }
  const clock = createJumpClock()
  createKeptReasoning({ clock, secret, shared }).keep('a', 'a secret thought')
  const sealed = values.get('a') ?? ''
  expect(Buffer.from(sealed, 'base64url').includes('secret thought')).toBe(false)
  const other = () => createKeptReasoning({ clock, secret, shared })
  expect(await other().find('a')).toEqual('a secret thought')
  values.set('b', sealed)
  expect(await other().find('b')).toBeUndefined()
  expect(await createKeptReasoning({ clock, secret: new Uint8Array(32), shared }).find('a')).toBeUndefined()
})

test.skipIf(findRedisProgram() === undefined)('replicas share it through Redis', async () => {
  await using server = await startRedis()
  const replicas = [0, 1].map(() => {
    const redis = openRedis({ url: server.url })
    const shared = createSharedCache(redis, 'reasoning')
    return { redis, kept: createKeptReasoning({ clock: createJumpClock(), secret, shared }) }
  })
  while (!replicas.every(({ redis }) => redis.connected)) await Bun.sleep(5)
  replicas[0]?.kept.keep('a', 'thought')
  // Writes are not awaited.
  while ((await replicas[1]?.kept.find('a')) === undefined) await Bun.sleep(5)
  expect(await replicas[1]?.kept.find('a')).toEqual('thought')
  for (const { redis } of replicas) redis.close()
})
