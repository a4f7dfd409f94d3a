import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Bucket, unitsPerWhole } from './bucket.ts'
import { type Reservation, Reservations } from './reservations.ts'

function createBench(limit: number) {
  const bucket = new Bucket(limit, 0)
  return { bucket, reservations: new Reservations(bucket), used: () => bucket.usedUnits / unitsPerWhole }
}

test('less than estimated is free again, more is taken, also beyond the limit', () => {
  const { reservations, used } = createBench(1000)
  const [a, b] = [reservations.reserve(400), reservations.reserve(500)]
  reservations.correct(a, 100)
  expect(used()).toBe(600)
  reservations.correct(b, 1500)
  expect(used()).toBe(1600)
  reservations.correct(reservations.reserve(70), 0)
  expect(used()).toBe(1600)
})

test('what was refilled in the meantime is not given back a second time', () => {
  const { bucket, reservations, used } = createBench(1000)
  const first = reservations.reserve(1000)
  bucket.advance(59_400)
  expect(used()).toBe(10)
  reservations.reserve(990)
  // Without the first, the 990 alone would be in use.
  reservations.correct(first, 0)
  expect(used()).toBe(990)
})

test('two that began together give back together what one of them would', () => {
  const { bucket, reservations, used } = createBench(1000)
  const [a, b] = [reservations.reserve(500), reservations.reserve(500)]
  bucket.advance(30_000)
  reservations.reserve(500)
  reservations.correct(b, 0)
  expect(used()).toBe(500)
  reservations.correct(a, 0)
  expect(used()).toBe(500)
})

test('where the bucket would never have been whole, all of the rest is given back, however late', () => {
  const { bucket, reservations, used } = createBench(1000)
  const long = reservations.reserve(600)
  for (let at = 1; at <= 10; at++) {
    bucket.advance(at * 6000)
    reservations.correct(reservations.reserve(100), 100)
  }
  expect(used()).toBe(600)
  reservations.correct(long, 200)
  expect(used()).toBe(200)
})

test('what others did in the meantime is seen by the oldest too, when one between has ended', () => {
  const { bucket, reservations, used } = createBench(60)
  const oldest = reservations.reserve(10)
  const between = reservations.reserve(10)
  reservations.reserve(10)
  reservations.correct(between, 10)
  bucket.advance(25_000)
  expect(used()).toBe(5)
  reservations.reserve(10)
  // Without the oldest, the bucket would have been whole after 20 s, and only the last 10 would be in use.
  reservations.correct(oldest, 0)
  expect(used()).toBe(10)
})

test('what one gives back changes the past of those before it', () => {
  const { bucket, reservations, used } = createBench(60)
  const [first, second] = [reservations.reserve(10), reservations.reserve(10)]
  bucket.advance(5000)
  reservations.reserve(30)
  expect(used()).toBe(45)
  reservations.correct(second, 0)
  expect(used()).toBe(35)
  // Without the second, only 5 of the first were still in use when the 30 came.
  reservations.correct(first, 0)
  expect(used()).toBe(30)
})

interface Taken {
  readonly atMs: number
  units: number
}

/** Reich's formula: since one of the takings the bucket was never empty, and what is in use came since then. */
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

test('an estimate too high is as if the rest had never been reserved, whatever else went on', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 300 }), fc.array(step, { maxLength: 60 }), (limit, steps) => {
      const { bucket, reservations } = createBench(limit)
      const taken: Taken[] = []
      const running: { readonly reservation: Reservation; readonly entry: Taken }[] = []
      let nowMs = 0
      for (const { afterMs, tokens, ends } of steps) {
        nowMs += afterMs
        bucket.advance(nowMs)
        const units = tokens * unitsPerWhole
        const ended = ends === undefined ? undefined : running.splice(ends % Math.max(1, running.length), 1)[0]
        if (ended) {
          reservations.correct(ended.reservation, tokens)
          if (units > ended.entry.units) taken.push({ atMs: nowMs, units: units - ended.entry.units })
          else ended.entry.units = units
        } else {
          const entry = { atMs: nowMs, units }
          taken.push(entry)
          running.push({ entry, reservation: reservations.reserve(tokens) })
        }
        expect(bucket.usedUnits).toBe(usedUnits(taken, nowMs, limit))
        expect(reservations.pastCount).toBeLessThanOrEqual(running.length)
      }
    }),
    { numRuns: 1000 },
  )
})
