import { describe, expect, test } from 'bun:test'
import { Cooldown, type CooldownCause, isRepeatedUnexplained429, namesThrottle } from './route.ts'

const minute = 60_000

/** Parks again each time the wait is over; answers how long each wait was. */
function waitsInRow(spot: Cooldown, why: CooldownCause, times: number): number[] {
  let nowMs = 0
  return Array.from({ length: times }, () => {
    expect(spot.start({ why, retryAfterMs: undefined, startedMs: nowMs }, nowMs)).toBe(true)
    const waitMs = spot.waitMs(nowMs)
    nowMs += waitMs
    expect(spot.isActive(nowMs - 1)).toBe(true)
    expect(spot.isActive(nowMs)).toBe(false)
    return waitMs
  })
}

describe('duration', () => {
  test.each<[name: string, why: CooldownCause, unitMs: number, waits: number[]]>([
    ['a throttle: one second, doubling up to a minute', 'throttled', 1000, [1, 2, 4, 8, 16, 32, 60, 60]],
    ['an empty account: a quarter of an hour, up to six', 'out of quota', 60 * minute, [0.25, 0.5, 1, 2, 4, 6, 6]],
    ['an unknown model: ten minutes each time', 'does not know the model', minute, [10, 10, 10]],
    ['a refused credential: a minute, up to an hour', 'refused our credential', minute, [1, 2, 4, 8, 16, 32, 60, 60]],
  ])('%s', (_, why, unitMs, waits) => {
    expect(waitsInRow(new Cooldown(), why, waits.length)).toEqual(waits.map((wait) => wait * unitMs))
  })

  test('a throttle with a duration: exactly that, and the doubling restarts', () => {
    const spot = new Cooldown()
    spot.start({ why: 'throttled', retryAfterMs: undefined, startedMs: 0 }, 0)
    spot.start({ why: 'throttled', retryAfterMs: 90_000, startedMs: 1000 }, 1000)
    expect(spot.waitMs(1000)).toBe(90_000)
    spot.start({ why: 'throttled', retryAfterMs: undefined, startedMs: 91_000 }, 91_000)
    expect(spot.waitMs(91_000)).toBe(1000)
  })

  test('an empty account: at least the provider’s duration', () => {
    const spot = new Cooldown()
    spot.start({ why: 'out of quota', retryAfterMs: 1000, startedMs: 0 }, 0)
    expect(spot.waitMs(0)).toBe(15 * minute)
    spot.start({ why: 'out of quota', retryAfterMs: 60 * minute, startedMs: 15 * minute }, 15 * minute)
    expect(spot.waitMs(15 * minute)).toBe(60 * minute)
  })

  test.each(['throttled', 'out of quota'] as const)('%s for a day: an hour at most', (why) => {
    const spot = new Cooldown()
    spot.start({ why, retryAfterMs: 1440 * minute, startedMs: 0 }, 0)
    expect(spot.waitMs(0)).toBe(60 * minute)
    spot.start({ why, retryAfterMs: 1440 * minute, startedMs: -1 }, 0)
    expect(spot.waitMs(0)).toBe(60 * minute)
  })
})

describe('throttles that count', () => {
  test('many throttled at once are one throttle, for the longest wait among them', () => {
    const spot = new Cooldown()
    expect(spot.start({ why: 'throttled', retryAfterMs: 2000, startedMs: 0 }, 100)).toBe(true)
    expect(spot.start({ why: 'throttled', retryAfterMs: undefined, startedMs: 50 }, 110)).toBe(false)
    expect(spot.start({ why: 'throttled', retryAfterMs: 5000, startedMs: 50 }, 120)).toBe(false)
    expect(spot.start({ why: 'throttled', retryAfterMs: 1000, startedMs: 50 }, 130)).toBe(false)
    expect(spot.waitMs(120)).toBe(5000)
  })

  test('another reason starts its own row and does not extend the first', () => {
    const spot = new Cooldown()
    spot.start({ why: 'refused our credential', retryAfterMs: undefined, startedMs: 0 }, 10)
    spot.start({ why: 'out of quota', retryAfterMs: 1440 * minute, startedMs: 5 }, 20)
    expect(spot.waitMs(10)).toBe(minute)
    spot.start({ why: 'out of quota', retryAfterMs: undefined, startedMs: 2 * minute }, 2 * minute)
    expect(spot.waitMs(2 * minute)).toBe(15 * minute)
  })

  test('a success ends the row', () => {
    const spot = new Cooldown()
    spot.start({ why: 'out of quota', retryAfterMs: undefined, startedMs: 0 }, 0)
    spot.recordSuccess(15 * minute)
    expect(spot.why).toBeUndefined()
    spot.start({ why: 'out of quota', retryAfterMs: undefined, startedMs: 16 * minute }, 16 * minute)
    expect(spot.waitMs(16 * minute)).toBe(15 * minute)
  })

  test('a success that began before the cooldown does not', () => {
    const spot = new Cooldown()
    spot.start({ why: 'out of quota', retryAfterMs: undefined, startedMs: 0 }, 1000)
    spot.recordSuccess(999)
    expect(spot.isActive(1001)).toBe(true)
    expect(spot.why).toBe('out of quota')
  })

  test('a new credential starts without a cooldown, and late results of the old one are ignored', () => {
    const spot = new Cooldown()
    spot.start({ why: 'refused our credential', retryAfterMs: undefined, startedMs: 0 }, 0)
    spot.renew(500)
    expect(spot.isActive(500)).toBe(false)
    expect(spot.start({ why: 'refused our credential', retryAfterMs: undefined, startedMs: 400 }, 600)).toBe(false)
    expect(spot.isActive(600)).toBe(false)
    expect(spot.start({ why: 'refused our credential', retryAfterMs: undefined, startedMs: 600 }, 700)).toBe(true)
    expect(spot.waitMs(700)).toBe(minute)
  })
})

describe('an unexplained 429', () => {
  test('is repeated after two others without a duration', () => {
    const spot = new Cooldown()
    const at = (startedMs: number, retryAfterMs?: number) => ({ why: 'throttled', retryAfterMs, startedMs }) as const
    expect(isRepeatedUnexplained429(spot, at(0))).toBe(false)
    spot.start(at(0), 0)
    expect(isRepeatedUnexplained429(spot, at(1000))).toBe(false)
    spot.start(at(1000), 1000)
    expect(isRepeatedUnexplained429(spot, at(999))).toBe(false)
    expect(isRepeatedUnexplained429(spot, at(3000, 1000))).toBe(false)
    expect(isRepeatedUnexplained429(spot, at(3000))).toBe(true)
  })

  test('stays an empty account if it recurs after the wait', () => {
    const spot = new Cooldown()
    spot.start({ why: 'out of quota', retryAfterMs: undefined, startedMs: 0 }, 0)
    const again = { why: 'throttled', retryAfterMs: undefined, startedMs: 15 * minute } as const
    expect(isRepeatedUnexplained429(spot, again)).toBe(true)
    expect(isRepeatedUnexplained429(spot, { ...again, retryAfterMs: 1000 })).toBe(false)
  })

  test.each([
    ['rate_limit_error', true],
    ['requests rate_limit_exceeded Rate limit reached', true],
    ['This request would exceed 40,000 input tokens per minute', true],
    // Vertex, of Gemini and of Claude; Mistral, Moonshot, DeepSeek, Together, Qwen, NVIDIA, Z.ai, Bedrock.
    ['RESOURCE_EXHAUSTED RESOURCE_EXHAUSTED Resource exhausted. Please try again later.', true],
    ['Quota exceeded for aiplatform.googleapis.com/online_prediction_requests_per_base_model', true],
    ['rate_limited 1300 Rate limit exceeded', true],
    ['rate_limit_reached_error Your account reached max RPM: 20, please try again after 1 seconds', true],
    ['Rate limit reached', true],
    ['model_rate_limit The maximum rate limit for this model is 6.0 queries per minute.', true],
    ['limit_requests Requests rate limit exceeded, please try again later.', true],
    ['insufficient_quota Allocated quota exceeded, please increase your quota limit.', true],
    ['Too Many Requests', true],
    ['1302 High concurrency usage of this API', true],
    ['Too many tokens per day, please wait before trying again.', true],
    ['service_tier_capacity_exceeded Service tier capacity exceeded for this model.', true],
    ['', false],
    ['You may not do this now', false],
    ['Quota exceeded', false],
  ])('%j names a throttle: %p', (words, isNamed) => {
    expect(namesThrottle(words)).toBe(isNamed)
  })
})
