// Minutes of traffic in an instant: what the parts of health come to together.

import { expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { attemptFault } from './faults.ts'
import { createHealth, type HealthNotice } from './health.ts'
import type { RouteHealth } from './route.ts'

function createBench() {
  const clock = createJumpClock()
  const notices: HealthNotice[] = []
  const health = createHealth({ clock, random: () => 0.5, onNotice: (notice) => notices.push(notice) })
  const candidate = (providerId: string, priority: number) => ({
    health: health.route({ providerId, baseUrl: 'https://x', upstreamModel: 'm', credentialId: 'platform' }),
    route: { priority, weight: 1 },
  })
  return { clock, health, notices, candidate }
}

/** A request every 5 ms against two routes, of which the first fails for a minute. */
function blackout(seconds: number) {
  const { clock, health, notices, candidate } = createBench()
  const first = candidate('a', 1)
  const second = candidate('b', 2)
  const failedAt: number[] = []
  const attempt = (key: RouteHealth, mode: 'ordinary' | 'panic'): boolean => {
    const startedMs = health.begin(key, mode)
    if (typeof startedMs !== 'number') return false
    if (key !== first.health || startedMs >= 60_000) {
      health.recordOk(key, startedMs, 1)
      return true
    }
    health.recordFault(key, startedMs, attemptFault('failing'))
    failedAt.push(startedMs)
    return false
  }
  const answeredBy: (RouteHealth | undefined)[] = []
  for (let n = 0; n < seconds * 200; n++) {
    const { ordered, mode } = health.plan([second, first])
    answeredBy.push(ordered.find(({ health: key }) => attempt(key, mode))?.health)
    clock.jump(0.005)
  }
  return { failedAt, answeredBy, first: first.health, whats: notices.map(({ what }) => what) }
}

test('F2: a blackout of a minute costs five attempts and two probes, and no request its answer', () => {
  const { failedAt, answeredBy, first, whats } = blackout(120)
  expect(failedAt).toEqual([0, 5, 10, 15, 20, 15_020, 45_020])
  expect(answeredBy).not.toContain(undefined)
  // Three probes at 105.02, 110.02 and 115.02 s; then the first priority is the first again, 200 times a second.
  expect(answeredBy.filter((key) => key === first)).toHaveLength(2 + (120_000 - 115_020) / 5)
  expect(whats).toEqual(['ejected', 'ejected', 'ejected', 'recovered'])
})

test('a model with one route is never without it', () => {
  const { clock, health, candidate } = createBench()
  const only = candidate('a', 1)
  expect(health.plan([only])).toEqual({ reasons: ['the only route'], ordered: [only], excluded: [], mode: 'ordinary' })
  for (let n = 0; n < 50; n++) {
    const plan = health.plan([only])
    expect(plan.ordered).toEqual([only])
    const startedMs = health.begin(only.health, plan.mode)
    expect(startedMs).toBe(n * 1000)
    health.recordFault(only.health, n * 1000, attemptFault('timed out'))
    clock.jump(1)
  }
  expect(health.state(only.health).state).toBe('ejected')
})
