import { describe, expect, test } from 'bun:test'
import { createPrice } from '../catalog/price.ts'
import type { Pico } from '../kernel/money.ts'
import type { Quantiles } from './latency.ts'
import { exclusionReason, type PlanPreferences, planWithHealth, type Rankable, type Rated } from './plan.ts'
import { createRoutes, healthy, type RouteState } from './route.ts'

const keys = createRoutes()

interface Named extends Rankable {
  readonly name: string
}

interface Facts {
  readonly priority?: number
  readonly weight?: number
  readonly state?: RouteState
  readonly credentialId?: string
  readonly firstEvent?: Quantiles
  /** The operator's price of input and output, in pico-dollars per token. */
  readonly cost?: readonly [input: bigint, output: bigint]
}

function rated(name: string, facts: Facts = {}): Rated<Named> {
  const { priority = 1, weight = 1, state = healthy, credentialId = 'platform', firstEvent, cost } = facts
  const key = keys.find({ providerId: name, baseUrl: 'https://x', upstreamModel: 'm', credentialId })
  const route = {
    priority,
    weight,
    ...(cost && { cost: createPrice({ input: cost[0] as Pico, output: cost[1] as Pico }) }),
  }
  return { candidate: { name, health: key, route }, state, firstEvent }
}

/** A linear congruential generator: the same draws in every run. */
function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return state / 2 ** 32
  }
}

function plan(list: readonly Rated<Named>[], preferences: Omit<PlanPreferences, 'random'> = {}, seed = 1) {
  const { ordered, excluded, mode } = planWithHealth(list, { ...preferences, random: seededRandom(seed) })
  return { ordered: ordered.map(({ name }) => name), excluded: excluded.map((each) => each.candidate.name), mode }
}

/** How often of a thousand plans each is first. */
function firsts(
  list: readonly Rated<Named>[],
  preferences: Omit<PlanPreferences, 'random'> = {},
): Record<string, number> {
  const random = seededRandom(7)
  const counts: Record<string, number> = {}
  for (let n = 0; n < 1000; n++) {
    const name = planWithHealth(list, { ...preferences, random }).ordered[0]?.name ?? 'none'
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

const ejected: RouteState = { state: 'ejected', factor: 0, waitMs: 9000, why: 'failing' }
const parked: RouteState = { state: 'parked', factor: 0, waitMs: 2000, why: 'throttled' }
const probe: RouteState = { state: 'probing', factor: 0.1, waitMs: 0, why: 'failing' }
const probeTaken: RouteState = { state: 'probing', factor: 0, waitMs: 3000, why: 'failing' }
const slowStart: RouteState = { state: 'slow start', factor: 0.1, waitMs: 30_000 }

function measured(p50: number, p95: number): Quantiles {
  return { p50, p95, p99: p95, samples: 50, windowMs: 1000 }
}

describe('order', () => {
  test('priorities come in order', () => {
    expect(plan([rated('c', { priority: 3 }), rated('a', { priority: 1 }), rated('b', { priority: 2 })])).toEqual({
      ordered: ['a', 'b', 'c'],
      excluded: [],
      mode: 'ordinary',
    })
  })

  test("own credentials come before the operator's, whatever the priorities", () => {
    const list = [rated('ours', { priority: 1 }), rated('own', { priority: 9, credentialId: 'cred_1' })]
    expect(plan(list).ordered).toEqual(['own', 'ours'])
  })

  test('routes of one priority share by weight', () => {
    const { a = 0, b = 0 } = firsts([rated('a', { weight: 3 }), rated('b', { weight: 1 })])
    expect(a + b).toBe(1000)
    // Three of four; the draws of a thousand stay within five standard deviations (14 each).
    expect(Math.abs(a - 750)).toBeLessThan(70)
  })

  test('a route in slow start gets its tenth', () => {
    const { b = 0 } = firsts([rated('a'), rated('b', { state: slowStart })])
    // 0.1 of 1.1; a standard deviation is 9.
    expect(Math.abs(b - 91)).toBeLessThan(45)
  })

  test('the sticky route is first inside its priority, and only there', () => {
    const b = rated('b', { weight: 0.001 })
    expect(firsts([rated('a'), b], { sticky: b.candidate.health.name })).toEqual({ b: 1000 })
    const later = rated('later', { priority: 2 })
    expect(plan([rated('a'), later], { sticky: later.candidate.health.name }).ordered).toEqual(['a', 'later'])
  })

  test('a conversation has the same order on every replica, and conversations are shared by weight', () => {
    const list = () => [rated('a', { weight: 3 }), rated('b')]
    const firstOf = (n: number, seed: number) => plan(list(), { conversation: `ws_1 m session-${n}` }, seed).ordered[0]
    const numbers = Array.from({ length: 1000 }, (_, n) => n)
    for (const n of numbers.slice(0, 50)) expect(firstOf(n, 1)).toBe(firstOf(n, 2) as string)
    // Expected 750; three standard deviations are 41.
    expect(Math.abs(numbers.filter((n) => firstOf(n, 1) === 'a').length - 750)).toBeLessThan(42)
  })

  test('when a route is left out, only its own conversations move', () => {
    const firstOf = (n: number, state: RouteState) =>
      plan([rated('a'), rated('b'), rated('c', { state })], { conversation: `session-${n}` }).ordered[0]
    for (let n = 0; n < 200; n++) {
      const usual = firstOf(n, healthy)
      if (usual !== 'c') expect(firstOf(n, ejected)).toBe(usual as string)
    }
  })

  test('the sticky route yields when it is ejected or parked', () => {
    for (const state of [ejected, parked]) {
      const b = rated('b', { state })
      expect(plan([rated('a'), b], { sticky: b.candidate.health.name }).ordered).toEqual(['a'])
    }
  })
})

describe('health', () => {
  test('excludes ejected and parked routes', () => {
    const list = [rated('a', { state: ejected }), rated('b'), rated('c', { state: parked })]
    const { ordered, excluded } = planWithHealth(list, { random: () => 0.5 })
    expect(ordered.map(({ name }) => name)).toEqual(['b'])
    expect(excluded).toEqual([
      { candidate: list[0]?.candidate as Named, state: ejected },
      { candidate: list[2]?.candidate as Named, state: parked },
    ])
  })

  test('a probe goes first in its priority, after the sticky route', () => {
    const list = [rated('a', { weight: 1000 }), rated('b', { state: probe }), rated('c', { priority: 2 })]
    expect(plan(list).ordered).toEqual(['b', 'a', 'c'])
    expect(plan(list, { sticky: list[0]?.candidate.health.name }).ordered).toEqual(['a', 'b', 'c'])
  })

  test('no probe while one is running, or while the retry budget is empty', () => {
    expect(plan([rated('a'), rated('b', { state: probeTaken })])).toMatchObject({ ordered: ['a'], excluded: ['b'] })
    const list = [rated('a'), rated('b', { state: probe })]
    expect(plan(list, { probes: 'off' })).toMatchObject({ ordered: ['a'], excluded: ['b'] })
  })
})

describe('panic', () => {
  test('all that are ejected are tried by weight', () => {
    const list = [rated('a', { state: ejected, weight: 3 }), rated('b', { state: ejected })]
    expect(plan(list)).toMatchObject({ excluded: [], mode: 'panic' })
    expect(plan(list).ordered.toSorted()).toEqual(['a', 'b'])
    expect(Math.abs((firsts(list).a ?? 0) - 750)).toBeLessThan(70)
  })

  test('parked routes stay excluded even if no other is left', () => {
    expect(plan([rated('a', { state: ejected }), rated('b', { state: parked })])).toEqual({
      ordered: ['a'],
      excluded: ['b'],
      mode: 'panic',
    })
    expect(plan([rated('b', { state: parked })])).toMatchObject({ ordered: [], excluded: ['b'] })
  })

  test('a probed route does not count as working, but is tried first if it is free', () => {
    for (const probes of ['on', 'off'] as const) {
      const list = [rated('a', { state: ejected, weight: 1000 }), rated('b', { state: probe })]
      expect(plan(list, { probes })).toEqual({ ordered: ['b', 'a'], excluded: [], mode: 'panic' })
    }
    expect(plan([rated('a', { state: probeTaken })])).toEqual({ ordered: ['a'], excluded: [], mode: 'panic' })
  })

  test('neither a running probe nor a prompt cache makes a failing route the first', () => {
    const heavy = rated('a', { state: ejected, weight: 1000 })
    const taken = rated('b', { state: probeTaken, weight: 1 })
    const sticky = rated('c', { state: ejected, weight: 1 })
    const { a = 0 } = firsts([taken, sticky, heavy], { sticky: sticky.candidate.health.name })
    // 2 of 1002 go elsewhere; more than 20 of a thousand never do.
    expect(a).toBeGreaterThan(980)
  })

  test('one working route is enough to exclude the others', () => {
    const list = [rated('a', { state: ejected }), rated('b', { state: slowStart, priority: 2 })]
    expect(plan(list)).toEqual({ ordered: ['b'], excluded: ['a'], mode: 'ordinary' })
  })
})

describe('speed', () => {
  test('an outlier gets half of its share', () => {
    const list = [
      rated('a', { firstEvent: measured(100, 1000) }),
      rated('b', { firstEvent: measured(100, 3001) }),
      rated('other group', { priority: 2, firstEvent: measured(1, 1) }),
    ]
    // 0.5 of 1.5; a standard deviation is 15.
    expect(Math.abs((firsts(list).b ?? 0) - 333)).toBeLessThan(75)
  })

  test('a new conversation goes to the same route on every replica, whatever each has measured', () => {
    const here = [rated('a', { firstEvent: measured(1, 1) }), rated('b', { firstEvent: measured(9, 9) })]
    const there = [rated('a', { firstEvent: measured(9, 9) }), rated('b', { firstEvent: measured(1, 1) })]
    const conversations = Array.from({ length: 100 }, (_, at) => `session ${at}`)
    const chosen = conversations.map((conversation) => plan(here, { conversation }).ordered)
    expect(chosen).toEqual(conversations.map((conversation) => plan(there, { conversation }).ordered))
    expect(new Set(chosen.map(([first]) => first)).size).toBe(2)
  })

  test('three times the median is no outlier yet', () => {
    const list = [rated('a', { firstEvent: measured(100, 1000) }), rated('b', { firstEvent: measured(100, 3000) })]
    expect(Math.abs((firsts(list).b ?? 0) - 500)).toBeLessThan(80)
  })

  test('fastest: by the median, divided by what a route may take', () => {
    const list = [
      rated('slow', { firstEvent: measured(400, 500), weight: 100 }),
      rated('fast', { firstEvent: measured(200, 500) }),
      rated('starting', { firstEvent: measured(100, 500), state: slowStart }),
    ]
    expect(plan(list, { policy: 'fastest' }).ordered).toEqual(['fast', 'slow', 'starting'])
  })

  test('fastest: a route without samples counts as the best, so that it gets some', () => {
    const list = [
      rated('slow', { firstEvent: measured(400, 500) }),
      rated('new'),
      rated('fast', { firstEvent: measured(200, 500) }),
    ]
    const counts = firsts(list, { policy: 'fastest' })
    expect((counts.new ?? 0) + (counts.fast ?? 0)).toBe(1000)
    expect(Math.abs((counts.new ?? 0) - 500)).toBeLessThan(80)
  })
})

describe('the cheapest route', () => {
  const cheap = rated('cheap', { cost: [1_000_000n, 4_000_000n] })
  const dear = rated('dear', { cost: [2_000_000n, 2_000_000n] })

  test('is first: input counts three times, so 1 and 4 are less than 2 and 2', () => {
    expect(firsts([dear, cheap], { policy: 'cheapest' })).toEqual({ cheap: 1000 })
  })

  test('comes after a route of a better priority', () => {
    const better = rated('better', { priority: 0, cost: [9_000_000n, 9_000_000n] })
    expect(plan([cheap, better], { policy: 'cheapest' }).ordered).toEqual(['better', 'cheap'])
  })

  test('is any of those that cost the same, by weight', () => {
    const { a = 0, b = 0 } = firsts(
      [rated('a', { weight: 3, cost: [1n, 1n] }), rated('b', { weight: 1, cost: [1n, 1n] })],
      { policy: 'cheapest' },
    )
    expect(a + b).toBe(1000)
    expect(Math.abs(a - 750)).toBeLessThan(60)
  })

  test('is never one with an unknown cost, unless all are', () => {
    expect(firsts([rated('unknown'), dear], { policy: 'cheapest' })).toEqual({ dear: 1000 })
    const { a = 0, b = 0 } = firsts([rated('a'), rated('b')], { policy: 'cheapest' })
    expect(Math.min(a, b)).toBeGreaterThan(400)
  })
})

describe('reasons', () => {
  const reasons = (list: readonly Rated<Named>[], preferences: Omit<PlanPreferences, 'random'> = {}) =>
    planWithHealth(list, { ...preferences, random: () => 0.5 }).reasons

  test('name what decided', () => {
    const two = [rated('a', { weight: 3 }), rated('b', { priority: 2 })]
    expect(reasons(two)).toEqual(['priority 1', 'priority 2'])
    const rivals = [rated('a', { weight: 3 }), rated('b', { weight: 3 })]
    expect(reasons(rivals)).toEqual(['priority 1, weight 3', 'priority 1, weight 3'])
    expect(reasons([rated('own', { credentialId: 'cred_1' })])).toEqual(['own credential, priority 1'])
  })

  test('name the figure of the policy', () => {
    const cost = [rated('a', { cost: [1_250_000n, 6_000_000n] }), rated('b')]
    expect(reasons(cost, { policy: 'cheapest' })).toEqual([
      'priority 1, costs $1.25 / $6.00',
      'priority 1, cost not known',
    ])
    const pace = [rated('a', { firstEvent: measured(120.4, 300) }), rated('b', { firstEvent: measured(200, 300) })]
    expect(reasons(pace, { policy: 'fastest' })[0]).toBe('priority 1, begins after 120 ms')
  })

  test('name a reduced weight, and why a failing route is tried', () => {
    expect(reasons([rated('a', { state: slowStart })])).toEqual(['priority 1, slow start: 10 % of its share'])
    expect(reasons([rated('a', { state: { ...healthy, factor: 0.5 } })])).toEqual([
      'priority 1, overloaded: 50 % of its share',
    ])
    expect(reasons([rated('a', { state: probe }), rated('b', { priority: 2 })])[0]).toBe(
      'priority 1, tested after an ejection',
    )
    expect(reasons([rated('a', { state: ejected })])).toEqual(['priority 1, tried because no route is known to work'])
  })

  test('name the route that has the prompt cache', () => {
    const a = rated('a')
    const [reason] = reasons([a, rated('b')], { sticky: a.candidate.health.name })
    expect(reason).toBe('priority 1, weight 1, has the prompt cache of this conversation')
  })

  test('give state, cause and remaining time for excluded routes', () => {
    expect(exclusionReason(ejected)).toBe('left out: ejected (failing), 9 s left')
    expect(exclusionReason(parked)).toBe('left out: parked (throttled), 2 s left')
    expect(exclusionReason(probeTaken)).toBe('left out: being tested (failing), 3 s left')
  })
})
