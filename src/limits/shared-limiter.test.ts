import { expect, test } from 'bun:test'
import { createEngineStore, type EngineStore } from '../../test/parts/load-store.ts'
import type { Admission, Arrival, RateLimits, RateScope, Refused } from './limiter.ts'
import { type LimiterMode, SharedLimiter } from './shared-limiter.ts'

interface Bench extends Disposable {
  readonly store: EngineStore
  readonly limiters: readonly SharedLimiter[]
  readonly modes: LimiterMode[]
  nowMs: number
}

/** Three limiters on one store, all by one clock that stands still. */
function createBench({ timeoutMs = 60_000, leaseMs = 1e9 } = {}): Bench {
  const modes: LimiterMode[] = []
  const bench = { nowMs: 1_000_000, modes }
  const store = createEngineStore(() => bench.nowMs)
  const clock = { now: () => bench.nowMs, monotonicMs: () => bench.nowMs }
  const limiters = [1, 2, 3].map(
    () =>
      new SharedLimiter({
        store,
        clock,
        timeoutMs,
        leaseMs,
        liveReplicas: () => 3,
        onMode: (mode) => modes.push(mode),
      }),
  )
  return Object.assign(bench, {
    store,
    limiters,
    [Symbol.dispose]: () => {
      for (const limiter of limiters) void limiter.close()
    },
  })
}

const key = (limits: RateLimits, id = '1'): RateScope => ({ kind: 'key', id: `key_${id}`, name: 'ci', limits })

function limiterOf({ limiters }: Bench, at: number): SharedLimiter {
  const limiter = limiters[at]
  if (!limiter) throw new Error('no such limiter')
  return limiter
}

/** Asks until refused; the admissions, and the refusal. */
async function exhaust(limiter: SharedLimiter, scope: RateScope, tokens = 0, max = 1000) {
  const admissions: Admission[] = []
  let refusal: Refused | undefined
  while (!refusal && admissions.length < max) {
    const verdict = await limiter.admit([scope], tokens)
    if (verdict.kind === 'admitted') admissions.push(verdict)
    else refusal = verdict
  }
  return { admissions, count: admissions.length, refusal }
}

function storeFails(): never {
  throw new Error('connection refused')
}

/** The store is retried after a while; waits for that, not for a time. */
async function untilShared(...limiters: readonly SharedLimiter[]): Promise<void> {
  while (limiters.some(({ mode }) => mode.kind !== 'shared')) await Bun.sleep(5)
}

test('requests without limits are admitted at once and never reach the store', () => {
  using bench = createBench()
  const limiter = limiterOf(bench, 0)
  const first = limiter.admit([key({})], 1000)
  expect(first).not.toBeInstanceOf(Promise)
  expect(limiter.admit([], 5)).toBe(first)
  expect(bench.store.batches).toEqual([])
  expect(limiter.scopeCount).toBe(0)
})

test('requests that come while a batch is in progress share the next one', async () => {
  using bench = createBench()
  const limiter = limiterOf(bench, 0)
  const first = limiter.admit([key({ requestsPerMinute: 50 })], 0)
  await Promise.resolve()
  await Promise.resolve()
  const others = Array.from({ length: 99 }, () => limiter.admit([key({ requestsPerMinute: 50 })], 0))
  const verdicts = await Promise.all([first, ...others])
  expect(verdicts.filter(({ kind }) => kind === 'admitted')).toHaveLength(50)
  expect(bench.store.batches.map(({ admits }) => admits.length)).toEqual([1, 99])
})

test('three limiters together admit exactly what one would', async () => {
  using bench = createBench()
  const scope = key({ requestsPerMinute: 100, concurrentRequests: 70 })
  const asked = bench.limiters.flatMap((limiter) => Array.from({ length: 200 }, () => limiter.admit([scope], 0)))
  const verdicts = await Promise.all(asked)
  const admitted = verdicts.filter((verdict) => verdict.kind === 'admitted')
  expect(admitted).toHaveLength(70)
  for (const admission of admitted) admission.end(0)
  await Promise.all(bench.limiters.map((limiter) => limiter.settled()))
  // 100 a minute, 70 made.
  expect((await exhaust(limiterOf(bench, 1), scope)).count).toBe(30)
})

test('while the store fails, each process admits its share and reports it', async () => {
  using bench = createBench()
  bench.store.behaviour = storeFails
  for (const limiter of bench.limiters) {
    const { count, refusal } = await exhaust(limiter, key({ requestsPerMinute: 60 }))
    expect(count).toBe(20)
    expect(refusal).toMatchObject({ limit: 'requests', max: 20, used: 20, retryAfterMs: 3000 })
    expect(limiter.mode).toEqual({ kind: 'share', since: 1_000_000, replicas: 3, why: 'connection refused' })
  }
})

test('a share is at least 1, and 0 of a limit of 0', async () => {
  using bench = createBench()
  bench.store.behaviour = storeFails
  const limiter = limiterOf(bench, 0)
  expect((await exhaust(limiter, key({ requestsPerMinute: 2 }, 'a'))).count).toBe(1)
  expect((await exhaust(limiter, key({ requestsPerMinute: 0 }, 'b'))).count).toBe(0)
  expect((await exhaust(limiter, key({ concurrentRequests: 5 }, 'c'))).count).toBe(1)
  expect((await exhaust(limiter, key({ tokensPerMinute: 300 }, 'd'), 30)).count).toBe(3)
})

test('a share starts with the part of what was left when the store last answered', async () => {
  using bench = createBench()
  const scope = key({ requestsPerMinute: 60 })
  const limiter = limiterOf(bench, 0)
  await exhaust(limiter, scope, 0, 30)
  bench.store.behaviour = storeFails
  // 30 of 60 are left: 10 of the 20 of this process.
  expect((await exhaust(limiter, scope)).count).toBe(10)
  // It has not seen that half was used: its whole share.
  expect((await exhaust(limiterOf(bench, 1), scope)).count).toBe(20)
})

test('a share refills at its part of the pace', async () => {
  using bench = createBench()
  bench.store.behaviour = storeFails
  const limiter = limiterOf(bench, 0)
  await exhaust(limiter, key({ requestsPerMinute: 60 }))
  bench.nowMs += 9000
  expect((await exhaust(limiter, key({ requestsPerMinute: 60 }))).count).toBe(3)
})

for (const forgets of [false, true]) {
  test(`counts requests admitted during an outage of the store once it is back and has ${forgets ? 'lost' : 'kept'} its counts`, async () => {
    using bench = createBench()
    const scope = key({ requestsPerMinute: 60 })
    const limiter = limiterOf(bench, 0)
    await exhaust(limiter, scope, 0, 30)
    bench.store.behaviour = storeFails
    await exhaust(limiter, scope)
    bench.store.behaviour = () => {}
    if (forgets) bench.store.forget()
    await untilShared(limiter)
    // 30 before, 10 on the share.
    expect((await exhaust(limiter, scope)).count).toBe(20)
    expect(bench.modes.map(({ kind }) => kind)).toEqual(['share', 'shared'])
  })
}

test('three limiters that find the store empty exceed the limit only by what they did not know', async () => {
  using bench = createBench()
  const scope = key({ requestsPerMinute: 90, tokensPerMinute: 9000 })
  let total = 0
  for (const limiter of bench.limiters) total += (await exhaust(limiter, scope, 100, 20)).count
  // They know of 20, 40 and 60 that are used: of 30 each, rounded down, so much is left.
  bench.store.behaviour = storeFails
  const alone = await Promise.all(bench.limiters.map((limiter) => exhaust(limiter, scope, 100)))
  expect(alone.map(({ count }) => count)).toEqual([23, 16, 10])
  for (const { count } of alone) total += count
  bench.store.forget()
  bench.store.behaviour = () => {}
  await untilShared(...bench.limiters)
  await Promise.all(bench.limiters.map((limiter) => limiter.settled()))
  const [first, ...others] = await Promise.all(bench.limiters.map((limiter) => exhaust(limiter, scope, 100)))
  // The first limiter that is back reports what it knew, at least 20, and each reports its part of the 49 admitted.
  total += (first?.count ?? 0) + others.reduce((sum, { count }) => sum + count, 0)
  expect(total).toBeLessThanOrEqual(60 + 49 + (90 - 20 - 49))
})

test('a store that does not answer does not block requests, and what it takes late is given back', async () => {
  using bench = createBench({ timeoutMs: 10 })
  const limiter = limiterOf(bench, 0)
  const { promise, resolve } = Promise.withResolvers<void>()
  bench.store.behaviour = () => promise
  const scope = key({ tokensPerMinute: 900 })
  const verdict = await limiter.admit([scope], 200)
  expect(verdict).toMatchObject({ kind: 'admitted', state: { tokens: { limit: 300, remaining: 100 } } })
  expect(limiter.mode).toMatchObject({ kind: 'share', why: 'no answer within 10 ms' })
  resolve()
  await untilShared(limiter)
  await limiter.settled()
  // Taken twice, once by the store and once on the share: counted once.
  expect((await limiterOf(bench, 1).admit([scope], 0)).state.tokens?.remaining).toBe(700)
})

test('running requests count on the share, no matter who admitted them', async () => {
  using bench = createBench()
  const limiter = limiterOf(bench, 0)
  const scope = key({ concurrentRequests: 9 })
  const [first] = (await exhaust(limiter, scope, 0, 2)).admissions
  bench.store.behaviour = storeFails
  // Two requests run in its share of 3.
  expect((await exhaust(limiter, scope)).count).toBe(1)
  first?.end(0)
  expect((await exhaust(limiter, scope)).count).toBe(1)
  bench.store.behaviour = () => {}
  await untilShared(limiter)
  await limiter.settled()
  // The store knows of the three that run here.
  expect((await exhaust(limiterOf(bench, 1), scope)).count).toBe(6)
})

test('corrections that could not be sent are made when the store is back', async () => {
  using bench = createBench()
  const limiter = limiterOf(bench, 0)
  const scope = key({ tokensPerMinute: 900 })
  const { admissions } = await exhaust(limiter, scope, 900)
  bench.store.behaviour = storeFails
  await limiter.admit([key({ requestsPerMinute: 1 }, '2')], 0)
  admissions[0]?.end(100)
  bench.store.behaviour = () => {}
  await untilShared(limiter)
  await limiter.settled()
  expect((await limiterOf(bench, 1).admit([scope], 0)).state.tokens?.remaining).toBe(800)
})

test('the slots of a dead process become free when its lease ends', async () => {
  using bench = createBench({ leaseMs: 15_000 })
  const scope = key({ concurrentRequests: 3 })
  await exhaust(limiterOf(bench, 0), scope, 0, 2)
  await limiterOf(bench, 0).close()
  expect((await exhaust(limiterOf(bench, 1), scope)).count).toBe(1)
  bench.nowMs += 14_999
  expect((await exhaust(limiterOf(bench, 1), scope)).count).toBe(0)
  bench.nowMs += 1
  // Its own one was said again with every question.
  expect((await exhaust(limiterOf(bench, 1), scope)).count).toBe(2)
})

test('a live process renews its slots', async () => {
  using bench = createBench({ leaseMs: 30 })
  await limiterOf(bench, 0).admit([key({ concurrentRequests: 3 })], 0)
  await limiterOf(bench, 0).admit([key({ requestsPerMinute: 3 }, '2')], 0)
  const isRenewal = ({ admits, corrections, scopes }: (typeof bench.store.batches)[number]) =>
    admits.length + corrections.length === 0 && scopes.length > 0
  while (!bench.store.batches.some(isRenewal)) await Bun.sleep(5)
  expect(bench.store.batches.find(isRenewal)?.scopes).toEqual([{ id: 'key_1', running: 1, seed: undefined }])
})

test('scopes with nothing taken are forgotten as others come', async () => {
  using bench = createBench()
  const limiter = limiterOf(bench, 0)
  for (let n = 0; n < 500; n++) {
    const verdict = await limiter.admit([key({ requestsPerMinute: 60 }, String(n))], 0)
    if (verdict.kind === 'admitted') verdict.end(0)
    bench.nowMs += 1000
  }
  expect(limiter.scopeCount).toBeLessThan(10)
})

test('an arrival has a slot here at once, and the store counts the request', async () => {
  using bench = createBench()
  const [limiter, other] = [limiterOf(bench, 0), limiterOf(bench, 1)]
  const scope = key({ concurrentRequests: 2, requestsPerMinute: 3 })
  const arrive = (at = limiter): Arrival => {
    const verdict = at.arrive([scope])
    expect(verdict.kind).toBe('arrived')
    return verdict as Arrival
  }
  const [first, second] = [arrive(), arrive()]
  expect(limiter.arrive([scope])).toMatchObject({ kind: 'refused', limit: 'concurrent', used: 2 })
  const admission = await first.admit(0)
  expect(admission.kind).toBe('admitted')
  // It came to nothing, and counts as a request all the same.
  second.end()
  await limiter.settled()
  arrive().end()
  await limiter.settled()
  expect(limiter.arrive([scope])).toMatchObject({ kind: 'refused', limit: 'requests', used: 3 })
  // Where nothing is known of it, the store says so.
  expect(await arrive(other).admit(0)).toMatchObject({ kind: 'refused', limit: 'requests', used: 3 })
  expect(other.arrive([scope])).toMatchObject({ kind: 'refused', limit: 'requests' })
})
