// The short version of what `npm run replicas` shows of changes: a revoked key, an allowlist, a price, a sign-out. With Redis a change
// takes milliseconds; how long it takes is judged there, because the tests may run on a busy machine.

import { describe, expect, test } from 'bun:test'
import { findPostgresPrograms } from '../../parts/postgres.ts'
import { findRedisProgram } from '../../parts/redis.ts'
import { runChanges } from './changes.ts'

const withinMs = 600_000

describe.skipIf(findPostgresPrograms() === undefined)('a change made on one replica reaches all three', () => {
  test.skipIf(findRedisProgram() === undefined)('with redis', async () => {
    expect((await runChanges({ redis: true, rounds: 1, withinMs })).faults).toEqual([])
  })

  test('on postgres alone', async () => {
    expect((await runChanges({ redis: false, rounds: 1, withinMs })).faults).toEqual([])
  })
})
