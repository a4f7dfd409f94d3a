import { describe, expect, test } from 'bun:test'
import { ambiguous, type Fate, stale, startRoutes } from '../../test/parts/route-bench.ts'
import { faultFromError, replyFault } from '../dialects/canonical/faults.ts'
import { Failure } from '../kernel/failure.ts'
import { Exhausted, exhaustedFailure } from './exhausted.ts'
import { attemptEachOnce } from './failover.ts'
import { type AttemptFault, attemptFault, classifyFault } from './faults.ts'

const failing = attemptFault('failing')
const throttled: AttemptFault = {
  ...attemptFault('throttled'),
  provider: { ...replyFault('rate_limit_exceeded'), status: 429, retryAfterMs: 9000 },
}
const slip = classifyFault({ ...replyFault('MALFORMED_FUNCTION_CALL'), isInvalidOutput: true })

/** Routes in this order, which are not waited for. */
const start = (fates: Readonly<Record<string, readonly Fate[]>>) => startRoutes(fates, { pauses: false })

/** Makes none of them known to work. */
async function ejectAll({ run, calls, health, candidates, budget }: ReturnType<typeof start>): Promise<void> {
  for (let n = 0; n < 5; n++) await run()
  for (const { health: key } of candidates) expect(health.state(key).state).toBe('ejected')
  calls.length = 0
  while (budget.level() < 50) budget.earn()
}

describe('a model is unavailable only if no route can serve it', () => {
  const eight = Object.fromEntries([...'abcdefgh'].map((id) => [id, [failing]]))
  test.each<[name: string, fates: Record<string, readonly Fate[]>, answer: string, calls: string]>([
    [
      'a healthy fourth is tried after three failures',
      { a: [failing], b: [failing], c: [failing], d: ['ok'] },
      'd',
      'abcd',
    ],
    ['at most six are tried', eight, 'none', 'abcdef'],
    ['pitfall 119: a slip of the model is repeated once', { a: [slip, 'ok'], b: ['ok'] }, 'a', 'aa'],
    ['pitfall 119: after a second slip another route is tried', { a: [slip], b: ['ok'] }, 'b', 'aab'],
    [
      'after two calls that may still be running, no third is made',
      { a: [ambiguous], b: [ambiguous], c: ['ok'] },
      'none',
      'ab',
    ],
    ['one such call does not stop failover', { a: [ambiguous], b: [failing], c: ['ok'] }, 'c', 'abc'],
  ])('%s', async (_, fates, answer, expected) => {
    const { run, calls } = start(fates)
    const outcome = await run()
    expect(outcome instanceof Exhausted ? 'none' : outcome.text).toBe(answer)
    expect(calls).toEqual([...expected])
  })

  test('no request of a new gateway fails because of the first five failures of a route', async () => {
    const { run, calls } = start({ a: [failing], b: ['ok'] })
    for (let n = 0; n < 50; n++) expect(await run()).toEqual({ text: 'b' })
    expect(calls.filter((id) => id === 'a')).toHaveLength(5)
  })
})

test('a healthy route is tried even if a failing one comes before it', async () => {
  const overloaded = attemptFault('failing', faultFromError(503, undefined, {}))
  const bench = start({ a: [overloaded], b: [overloaded], c: [overloaded], d: [overloaded], e: ['ok'] })
  for (let n = 0; n < 30; n++) {
    while (bench.budget.spend());
    expect(await bench.run()).toEqual({ text: 'e' })
  }
})

describe('a defect of ours in a probe does not keep the route out:', () => {
  test('ejected', async () => {
    const { run, calls, jump, health, candidates } = start({
      a: [...Array(5).fill(failing), 'defect', 'ok'],
      b: ['ok'],
    })
    for (let n = 0; n < 5; n++) await run()
    expect(candidates.map(({ health: key }) => health.state(key).state)).toEqual(['ejected', 'healthy'])
    // An ejection lasts 15 s, and probes are 5 s apart.
    jump(15_000)
    expect(await run().catch(String)).toBe('TypeError: a defect')
    jump(5_000)
    expect(await run()).toEqual({ text: 'a' })
    expect(calls.slice(-2)).toEqual(['a', 'a'])
  })

  test('parked', async () => {
    const { run, calls, jump } = start({ a: [attemptFault('refused our credential'), 'defect', 'ok'] })
    expect(await run()).toBeInstanceOf(Exhausted)
    jump(1)
    expect(await run().catch(String)).toBe('TypeError: a defect')
    jump(1)
    expect(await run()).toEqual({ text: 'a' })
    expect(calls).toEqual(['a', 'a', 'a'])
  })
})

describe('faults that count against no route', () => {
  test.each([
    ['a slip of the model', slip],
    ['what the provider lacks', attemptFault('lacks what was asked for')],
  ])('%s is tried three times at most, within the budget', async (_, fault) => {
    const bench = start(Object.fromEntries([...'abcdefg'].map((id) => [id, [fault]])))
    while (bench.budget.level() < 50) bench.budget.earn()
    await bench.run()
    expect(bench.calls).toHaveLength(3)
    while (bench.budget.spend());
    bench.calls.length = 0
    for (let n = 0; n < 3; n++) await bench.run()
    expect(bench.calls).toHaveLength(3)
  })
})

test('healthy routes that were not tried are not named in the error', async () => {
  const { exhausted, budget } = start({ a: [attemptFault('lacks what was asked for')], b: ['ok'], c: ['ok'] })
  while (budget.spend());
  const outcome = await exhausted()
  expect(outcome.failed.map(({ candidate }) => candidate.provider.id)).toEqual(['a'])
  expect(exhaustedFailure('m', outcome, 'NOT_FOUND').message).toContain('can serve now: a lacks what was asked for.')
})

describe('routes that are not known to work', () => {
  const all = { a: [failing], b: [failing], c: [failing], d: [failing] }

  test('are tried at most three times', async () => {
    const bench = start(all)
    await ejectAll(bench)
    expect(await bench.run()).toBeInstanceOf(Exhausted)
    expect(bench.calls).toHaveLength(3)
  })

  test('are tried once while the budget is empty', async () => {
    const bench = start(all)
    await ejectAll(bench)
    while (bench.budget.spend());
    expect(await bench.run()).toBeInstanceOf(Exhausted)
    expect(bench.calls).toHaveLength(1)
  })
})

test('a stale socket does not count as a fault if a new connection works', async () => {
  const { run, calls, health, candidates } = start({ a: [stale, 'ok'], b: ['ok'] })
  expect(await run()).toEqual({ text: 'a' })
  expect(calls).toEqual(['a', 'a fresh'])
  const [a] = candidates
  expect(a && health.state(a.health).state).toBe('healthy')
})

test('no attempt begins after 15 minutes', async () => {
  const { run, calls } = start({ a: [failing], b: [failing], c: ['ok'] })
  expect(await run(450_000)).toBeInstanceOf(Exhausted)
  expect(calls).toEqual(['a', 'b'])
})

test('an empty retry budget does not stop failover to a healthy route', async () => {
  const { run, calls, budget } = start({ a: [failing], b: ['ok'] })
  while (budget.spend());
  expect(await run()).toEqual({ text: 'b' })
  expect(calls).toEqual(['a', 'b'])
})

test('failures of the sandbox neither add to the retry budget nor use it', async () => {
  const { run, budget, candidates } = start({ a: [failing], b: ['ok'] })
  for (const { provider } of candidates) Object.assign(provider, { ignoresHealth: true })
  const before = budget.level()
  for (let n = 0; n < 100; n++) expect(await run()).toEqual({ text: 'b' })
  expect(budget.level()).toBe(before)
})

test.each([
  // Fifteen minutes but for one second.
  [899_000, ['a', 'b']],
  [899_001, ['a']],
])('after %p ms of a stream these have been asked: %j', async (tookMs, asked) => {
  const { run, calls } = start({ a: [failing], b: ['ok'] })
  await run(tookMs)
  expect(calls).toEqual(asked)
})

test('no route is retried with less than a second left', async () => {
  const { run, calls } = start({ a: [{ ...failing, isRepeatable: true }] })
  await run(899_001)
  expect(calls).toEqual(['a'])
})

describe('a candidate that refuses', () => {
  const refusal = new Failure('NOT_FOUND', 'the key is broken')

  test('is not called, costs no retry, and the next one is tried', async () => {
    const { run, calls, budget, candidates } = start({ a: ['ok'], b: ['ok'] })
    Object.assign(candidates[0] ?? {}, { refusal })
    while (budget.spend());
    expect(await run()).toEqual({ text: 'b' })
    expect(calls).toEqual(['b'])
  })

  test('returns its own error if it is the only one, and keeps its health', async () => {
    const { failure: fail, calls, health, candidates } = start({ a: ['ok'] })
    Object.assign(candidates[0] ?? {}, { refusal })
    for (let n = 0; n < 6; n++) {
      const failure = await fail()
      expect(failure).toBe(refusal)
    }
    expect(calls).toEqual([])
    expect(candidates[0] && health.state(candidates[0].health).state).toBe('healthy')
  })
})

const noFile = { status: 404, type: 'not_found_error', message: 'File not found: file_1' }

test.each([
  [402, 'This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only …'],
  [400, 'Your organization must be verified to generate reasoning summaries.'],
  [400, 'Project `acme-prod` is not allowed to use Publisher Model `projects/acme-prod/models/m`'],
])('a %p about the operator’s account is not passed on: %s', async (status, message) => {
  const { failure: fail } = start({
    a: [classifyFault(faultFromError(status, undefined, { type: 'some_error', message }))],
  })
  const failure = await fail()
  expect(failure.code).toBe('NOT_FOUND')
  expect(failure.message).not.toMatch(/credits|organization|acme-prod/)
})

test('if every route lacks something, the caller gets the last one’s message', async () => {
  const lacking = classifyFault({ ...replyFault(noFile.message), ...noFile })
  const { failure: fail, candidates } = start({ a: [lacking], b: [lacking] })
  for (const each of candidates) Object.assign(each, { dialect: { id: 'anthropic-messages' } })
  const failure = await fail()
  expect(failure).toMatchObject({ code: 'INVALID_REQUEST', message: noFile.message })
})

test('a 404 without an API’s error code is not the caller’s fault', async () => {
  const { failure: fail } = start({ a: [classifyFault({ ...replyFault('<h1>nginx</h1>'), status: 404 })] })
  const failure = await fail()
  expect(failure.message).toBe(
    'No route of `acme/large` can serve now: a answers 404; its base_url or dialect may be wrong, which tollgate doctor tells the operator. Use another model.',
  )
})

test('if all other routes are throttled, an ejected one does not change the 429', async () => {
  const { failure: fail, health, candidates } = start({ a: [failing], b: [throttled] })
  const [a] = candidates
  for (let n = 0; n < 5; n++) if (a) health.recordFault(a.health, 0, { ...failing, status: 503 })
  const failure = await fail()
  expect(failure).toMatchObject({ code: 'LIMIT_EXCEEDED', facts: { retryAfterMs: 9000 } })
})

test('the message names excluded routes and for how long', async () => {
  const { failure: fail, health, candidates } = start({ a: ['ok'], b: [failing] })
  const [a] = candidates
  for (let n = 0; n < 5; n++) if (a) health.recordFault(a.health, 0, attemptFault('timed out'))
  const failure = await fail()
  // The first ejection lasts 15 s; the draw of 0.5 adds and takes nothing.
  expect(failure.message).toBe(
    '`acme/large` exists, but none of its routes can serve now: b failing; a timed out, cooling down for 15 s. Retry in 15 s, or use another model.',
  )
})

test('a throttled caller gets the wait until the route may be called again', async () => {
  const wordless = attemptFault('throttled', faultFromError(429, undefined, { message: 'Too Many Requests' }))
  const { failure: fail, jump, calls } = start({ a: [wordless] })
  const waits: (number | undefined)[] = []
  for (let n = 0; n < 4; n++) {
    const failure = await fail()
    expect(failure.code).toBe('LIMIT_EXCEEDED')
    waits.push(failure.facts.retryAfterMs)
    jump(failure.facts.retryAfterMs ?? 0)
  }
  expect(waits).toEqual([1000, 2000, 4000, 8000])
  expect(calls).toHaveLength(4)
})

describe('a request that generates nothing', () => {
  const attemptsOf = async (routes: ReturnType<typeof start>, fates: Readonly<Record<string, AttemptFault>>) => {
    const { health, candidates, budget } = routes
    const called: string[] = []
    const outcome = await attemptEachOnce(
      { health, retryBudget: budget },
      health.plan(candidates),
      async (candidate) => {
        called.push(candidate.provider.id)
        return fates[candidate.provider.id] ?? { text: candidate.provider.id }
      },
    )
    return { called: called.join(''), outcome, states: routes.state() }
  }

  test.each<[name: string, fates: Readonly<Record<string, AttemptFault>>, called: string]>([
    ['ends with the first reply', { a: failing, b: throttled }, 'abc'],
    ['calls at most three routes, each once', { a: stale, b: failing, c: failing }, 'abc'],
    ['ends with a fault that no other route can help with', { a: attemptFault("caller's fault") }, 'a'],
  ])('%s', async (_, fates, expected) => {
    const { called, states } = await attemptsOf(start({ a: [], b: [], c: [], d: [] }), fates)
    expect(called).toBe(expected)
    expect(states).toBe('healthy healthy healthy healthy')
  })

  test('calls a route that is not healthy only while the retry budget lasts', async () => {
    const routes = start({ a: [failing], b: [failing] })
    await ejectAll(routes)
    expect((await attemptsOf(routes, { a: failing, b: failing })).called).toBe('ab')
    while (routes.budget.spend());
    const { called, outcome } = await attemptsOf(routes, { a: failing, b: failing })
    expect(called).toBe('a')
    expect(outcome).toBeInstanceOf(Exhausted)
  })
})
