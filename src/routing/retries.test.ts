// The same route called again for one request: which faults, how often, after which wait, and what it costs while
// everything fails.

import { describe, expect, test } from 'bun:test'
import {
  type Answer,
  ambiguous,
  broken,
  type RouteBenchOptions,
  stale,
  startRoutes,
  status,
} from '../../test/parts/route-bench.ts'
import { replyFault } from '../dialects/canonical/faults.ts'
import { Exhausted } from './exhausted.ts'
import { type AttemptFault, attemptFault, classifyFault } from './faults.ts'
import type { Candidate } from './plan.ts'

const busy = status(503)
const ok: Answer = { text: 'a' }

const startOne = (fates: readonly (AttemptFault | Answer)[], options?: RouteBenchOptions) =>
  startRoutes({ a: fates }, options)
const waitsOf = ({ waits }: ReturnType<typeof startRoutes>) => waits.map(({ milliseconds }) => milliseconds)

const garbled = classifyFault(replyFault('an empty answer'))
const slip = classifyFault({ ...replyFault('MALFORMED_FUNCTION_CALL'), isInvalidOutput: true })

describe('a fault that may pass is retried on the only route', () => {
  test.each<[string, AttemptFault, string]>([
    ...[408, 500, 502, 503, 504, 520, 524, 529].map((code): [string, AttemptFault, string] => [
      `a ${code}`,
      status(code),
      'a',
    ]),
    ['no connection', attemptFault('unreachable'), 'a'],
    ['a connection that broke', broken, 'a fresh'],
    ['an empty answer', garbled, 'a'],
  ])('%s', async (_, fault, again) => {
    const scene = startOne([fault, fault, ok])
    expect(await scene.run()).toEqual(ok)
    expect(scene.calls).toEqual(['a', again, again])
    // Half of two seconds, half of four.
    expect(waitsOf(scene)).toEqual([1000, 2000])
  })

  test.each<[string, AttemptFault, number]>([
    ['a redirect', attemptFault('redirecting'), 1],
    ['a 404 of a proxy', status(404), 1],
    ['a 501', status(501), 1],
    ['a refused credential', attemptFault('refused our credential'), 1],
    ['an unknown model', attemptFault('does not know the model'), 1],
    ['what the provider lacks', attemptFault('lacks what was asked for'), 1],
    ['the caller’s own fault', status(400), 1],
    ['a first event that did not come in all the time there is', attemptFault('timed out'), 1],
    // Asked for once more at once, as ever.
    ['a slip of the model', slip, 2],
  ])('but not %s', async (_, fault, calls) => {
    const scene = startOne([fault])
    expect(await scene.run()).toBeInstanceOf(Exhausted)
    expect([scene.calls.length, scene.waits]).toEqual([calls, []])
  })

  test('a reset connection is replayed at once, then after a wait', async () => {
    const scene = startOne([stale, broken, ok])
    expect(await scene.run()).toEqual(ok)
    expect(scene.calls).toEqual(['a', 'a fresh', 'a fresh'])
    expect(waitsOf(scene)).toEqual([1000])
  })

  test('a repaired request is repeated at once, and a second refusal is final', async () => {
    const mended: AttemptFault = { ...status(400), isRepeatable: true }
    const scene = startRoutes({ a: [mended, ok], b: [ok] })
    expect(await scene.run()).toEqual(ok)
    expect([scene.calls, scene.waits]).toEqual([['a', 'a'], []])
    const refused = startRoutes({ a: [mended, status(400)], b: [ok] })
    expect(await refused.run()).toBeInstanceOf(Exhausted)
    expect(refused.calls).toEqual(['a', 'a'])
  })

  test('a request that may be running upstream is repeated once', async () => {
    const scene = startOne([ambiguous, ambiguous, ok])
    expect(await scene.run()).toBeInstanceOf(Exhausted)
    expect(scene.calls).toEqual(['a', 'a fresh'])
  })
})

describe('attempts and waits', () => {
  test('fill twenty seconds, with doubling waits', async () => {
    const scene = startOne([busy])
    await scene.run()
    // Half of 2, 4, 8 and 16 s; of the next one only the last five seconds are left.
    expect(waitsOf(scene)).toEqual([1000, 2000, 4000, 8000, 5000])
    expect(scene.calls).toHaveLength(6)
  })

  test('get an answer from a provider that fails for eighteen seconds', async () => {
    const scene = startOne([busy, busy, busy, busy, busy, ok])
    expect(await scene.run()).toEqual(ok)
  })

  test('are at most ten attempts, and as many as configured', async () => {
    const scene = startOne([busy], { random: () => 0 })
    await scene.run()
    expect(scene.calls).toHaveLength(10)
    const five = startOne([busy], { attempts: 5 })
    await five.run()
    expect(waitsOf(five)).toEqual([1000, 2000, 4000, 8000])
    const one = startOne([busy], { attempts: 1 })
    await one.run()
    expect(one.calls).toEqual(['a'])
  })

  test('follow the provider’s wait', async () => {
    const scene = startOne([status(503, 3000), ok])
    expect(await scene.run()).toEqual(ok)
    // And half of a quarter of a second, so that not all come back at once.
    expect(waitsOf(scene)).toEqual([3125])
  })

  test('leave a wait of more than five seconds to the client', async () => {
    const scene = startOne([status(503, 5001)])
    const { facts } = await scene.failure()
    expect(scene.calls).toEqual(['a'])
    expect(facts).toEqual({ retryAfterMs: 5001, shouldRetry: true, cause: 'routes_failed' })
  })

  test('start no retry after the client’s timeout', async () => {
    const scene = startOne([busy], { clientTimeoutMs: 4000, tookMs: 1500, streams: false })
    await scene.run()
    // The first fails at 1.5 s, the second begins at 2.5 s and fails at 4 s.
    expect([scene.calls.length, waitsOf(scene)]).toEqual([2, [1000]])
    const late = startOne([busy], { clientTimeoutMs: 4000, tookMs: 4001, streams: false })
    await late.run()
    expect(late.calls).toHaveLength(1)
  })

  test('end a stream in time for its client’s timeout, unless that has passed', async () => {
    const scene = startOne([busy], { clientTimeoutMs: 4000 })
    await scene.run()
    // 1 s and 2 s; of the next wait only the last second is left.
    expect(waitsOf(scene)).toEqual([1000, 2000, 1000])
    // Its headers were sent at the timeout, and it gets keep-alives from then on.
    const late = startOne([busy], { clientTimeoutMs: 4000, tookMs: 4001 })
    await late.run()
    // Three waits and four calls take 23.004 s; no retry starts later than 24.001 s.
    expect(waitsOf(late)).toEqual([1000, 2000, 4000, 997])
  })

  test('count the twenty seconds from the first failure', async () => {
    const scene = startOne([busy, ok], { tookMs: 60_000 })
    expect(await scene.run()).toEqual(ok)
    const twice = startOne([busy], { tookMs: 60_000 })
    await twice.run()
    expect(twice.calls).toHaveLength(2)
  })

  test('end when the client leaves during a wait', async () => {
    const scene = startOne([busy, ok], { leaves: true })
    expect([(await scene.exhausted()).clientLeft, scene.calls]).toEqual([true, ['a']])
  })

  test('repeat failures of the sandbox without a wait', async () => {
    const scene = startOne([busy], { ignoresHealth: true })
    const { message, facts } = await scene.failure()
    expect([scene.calls.length, scene.waits, scene.budget.level()]).toEqual([3, [], 50])
    expect(message).toContain('its provider a is failing (503 after 3 tries). Retry in 4 s')
    expect(facts).toEqual({ retryAfterMs: 4000, shouldRetry: true, cause: 'routes_failed' })
  })
})

describe('with several routes', () => {
  test('each is tried before any is retried', async () => {
    const scene = startRoutes({ a: [busy, ok], b: [busy] })
    expect(await scene.run()).toEqual(ok)
    expect(scene.calls).toEqual(['a', 'b', 'a'])
    expect(waitsOf(scene)).toEqual([1000])
  })

  test('only those with a transient fault are retried', async () => {
    const scene = startRoutes({ a: [attemptFault('refused our credential')], b: [busy, busy, ok] })
    expect(await scene.run()).toEqual(ok)
    expect(scene.calls).toEqual(['a', 'b', 'b', 'b'])
  })

  test('retries alternate', async () => {
    const scene = startRoutes({ a: [busy], b: [busy] }, { attempts: 5, random: () => 0.1 })
    await scene.run()
    expect(scene.calls).toEqual(['a', 'b', 'a', 'b', 'a'])
  })
})

describe('isLast', () => {
  test.each<[string, Readonly<Record<string, readonly (AttemptFault | Answer)[]>>, string[]]>([
    ['the only one', { a: [ok] }, ['a last']],
    ['the second of two', { a: [busy], b: [ok] }, ['a', 'b last']],
    ['a retry', { a: [busy, ok], b: [busy] }, ['a', 'b last', 'a last']],
    ['a replay over a fresh connection', { a: [stale, ok], b: [ok] }, ['a', 'a']],
    ['the sixth of seven', Object.fromEntries([...'abcdefg'].map((id) => [id, [busy]])), [...'abcde', 'f last']],
  ])('%s', async (_, fates, expected) => {
    const scene = startRoutes(fates, { attempts: 3 })
    await scene.run()
    expect(scene.lasts).toEqual(expected)
  })

  test('does not count a route that the budget cannot pay for', async () => {
    const scene = startRoutes({ a: [busy], b: [busy] })
    for (const { health: key } of scene.candidates) for (let n = 0; n < 5; n++) scene.health.recordFault(key, 0, busy)
    while (scene.budget.spend());
    await scene.run()
    expect(scene.lasts).toEqual(['a last'])
  })

  test('a route that was given up early may be retried with the full time', async () => {
    const scene = startRoutes({ a: [attemptFault('timed out'), ok], b: [busy] })
    expect(await scene.run()).toEqual(ok)
    expect(scene.lasts).toEqual(['a', 'b last', 'a last'])
  })

  test('nothing is retried after the last route had the full time', async () => {
    const scene = startRoutes({ a: [busy], b: [attemptFault('timed out')] })
    await scene.run()
    expect(scene.calls).toEqual(['a', 'b'])
  })
})

describe('the budget', () => {
  test('ends replays and retries while everything fails', async () => {
    // No time passes, so the budget is not refilled.
    const scene = startOne([stale, broken], { random: () => 0 })
    for (let n = 0; n < 200; n++) await scene.run()
    // A fifth of the requests, the floor of fifty, and the replay that a stale socket of a healthy route gets for free.
    expect(scene.calls.length).toBe(200 + 40 + 50 + 1)
    expect(scene.budget.level()).toBeLessThan(1)
  })

  test('is not needed to replay a stale socket of a healthy route', async () => {
    const scene = startOne(Array.from({ length: 40 }, (_, call) => (call % 2 === 0 ? stale : ok)))
    while (scene.budget.spend());
    for (let n = 0; n < 20; n++) expect(await scene.run()).toEqual(ok)
    expect(scene.calls).toHaveLength(40)
  })

  test('is used by every retry', async () => {
    const scene = startOne([busy, busy, ok], { random: () => 0 })
    await scene.run()
    // Fifty, a fifth for the request, and two less.
    expect(scene.budget.level()).toBe(48.2)
    const poor = startOne([busy], { random: () => 0 })
    while (poor.budget.spend());
    await poor.run()
    expect(poor.calls).toEqual(['a'])
  })

  test('is enough for one agent whose every request fails twice', async () => {
    const scene = startOne(Array.from({ length: 300 }, (_, call) => (call % 3 === 2 ? ok : status(529))))
    for (let n = 0; n < 100; n++) expect(await scene.run()).toEqual(ok)
  })
})

describe('a throttle', () => {
  const throttled = status(429, 1000)

  test('is recorded before the wait, and cleared after it', async () => {
    const scene = startOne([throttled, ok], { random: () => 0 })
    expect(await scene.run()).toEqual(ok)
    expect(scene.waits).toEqual([{ milliseconds: 1000, state: 'parked' }])
    expect(scene.state()).toBe('healthy')
  })

  test('is not waited for with an empty budget', async () => {
    const scene = startOne([throttled])
    while (scene.budget.spend());
    await scene.run()
    expect([scene.calls.length, scene.waits]).toEqual([1, []])
  })

  test('without a duration is left to the client', async () => {
    const scene = startOne([status(429)])
    expect(await scene.failure()).toMatchObject({ code: 'LIMIT_EXCEEDED', facts: { retryAfterMs: 1000 } })
    expect(scene.calls).toHaveLength(1)
  })
})

describe('an ejected route', () => {
  test('is tried and retried if it is the only one', async () => {
    const scene = startOne([busy, busy, busy, busy, busy, busy, busy, ok], { attempts: 3 })
    await scene.run()
    await scene.run()
    expect(scene.state()).toBe('ejected')
    expect(await scene.run()).toEqual(ok)
    expect(scene.calls).toHaveLength(8)
  })

  test('was not ejected by one request, however often that was retried', async () => {
    const scene = startOne([busy])
    await scene.run()
    expect([scene.calls.length, scene.state()]).toEqual([6, 'healthy'])
    await scene.run()
    // Its fifth fault ejected it for 15 s, which have passed.
    expect(scene.state()).toBe('probing')
  })

  test('tells clients to retry after its cooldown, 15 s at most', async () => {
    const scene = startOne([busy], { attempts: 3, random: () => 0.5 })
    const waits: (number | undefined)[] = []
    for (let n = 0; n < 2; n++) waits.push((await scene.failure()).facts.retryAfterMs)
    // The fifth fault ejects it for 15 s; the retry after it took two of them.
    expect(waits).toEqual([4000, 13_000])
    const { health: key } = scene.candidates[0] as Candidate
    for (let n = 0; n < 3; n++) {
      // A fault of its time of probation doubles the ejection: 30, 60 and 120 s.
      scene.health.recordFault(key, 1e6, busy)
    }
    expect((await scene.failure()).facts).toEqual({ retryAfterMs: 15_000, shouldRetry: true, cause: 'routes_failed' })
  })
})

describe('the error', () => {
  test('names a single failing provider, the fault, the attempts and the wait', async () => {
    const failure = await startOne([status(529)]).failure()
    expect(failure).toMatchObject({ code: 'NOT_FOUND', facts: { retryAfterMs: 4000, shouldRetry: true } })
    expect(failure.message).toBe(
      '`acme/large` exists, but its provider a is failing (529 after 6 tries). Retry in 4 s, or use another model.',
    )
  })

  test('says that a response was invalid', async () => {
    expect((await startOne([garbled]).failure()).message).toContain('a is failing (invalid response after 6 tries).')
  })

  test('names each of several providers', async () => {
    const failure = await startRoutes({ a: [attemptFault('timed out')], b: [busy] }).failure()
    expect(failure.message).toBe(
      '`acme/large` exists, but none of its routes can serve now: b 503; a timed out after 2 tries. Retry in 4 s, or use another model.',
    )
  })

  test('names the owner of a rejected credential and says not to retry', async () => {
    const scene = startOne([attemptFault('refused our credential')])
    const failure = await scene.failure()
    expect(failure.facts).toEqual({ shouldRetry: false, cause: 'routes_failed' })
    expect(failure.message).toBe(
      "No route of `acme/large` can serve now: a rejected the gateway's credential (the operator of this gateway has to replace it). Use another model.",
    )
    Object.assign(scene.candidates[0] as Candidate, { isOwn: true })
    expect((await scene.failure()).message).toContain(
      "a rejected the workspace's own credential (replace it: console → Providers & routes, or `tollgate credentials put`)",
    )
  })

  test('says to retry if a route fails beside a rejected credential', async () => {
    const failure = await startRoutes({ a: [attemptFault('refused our credential')], b: [busy] }).failure()
    expect(failure.facts).toEqual({ retryAfterMs: 4000, shouldRetry: true, cause: 'routes_failed' })
  })
})
