// The short version of what `npm run replicas` shows of a rolling restart.

import { describe, expect, test } from 'bun:test'
import { findPostgresPrograms } from '../../parts/postgres.ts'
import { findRedisProgram } from '../../parts/redis.ts'
import { runRolling } from './rolling.ts'

const isMissing = findPostgresPrograms() === undefined || findRedisProgram() === undefined

describe.skipIf(isMissing)('three replicas behind a balancer that looks at /readyz', () => {
  test('are restarted one after the other under streams, and not one request fails', async () => {
    const { faults, figures } = await runRolling({
      rounds: 1,
      drainDelaySeconds: 1,
      streams: 24,
      front: { probeMs: 100 },
      mayCommitSlowly: true,
    })
    expect(faults).toEqual([])
    expect(figures['streams running when a replica was stopped, together']).toBeGreaterThanOrEqual(36)
  })

  test('are upgraded one after the other, while the tables change under the old version, and not one request fails', async () => {
    const { faults, figures } = await runRolling({
      rounds: 1,
      streams: 16,
      front: { probeMs: 100 },
      upgrade: true,
      mayCommitSlowly: true,
    })
    expect(faults).toEqual([])
    expect(figures['upgraded replicas']).toBe(2)
  })
})
