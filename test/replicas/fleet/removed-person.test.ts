// The short version of what `npm run replicas` measures of removed people. How long it takes is judged there, because the
// tests may run on a busy machine.

import { describe, expect, test } from 'bun:test'
import { findPostgresPrograms } from '../../parts/postgres.ts'
import { findRedisProgram } from '../../parts/redis.ts'
import { runRemovals } from './removed-person.ts'

const withinMs = 600_000

describe.skipIf(findPostgresPrograms() === undefined)('N14: a removed person is refused by all three replicas', () => {
  test.skipIf(findRedisProgram() === undefined)('with redis', async () => {
    expect((await runRemovals({ redis: true, rounds: 1, withinMs })).faults).toEqual([])
  })

  test('on postgres alone', async () => {
    expect((await runRemovals({ redis: false, rounds: 1, withinMs })).faults).toEqual([])
  })
})
