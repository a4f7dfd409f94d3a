// The short version of the first part of `npm run replicas`.

import { describe, expect, test } from 'bun:test'
import { findPostgresPrograms } from '../../parts/postgres.ts'
import { findRedisProgram } from '../../parts/redis.ts'
import { runStorm } from './storm.ts'

const isMissing = findPostgresPrograms() === undefined || findRedisProgram() === undefined

describe.skipIf(isMissing)('three replicas on postgres and redis', () => {
  test('killed one after the other under load lose no charge, overspend no wallet and leave no hold', async () => {
    const { faults, figures } = await runStorm({
      requests: 400,
      killsLeast: 2,
      killEveryMs: 700,
      thinNanos: 60_000_000n,
      agesTheDead: true,
      // Waits out a machine under heavy load; `npm run replicas` and the simulator check the minute.
      resolvedWithinMs: 1_200_000,
    })
    expect(faults).toEqual([])
    // Neither a fleet that refused everything nor one that died idle would have shown anything.
    expect(figures['of these seen complete']).toBeGreaterThan(100)
    expect(figures['holds left by the dead']).toBeGreaterThan(0)
    expect(figures['refused with 402 there']).toBeGreaterThan(0)
  })
})
