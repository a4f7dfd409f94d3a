import { describe, expect, test } from 'bun:test'
import { findPostgresPrograms } from '../../../test/parts/postgres.ts'
import { openPostgresStore } from '../../../test/replicas/postgres-store.ts'
import { createGate } from '../gate.ts'
import { joinReplicas } from './replica.ts'

describe.skipIf(findPostgresPrograms() === undefined)('whether the silence of others means that they are dead', () => {
  test('is known once a process has been there for a while, and not just after the database was away', async () => {
    await using store = await openPostgresStore()
    let nowMs = 0
    const clock = { now: () => nowMs, monotonicMs: () => nowMs }
    const replica = await joinReplicas({ database: store.database, clock, gate: createGate(clock), onSkew: () => {} })
    const beatAt = async (ms: number) => {
      nowMs = ms
      await replica.beat()
      return replica.mayJudge()
    }
    // It has just come: others may not have been heard yet.
    expect(await beatAt(5000)).toBe(false)
    expect(await beatAt(10_000)).toBe(true)
    // Nothing could be written for 15 s, by nobody.
    nowMs = 24_000
    expect(replica.mayJudge()).toBe(false)
    expect(await beatAt(25_000)).toBe(false)
    expect(await beatAt(30_000)).toBe(false)
    expect(await beatAt(35_000)).toBe(true)
  }, 60_000)
})
