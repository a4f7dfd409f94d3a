// The same route asked twice for one request: what it may cost while everything fails, and what others hear of it.

import { expect, test } from 'bun:test'
import type { Candidate } from './candidate.ts'
import { tryCandidates } from './failover.ts'
import { type AttemptFault, attemptFault } from './fault.ts'
import { createHealth } from './health/health.ts'
import { createRetryBudget } from './health/retry-budget.ts'

const stale: AttemptFault = { ...attemptFault('broken'), isStale: true }
const throttled: AttemptFault = {
  ...attemptFault('throttled'),
  provider: {
    status: 429,
    type: undefined,
    code: undefined,
    message: 'rate_limit_exceeded',
    param: undefined,
    details: undefined,
    retryAfterMs: 1000,
  },
}

interface Answer {
  readonly text: string
}

/** One route. */
function start(fate: (call: number) => AttemptFault | Answer) {
  let nowMs = 0
  const clock = { now: () => nowMs, monotonicMs: () => nowMs }
  const random = () => 0
  const health = createHealth({ clock, random })
  const budget = createRetryBudget({ clock })
  const key = health.route({ providerId: 'a', baseUrl: 'https://x', upstreamModel: 'm', credentialId: 'platform' })
  const route = { providerId: 'a', upstreamModel: 'm', priority: 0, weight: 1, timeouts: {} }
  const only = { route, provider: { id: 'a' }, key, isOwn: false } as unknown as Candidate
  const waits: { milliseconds: number; state: string }[] = []
  const scene = { calls: 0, waits, health, key, budget, run }
  async function run() {
    const wait = async (milliseconds: number) => {
      waits.push({ milliseconds, state: health.standing(key).state })
      nowMs += milliseconds
    }
    const deps = { clock, health, budget, random, wait }
    return await tryCandidates<Answer>(deps, {
      plan: health.plan([only]),
      streams: true,
      attempt: async () => fate(scene.calls++),
      isAnswer: (outcome): outcome is Answer => 'text' in outcome,
      isWanted: () => true,
    })
  }
  return scene
}

test('while everything breaks, replays end with the budget', async () => {
  const scene = start(() => stale)
  for (let n = 0; n < 60; n++) await scene.run()
  // Five, until the route is known to be bad; then what sixty requests earn, a fifth of one each, and the floor of three.
  expect(scene.calls).toBeLessThanOrEqual(60 + 5 + 12 + 3)
  expect(scene.budget.level()).toBeLessThan(1)
})

test('a stale socket of a route in good health is replayed whatever the budget', async () => {
  const scene = start((call) => (call % 2 === 0 ? stale : { text: 'a' }))
  while (scene.budget.spend());
  for (let n = 0; n < 20; n++) expect(await scene.run()).toEqual({ text: 'a' })
  expect(scene.calls).toBe(40)
})

test('a throttle is told to everybody before it is waited for, and forgotten when it is over', async () => {
  const scene = start((call) => (call === 0 ? throttled : { text: 'a' }))
  expect(await scene.run()).toEqual({ text: 'a' })
  expect(scene.waits).toEqual([{ milliseconds: 1000, state: 'parked' }])
  expect(scene.health.standing(scene.key).state).toBe('healthy')
})

test('without a budget nobody waits for a throttle', async () => {
  const scene = start(() => throttled)
  while (scene.budget.spend());
  await scene.run()
  expect([scene.calls, scene.waits]).toEqual([1, []])
})
