import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Admission, RateLimits, RateScope, Refused } from './limiter.ts'
import { createMemoryLimiter } from './memory-limiter.ts'

interface Taken {
  readonly atMs: number
  amount: number
}

/**
 * The definition of a limit, without a bucket: in every window of time that ends now, at most N and what N per minute
 * refill in that window. A window begins with something taken, or it could be shorter.
 */
class ReferenceScope {
  readonly requests: Taken[] = []
  readonly tokens: Taken[] = []
  running = 0

  constructor(readonly limits: RateLimits) {}

  admits(nowMs: number, tokens: number): boolean {
    const { requestsPerMinute, tokensPerMinute, concurrentRequests } = this.limits
    return (
      this.running < (concurrentRequests ?? Number.POSITIVE_INFINITY) &&
      fits(this.requests, nowMs, requestsPerMinute, 1) &&
      (tokens === 0 || fits(this.tokens, nowMs, tokensPerMinute, tokens))
    )
  }
}

function fits(taken: readonly Taken[], nowMs: number, perMinute: number | undefined, amount: number): boolean {
  if (perMinute === undefined) return true
  // A request larger than the limit needs an empty bucket; with smaller ones, N may be in use.
  const others = Math.max(0, perMinute - amount)
  return taken.every(({ atMs }, first) => {
    const inWindow = taken.slice(first).reduce((sum, each) => sum + each.amount, 0)
    return inWindow * 60_000 <= others * 60_000 + perMinute * (nowMs - atMs)
  })
}

interface Step {
  readonly afterMs: number
  readonly key: number
  readonly tokens: number
  /** Which of the running requests ends, with so many tokens; undefined = a new one asks. */
  readonly ends: number | undefined
}

const keys = 3
const limit = (max: number) => fc.option(fc.integer({ min: 1, max }), { nil: undefined })
const limits = fc.record({ requestsPerMinute: limit(8), tokensPerMinute: limit(100), concurrentRequests: limit(5) })
const setting = fc.array(limits, { minLength: keys + 2, maxLength: keys + 2 })
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.constant(0), fc.nat({ max: 100 }), fc.nat({ max: 30_000 })),
    key: fc.nat({ max: keys - 1 }),
    tokens: fc.oneof(fc.nat({ max: 30 }), fc.nat({ max: 150 })),
    ends: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 2, arbitrary: fc.nat({ max: 20 }) }),
  }),
  { maxLength: 80 },
)

/** A few keys of one project in one workspace. */
class Schedule {
  nowMs = 0
  readonly limiter = createMemoryLimiter({ now: () => 0, monotonicMs: () => this.nowMs })
  readonly running: { readonly key: number; readonly tokens: number; readonly admission: Admission }[] = []

  constructor(readonly limits: readonly RateLimits[]) {}

  /** Indexes of the limits that bind a key: its own, the project's, the workspace's. */
  places(key: number): readonly number[] {
    return [key, keys, keys + 1]
  }

  ask(key: number, tokens: number): Admission | Refused {
    const [own = {}, project = {}, workspace = {}] = this.places(key).map((at) => this.limits[at])
    const scopes: RateScope[] = [
      { kind: 'key', id: `key_${key}`, name: `k${key}`, limits: own },
      { kind: 'project', id: 'prj_1', name: 'web', limits: project },
      { kind: 'workspace', id: 'ws_1', name: 'acme', limits: workspace },
    ]
    const verdict = this.limiter.admit(scopes, tokens)
    if (verdict.kind === 'admitted') this.running.push({ key, tokens, admission: verdict })
    return verdict
  }

  end(which: number, tokens: number) {
    const [ended] = this.running.splice(which % Math.max(1, this.running.length), 1)
    ended?.admission.end(tokens)
    return ended
  }

  play(steps: readonly Step[]): void {
    for (const { afterMs, key, tokens, ends } of steps) {
      this.nowMs += afterMs
      if (ends === undefined) this.ask(key, tokens)
      else this.end(ends, tokens)
    }
  }
}

test('admits exactly what every window of time allows, in all scopes or in none', () => {
  fc.assert(
    fc.property(setting, steps, (limits, steps) => {
      const schedule = new Schedule(limits)
      const reference = limits.map((each) => new ReferenceScope(each))
      const entries = new Map<Admission, (readonly [ReferenceScope, Taken])[]>()
      for (const { afterMs, key, tokens, ends } of steps) {
        schedule.nowMs += afterMs
        const atMs = schedule.nowMs
        if (ends !== undefined) {
          const ended = schedule.end(ends, tokens)
          for (const [scope, entry] of (ended && entries.get(ended.admission)) ?? []) {
            scope.running--
            // A count above the estimate is taken when it is known, one below as if it had been known before.
            if (tokens > entry.amount) scope.tokens.push({ atMs, amount: tokens - entry.amount })
            else entry.amount = tokens
          }
          continue
        }
        const scopes = schedule.places(key).flatMap((at) => reference[at] ?? [])
        const verdict = schedule.ask(key, tokens)
        expect(verdict.kind).toBe(scopes.every((each) => each.admits(atMs, tokens)) ? 'admitted' : 'refused')
        if (verdict.kind === 'refused') continue
        const made = scopes.map((scope) => {
          const entry: Taken = { atMs, amount: tokens }
          scope.running++
          scope.requests.push({ atMs, amount: 1 })
          scope.tokens.push(entry)
          return [scope, entry] as const
        })
        entries.set(verdict, made)
      }
    }),
    { numRuns: 600 },
  )
})

test('a request that waits for the returned time is admitted, and not a millisecond before', () => {
  let waits = 0
  fc.assert(
    fc.property(setting, steps, fc.nat({ max: 2 }), fc.integer({ min: 1, max: 150 }), (limits, steps, key, tokens) => {
      const [patient, hasty] = [new Schedule(limits), new Schedule(limits)]
      for (const schedule of [patient, hasty]) {
        schedule.play(steps)
        // All end, so that only the rates refuse.
        while (schedule.running.length > 0) schedule.end(0, tokens)
      }
      const verdict = patient.ask(key, tokens)
      if (verdict.kind === 'admitted') return
      waits++
      hasty.nowMs += verdict.retryAfterMs - 1
      expect(hasty.ask(key, tokens).kind).toBe('refused')
      patient.nowMs += verdict.retryAfterMs
      expect(patient.ask(key, tokens).kind).toBe('admitted')
    }),
    { numRuns: 600 },
  )
  expect(waits).toBeGreaterThan(100)
})

test('10,000 simultaneous requests from 50 clients use the tightest limit exactly', async () => {
  const limiter = createMemoryLimiter({ now: () => 0, monotonicMs: () => 0 })
  const project: RateLimits = { requestsPerMinute: 300, tokensPerMinute: 100_000 }
  const counts = Array.from({ length: 50 }, () => 0)
  const ask = async (_: unknown, client: number) => {
    const own: RateLimits = client % 2 === 0 ? { concurrentRequests: 4 } : { requestsPerMinute: 10 }
    const scopes: RateScope[] = [
      { kind: 'key', id: `key_${client}`, name: 'client', limits: own },
      { kind: 'project', id: 'prj_1', name: 'web', limits: project },
    ]
    for (let n = 0; n < 200; n++) {
      const verdict = await limiter.admit(scopes, 5)
      if (verdict.kind === 'admitted') counts[client] = (counts[client] ?? 0) + 1
    }
  }
  await Promise.all(counts.map(ask))
  // They take turns: four rounds of all 50, then the 25 without a concurrent limit share the other 100.
  expect(counts).toEqual(counts.map((_, client) => (client % 2 === 0 ? 4 : 8)))
})

test('10,000 requests within a minute from 50 clients get burst and refill, per client', () => {
  let nowMs = 0
  const limiter = createMemoryLimiter({ now: () => 0, monotonicMs: () => nowMs })
  const counts = Array.from({ length: 50 }, () => 0)
  for (let n = 0; n < 10_000; n++) {
    const client = n % 50
    const limits = { requestsPerMinute: 100 }
    const verdict = limiter.admit([{ kind: 'key', id: `key_${client}`, name: 'client', limits }], 1)
    if (verdict.kind === 'admitted') counts[client] = (counts[client] ?? 0) + 1
    nowMs += 6
  }
  // A client asks every 300 ms, 200 times: 59.7 s from the first to the last, 100 + 99.5 requests.
  expect(counts).toEqual(counts.map(() => 199))
})
