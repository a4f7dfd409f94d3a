import { expect, test } from 'bun:test'
import { createTestClock } from '../../test/parts/ledger.ts'
import { Failure } from '../kernel/failure.ts'
import { type Attempt, createGuessLimits } from './guess-limits.ts'

const minutes = (count: number) => count * 60_000
/** How many of so many attempts at once are compared. */
const compared = (begin: (at: number) => Attempt | Failure, times: number) =>
  Array.from({ length: times }, (_, at) => begin(at)).filter((each) => !(each instanceof Failure)).length

test('one network guesses ten passwords of an account in any ten minutes, and locks out no other network', () => {
  const clock = createTestClock()
  const limits = createGuessLimits(clock)
  expect(compared(() => limits.password('ada@example.com', 'far'), 1000)).toBe(10)
  const refused = limits.password('ada@example.com', 'far') as Failure
  expect([refused.code, refused.facts.retryAfterMs]).toEqual(['LIMIT_EXCEEDED', minutes(10)])
  expect(refused.message).toContain('Retry in 10 minutes')
  for (const [email, network] of [
    ['ada@example.com', 'home'],
    ['bob@example.com', 'far'],
  ] as const) {
    expect(limits.password(email, network)).not.toBeInstanceOf(Failure)
  }
  // What Retry-After said is true, to the millisecond.
  clock.advance(minutes(10) - 1)
  expect((limits.password('ada@example.com', 'far') as Failure).facts.retryAfterMs).toBe(1)
  clock.advance(1)
  expect(limits.password('ada@example.com', 'far')).not.toBeInstanceOf(Failure)
})

test('a thousand networks together guess a thousand passwords of an account', () => {
  const limits = createGuessLimits(createTestClock())
  expect(compared((at) => limits.password('ada@example.com', `network ${at}`), 5000)).toBe(1000)
  expect(limits.password('bob@example.com', 'network 1')).not.toBeInstanceOf(Failure)
})

test('right passwords do not count, and an attempt is forgiven once', () => {
  const limits = createGuessLimits(createTestClock())
  for (let at = 0; at < 50; at++) (limits.password('ada@example.com', 'home') as Attempt).forgive()
  const first = limits.password('ada@example.com', 'home') as Attempt
  first.forgive()
  first.forgive()
  expect(compared(() => limits.password('ada@example.com', 'home'), 50)).toBe(10)
})

test('codes are guessed 20 times by a person, 200 times from a network and 2,000 times by everyone while one is valid', () => {
  const clock = createTestClock()
  expect(compared(() => createGuessLimits(clock).userCode('per_a', 'home'), 1)).toBe(1)
  const limits = createGuessLimits(clock)
  expect(compared(() => limits.userCode('per_a', 'far'), 1000)).toBe(20)
  expect(limits.userCode('per_b', 'home')).not.toBeInstanceOf(Failure)
  // Many accounts at one network: it uses up its own share, and others still enter codes.
  expect(compared((at) => limits.userCode(`per_${at}`, 'far'), 5000)).toBe(180)
  expect(limits.userCode('per_b', 'home')).not.toBeInstanceOf(Failure)
  // Many accounts at many networks.
  expect(compared((at) => limits.userCode(`per_${at}`, `network ${at}`), 50_000)).toBe(2000 - 20 - 180 - 2)
  const refused = limits.userCode('per_new', 'new') as Failure
  expect(refused.facts.retryAfterMs).toBe(minutes(10))
  clock.advance(minutes(10))
  expect(limits.userCode('per_new', 'new')).not.toBeInstanceOf(Failure)
})

test('one network starts 500 sign-ins in ten minutes, and others start theirs', () => {
  const limits = createGuessLimits(createTestClock())
  expect(compared(() => limits.deviceStart('far'), 2000)).toBe(500)
  expect(limits.deviceStart('home')).not.toBeInstanceOf(Failure)
})
