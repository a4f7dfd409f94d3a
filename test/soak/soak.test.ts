// A soak of ten seconds: too short for a slope, long enough for whatever a request leaves behind to show.

import { expect, test } from 'bun:test'
import { violationsOf } from './judge.ts'
import { runSoak } from './run-soak.ts'

test('mixed traffic with leaving clients and a faulty provider leaves no descriptor, timer, listener or hold behind', async () => {
  const run = await runSoak({
    minutes: 1 / 6,
    callsPerSecond: 30,
    warmUpSeconds: 0,
    sampleSeconds: 1,
    // Ends a wait for something that never goes.
    quietSecondsMax: 1200,
    // About three hundred calls, and fewer on a busy machine, which turns many away.
    isEnough: ({ ends: { complete = 0, left = 0 } }, { calls }) => complete > 20 && left > 3 && calls > 20,
  })
  expect(violationsOf(run, { slope: 'not judged' })).toEqual([])
})
