// Values that replicas share through Redis for a while. Only for what may be lost at any time: a read that fails or takes too
// long finds nothing, and a write that fails is not repeated.

import { type Redis, redisScript } from './redis.ts'

export interface SharedCache {
  /** Never rejects. */
  get(key: string): Promise<string | undefined>
  set(key: string, value: string, lifetimeMs: number): void
}

/** A request waits for a read; without the value it is only less well served. */
const readMs = 50

const read = redisScript("return redis.call('GET', KEYS[1])")
const write = redisScript("return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])")

/** `name` separates the keys of different uses; keys are hashed, because they may contain ids of clients. */
export function createSharedCache(redis: Pick<Redis, 'run' | 'connected'>, name: string): SharedCache {
  const keyOf = (key: string): string =>
    `tollgate:${name}:1:${new Bun.CryptoHasher('sha256').update(key).digest('base64url')}`
  return {
    async get(key) {
      if (!redis.connected) return undefined
      let timer: ReturnType<typeof setTimeout> | undefined
      const tooLate = new Promise<undefined>((resolve) => {
        timer = setTimeout(resolve, readMs, undefined)
      })
      const reading = redis.run(read, [keyOf(key)], []).catch(() => undefined)
      const value = await Promise.race([reading, tooLate])
      clearTimeout(timer)
      return typeof value === 'string' ? value : undefined
    },
    set(key, value, lifetimeMs) {
      if (redis.connected) redis.run(write, [keyOf(key)], [value, String(lifetimeMs)]).catch(() => {})
    },
  }
}
