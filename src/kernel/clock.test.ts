import { expect, test } from 'bun:test'
import { certainTime } from './clock.ts'

test('a certain time is a whole millisecond, as the wall time is, and the earlier of the two', () => {
  let [wall, monotonic] = [1000, 0.25]
  const now = certainTime({ now: () => wall, monotonicMs: () => monotonic })
  monotonic = 10.5
  // 1000 − 0.25 + 10.5 is 1010.25.
  wall = 1012
  expect(now()).toBe(1010)
  wall = 1005
  expect(now()).toBe(1005)
})
