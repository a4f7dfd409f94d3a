import { describe, expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { faultFromError, faultFromBody as messages } from '../dialects/canonical/faults.ts'
import { readFault as gemini } from '../dialects/gemini/errors.ts'
import { readFault as chat } from '../dialects/openai-chat/errors.ts'
import { type AttemptFault, attemptFault, classifyFault, type FaultClass } from './faults.ts'
import { createHealth, type HealthNotice } from './health.ts'
import { healthy, type RouteHealth, type RouteNames } from './route.ts'

const names: RouteNames = {
  providerId: 'acme',
  baseUrl: 'https://eu',
  upstreamModel: 'large',
  credentialId: 'platform',
}

function createBench() {
  const clock = createJumpClock()
  const notices: HealthNotice[] = []
  const health = createHealth({ clock, random: () => 0.5, onNotice: (notice) => notices.push(notice) })
  const route = (other: Partial<RouteNames> = {}) => health.route({ ...names, ...other })
  /** An attempt that is over at once. */
  const fail = (key: RouteHealth, fault: FaultClass | AttemptFault) => {
    const startedMs = health.begin(key, 'panic')
    const recorded = typeof fault === 'string' ? attemptFault(fault) : fault
    health.recordFault(key, typeof startedMs === 'number' ? startedMs : clock.monotonicMs(), recorded)
  }
  const succeed = (key: RouteHealth) => {
    const startedMs = health.begin(key, 'ordinary')
    if (typeof startedMs !== 'number') throw new Error(`held back: ${startedMs.state}`)
    health.recordOk(key, startedMs, 100)
  }
  return { clock, health, route, fail, succeed, notices }
}

/** A 429 as a provider words it. */
function throttled(said: { type?: string; message?: string }, retryAfterMs?: number): AttemptFault {
  return attemptFault('throttled', faultFromError(429, retryAfterMs, said))
}

const none = new Headers()
const vertexBody =
  '{"error":{"code":429,"message":"Resource exhausted. Please try again later.","status":"RESOURCE_EXHAUSTED"}}'

function failing(status: number): AttemptFault {
  return attemptFault('failing', faultFromError(status, undefined, {}))
}

describe('five faults of one class', () => {
  /** To the route itself; to another model on the same credential; to another credential for the same model. */
  const rows: readonly [FaultClass, itself: string, otherModel: string, otherCredential: string][] = [
    ['unreachable', 'ejected', 'healthy', 'ejected'],
    ['broken', 'ejected', 'healthy', 'ejected'],
    ['timed out', 'ejected', 'healthy', 'ejected'],
    ['failing', 'ejected', 'healthy', 'ejected'],
    ['garbled', 'ejected', 'healthy', 'ejected'],
    ['redirecting', 'ejected', 'healthy', 'ejected'],
    ['refused our credential', 'parked', 'parked', 'healthy'],
    ['out of quota', 'parked', 'parked', 'healthy'],
    ['does not know the model', 'parked', 'healthy', 'healthy'],
    ['lacks what was asked for', 'healthy', 'healthy', 'healthy'],
    ['had too little time', 'healthy', 'healthy', 'healthy'],
    ['too large', 'healthy', 'healthy', 'healthy'],
    ["caller's fault", 'healthy', 'healthy', 'healthy'],
    ['cannot carry the request', 'healthy', 'healthy', 'healthy'],
    ['client left', 'healthy', 'healthy', 'healthy'],
    ['shut down', 'healthy', 'healthy', 'healthy'],
    ['superseded', 'healthy', 'healthy', 'healthy'],
  ]
  test.each(rows)('%s', (faultClass, itself, otherModel, otherCredential) => {
    const { health, route, fail } = createBench()
    const key = route()
    for (let n = 0; n < 5; n++) fail(key, faultClass)
    const state = health.state(key)
    expect(state.state).toBe(itself as typeof state.state)
    if (itself !== 'healthy') expect(state).toMatchObject({ factor: 0, why: faultClass })
    expect(health.state(route({ upstreamModel: 'small' })).state).toBe(otherModel as typeof state.state)
    expect(health.state(route({ credentialId: 'cred_1' })).state).toBe(otherCredential as typeof state.state)
  })

  test('throttled: only this model on this credential, at every endpoint', () => {
    const { health, route, fail } = createBench()
    fail(route(), throttled({ type: 'rate_limit_error' }, 7000))
    expect(health.state(route())).toEqual({ state: 'parked', factor: 0, waitMs: 7000, why: 'throttled' })
    expect(health.state(route({ baseUrl: 'https://us' })).state).toBe('parked')
    expect(health.state(route({ upstreamModel: 'small' }))).toBe(healthy)
    expect(health.state(route({ credentialId: 'cred_1' }))).toBe(healthy)
  })
})

describe('throttling', () => {
  test('the third unexplained 429 in a row counts as an empty account at this model', () => {
    const { clock, health, route, fail, notices } = createBench()
    const key = route()
    fail(key, throttled({ message: 'No.' }))
    expect(health.state(key)).toMatchObject({ waitMs: 1000, why: 'throttled' })
    clock.jump(1)
    fail(key, throttled({ message: 'No.' }))
    expect(health.state(key)).toMatchObject({ waitMs: 2000, why: 'throttled' })
    expect(notices).toEqual([])
    clock.jump(2)
    fail(key, throttled({ message: 'No.' }))
    expect(health.state(key)).toMatchObject({ waitMs: 900_000, why: 'out of quota' })
    expect(health.state(route({ baseUrl: 'https://us' })).why).toBe('out of quota')
    expect(health.state(route({ upstreamModel: 'small' }))).toBe(healthy)
    const notice = { route: key, what: 'credential parked at this model', why: 'out of quota' } as const
    expect(notices).toEqual([{ ...notice, waitMs: 900_000 }])
    clock.jump(900)
    fail(key, throttled({ message: 'No.' }))
    expect(notices.at(-1)).toEqual({ ...notice, waitMs: 1_800_000 })
  })

  test.each([
    ['Vertex', gemini(429, none, vertexBody)],
    ['Vertex with Claude', messages(429, none, `[${vertexBody}]`)],
    [
      'Mistral',
      chat(429, none, '{"object":"error","message":"Rate limit exceeded","type":"rate_limited","code":"1300"}'),
    ],
    ['NVIDIA', chat(429, none, '{"status":429,"title":"Too Many Requests"}')],
  ])('however often %s limits the rate, it is a throttle of one model and of a minute at most', (_, said) => {
    const { clock, health, route, fail, notices } = createBench()
    for (let n = 0; n < 10; n++) {
      fail(route(), classifyFault(said))
      const { why, waitMs = 0 } = health.state(route())
      expect([why, waitMs <= 60_000]).toEqual(['throttled', true])
      clock.jump(waitMs / 1000)
    }
    expect(health.state(route({ upstreamModel: 'small' }))).toBe(healthy)
    expect(notices).toEqual([])
  })

  test('one that names a rate limit stays a throttle', () => {
    const { clock, health, route, fail } = createBench()
    for (const waitMs of [1000, 2000, 4000, 8000]) {
      fail(route(), throttled({ type: 'rate_limit_error' }))
      expect(health.state(route())).toMatchObject({ waitMs, why: 'throttled' })
      clock.jump(waitMs / 1000)
    }
  })

  test('a success restarts the row', () => {
    const { clock, health, route, fail, succeed } = createBench()
    for (let n = 0; n < 4; n++) {
      fail(route(), throttled({}))
      expect(health.state(route())).toMatchObject({ waitMs: 1000, why: 'throttled' })
      clock.jump(1)
      succeed(route())
    }
  })
})

test('slips of a model do not eject a route, because callers can provoke them', () => {
  const { health, route, fail } = createBench()
  const slip = '{"error":{"message":"Failed to call a function.","code":"tool_use_failed"}}'
  for (let n = 0; n < 30; n++) fail(route(), classifyFault(chat(400, none, slip)))
  expect(health.state(route())).toBe(healthy)
})

test('a refilled account restarts its row', () => {
  const { clock, health, route, fail, succeed } = createBench()
  for (let n = 0; n < 2; n++) {
    fail(route(), 'out of quota')
    expect(health.state(route()).waitMs).toBe(900_000)
    clock.jump(900)
    succeed(route({ upstreamModel: 'small' }))
  }
})

test('a cooldown from the provider is kept even in a panic', () => {
  const { health, route, fail } = createBench()
  fail(route(), attemptFault('out of quota', faultFromError(429, 3_600_000, {})))
  expect(health.begin(route(), 'panic')).toMatchObject({ state: 'parked', why: 'out of quota', waitMs: 3_600_000 })
})

test('a new credential has no cooldown; that of another provider stays parked', () => {
  const { health, route, fail } = createBench()
  fail(route(), throttled({}, 5000))
  fail(route(), 'does not know the model')
  fail(route(), 'refused our credential')
  fail(route({ providerId: 'other' }), 'refused our credential')
  health.renewCredential({ providerId: 'acme', credentialId: 'platform' })
  expect(health.state(route())).toBe(healthy)
  expect(health.state(route({ providerId: 'other' })).state).toBe('parked')
})

test.each([
  [503, 0.5],
  [529, 0.5],
  [500, 1],
])('a %p leaves %p of the weight for 30 seconds', (status, factor) => {
  const { clock, health, route, fail } = createBench()
  fail(route(), failing(status))
  expect(health.state(route())).toMatchObject({ state: 'healthy', factor })
  clock.jump(30)
  expect(health.state(route())).toBe(healthy)
})

describe('after an ejection', () => {
  function ejectedBench() {
    const bench = createBench()
    for (let n = 0; n < 5; n++) bench.fail(bench.route(), failing(500))
    expect(bench.health.state(bench.route())).toEqual({
      state: 'ejected',
      factor: 0,
      waitMs: 15_000,
      why: 'failing',
    })
    bench.clock.jump(15)
    return { ...bench, key: bench.route() }
  }

  test('one request at a time may probe it; in a panic any may', () => {
    const { clock, health, key } = ejectedBench()
    expect(health.state(key)).toMatchObject({ state: 'probing', factor: 0.1 })
    expect(health.begin(key, 'ordinary')).toBe(15_000)
    expect(health.begin(key, 'ordinary')).toMatchObject({ state: 'probing', factor: 0 })
    expect(health.begin(key, 'panic')).toBe(15_000)
    clock.jump(60)
    expect(health.begin(key, 'ordinary')).toMatchObject({ state: 'probing', factor: 0 })
  })

  test('a probe whose client leaves, or whose request is at fault, decides nothing', () => {
    const { clock, health, key, fail } = ejectedBench()
    for (const faultClass of ['client left', "caller's fault", 'too large'] as const) {
      fail(key, faultClass)
      clock.jump(5)
      expect(health.state(key)).toMatchObject({ state: 'probing', factor: 0.1 })
    }
  })

  test('three successes restore it slowly, with a notice', () => {
    const { clock, health, key, succeed, notices } = ejectedBench()
    for (const seconds of [5, 5, 0]) {
      succeed(key)
      clock.jump(seconds)
    }
    expect(health.state(key)).toMatchObject({ state: 'slow start', waitMs: 30_000 })
    expect(health.state(key).factor).toBeCloseTo(0.1)
    clock.jump(30)
    expect(health.state(key)).toBe(healthy)
    expect(notices.map(({ what }) => what)).toEqual(['ejected', 'recovered'])
  })
})

test('interrupted answers eject a route', () => {
  const { health, route } = createBench()
  for (let n = 0; n < 20; n++) {
    expect(health.state(route())).toBe(healthy)
    const startedMs = health.begin(route(), 'ordinary') as number
    health.recordOk(route(), startedMs, 100)
    health.recordInterrupted(route(), startedMs, 'client left')
    health.recordInterrupted(route(), startedMs, 'broken')
  }
  expect(health.state(route())).toMatchObject({ state: 'ejected', why: 'broken' })
})

test('the first-event limit follows measured latency, including timeouts', () => {
  const { health, route, fail } = createBench()
  for (let n = 0; n < 19; n++) health.recordOk(route(), 0, 100)
  expect(health.firstEventLimitMs(route(), 'ordinary')).toBe(60_000)
  health.recordFault(route(), 0, attemptFault('timed out'), 16_000)
  expect(health.firstEventLimitMs(route(), 'ordinary')).toBe(48_000)
  fail(route(), 'timed out')
  expect(health.snapshot()[0]?.firstEventMs?.samples).toBe(20)
})

test('a snapshot has every route with its figures', () => {
  const { clock, health, route, fail } = createBench()
  health.recordOk(route(), 0, 250)
  health.recordSpeed(route(), 100, 2000)
  health.recordSpeed(route(), 9, 1)
  fail(route({ credentialId: 'cred_1' }), 'out of quota')
  clock.jump(3)
  const [platform, own, ...rest] = health.snapshot()
  expect(rest).toEqual([])
  expect(platform).toEqual({
    route: route(),
    state: healthy,
    firstEventMs: { p50: 250, p95: 250, p99: 250, samples: 1, windowMs: 3000 },
    tokensPerSecond: { p50: 50, p95: 50, p99: 50, samples: 1, windowMs: 3000 },
  })
  expect(own).toEqual({
    route: route({ credentialId: 'cred_1' }),
    state: { state: 'parked', factor: 0, waitMs: 897_000, why: 'out of quota', isGuess: true },
    firstEventMs: undefined,
    tokensPerSecond: undefined,
  })
})

test('an answer that is not streamed shows for an hour that a route works', () => {
  const { clock, health, route } = createBench()
  const shown = () => health.standing(route(), { id: 'acme' }).state
  expect(shown()).toBe('unused')
  health.recordOk(route(), clock.monotonicMs())
  expect(shown()).toBe('available')
  clock.jump(3600)
  expect(shown()).toBe('available')
  clock.jump(1)
  expect(shown()).toBe('unused')
})

test('a route that failed is shown as failing until it answers, however long that takes', () => {
  const { clock, health, route, fail } = createBench()
  const shown = () => health.standing(route(), { id: 'acme' })
  health.recordOk(route(), clock.monotonicMs())
  clock.jump(1)
  fail(route(), 'timed out')
  expect(shown()).toEqual({ state: 'failing', why: 'timed out' })
  for (let n = 0; n < 4; n++) fail(route(), 'failing')
  expect(shown()).toEqual({ state: 'cooldown', why: 'failing' })
  // The cooldown is over after 15 s and nobody has asked since.
  clock.jump(86_400)
  expect(shown()).toEqual({ state: 'failing', why: 'failing' })
  health.recordOk(route(), clock.monotonicMs())
  expect(shown()).toEqual({ state: 'recovering' })
  fail(route(), 'failing')
  clock.jump(600)
  for (let n = 0; n < 3; n++) health.recordOk(route(), clock.monotonicMs())
  clock.jump(30)
  expect(shown()).toEqual({ state: 'available' })
  // An attempt that began before an answer says nothing newer than it.
  health.recordFault(route(), clock.monotonicMs() - 60_000, attemptFault('timed out'))
  expect(shown()).toEqual({ state: 'available' })
  health.recordInterrupted(route(), clock.monotonicMs(), 'broken')
  expect(shown()).toEqual({ state: 'failing', why: 'broken' })
})

test('a paused route is shown as failing after the pause, and one that answers inside the gateway as simulated', () => {
  const { clock, health, route, fail } = createBench()
  const shown = (ignoresHealth = false) => health.standing(route(), { id: 'acme', ignoresHealth })
  fail(route(), 'refused our credential')
  expect(shown()).toEqual({ state: 'paused', why: 'refused our credential' })
  expect(shown(true)).toEqual({ state: 'simulated' })
  clock.jump(61)
  expect(shown()).toEqual({ state: 'failing', why: 'refused our credential' })
  // The caller's own mistakes say nothing about the route.
  health.recordOk(route(), clock.monotonicMs())
  fail(route(), "caller's fault")
  expect(shown()).toEqual({ state: 'available' })
})

test('a failed connection test counts for every route of the provider, until it answers or passes a test', () => {
  const { clock, health, route, fail } = createBench()
  const unused = () => health.standing(undefined, { id: 'acme' })
  const shown = () => health.standing(route(), { id: 'acme' })
  health.recordOk(route(), clock.monotonicMs())
  clock.jump(1)
  health.recordTest('acme', 'unreachable')
  expect(shown()).toEqual({ state: 'failing', why: 'unreachable' })
  expect(unused()).toEqual({ state: 'failing', why: 'unreachable' })
  expect(health.standing(undefined, { id: 'bolt' })).toEqual({ state: 'unused' })
  clock.jump(1)
  health.recordOk(route(), clock.monotonicMs())
  expect(shown()).toEqual({ state: 'available' })
  expect(unused()).toEqual({ state: 'failing', why: 'unreachable' })
  health.recordTest('acme', undefined)
  expect(unused()).toEqual({ state: 'unused' })
  // A key that was refused is accepted again: the pause of up to an hour ends.
  fail(route(), 'refused our credential')
  health.recordTest('acme', undefined)
  expect(shown()).toEqual({ state: 'available' })
  // That the key is accepted does not show that a failing model answers.
  fail(route(), 'timed out')
  health.recordTest('acme', undefined)
  expect(shown()).toEqual({ state: 'failing', why: 'timed out' })
})

describe('the only route, in a cooldown of our own guess', () => {
  const refused = attemptFault('refused our credential')

  function setUp(fault: AttemptFault) {
    const bench = createBench()
    const { health } = bench
    const key = health.route({ providerId: 'a', baseUrl: 'https://x', upstreamModel: 'm', credentialId: 'platform' })
    const only = { health: key, route: { priority: 1, weight: 1 } }
    const begin = () => {
      const { ordered, mode } = health.plan([only])
      return ordered.length === 0 ? 'left out' : health.begin(key, mode)
    }
    const started = begin()
    if (typeof started === 'number') health.recordFault(key, started, fault)
    return { ...bench, key, only, begin }
  }

  test.each(['refused our credential', 'out of quota', 'does not know the model'] as const)(
    '%s: the next request looks, and a success is the end of it',
    (why) => {
      const { health, key, begin } = setUp(attemptFault(why))
      expect(health.state(key)).toMatchObject({ state: 'parked', why })
      const started = begin()
      if (typeof started !== 'number') throw new Error('not asked')
      health.recordOk(key, started)
      expect(health.state(key).state).toBe('healthy')
    },
  )

  test('is probed by one request at a time, and a failed probe does not extend it', () => {
    const { health, key, clock, begin } = setUp(refused)
    const { waitMs } = health.state(key)
    const started = begin()
    expect(begin()).toMatchObject({ state: 'parked' })
    if (typeof started === 'number') health.recordFault(key, started, refused)
    expect(health.state(key).waitMs).toBe(waitMs)
    const next = begin()
    expect(next).toBeNumber()
    // One that ended in another way was a look too.
    if (typeof next === 'number') health.recordFault(key, next, attemptFault('failing'))
    expect(begin()).toBeNumber()
    // One that never comes back.
    expect(begin()).toMatchObject({ state: 'parked' })
    clock.jump(30)
    expect(begin()).toBeNumber()
  })

  test('is not probed if the provider gave the duration, or during a rate limit', () => {
    const provider = faultFromError(429, 3_600_000, {})
    expect(setUp(attemptFault('out of quota', provider)).begin()).toBe('left out')
    expect(setUp(attemptFault('throttled')).begin()).toBe('left out')
  })

  test('stays excluded beside a healthy route', () => {
    const { health, only } = setUp(refused)
    const other = health.route({ providerId: 'b', baseUrl: 'https://y', upstreamModel: 'm', credentialId: 'platform' })
    const second = { health: other, route: { priority: 2, weight: 1 } }
    expect(health.plan([only, second]).ordered).toEqual([second])
  })
})

test('a relayed host’s empty account parks only that model', () => {
  const { health, route, fail } = createBench()
  const error = {
    message: 'Provider returned error',
    metadata: { raw: '{"error":{"message":"Insufficient Balance"}}' },
  }
  const fault = classifyFault(faultFromError(402, undefined, error))
  expect(fault).toMatchObject({ class: 'out of quota', provider: { message: 'Insufficient Balance' } })
  fail(route(), fault)
  expect(health.state(route())).toMatchObject({ state: 'parked', why: 'out of quota' })
  expect(health.state(route({ upstreamModel: 'small' })).state).toBe('healthy')
})
