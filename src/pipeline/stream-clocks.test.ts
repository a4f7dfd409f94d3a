import { expect, test } from 'bun:test'
import { cuts } from './interruption.ts'
import { StreamClocks } from './stream-clocks.ts'

const timeouts = { connectMs: 1, firstEventMs: 1, idleMs: 30_000, contentIdleMs: 120_000, totalMs: 900_000 }

test('a provider that says nothing is cut off, and to blame', () => {
  const clocks = new StreamClocks(0)
  expect(clocks.cutFor(30_000, timeouts)).toBeUndefined()
  expect(clocks.cutFor(30_001, timeouts)).toBe(cuts.idle)
  expect(cuts.idle.why).toBe('timed out')
})

test('signs of life keep a connection, words keep an answer', () => {
  const clocks = new StreamClocks(0)
  for (let nowMs = 20_000; nowMs <= 120_000; nowMs += 20_000) clocks.heard(nowMs, 0)
  expect(clocks.cutFor(120_000, timeouts)).toBeUndefined()
  expect(clocks.cutFor(120_001, timeouts)).toBe(cuts.contentIdle)
  clocks.heard(120_001, 5)
  expect(clocks.cutFor(130_000, timeouts)).toBeUndefined()
})

test('the words are waited for from the beginning of the answer on, however long that was waited for', () => {
  const clocks = new StreamClocks(0)
  clocks.opened(200_000)
  // Such as reasoning that only its provider can read.
  clocks.heard(200_000, 0)
  expect(clocks.cutFor(320_000, timeouts)).toBe(cuts.idle)
  clocks.heard(320_000, 0)
  expect(clocks.cutFor(320_000, timeouts)).toBeUndefined()
  expect(clocks.cutFor(320_001, timeouts)).toBe(cuts.contentIdle)
})

test('an answer that takes too long in all is nobody’s fault', () => {
  const clocks = new StreamClocks(0)
  clocks.heard(890_000, 5)
  expect(clocks.cutFor(900_001, timeouts)).toBe(cuts.total)
  clocks.pause(890_000)
  expect(clocks.cutFor(900_001, timeouts)).toBe(cuts.total)
  expect(cuts.total.why).toBe('had too little time')
})

test('a provider that is not read because its client is busy has not been silent', () => {
  const clocks = new StreamClocks(0)
  clocks.heard(1_000, 5)
  clocks.pause(1_000)
  expect(clocks.cutFor(200_000, timeouts)).toBeUndefined()
  clocks.resume(200_000)
  expect(clocks.cutFor(230_000, timeouts)).toBeUndefined()
  expect(clocks.cutFor(230_001, timeouts)).toBe(cuts.idle)
})

test('a client that takes nothing for 30 s has stalled, one that waits has not', () => {
  const clocks = new StreamClocks(0)
  expect(clocks.hasStalled(90_000)).toBe(false)
  clocks.pause(90_000)
  expect([clocks.hasStalled(120_000), clocks.hasStalled(120_001)]).toEqual([false, true])
  clocks.resume(120_001)
  expect(clocks.hasStalled(300_000)).toBe(false)
})

test('a client that waits gets a sign every 15 s, one that is busy does not', () => {
  const clocks = new StreamClocks(0)
  expect([clocks.owesSign(14_999), clocks.owesSign(15_000)]).toEqual([false, true])
  clocks.spoke(15_000)
  expect(clocks.owesSign(29_999)).toBe(false)
  clocks.pause(20_000)
  expect(clocks.owesSign(60_000)).toBe(false)
})
