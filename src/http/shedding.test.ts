import { describe, expect, test } from 'bun:test'
import type { Failure } from '../kernel/failure.ts'
import { createShedding, type SheddingDependencies } from './shedding.ts'

const gigabyte = 2 ** 30

/** A gateway with a given time and load; the timer never fires inside a test. */
function start(facts: Partial<SheddingDependencies> = {}) {
  let nowMs = 0
  let workedMs = 0
  const clock = { now: () => nowMs, monotonicMs: () => nowMs }
  const usual = { clock, random: () => 0.5, rssBytes: () => gigabyte, memoryBytesMax: 4 * gigabyte }
  const shedding = createShedding({ ...usual, workedMs: () => workedMs, coreShare: 1, runningMax: 10_000, ...facts })
  return {
    shedding,
    /** So many samples in time, then one that comes this late, after so much work of our own. */
    pass(inTime: number, lateMs = 0, ownShare = 1) {
      for (let n = 0; n < inTime; n++) {
        nowMs += 20
        shedding.sample()
      }
      if (lateMs === 0) return
      nowMs += 20 + lateMs
      workedMs += (20 + lateMs) * ownShare
      shedding.sample()
    },
  }
}

const retryAfter = (failure: Failure | undefined) => failure?.facts.retryAfterMs

test('accepts an ordinary load', () => {
  const { shedding, pass } = start()
  pass(1000)
  expect(shedding.refusal(10)).toBeUndefined()
  shedding.close()
})

test('keeps the last reading of memory that cannot be read', () => {
  let readings = 0
  const rssBytes = () => {
    if (readings++ > 0) throw new Error('no descriptor is left')
    return 4 * gigabyte
  }
  const { shedding, pass } = start({ rssBytes })
  pass(1000)
  expect(readings).toBeGreaterThan(1)
  expect(shedding.refusal(10)).toMatchObject({ code: 'OVERLOADED' })
  shedding.close()
})

describe('the event loop', () => {
  test('may stall for a quarter of the time, as for garbage collection or one large request', () => {
    const { shedding, pass } = start({ random: () => 0 })
    for (let n = 0; n < 12; n++) pass(1, 104)
    expect(shedding.refusal(10)).toBeUndefined()
    pass(1, 104)
    // 13 × 104 ms of 5,000.
    expect(shedding.refusal(10)).toMatchObject({ code: 'OVERLOADED', status: 503 })
    shedding.close()
  })

  test('refuses more requests the longer it stalls, and all of them from three quarters of the time on', () => {
    const refusedOf = (stalls: number) => {
      let draw = 0
      const { shedding, pass } = start({ random: () => draw })
      for (let n = 0; n < stalls; n++) pass(0, 500)
      let refused = 0
      // 100 callers, each with another draw.
      for (draw = 0.005; draw < 1; draw += 0.01) if (shedding.refusal(10)) refused++
      shedding.close()
      return refused
    }
    expect([2, 3, 5, 7, 8].map(refusedOf)).toEqual([0, 10, 50, 90, 100])
  })

  test('may always be a tenth of a second late', () => {
    const { shedding, pass } = start()
    for (let n = 0; n < 50; n++) pass(1, 100)
    expect(shedding.refusal(10)).toBeUndefined()
    shedding.close()
  })

  test('may be delayed by other programs or by a pause of the machine', () => {
    const { shedding, pass } = start()
    for (let n = 0; n < 50; n++) pass(1, 980, 0.249)
    expect(shedding.refusal(10)).toBeUndefined()
    for (let n = 0; n < 4; n++) pass(1, 980, 0.25)
    expect(shedding.refusal(10)).toMatchObject({ code: 'OVERLOADED' })
    shedding.close()
  })

  test('refuses requests in a container that uses up its tenth of a core', () => {
    const { shedding, pass } = start({ coreShare: 0.1 })
    for (let n = 0; n < 4; n++) pass(1, 980, 0.09)
    expect(shedding.refusal(10)).toMatchObject({ code: 'OVERLOADED' })
    shedding.close()
  })

  test('accepts requests again after five seconds without a stall', () => {
    const { shedding, pass } = start()
    pass(0, 3750)
    pass(249)
    expect(shedding.refusal(10)).toBeDefined()
    pass(1)
    expect(shedding.refusal(10)).toBeUndefined()
    shedding.close()
  })
})

test('refuses requests above 85 % of the memory limit, checked once a second', () => {
  let rss = 3.4 * gigabyte
  const { shedding, pass } = start({ rssBytes: () => rss })
  pass(1)
  expect(shedding.refusal(10)).toBeUndefined()
  rss = 3.41 * gigabyte
  pass(50)
  expect(shedding.refusal(10)).toBeUndefined()
  pass(1)
  expect(shedding.refusal(10)?.message).toContain('memory')
  shedding.close()
})

test('refuses requests above the limit of running ones', () => {
  const { shedding } = start({ runningMax: 500 })
  expect(shedding.refusal(500)).toBeUndefined()
  expect(shedding.refusal(501)).toMatchObject({ code: 'OVERLOADED' })
  shedding.close()
})

test('tells refused clients to retry in one to three seconds', () => {
  for (const [draw, waitMs] of [
    [0, 1000],
    [0.5, 2000],
    [0.9999, 3000],
  ] as const) {
    const { shedding } = start({ random: () => draw, runningMax: 1 })
    expect(retryAfter(shedding.refusal(10))).toBe(waitMs)
    shedding.close()
  }
})
