import { describe, expect, test } from 'bun:test'
import { Breaker } from './route.ts'

/** A draw in the middle: no jitter. */
const middle = 0.5

function fail(breaker: Breaker, atMs: number, draw = middle): boolean {
  return breaker.recordFault('failing', atMs, atMs, draw)
}

function ejected(atMs: number, draw = middle): Breaker {
  const breaker = new Breaker()
  for (let n = 0; n < 5; n++) fail(breaker, atMs, draw)
  expect(breaker.state(atMs)).toBe('ejected')
  return breaker
}

/** One probe, begun and answered. */
function probe(breaker: Breaker, atMs: number): boolean {
  expect(breaker.isProbeFree(atMs)).toBe(true)
  breaker.startProbe(atMs)
  return breaker.recordSuccess(atMs, atMs)
}

describe('opens', () => {
  test('on the fifth fault in a row', () => {
    const breaker = new Breaker()
    for (let n = 0; n < 4; n++) expect(fail(breaker, n)).toBe(false)
    expect(breaker.state(4)).toBe('closed')
    expect(fail(breaker, 4)).toBe(true)
    expect(breaker.state(5)).toBe('ejected')
    expect(breaker.why).toBe('failing')
  })

  test('not if a success comes between', () => {
    const breaker = new Breaker()
    for (let n = 0; n < 4; n++) fail(breaker, n)
    breaker.recordSuccess(4, 4)
    for (let n = 5; n < 9; n++) expect(fail(breaker, n)).toBe(false)
  })

  test.each([
    ['on half of twenty attempts, though never five faults in a row', 1, 9, true],
    ['not on less than half', 2, 100, false],
  ])('%s', (_, successes, times, opens) => {
    const breaker = new Breaker()
    const round = (atMs: number) => {
      for (let n = 0; n < successes; n++) breaker.recordSuccess(atMs, atMs)
      return fail(breaker, atMs)
    }
    for (let n = 0; n < times; n++) expect(round(n)).toBe(false)
    expect(round(times)).toBe(opens)
  })

  test('not on faults older than 30 seconds', () => {
    const breaker = new Breaker()
    for (let n = 0; n < 9; n++) {
      breaker.recordSuccess(0, 0)
      fail(breaker, 0)
    }
    breaker.recordSuccess(30_000, 30_000)
    expect(fail(breaker, 30_000)).toBe(false)
  })

  test('not on faults that have left the window, however many there were', () => {
    const breaker = new Breaker()
    for (let n = 0; n < 9; n++) {
      breaker.recordSuccess(0, 0)
      fail(breaker, 0)
    }
    for (let n = 0; n < 11; n++) breaker.recordSuccess(30_000, 30_000)
    for (let n = 0; n < 9; n++) {
      expect(fail(breaker, 30_000)).toBe(false)
      breaker.recordSuccess(30_000, 30_000)
    }
  })

  test('counts an attempt that breaks off after its success once, as a fault', () => {
    const breaker = new Breaker()
    for (let n = 0; n < 19; n++) {
      breaker.recordSuccess(n, n)
      expect(breaker.recordInterruption('broken', n, n, middle)).toBe(false)
    }
    breaker.recordSuccess(19, 19)
    expect(breaker.recordInterruption('broken', 19, 19, middle)).toBe(true)
  })
})

describe('an ejection', () => {
  test.each([
    [0, 12_000],
    [0.5, 15_000],
    [1, 18_000],
  ])('lasts 15 s give or take a fifth: a draw of %p is %p ms', (draw, ms) => {
    const breaker = ejected(1000, draw)
    expect(breaker.waitMs(1000)).toBe(ms)
    expect(breaker.state(1000 + ms - 1)).toBe('ejected')
    expect(breaker.state(1000 + ms)).toBe('half open')
  })

  test('doubles with each failed probe, up to 300 s', () => {
    const breaker = ejected(0)
    let nowMs = 0
    const lasted: number[] = []
    for (let n = 0; n < 7; n++) {
      const waitMs = breaker.waitMs(nowMs)
      lasted.push(waitMs / 1000)
      nowMs += waitMs
      breaker.startProbe(nowMs)
      expect(fail(breaker, nowMs)).toBe(true)
    }
    expect(lasted).toEqual([15, 30, 60, 120, 240, 300, 300])
  })

  test('is half as long again after five quiet minutes, and no shorter than the first', () => {
    for (const [quietMs, secondMs] of [
      [299_999, 60_000],
      [300_000, 30_000],
      [600_000, 15_000],
      [3_000_000, 15_000],
    ] as const) {
      const breaker = ejected(0)
      breaker.startProbe(15_000)
      fail(breaker, 15_000)
      for (const atMs of [45_000, 50_000, 55_000]) probe(breaker, atMs)
      const atMs = 55_000 + quietMs
      for (let n = 0; n < 5; n++) fail(breaker, atMs)
      expect(breaker.waitMs(atMs)).toBe(secondMs)
    }
  })

  test('is neither lengthened nor ended by attempts that began before it was over', () => {
    const breaker = ejected(0)
    expect(breaker.recordFault('timed out', 0, 20_000, middle)).toBe(false)
    expect(breaker.recordFault('timed out', 14_999, 20_000, middle)).toBe(false)
    for (let n = 0; n < 5; n++) expect(breaker.recordSuccess(1000, 20_000)).toBe(false)
    expect(breaker.state(20_000)).toBe('half open')
  })
})

describe('half open', () => {
  test('lets one request through at a time', () => {
    const breaker = ejected(0)
    breaker.startProbe(15_000)
    expect(breaker.isProbeFree(40_000)).toBe(false)
    breaker.recordSuccess(15_000, 40_000)
    expect(breaker.isProbeFree(40_000)).toBe(true)
  })

  test('lets one request through in five seconds', () => {
    const breaker = ejected(0)
    probe(breaker, 15_000)
    expect(breaker.isProbeFree(19_999)).toBe(false)
    expect(breaker.waitMs(19_000)).toBe(1000)
    expect(breaker.isProbeFree(20_000)).toBe(true)
  })

  test('a probe without a verdict frees the slot for the next', () => {
    const breaker = ejected(0)
    breaker.startProbe(15_000)
    breaker.recordNothing(14_000)
    expect(breaker.isProbeFree(30_000)).toBe(false)
    breaker.recordNothing(15_000)
    expect(breaker.isProbeFree(30_000)).toBe(true)
  })

  test('a lost probe does not block forever', () => {
    const breaker = ejected(0)
    breaker.startProbe(15_000)
    expect(breaker.isProbeFree(614_999)).toBe(false)
    expect(breaker.isProbeFree(615_000)).toBe(true)
  })

  test('closes with the third success', () => {
    const breaker = ejected(0)
    expect(probe(breaker, 15_000)).toBe(false)
    expect(probe(breaker, 20_000)).toBe(false)
    expect(breaker.state(24_000)).toBe('half open')
    expect(probe(breaker, 25_000)).toBe(true)
    expect(breaker.state(25_000)).toBe('slow start')
  })

  test('faults before the ejection do not count after it', () => {
    const breaker = new Breaker()
    for (let n = 0; n < 10; n++) {
      breaker.recordSuccess(0, 0)
      fail(breaker, 0)
    }
    for (const atMs of [15_000, 20_000, 25_000]) probe(breaker, atMs)
    expect(fail(breaker, 26_000)).toBe(false)
    for (let n = 0; n < 5; n++) expect(breaker.recordFault('timed out', 24_000, 26_000, middle)).toBe(false)
    expect(breaker.state(26_000)).toBe('slow start')
  })

  test('a failed probe resets the successes before it', () => {
    const breaker = ejected(0)
    probe(breaker, 15_000)
    probe(breaker, 20_000)
    expect(fail(breaker, 25_000)).toBe(true)
    expect(breaker.state(54_999)).toBe('ejected')
    expect(probe(breaker, 55_000)).toBe(false)
    expect(probe(breaker, 60_000)).toBe(false)
    expect(probe(breaker, 65_000)).toBe(true)
  })
})

describe('weight', () => {
  test('grows from a tenth to the whole in 30 seconds after closing', () => {
    const breaker = ejected(0)
    for (const atMs of [15_000, 20_000, 25_000]) probe(breaker, atMs)
    expect(breaker.factor(25_000)).toBeCloseTo(0.1)
    expect(breaker.factor(40_000)).toBeCloseTo(0.55)
    expect(breaker.isHealthy(54_999)).toBe(false)
    expect(breaker.factor(55_000)).toBe(1)
    expect(breaker.isHealthy(55_000)).toBe(true)
    expect(breaker.state(55_000)).toBe('closed')
  })

  test('is halved for 30 seconds by an overload', () => {
    const breaker = new Breaker()
    expect(breaker.isHealthy(0)).toBe(true)
    breaker.recordOverload(0)
    expect(breaker.factor(29_999)).toBe(0.5)
    expect(breaker.isHealthy(29_999)).toBe(false)
    expect(breaker.factor(30_000)).toBe(1)
    expect(breaker.isHealthy(30_000)).toBe(true)
  })
})
