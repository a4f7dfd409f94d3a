// The short version of what `npm run replicas` shows of a PostgreSQL that goes away.

import { describe, expect, test } from 'bun:test'
import { findPostgresPrograms } from '../../parts/postgres.ts'
import { runPostgresRestart } from './postgres-restart.ts'

describe.skipIf(findPostgresPrograms() === undefined)('three replicas whose postgres is restarted under load', () => {
  test('refuse with 503 and Retry-After, ask no provider without a hold, and go on by themselves', async () => {
    const { faults, figures } = await runPostgresRestart({ gapsMs: [1000], completeEach: 60 })
    expect(faults).toEqual([])
    expect(figures['answered 503 with Retry-After']).toBeGreaterThan(0)
  })
})
