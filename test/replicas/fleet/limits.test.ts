// The short version of what `npm run replicas` shows of limits, with whole gateways.

import { describe, expect, test } from 'bun:test'
import { findPostgresPrograms } from '../../parts/postgres.ts'
import { findRedisProgram } from '../../parts/redis.ts'
import { runRedisLoss } from './redis-loss.ts'
import { runSameLimit } from './same-limit.ts'

const withoutRedis = findRedisProgram() === undefined

describe.skipIf(findPostgresPrograms() === undefined)('the limits of three replicas', () => {
  test.skipIf(withoutRedis)('let through what one would, with redis', async () => {
    expect((await runSameLimit({ redis: true, asking: 90 })).faults).toEqual([])
  })

  test('let through what one would, on postgres alone', async () => {
    expect((await runSameLimit({ redis: false, asking: 90 })).faults).toEqual([])
  })

  test.skipIf(withoutRedis)('become shares when redis goes, visibly, and are one again when it is back', async () => {
    expect((await runRedisLoss({ limit: 120, losses: 1, askedEach: 300 })).faults).toEqual([])
  })
})
