import { describe, expect, test } from 'bun:test'
import { addWorkspace, holdOf, openLedger } from '../../../test/parts/ledger.ts'
import { findPostgresPrograms } from '../../../test/parts/postgres.ts'
import { openPostgresStore } from '../../../test/replicas/postgres-store.ts'
import type { ReplicaId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
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
  })

  test('is not said while something that they hold can still be charged', async () => {
    await using store = await openPostgresStore()
    const { database } = store
    const workspaceId = await addWorkspace(database)
    await using sleeping = await openLedger(database)
    await using waking = await openLedger(database)
    const id = sleeping.ledger.replica?.id as ReplicaId
    await sleeping.ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'topup' })
    expect(await sleeping.ledger.hold(holdOf(workspaceId, 10n))).toEqual({ kind: 'held' })
    const isLive = () => waking.ledger.replica?.isLive(id)
    expect(await isLive()).toBe(true)
    waking.clock.advance(8000)
    expect(await isLive()).toBe(true)
    await database.transaction((sql) => sql`UPDATE replicas SET heartbeat_at = 0 WHERE id = ${id}`)
    expect(await isLive()).toBe(true)
    expect(await waking.ledger.reap()).toHaveLength(1)
    expect(await isLive()).toBe(false)
  })
})
