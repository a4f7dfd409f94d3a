import { expect, test } from 'bun:test'
import type { Clock } from '../kernel/clock.ts'
import type { Admission, Arrival, RateLimits, RateScope, Refused } from './limiter.ts'
import { createMemoryLimiter } from './memory-limiter.ts'

function createBench() {
  let nowMs = 1_000_000
  const clock: Clock = { now: () => 0, monotonicMs: () => nowMs }
  return {
    limiter: createMemoryLimiter(clock),
    pass(ms: number): void {
      nowMs += ms
    },
  }
}

const key = (limits: RateLimits, id = '1'): RateScope => ({ kind: 'key', id: `key_${id}`, name: 'ci', limits })
const project = (limits: RateLimits): RateScope => ({ kind: 'project', id: 'prj_1', name: 'web', limits })
const workspace = (limits: RateLimits): RateScope => ({ kind: 'workspace', id: 'ws_1', name: 'acme', limits })

function admitted(verdict: Admission | Refused): Admission {
  expect(verdict.kind).toBe('admitted')
  return verdict as Admission
}

function refused(verdict: Admission | Refused): Refused {
  expect(verdict.kind).toBe('refused')
  return verdict as Refused
}

test('requests without limits share one admission, and nothing is remembered', () => {
  const { limiter } = createBench()
  const first = limiter.admit([key({}), project({}), workspace({})], 1000)
  expect(limiter.admit([key({}, '2')], 5)).toBe(first)
  expect(limiter.admit([], 5)).toBe(first)
  expect(admitted(first).state).toEqual({})
  admitted(first).end(3)
  admitted(first).end(0)
  expect(limiter.scopeCount).toBe(0)
})

test('the tightest limit applies and is named; a refusal takes nothing from the others', () => {
  const { limiter, pass } = createBench()
  const scopes = [
    key({ requestsPerMinute: 3 }),
    project({ requestsPerMinute: 2 }),
    workspace({ requestsPerMinute: 60 }),
  ]
  for (let n = 0; n < 2; n++) admitted(limiter.admit(scopes, 1))
  for (let n = 0; n < 100; n++) {
    const { scope, limit, max, used, retryAfterMs } = refused(limiter.admit(scopes, 1))
    expect({ scope, limit, max, used, retryAfterMs }).toEqual({
      scope: project({ requestsPerMinute: 2 }),
      limit: 'requests',
      max: 2,
      used: 2,
      retryAfterMs: 30_000,
    })
  }
  // The key has one left, and the workspace 58.
  admitted(limiter.admit([key({ requestsPerMinute: 3 }), workspace({ requestsPerMinute: 60 })], 1))
  refused(limiter.admit([key({ requestsPerMinute: 3 })], 1))
  for (let n = 0; n < 57; n++) admitted(limiter.admit([workspace({ requestsPerMinute: 60 })], 1))
  refused(limiter.admit([workspace({ requestsPerMinute: 60 })], 1))
  pass(30_000)
  admitted(limiter.admit(scopes, 1))
})

test('returns the longest wait if several limits refuse', () => {
  const { limiter, pass } = createBench()
  const scopes = [
    key({ requestsPerMinute: 1, tokensPerMinute: 100 }),
    project({ tokensPerMinute: 50 }),
    workspace({ concurrentRequests: 1 }),
  ]
  const running = admitted(limiter.admit(scopes, 150))
  // The request is back after 60 s. 100 tokens fit into the key's 100 when nothing is used: 90 s; into the project's
  // 50 also then: 180 s.
  const { scope, limit, used, asked, retryAfterMs } = refused(limiter.admit(scopes, 100))
  expect([scope.kind, limit, used, asked, retryAfterMs]).toEqual(['project', 'tokens', 150, 100, 180_000])
  running.end(150)
  pass(179_999)
  expect(refused(limiter.admit(scopes, 100)).retryAfterMs).toBe(1)
  pass(1)
  admitted(limiter.admit(scopes, 100))
})

test('concurrent requests count until they end, and the suggested wait is a second', () => {
  const { limiter, pass } = createBench()
  const scopes = [key({ concurrentRequests: 2 }), project({ concurrentRequests: 3 })]
  const first = admitted(limiter.admit(scopes, 0))
  admitted(limiter.admit(scopes, 0))
  const refusal = refused(limiter.admit(scopes, 0))
  expect([refusal.scope.kind, refusal.limit, refusal.max, refusal.used]).toEqual(['key', 'concurrent', 2, 2])
  expect(refusal.retryAfterMs).toBe(1000)
  const others = [key({ concurrentRequests: 2 }, '2'), project({ concurrentRequests: 3 })]
  admitted(limiter.admit(others, 0))
  expect(refused(limiter.admit(others, 0)).scope.kind).toBe('project')
  pass(3_600_000)
  refused(limiter.admit(scopes, 0))
  first.end(0)
  admitted(limiter.admit(scopes, 0))
  refused(limiter.admit(scopes, 0))
})

test('an admission ends once', () => {
  const { limiter } = createBench()
  const admission = admitted(limiter.admit([key({ concurrentRequests: 1 })], 0))
  admission.end(0)
  expect(() => admission.end(0)).toThrow('an admission ends once')
})

test('tokens are reserved by the estimate and corrected by the count, in every scope', () => {
  const { limiter } = createBench()
  const scopes = [key({ tokensPerMinute: 1000 }), project({ tokensPerMinute: 2000 })]
  const first = admitted(limiter.admit(scopes, 900))
  refused(limiter.admit(scopes, 101))
  first.end(300)
  const second = admitted(limiter.admit(scopes, 700))
  expect(second.state.tokens).toEqual({ limit: 1000, remaining: 0, resetMs: 60_000 })
  second.end(2700)
  // 3,000 are used: 2,001 must drain from the key's, 1,001 from the project's.
  const { scope, used, retryAfterMs } = refused(limiter.admit(scopes, 1))
  expect([scope.kind, used, retryAfterMs]).toEqual(['key', 3000, 120_060])
  expect(refused(limiter.admit([project({ tokensPerMinute: 2000 })], 1)).retryAfterMs).toBe(30_030)
})

test('a request that never reached a provider counts no tokens, but counts as a request', () => {
  const { limiter } = createBench()
  const scopes = [key({ requestsPerMinute: 2, tokensPerMinute: 100 })]
  admitted(limiter.admit(scopes, 100)).end(0)
  const second = admitted(limiter.admit(scopes, 100))
  expect(second.state.requests?.remaining).toBe(0)
})

test('tokens above the estimate are taken when they become known', () => {
  const { limiter, pass } = createBench()
  const scopes = [key({ tokensPerMinute: 60 })]
  const admission = admitted(limiter.admit(scopes, 10))
  pass(60_000)
  admission.end(70)
  expect(refused(limiter.admit(scopes, 1))).toMatchObject({ used: 60, retryAfterMs: 1000 })
})

test('a request without tokens is not refused for tokens', () => {
  const { limiter } = createBench()
  const scopes = [key({ tokensPerMinute: 100 })]
  admitted(limiter.admit(scopes, 500))
  admitted(limiter.admit(scopes, 0)).end(0)
  refused(limiter.admit(scopes, 1))
})

test('the state is that of the scope with the least left, with this request, also when refused', () => {
  const { limiter } = createBench()
  const scopes = [
    key({ requestsPerMinute: 60, tokensPerMinute: 1000 }),
    project({ requestsPerMinute: 6, tokensPerMinute: 6000 }),
  ]
  const state = {
    requests: { limit: 6, remaining: 5, resetMs: 10_000 },
    tokens: { limit: 1000, remaining: 900, resetMs: 6000 },
  }
  expect(admitted(limiter.admit(scopes, 100)).state).toEqual(state)
  expect(refused(limiter.admit(scopes, 901)).state).toEqual(state)
  expect(admitted(limiter.admit([workspace({ concurrentRequests: 5 })], 1)).state).toEqual({})
})

test('reports the scope that resets later if two have as much left', () => {
  const [two, three] = [key({ requestsPerMinute: 2 }), workspace({ requestsPerMinute: 3 })]
  for (const scopes of [
    [two, three],
    [three, two],
  ]) {
    const { limiter } = createBench()
    admitted(limiter.admit([three], 1))
    const { state } = admitted(limiter.admit(scopes, 1))
    expect(state.requests).toEqual({ limit: 3, remaining: 1, resetMs: 40_000 })
  }
})

test('waits are whole milliseconds and long enough, also where the clock has fractions', () => {
  const { limiter, pass } = createBench()
  const scopes = [key({ requestsPerMinute: 7 })]
  pass(0.9)
  for (let n = 0; n < 7; n++) admitted(limiter.admit(scopes, 1))
  pass(0.3)
  // 60,000 / 7 = 8571.43, and a new millisecond has begun.
  expect(refused(limiter.admit(scopes, 1)).retryAfterMs).toBe(8571)
  pass(8571)
  admitted(limiter.admit(scopes, 1))
})

test('a changed limit applies to the next request, without a fresh burst', () => {
  const { limiter, pass } = createBench()
  const ask = (limits: RateLimits) => limiter.admit([key(limits)], 10)
  for (let n = 0; n < 5; n++) admitted(ask({ requestsPerMinute: 5, tokensPerMinute: 50 }))
  expect(refused(ask({ requestsPerMinute: 5, tokensPerMinute: 60 })).limit).toBe('requests')
  expect(refused(ask({ requestsPerMinute: 6, tokensPerMinute: 50 })).limit).toBe('tokens')
  admitted(ask({ requestsPerMinute: 6, tokensPerMinute: 60 }))
  refused(ask({ requestsPerMinute: 6, tokensPerMinute: 60 }))
  // Gone for a while, and back.
  admitted(ask({}))
  admitted(ask({ concurrentRequests: 7 }))
  refused(ask({ concurrentRequests: 7 }))
  refused(ask({ requestsPerMinute: 6 }))
  pass(10_000)
  admitted(ask({ requestsPerMinute: 6 }))
})

test('a limit of 0 refuses every request', () => {
  const { limiter } = createBench()
  expect(refused(limiter.admit([key({ requestsPerMinute: 0 })], 1))).toMatchObject({
    limit: 'requests',
    max: 0,
    used: 0,
  })
  expect(refused(limiter.admit([key({ tokensPerMinute: 0 })], 1))).toMatchObject({ limit: 'tokens', max: 0, used: 0 })
  expect(refused(limiter.admit([key({ concurrentRequests: 0 })], 1))).toMatchObject({ limit: 'concurrent', max: 0 })
})

test('drained scopes are forgotten as others come; those with something running or used are not', () => {
  const { limiter, pass } = createBench()
  const limits = { requestsPerMinute: 60, concurrentRequests: 1 }
  const running = admitted(limiter.admit([key(limits, 'running')], 1))
  // One each 10 ms, drained after a second: 100 have something taken at any time.
  let mostScopes = 0
  for (let n = 0; n < 10_000; n++) {
    admitted(limiter.admit([key(limits, `passing-${n}`)], 1)).end(1)
    mostScopes = Math.max(mostScopes, limiter.scopeCount)
    pass(10)
  }
  expect(mostScopes).toBeLessThan(250)
  refused(limiter.admit([key(limits, 'running')], 1))
  refused(limiter.admit([key({ requestsPerMinute: 1 }, 'passing-9999')], 1))
  running.end(1)
  pass(60_000)
  for (let n = 0; n < 200; n++) limiter.admit([key(limits, 'last')], 1)
  expect(limiter.scopeCount).toBe(1)
})

function arrived(verdict: Arrival | Refused): Arrival {
  expect(verdict.kind).toBe('arrived')
  return verdict as Arrival
}

test('an arrival has a slot before its body is read, and keeps it when it is admitted', async () => {
  const { limiter } = createBench()
  const scopes = [key({ concurrentRequests: 2 }), workspace({ requestsPerMinute: 100 })]
  const [first, second] = [arrived(limiter.arrive(scopes)), arrived(limiter.arrive(scopes))]
  expect(limiter.arrive(scopes)).toMatchObject({ kind: 'refused', limit: 'concurrent', max: 2, used: 2 })
  refused(limiter.admit(scopes, 0))
  const admission = admitted(await first.admit(10))
  refused(limiter.admit(scopes, 0))
  admission.end(10)
  second.end()
  const again = [arrived(limiter.arrive(scopes)), arrived(limiter.arrive(scopes))]
  for (const each of again) each.end()
})

test('an arrival that is not served counts as a request; one refused for its tokens does not', async () => {
  const { limiter } = createBench()
  const scopes = [key({ requestsPerMinute: 2, tokensPerMinute: 100 })]
  admitted(limiter.admit([key({ tokensPerMinute: 100 })], 100))
  expect(refused(await arrived(limiter.arrive(scopes)).admit(50))).toMatchObject({ limit: 'tokens', asked: 50 })
  arrived(limiter.arrive(scopes)).end()
  arrived(limiter.arrive(scopes)).end()
  expect(limiter.arrive(scopes)).toMatchObject({ kind: 'refused', limit: 'requests', used: 2, retryAfterMs: 30_000 })
})

test('an arrival ends once and is not forgotten before', () => {
  const { limiter, pass } = createBench()
  const limits = { concurrentRequests: 1 }
  const waiting = arrived(limiter.arrive([key(limits, 'waiting')]))
  for (let n = 0; n < 200; n++) {
    arrived(limiter.arrive([key(limits, `passing-${n}`)])).end()
    pass(60_000)
  }
  expect(limiter.arrive([key(limits, 'waiting')]).kind).toBe('refused')
  waiting.end()
  expect(() => waiting.end()).toThrow('an arrival ends once')
  expect(() => waiting.admit(1)).toThrow('an arrival ends once')
})

test('arrivals without limits cost nothing', async () => {
  const { limiter } = createBench()
  const arrival = arrived(limiter.arrive([key({})]))
  arrival.end()
  admitted(await arrival.admit(5))
  expect(limiter.scopeCount).toBe(0)
})
