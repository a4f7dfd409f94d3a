import { expect, test } from 'bun:test'
import { runInterruptions } from './run-interruptions.ts'

// The short version of `npm run interruptions`.

const count = 2_000

test(`of ${count} recorded streams broken off at random, none ends silently and none is given an ending`, async () => {
  const { counts, violations } = await runInterruptions({ count, seed: 6 })
  expect(violations).toEqual([])
  // Most are before the end, a few after the terminal marker.
  expect(counts.reported).toBeGreaterThan(count / 2)
  expect(counts.whole).toBeGreaterThan(0)
  expect(counts.reported + counts.whole).toBe(count)
})
