import { describe, expect, test } from 'bun:test'
import { RedisClient } from 'bun'
import { findRedisProgram, type RedisServer, startRedis } from '../../test/parts/redis.ts'
import { openRedis, type Redis, redisScript } from './redis.ts'

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(5)
}

async function openBench(): Promise<{ readonly server: RedisServer; readonly redis: Redis; readonly lines: string[] }> {
  const server = await startRedis()
  const lines: string[] = []
  const redis = openRedis({ url: server.url, report: (line) => lines.push(line) })
  await until(() => redis.connected)
  return { server, redis, lines }
}

const double = redisScript('return { KEYS[1], ARGV[1] * 2 }')

describe.skipIf(findRedisProgram() === undefined)('redis', () => {
  test('runs a script, also on a server that has never seen it or was restarted', async () => {
    const { server, redis, lines } = await openBench()
    await using _ = server
    expect(await redis.run(double, ['k'], ['21'])).toEqual(['k', 42])
    expect(await redis.run(double, ['k'], ['4'])).toEqual(['k', 8])
    await server.kill()
    await until(() => !redis.connected)
    await expect(redis.run(double, ['k'], ['1'])).rejects.toThrow('Redis is not connected')
    await server.start()
    await until(() => redis.connected)
    expect(await redis.run(double, ['k'], ['5'])).toEqual(['k', 10])
    expect(lines).toEqual(['Redis is away: the connection was closed', 'Redis is there again'])
    redis.close()
  })

  test('returns the error of a script, and continues', async () => {
    const { server, redis } = await openBench()
    await using _ = server
    await expect(redis.run(redisScript("return redis.error_reply('NO such thing')"), [], [])).rejects.toThrow(
      'NO such thing',
    )
    expect(await redis.run(double, ['k'], ['1'])).toEqual(['k', 2])
    redis.close()
  })

  test('a server that hangs is given up, and found again', async () => {
    const { server, redis } = await openBench()
    await using _ = server
    server.hang()
    expect(await redis.run(double, ['k'], ['1']).catch(() => 'given up')).toBe('given up')
    // Dialled meanwhile, it takes the connection and says nothing.
    await Bun.sleep(200)
    server.goOn()
    await until(() => redis.connected)
    expect(await redis.run(double, ['k'], ['1'])).toEqual(['k', 2])
    redis.close()
  })

  test('a server that was demoted is dialled until it, or another at its address, takes writes', async () => {
    const { server, redis, lines } = await openBench()
    await using _ = server
    const write = redisScript("return redis.call('SET', KEYS[1], '1')")
    expect(await redis.run(write, ['k'], [])).toBe('OK')
    const admin = new RedisClient(server.url, { autoReconnect: false })
    await admin.send('REPLICAOF', ['127.0.0.1', '1'])
    await expect(redis.run(write, ['k'], [])).rejects.toThrow('READONLY')
    expect(redis.connected).toBe(false)
    await Bun.sleep(500)
    expect([redis.connected, lines.length]).toEqual([false, 1])
    await admin.send('REPLICAOF', ['NO', 'ONE'])
    await until(() => redis.connected)
    expect(await redis.run(write, ['k'], [])).toBe('OK')
    expect(lines).toEqual([expect.stringMatching(/^Redis is away: READONLY /), 'Redis is there again'])
    admin.close()
    redis.close()
  })

  test('a subscription begins anew after a loss', async () => {
    const { server, redis } = await openBench()
    await using _ = server
    const received: string[] = []
    let begun = 0
    const subscription = redis.subscribe('news', {
      onMessage: (message) => void received.push(message),
      onBegin: () => void begun++,
    })
    await until(() => begun === 1)
    await redis.publish('news', 'one')
    await redis.publish('other', 'not for us')
    await until(() => received.length === 1)
    await server.kill()
    await server.start()
    await until(() => begun === 2 && redis.connected)
    await redis.publish('news', 'two')
    await until(() => received.length === 2)
    expect(received).toEqual(['one', 'two'])
    subscription.close()
    redis.close()
  })

  test('a password that is wrong is not shown, and not the address either', async () => {
    const { server, redis } = await openBench()
    await using _ = server
    const lines: string[] = []
    const url = server.url.replace('redis://', 'redis://user:canary@')
    const refused = openRedis({ url, report: (line) => lines.push(line) })
    await until(() => lines.length > 0)
    expect(lines[0]).toStartWith('Redis is away: ')
    expect(lines[0]).not.toMatch(/canary|127\.0\.0\.1/)
    refused.close()
    redis.close()
  })
})
