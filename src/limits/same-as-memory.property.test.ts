// Several limiters on one store give the same results as one in memory, for any distribution of requests: verdict, wait
// and what is left. For the algorithm alone, the script in Redis and the rows in PostgreSQL.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createEngineStore } from '../../test/parts/load-store.ts'
import { findPostgresPrograms } from '../../test/parts/postgres.ts'
import { findRedisProgram, startRedis } from '../../test/parts/redis.ts'
import { openPostgresStore } from '../../test/replicas/postgres-store.ts'
import { systemClock } from '../kernel/clock.ts'
import { openRedis } from '../store/redis.ts'
import type { Admission, RateLimits, RateScope, Refused } from './limiter.ts'
import { createMemoryLimiter } from './memory-limiter.ts'
import { createRedisLoads } from './redis-loads.ts'
import { SharedLimiter } from './shared-limiter.ts'
import { createSqlLoads } from './sql-loads.ts'

interface Step {
  readonly afterMs: number
  /** Which limiter is called. */
  readonly replica: number
  readonly key: number
  readonly tokens: number
  /** Which of the running requests ends; undefined = a new one asks. */
  readonly ends: number | undefined
  /** The limits that hold from now on for one of the scopes; undefined = no change. */
  readonly change: { readonly at: number; readonly limits: RateLimits } | undefined
}

const replicas = 3
const keys = 2

function steps(scale: number): fc.Arbitrary<Step[]> {
  return fc.array(
    fc.record({
      afterMs: fc.oneof(fc.constant(0), fc.nat({ max: 100 }), fc.nat({ max: 30_000 })),
      replica: fc.nat({ max: replicas - 1 }),
      key: fc.nat({ max: keys - 1 }),
      tokens: fc.oneof(fc.nat({ max: 30 * scale }), fc.nat({ max: 150 * scale })),
      ends: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 2, arbitrary: fc.nat({ max: 20 }) }),
      change: fc.oneof(
        { weight: 6, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.record({ at: fc.nat({ max: keys + 1 }), limits: someLimits(scale) }) },
      ),
    }),
    { maxLength: 60, size: 'max' },
  )
}

function someLimits(scale: number): fc.Arbitrary<RateLimits> {
  const limit = (max: number) =>
    fc.option(fc.oneof(fc.integer({ min: 0, max: max / 10 }), fc.integer({ min: 0, max })), { nil: undefined })
  return fc.record({ requestsPerMinute: limit(40), tokensPerMinute: limit(500 * scale), concurrentRequests: limit(40) })
}

const setting = (scale: number) =>
  fc.array(someLimits(scale).map(withSome), { minLength: keys + 2, maxLength: keys + 2 })

/** So that most schedules reach a limit. */
function withSome(limits: RateLimits): RateLimits {
  return limits.tokensPerMinute === 0 || limits.requestsPerMinute === 0 ? { tokensPerMinute: 50 } : limits
}

type Create = (nowMs: () => number) => readonly SharedLimiter[]

/** Every schedule has its own ids, because the store keeps what earlier ones did. */
let schedules = 0

async function compare(create: Create, initial: readonly RateLimits[], steps: readonly Step[]): Promise<number> {
  // A time that a store could have: the numbers of reservations grow out of it.
  let nowMs = 1_800_000_000_000
  const schedule = ++schedules
  const limits = [...initial]
  const memory = createMemoryLimiter({ now: () => 0, monotonicMs: () => nowMs })
  const limiters = create(() => nowMs)
  const running: { readonly one: Admission; readonly other: Admission }[] = []
  let refusals = 0
  for (const { afterMs, replica, key, tokens, ends, change } of steps) {
    nowMs += afterMs
    if (change) limits[change.at] = change.limits
    if (ends !== undefined) {
      const [ended] = running.splice(ends % Math.max(1, running.length), 1)
      ended?.one.end(tokens)
      ended?.other.end(tokens)
      await Promise.all(limiters.map((limiter) => limiter.settled()))
      continue
    }
    const scopes: RateScope[] = [
      { kind: 'key', id: `key_${schedule}_${key}`, name: `k${key}`, limits: limits[key] ?? {} },
      { kind: 'project', id: `prj_${schedule}`, name: 'web', limits: limits[keys] ?? {} },
      { kind: 'workspace', id: `ws_${schedule}`, name: 'acme', limits: limits[keys + 1] ?? {} },
    ]
    const expected = memory.admit(scopes, tokens)
    const verdict = await limiters[replica]?.admit(scopes, tokens)
    expect(facts(verdict)).toEqual(facts(expected))
    if (expected.kind === 'refused') refusals++
    if (expected.kind === 'admitted' && verdict?.kind === 'admitted') running.push({ one: expected, other: verdict })
  }
  for (const limiter of limiters) {
    expect(limiter.mode).toEqual({ kind: 'shared' })
    await limiter.close()
  }
  return refusals
}

function facts(verdict: Admission | Refused | undefined): object {
  return { ...verdict, end: undefined }
}

async function compareMany(create: Create, scale: number, numRuns: number): Promise<void> {
  let refusals = 0
  const motley = fc.asyncProperty(setting(scale), steps(scale), async (limits, steps) => {
    refusals += await compare(create, limits, steps)
  })
  // Tokens of one scope only, and no changes: many reservations run at once, and their low-water marks merge.
  const plain = fc.asyncProperty(fc.integer({ min: 20, max: 300 }), steps(1), async (tokensPerMinute, steps) => {
    const limits = [{}, {}, {}, { tokensPerMinute: tokensPerMinute * scale }]
    const calm = steps.map((step) => ({ ...step, change: undefined, tokens: (step.tokens % 40) * scale }))
    refusals += await compare(create, limits, calm)
  })
  await fc.assert(motley, { numRuns })
  await fc.assert(plain, { numRuns })
  expect(refusals).toBeGreaterThan(numRuns)
}

/** No timeouts and no expiry: the time of these tests does not pass by itself. */
const options = { clock: systemClock, liveReplicas: () => replicas, timeoutMs: 60_000, leaseMs: 1e9 }
const times = <T>(make: () => T): T[] => Array.from({ length: replicas }, make)
/** 2 × 10^8 × 500 = 10^11, the largest limit; 150 times as much is more than a request may have. */
const scales = [1, 200_000_000]

describe('three limiters give the results of one', () => {
  for (const scale of scales) {
    test(`the algorithm alone, tokens × ${scale}`, async () => {
      await compareMany(
        (nowMs) => {
          const store = createEngineStore(nowMs)
          return times(() => new SharedLimiter({ ...options, store }))
        },
        scale,
        400,
      )
    })
  }

  describe.skipIf(findRedisProgram() === undefined)('in redis', () => {
    for (const scale of scales) {
      test(`tokens × ${scale}`, async () => {
        await using server = await startRedis()
        const clients = times(() => openRedis({ url: server.url }))
        while (!clients.every((client) => client.connected)) await Bun.sleep(5)
        await compareMany(
          (nowMs) => clients.map((redis) => new SharedLimiter({ ...options, store: createRedisLoads(redis, nowMs) })),
          scale,
          100,
        )
        for (const client of clients) client.close()
      })
    }
  })

  describe.skipIf(findPostgresPrograms() === undefined)('in postgres', () => {
    test('tokens × 1', async () => {
      await using store = await openPostgresStore()
      const { database } = store
      await compareMany(
        (nowMs) => times(() => new SharedLimiter({ ...options, store: createSqlLoads(database, nowMs) })),
        1,
        40,
      )
    })
  })
})
