import { expect, test } from 'bun:test'
import { createSkewWatch } from './clock-skew.ts'

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

test('a clock that is wrong is told once, and again after it was right', () => {
  const told: number[] = []
  const watch = createSkewWatch({ now: () => 50_000, monotonicMs: () => 0 }, (skewMs) => void told.push(skewMs))
  for (const databaseMs of [45_000n, 30_000n, 29_000n, 50_000n, 62_000n]) watch.note(50_000, databaseMs)
  expect(told).toEqual([20_000, -12_000])
})
