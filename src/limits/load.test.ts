import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  advanceBucket,
  advanceLoad,
  type Bucket,
  beginRequest,
  bucketState,
  correct as correctLoad,
  newBucket,
  newLoad,
  unitsPerWhole,
  waitMs,
} from './load.ts'

function take(bucket: Bucket, wholes: number): void {
  bucket.usedUnits += wholes * unitsPerWhole
}

/** Takes one after another at this moment until there is no room. */
function burst(bucket: Bucket, nowMs: number, limit?: number): number {
  advanceBucket(bucket, nowMs, limit)
  let taken = 0
  for (; waitMs(bucket, 1) === 0; taken++) take(bucket, 1)
  return taken
}

/** Steps on one bucket: [now, burst] or [now, burst, new limit], and a number alone for the wait that follows. */
type Step = number | readonly [nowMs: number, burst: number, limit?: number]

const second = 1000
test.each<[name: string, limit: number, steps: Step[]]>([
  [
    'N per minute is a burst of N, and then one every Nth of a minute',
    60,
    [[0, 60], 1000, [999, 0], 1, [1000, 1], [31 * second, 30], [500 * second, 60]],
  ],
  [
    'a clock that steps back drains nothing twice',
    60,
    [
      [0, 60],
      [12 * second, 12],
      [5 * second, 0],
      [12 * second, 0],
      [13 * second, 1],
    ],
  ],
  ['a raised limit admits only the difference at once', 10, [[0, 10], [0, 6, 16], 3750]],
  // After 10 s 10 have drained, 50 are in use.
  [
    'the time before a change counts at the old pace',
    60,
    [
      [0, 60],
      [10 * second, 4, 54],
    ],
  ],
  // 594 at 600 per minute, then one at 6 per minute.
  [
    'a lowered limit counts what is used, and the excess drains at the old pace',
    600,
    [[0, 600], [0, 0, 6], 59_400 + 10_000, [30 * second, 0], 39_400, [69_399, 0], [69_400, 1], 10_000],
  ],
  ['a limit that is lowered and raised again admits nothing twice', 100, [[0, 100], [0, 0, 1], [0, 0, 100], 600]],
])('%s', (_, limit, steps) => {
  const bucket = newBucket(limit, 0)
  for (const step of steps) {
    if (typeof step === 'number') expect(waitMs(bucket, 1)).toBe(step)
    else expect([step[0], burst(bucket, step[0], step[2])]).toEqual([step[0], step[1]])
  }
})

test('a minute that does not divide by N loses nothing', () => {
  const bucket = newBucket(7, 0)
  expect(burst(bucket, 0)).toBe(7)
  // 60,000 / 7 = 8571.43
  expect(waitMs(bucket, 1)).toBe(8572)
  let taken = 0
  for (let nowMs = 1; nowMs <= 3_600_000; nowMs += 1) taken += burst(bucket, nowMs)
  expect(taken).toBe(7 * 60)
})

test('reports what is left, rounded down, and when nothing will be used', () => {
  const bucket = newBucket(10, 0)
  expect(bucketState(bucket)).toEqual({ limit: 10, remaining: 10, resetMs: 0 })
  take(bucket, 3)
  expect(bucketState(bucket)).toEqual({ limit: 10, remaining: 7, resetMs: 18_000 })
  advanceBucket(bucket, 5999)
  expect(bucketState(bucket)).toEqual({ limit: 10, remaining: 7, resetMs: 12_001 })
  advanceBucket(bucket, 6000)
  expect(bucketState(bucket)).toEqual({ limit: 10, remaining: 8, resetMs: 12_000 })
  take(bucket, 20)
  expect(bucketState(bucket)).toEqual({ limit: 10, remaining: 0, resetMs: 132_000 })
})

test('an amount above the limit waits until nothing is used, and then leaves a debt', () => {
  const bucket = newBucket(100, 0)
  take(bucket, 1)
  expect(waitMs(bucket, 250)).toBe(600)
  advanceBucket(bucket, 600)
  expect(waitMs(bucket, 250)).toBe(0)
  take(bucket, 250)
  // 151 have to drain before one fits: 151 × 600 ms.
  expect(waitMs(bucket, 1)).toBe(90_600)
  advanceBucket(bucket, 91_199)
  expect(waitMs(bucket, 1)).toBe(1)
  advanceBucket(bucket, 91_200)
  expect(waitMs(bucket, 1)).toBe(0)
})

test('a limit of 0 admits nothing, not even an amount above the limit', () => {
  const bucket = newBucket(0, 0)
  expect(waitMs(bucket, 1)).toBe(3_600_000)
  expect(waitMs(bucket, 0)).toBe(0)
})

test('a lowered limit reports when its excess will have drained', () => {
  const bucket = newBucket(600, 0)
  burst(bucket, 0)
  burst(bucket, 0, 6)
  expect(bucketState(bucket)).toEqual({ limit: 6, remaining: 0, resetMs: 59_400 + 60_000 })
})

test('a debt made after the excess of a lowered limit has drained is paid at the new pace', () => {
  const bucket = newBucket(600, 0)
  take(bucket, 600)
  advanceBucket(bucket, 0, 60)
  advanceBucket(bucket, 54_000)
  take(bucket, 60)
  expect(waitMs(bucket, 1)).toBe(61_000)
})

function createBench(tokensPerMinute: number) {
  const load = newLoad(0)
  let nowMs = 0
  const advance = (ms: number): void => {
    nowMs = ms
    advanceLoad(load, nowMs, { tokensPerMinute })
  }
  advance(0)
  return {
    load,
    advance,
    reserve: (tokens: number) => ({ tokens, sequence: beginRequest(load, { tokensPerMinute }, tokens) ?? -1 }),
    correct: ({ tokens, sequence }: { tokens: number; sequence: number }, actualTokens: number) =>
      correctLoad(load, nowMs, { sequence, reservedTokens: tokens, actualTokens, tokensPerMinute }),
    used: () => (load.tokens?.usedUnits ?? 0) / unitsPerWhole,
  }
}

test('frees tokens that were estimated and not used, and takes those used beyond the estimate or the limit', () => {
  const { reserve, correct, used } = createBench(1000)
  const [a, b] = [reserve(400), reserve(500)]
  correct(a, 100)
  expect(used()).toBe(600)
  correct(b, 1500)
  expect(used()).toBe(1600)
  correct(reserve(70), 0)
  expect(used()).toBe(1600)
})

test('does not return tokens that were refilled in the meantime', () => {
  const { reserve, correct, used, advance } = createBench(1000)
  const first = reserve(1000)
  advance(59_400)
  expect(used()).toBe(10)
  reserve(990)
  // Without the first, the 990 alone would be in use.
  correct(first, 0)
  expect(used()).toBe(990)
})

test('two reservations that began together give back no more than one would', () => {
  const { reserve, correct, used, advance } = createBench(1000)
  const [a, b] = [reserve(500), reserve(500)]
  advance(30_000)
  reserve(500)
  correct(b, 0)
  expect(used()).toBe(500)
  correct(a, 0)
  expect(used()).toBe(500)
})

test('returns the whole rest of a reservation, however late, if the bucket was never full in between', () => {
  const { reserve, correct, used, advance } = createBench(1000)
  const long = reserve(600)
  for (let at = 1; at <= 10; at++) {
    advance(at * 6000)
    correct(reserve(100), 100)
  }
  expect(used()).toBe(600)
  correct(long, 200)
  expect(used()).toBe(200)
})

test('the oldest reservation keeps its low-water mark when a later one has ended', () => {
  const { reserve, correct, used, advance } = createBench(60)
  const oldest = reserve(10)
  const between = reserve(10)
  reserve(10)
  correct(between, 10)
  advance(25_000)
  expect(used()).toBe(5)
  reserve(10)
  // Without the oldest, the bucket would have been whole after 20 s, and only the last 10 would be in use.
  correct(oldest, 0)
  expect(used()).toBe(10)
})

test('lowers the marks of older reservations when a later one is returned', () => {
  const { reserve, correct, used, advance } = createBench(60)
  const [first, second] = [reserve(10), reserve(10)]
  advance(5000)
  reserve(30)
  expect(used()).toBe(45)
  correct(second, 0)
  expect(used()).toBe(35)
  // Without the second, only 5 of the first were still in use when the 30 came.
  correct(first, 0)
  expect(used()).toBe(30)
})

interface Taken {
  readonly atMs: number
  units: number
}

/** Reich's formula: the bucket has not been empty since one of these amounts, and all that is in use came since then. */
function usedUnits(taken: readonly Taken[], nowMs: number, limit: number): number {
  let sum = 0
  let most = 0
  for (const { atMs, units } of taken.toReversed()) {
    sum += units
    most = Math.max(most, sum - limit * (nowMs - atMs))
  }
  return most
}

const step = fc.record({
  afterMs: fc.oneof(fc.constant(0), fc.nat({ max: 20_000 })),
  tokens: fc.oneof(fc.nat({ max: 30 }), fc.nat({ max: 100 })),
  /** Which of the running requests ends; undefined = a new one begins. */
  ends: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 2, arbitrary: fc.nat({ max: 20 }) }),
})

test('an estimate that was too high has the effect of the real count, for any schedule', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 300 }), fc.array(step, { maxLength: 60 }), (limit, steps) => {
      const { load, reserve, correct, advance } = createBench(limit)
      const taken: Taken[] = []
      const running: { readonly reservation: ReturnType<typeof reserve>; readonly entry: Taken }[] = []
      let nowMs = 0
      for (const { afterMs, tokens, ends } of steps) {
        nowMs += afterMs
        advance(nowMs)
        const units = tokens * unitsPerWhole
        const ended = ends === undefined ? undefined : running.splice(ends % Math.max(1, running.length), 1)[0]
        if (ended) {
          correct(ended.reservation, tokens)
          if (units > ended.entry.units) taken.push({ atMs: nowMs, units: units - ended.entry.units })
          else ended.entry.units = units
        } else {
          const entry = { atMs: nowMs, units }
          taken.push(entry)
          running.push({ entry, reservation: reserve(tokens) })
        }
        expect(load.tokens?.usedUnits).toBe(usedUnits(taken, nowMs, limit))
        expect(load.lowMarks.length).toBeLessThanOrEqual(running.length)
      }
    }),
    { numRuns: 1000 },
  )
})
