import { expect, test } from 'bun:test'
import { forEachEngine, type TestEngine } from '../../test/parts/engines.ts'
import type { Clock } from '../kernel/clock.ts'
import { createId, type KeyId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { createLastUsed } from './last-used.ts'

async function createBench(engine: TestEngine) {
  const store = await engine.openStore()
  let nowMs = 1000
  const clock: Clock = { now: () => nowMs, monotonicMs: () => nowMs }
  const faults: unknown[] = []
  let transactions = 0
  let isDown = false
  const database: Database = {
    ...store.database,
    transaction: (work) => {
      transactions++
      return isDown ? Promise.reject(new Error('down')) : store.database.transaction(work)
    },
  }
  return {
    lastUsed: createLastUsed({ database, clock, onFault: (thrown) => faults.push(thrown) }),
    faults,
    setNow(ms: number): void {
      nowMs = ms
    },
    setDown(down: boolean): void {
      isDown = down
    },
    transactions: () => transactions,
    stored: async (): Promise<Map<KeyId, number>> => {
      const rows = await store.database.sql<{ key_id: KeyId; last_used_at: bigint }>`SELECT * FROM key_uses`
      return new Map(rows.map((row) => [row.key_id, Number(row.last_used_at)]))
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

forEachEngine((engine) => {
  test('many uses of a key are one row, written when flushed and not before', async () => {
    await using bench = await createBench(engine)
    const [one, two] = [createId('key'), createId('key')]
    bench.lastUsed.note(one)
    bench.lastUsed.note(two)
    bench.setNow(2000)
    bench.lastUsed.note(one)
    expect(bench.transactions()).toBe(0)
    await bench.lastUsed.flush()
    expect(await bench.stored()).toEqual(
      new Map([
        [one, 2000],
        [two, 1000],
      ]),
    )
  })

  test('a later use replaces an earlier one, never the other way round, and without uses nothing is written', async () => {
    await using bench = await createBench(engine)
    const key = createId('key')
    for (const [at, expected] of [
      [2000, 2000],
      [3000, 3000],
      [2500, 3000],
    ] as const) {
      bench.setNow(at)
      bench.lastUsed.note(key)
      await bench.lastUsed.flush()
      expect((await bench.stored()).get(key)).toBe(expected)
    }
    const before = bench.transactions()
    await bench.lastUsed.flush()
    expect(bench.transactions()).toBe(before)
  })

  test('what cannot be written is reported, kept, and does not hide a later use', async () => {
    await using bench = await createBench(engine)
    const [one, two] = [createId('key'), createId('key')]
    bench.lastUsed.note(one)
    bench.lastUsed.note(two)
    bench.setDown(true)
    const flushing = bench.lastUsed.flush()
    bench.setNow(5000)
    bench.lastUsed.note(one)
    await flushing
    expect(bench.faults).toEqual([new Error('down')])
    bench.setDown(false)
    await bench.lastUsed.flush()
    expect(await bench.stored()).toEqual(
      new Map([
        [one, 5000],
        [two, 1000],
      ]),
    )
  })

  test('any number of keys is written, in small transactions', async () => {
    await using bench = await createBench(engine)
    const keys = Array.from({ length: 300 }, () => createId('key'))
    for (const key of keys) bench.lastUsed.note(key)
    await bench.lastUsed.flush()
    expect((await bench.stored()).size).toBe(300)
    // 128 + 128 + 32 + 8 + 4
    expect(bench.transactions()).toBe(5)
  })
})
