import { describe, expect, test } from 'bun:test'
import { addWorkspace, holdOf, openLedger } from '../../../test/parts/ledger.ts'
import { findPostgresPrograms } from '../../../test/parts/postgres.ts'
import { openPostgresStore } from '../../../test/replicas/postgres-store.ts'
import type { ReplicaId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import { createWriteHealth } from '../settlement.ts'
import { createSkewWatch, joinReplicas } from './replica.ts'

describe.skipIf(findPostgresPrograms() === undefined)('whether the silence of others means that they are dead', () => {
  test('is known once a process has been there for a while, and not just after the database was away', async () => {
    await using store = await openPostgresStore()
    let nowMs = 0
    const clock = { now: () => nowMs, monotonicMs: () => nowMs }
    const replica = await joinReplicas({
      database: store.database,
      clock,
      writeHealth: createWriteHealth(clock),
      onSkew: () => {},
    })
    const beatAt = async (ms: number) => {
      nowMs = ms
      await replica.beat()
      return replica.mayJudge()
    }
    // It has just started: heartbeats of others may not have arrived yet.
    expect(await beatAt(5000)).toBe(false)
    expect(await beatAt(10_000)).toBe(true)
    // No replica could write for 15 s.
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
    const isLive = () => waking.ledger.replica?.isReplicaLive(id)
    expect(await isLive()).toBe(true)
    waking.clock.advance(8000)
    expect(await isLive()).toBe(true)
    await database.transaction((sql) => sql`UPDATE replicas SET heartbeat_at = 0 WHERE id = ${id}`)
    expect(await isLive()).toBe(true)
    expect(await waking.ledger.reap()).toHaveLength(1)
    expect(await isLive()).toBe(false)
  })
})

/** When the heartbeat began and ended here, what the database said, and what that means. */
const beats: readonly (readonly [string, number, number, bigint, number])[] = [
  ['between the two', 1000, 1500, 1200n, 0],
  ['slow, and at its end', 1000, 9000, 9000n, 0],
  ['ahead', 100_000, 100_500, 75_000n, 25_000],
  ['behind', 100_000, 100_500, 160_500n, -60_000],
]

test.each(beats)('a heartbeat that is %s', (_, begunAt, endedAt, databaseMs, expected) => {
  const watch = createSkewWatch({ now: () => endedAt, monotonicMs: () => 0 }, () => {})
  watch.note(begunAt, databaseMs)
  expect(watch.skewMs()).toBe(expected)
})

test('a wrong clock is reported once, and again after it was right', () => {
  const reported: number[] = []
  const watch = createSkewWatch({ now: () => 50_000, monotonicMs: () => 0 }, (skewMs) => void reported.push(skewMs))
  for (const databaseMs of [45_000n, 30_000n, 29_000n, 50_000n, 62_000n]) watch.note(50_000, databaseMs)
  expect(reported).toEqual([20_000, -12_000])
})
