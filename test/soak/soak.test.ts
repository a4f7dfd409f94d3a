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
    // A call on a route that hangs takes seconds of it.
    quietSecondsMax: 60,
  })
  expect(violationsOf(run, { slope: 'not judged' })).toEqual([])
  const { complete = 0, left = 0 } = run.traffic.ends
  // Some three hundred calls; on a machine that is short of time a good part of them is turned away.
  expect(complete).toBeGreaterThan(20)
  expect(left).toBeGreaterThan(3)
  expect(run.provider.calls).toBeGreaterThan(20)
})
