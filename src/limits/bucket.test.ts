import { expect, test } from 'bun:test'
import { Bucket, unitsPerWhole } from './bucket.ts'

const one = unitsPerWhole

/** Takes one after another at this moment until there is no room. */
function burst(bucket: Bucket, nowMs: number, limit?: number): number {
  bucket.advance(nowMs, limit)
  let taken = 0
  for (; bucket.waitMs(one) === 0; taken++) bucket.take(one)
  return taken
}

test('N per minute is a burst of N, and then one every Nth of a minute', () => {
  const bucket = new Bucket(60, 0)
  expect(burst(bucket, 0)).toBe(60)
  expect(bucket.waitMs(one)).toBe(1000)
  expect(burst(bucket, 999)).toBe(0)
  expect(bucket.waitMs(one)).toBe(1)
  expect(burst(bucket, 1000)).toBe(1)
  expect(burst(bucket, 31_000)).toBe(30)
  expect(burst(bucket, 500_000)).toBe(60)
})

test('a minute that does not divide by N loses nothing', () => {
  const bucket = new Bucket(7, 0)
  expect(burst(bucket, 0)).toBe(7)
  // 60,000 / 7 = 8571.43
  expect(bucket.waitMs(one)).toBe(8572)
  let taken = 0
  for (let nowMs = 1; nowMs <= 3_600_000; nowMs += 1) taken += burst(bucket, nowMs)
  expect(taken).toBe(7 * 60)
})

test('tells what is left, rounded down, and when all is there again', () => {
  const bucket = new Bucket(10, 0)
  expect(bucket.state).toEqual({ limit: 10, remaining: 10, resetMs: 0 })
  bucket.take(3 * one)
  expect(bucket.state).toEqual({ limit: 10, remaining: 7, resetMs: 18_000 })
  bucket.advance(5999)
  expect(bucket.state).toEqual({ limit: 10, remaining: 7, resetMs: 12_001 })
  bucket.advance(6000)
  expect(bucket.state).toEqual({ limit: 10, remaining: 8, resetMs: 12_000 })
  bucket.take(20 * one)
  expect(bucket.state).toEqual({ limit: 10, remaining: 0, resetMs: 132_000 })
})

test('what is larger than the limit waits until nothing is used, and then leaves a debt', () => {
  const bucket = new Bucket(100, 0)
  bucket.take(one)
  expect(bucket.waitMs(250 * one)).toBe(600)
  bucket.advance(600)
  expect(bucket.waitMs(250 * one)).toBe(0)
  bucket.take(250 * one)
  // 151 have to drain before one fits: 151 × 600 ms.
  expect(bucket.waitMs(one)).toBe(90_600)
  bucket.advance(91_199)
  expect(bucket.waitMs(one)).toBe(1)
  bucket.advance(91_200)
  expect(bucket.waitMs(one)).toBe(0)
})

test('a limit of 0 admits nothing, also nothing that is larger than it', () => {
  const bucket = new Bucket(0, 0)
  expect(bucket.waitMs(one)).toBe(3_600_000)
  expect(bucket.waitMs(0)).toBe(0)
})

test('a clock that steps back drains nothing twice', () => {
  const bucket = new Bucket(60, 10_000)
  burst(bucket, 10_000)
  expect(burst(bucket, 12_000)).toBe(2)
  expect(burst(bucket, 5000)).toBe(0)
  expect(burst(bucket, 12_000)).toBe(0)
  expect(burst(bucket, 13_000)).toBe(1)
})

test('a raised limit admits the difference at once, not all anew', () => {
  const bucket = new Bucket(10, 0)
  expect(burst(bucket, 0)).toBe(10)
  expect(burst(bucket, 0, 16)).toBe(6)
  expect(bucket.waitMs(one)).toBe(3750)
})

test('the time before a change counts at the old pace', () => {
  const bucket = new Bucket(60, 0)
  expect(burst(bucket, 0)).toBe(60)
  // 10 have drained, 50 are in use.
  expect(burst(bucket, 10_000, 54)).toBe(4)
})

test('a lowered limit counts what is used, and drains what is too much at the pace it was admitted at', () => {
  const bucket = new Bucket(600, 0)
  expect(burst(bucket, 0)).toBe(600)
  expect(burst(bucket, 0, 6)).toBe(0)
  // 594 at 600 per minute, then one at 6 per minute.
  expect(bucket.waitMs(one)).toBe(59_400 + 10_000)
  expect(bucket.state).toEqual({ limit: 6, remaining: 0, resetMs: 59_400 + 60_000 })
  expect(burst(bucket, 30_000)).toBe(0)
  expect(bucket.waitMs(one)).toBe(39_400)
  expect(burst(bucket, 69_399)).toBe(0)
  expect(burst(bucket, 69_400)).toBe(1)
  expect(bucket.waitMs(one)).toBe(10_000)
})

test('a limit that is lowered and raised again admits nothing twice', () => {
  const bucket = new Bucket(100, 0)
  expect(burst(bucket, 0)).toBe(100)
  expect(burst(bucket, 0, 1)).toBe(0)
  expect(burst(bucket, 0, 100)).toBe(0)
  expect(bucket.waitMs(one)).toBe(600)
})

test('a debt after the excess of a lowered limit has drained is paid at the new pace', () => {
  const bucket = new Bucket(600, 0)
  bucket.take(600 * one)
  bucket.advance(0, 60)
  bucket.advance(54_000)
  bucket.take(60 * one)
  expect(bucket.waitMs(one)).toBe(61_000)
})
