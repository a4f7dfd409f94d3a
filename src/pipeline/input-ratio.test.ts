import { expect, test } from 'bun:test'
import type { Usage } from '../kernel/usage.ts'
import { InputRatios } from './input-ratio.ts'

/** A thousand tokens at four bytes each. */
const bodyBytes = 4000

function usage(inputTokens: number, source: Usage['source'] = 'reported'): Usage {
  return { inputTokens, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWriteLongTokens: 0, outputTokens: 1, source }
}

test('a model of which nothing is known gets half as much again', () => {
  expect(new InputRatios().of('a/b')).toBe(1.5)
})

test('a prompt that came out larger is expected at once, of this model only', () => {
  const ratios = new InputRatios()
  ratios.learn('a/b', bodyBytes, usage(2000))
  expect(ratios.of('a/b')).toBe(2)
  expect(ratios.of('a/c')).toBe(1.5)
})

test('what comes out smaller is believed slowly, and never below four bytes a token', () => {
  const ratios = new InputRatios()
  ratios.learn('a/b', bodyBytes, usage(500))
  // 1.5 × 0.999 + 0.5 × 0.001
  expect(ratios.of('a/b')).toBeCloseTo(1.499, 6)
  for (let i = 0; i < 20_000; i++) ratios.learn('a/b', bodyBytes, usage(500))
  expect(ratios.of('a/b')).toBe(1)
})

test('what was read from a cache is input too', () => {
  const ratios = new InputRatios()
  ratios.learn('a/b', bodyBytes, { ...usage(500), cacheReadTokens: 1500 })
  expect(ratios.of('a/b')).toBe(2)
})

test('nothing is learned from an estimate, from a small body or one with pictures, or beyond reason', () => {
  const ratios = new InputRatios()
  ratios.learn('a/b', bodyBytes, usage(3000, 'estimated'))
  ratios.learn('a/b', 1000, usage(3000))
  const hasMedia = true
  ratios.learn('a/b', bodyBytes, usage(3000), hasMedia)
  expect(ratios.of('a/b')).toBe(1.5)
  ratios.learn('a/b', bodyBytes, usage(900_000))
  expect(ratios.of('a/b')).toBe(4)
})

test('an input that was counted is learned from, also where the answer ended early', () => {
  const ratios = new InputRatios()
  ratios.learn('a/b', bodyBytes, { ...usage(2000, 'estimated'), inputReported: true })
  expect(ratios.of('a/b')).toBe(2)
})

test('nothing is learned from hosts that begin with zeros', () => {
  const ratios = new InputRatios()
  ratios.learn('a/b', bodyBytes, usage(0))
  expect(ratios.of('a/b')).toBe(1.5)
})
