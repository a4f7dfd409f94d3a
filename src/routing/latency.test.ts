import { describe, expect, test } from 'bun:test'
import { firstEventLimitMs, outlierLimitMs, SampleRing } from './latency.ts'

function ringOf(values: Iterable<number>, atMs = 0): SampleRing {
  const ring = new SampleRing()
  for (const value of values) ring.add(value, atMs)
  return ring
}

/** 1 … last, shuffled by steps that share no factor with it. */
function upTo(last: number, step: number): number[] {
  return Array.from({ length: last }, (_, n) => ((n * step) % last) + 1)
}

describe('quantiles', () => {
  test('are the nearest ranks, whatever the order', () => {
    expect(ringOf(upTo(100, 37), 5000).quantiles(9000)).toEqual({
      p50: 50,
      p95: 95,
      p99: 99,
      samples: 100,
      windowMs: 4000,
    })
  })

  test('are absent without samples, and equal for one sample', () => {
    expect(new SampleRing().quantiles(0)).toBeUndefined()
    expect(ringOf([7]).quantiles(0)).toEqual({ p50: 7, p95: 7, p99: 7, samples: 1, windowMs: 0 })
  })

  test('are those of the last 128', () => {
    const ring = ringOf(Array.from({ length: 500 }, () => 9000))
    for (let n = 0; n < 128; n++) ring.add(1, 10)
    expect(ring.quantiles(10)).toEqual({ p50: 1, p95: 1, p99: 1, samples: 128, windowMs: 0 })
  })

  test('ignore samples older than an hour', () => {
    const ring = ringOf([9000, 9000, 9000])
    ring.add(1, 1000)
    expect(ring.quantiles(3_600_000)?.samples).toBe(4)
    expect(ring.quantiles(3_601_000)).toEqual({ p50: 1, p95: 1, p99: 1, samples: 1, windowMs: 3_600_000 })
    expect(ring.quantiles(3_602_001)).toBeUndefined()
  })

  test('are recomputed after eight samples or a second', () => {
    const ring = ringOf([1])
    ring.quantiles(0)
    for (let n = 0; n < 7; n++) ring.add(5, 0)
    expect(ring.quantiles(0)?.samples).toBe(1)
    ring.add(5, 0)
    expect(ring.quantiles(0)?.samples).toBe(9)
    ring.add(5, 0)
    expect(ring.quantiles(1000)?.samples).toBe(10)
  })

  test('are reliable from twenty samples on', () => {
    const ring = ringOf(upTo(19, 7))
    expect(ring.reliable(0)).toBeUndefined()
    ring.add(20, 0)
    expect(ring.reliable(0)?.p50).toBe(10)
    expect(ring.reliable(3_600_001)).toBeUndefined()
  })
})

describe('the wait for a first event', () => {
  test.each([
    [1000, 15_000],
    [5000, 15_000],
    [7000, 21_000],
    [20_000, 60_000],
    [50_000, 60_000],
  ])('with a p99 of %p ms is %p ms', (ms, limitMs) => {
    const read = ringOf(Array.from({ length: 20 }, () => ms)).reliable(0)
    expect(firstEventLimitMs(read, 'ordinary')).toBe(limitMs)
  })

  test('is one minute by default, and three for a reasoning model', () => {
    expect(firstEventLimitMs(undefined, 'ordinary')).toBe(60_000)
    expect(firstEventLimitMs(undefined, 'reasoning')).toBe(180_000)
    expect(firstEventLimitMs(ringOf([1]).quantiles(0), 'reasoning')).toBe(180_000)
  })
})

test.each([
  [[1000], 3000],
  [[1000, 9000], 3000],
  [[9000, 1000, 2000], 6000],
  [[4000, 3000, 2000, 1000], 6000],
  [[], Number.POSITIVE_INFINITY],
])('among p95s of %j an outlier is above %p', (p95s, limitMs) => {
  expect(outlierLimitMs(p95s)).toBe(limitMs)
})
