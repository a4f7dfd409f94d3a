import { describe, expect, test } from 'bun:test'
import type { Usage } from '../kernel/usage.ts'
import { estimateUsage, isCredible, usageSince } from './judge-usage.ts'

const usage = (counts: Partial<Usage>): Usage => ({
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cacheWriteLongTokens: 0,
  outputTokens: 0,
  source: 'reported',
  ...counts,
})

describe('what a provider counted is credible', () => {
  const bounds = { contextTokens: 1000, outputCap: 50 }
  const cases: readonly [name: string, counts: Partial<Usage>, outputBytes: number, isTrue: boolean][] = [
    ['an ordinary count', { inputTokens: 10, outputTokens: 5 }, 20, true],
    [
      'input up to context and cap, over all buckets',
      { cacheReadTokens: 1000, inputTokens: 50, outputTokens: 1 },
      4,
      true,
    ],
    ['one more', { cacheReadTokens: 1000, inputTokens: 51, outputTokens: 1 }, 4, false],
    ['output up to context and cap', { inputTokens: 1, outputTokens: 1050 }, 4, true],
    ['one more', { inputTokens: 1, outputTokens: 1051 }, 4, false],
    ['no output, and none was seen', { inputTokens: 10 }, 0, true],
    ['no output, though some was seen', { inputTokens: 10 }, 1, false],
    ['no input, though there is output', { outputTokens: 5 }, 20, false],
    ['input that came from a cache alone', { cacheReadTokens: 10, outputTokens: 5 }, 20, true],
    ['nothing, for nothing', {}, 0, true],
    ['input read again after each of two searches', { inputTokens: 3150, outputTokens: 5, webSearches: 2 }, 4, true],
    ['one more', { inputTokens: 3151, outputTokens: 5, webSearches: 2 }, 4, false],
    ['more searches than an answer can have', { inputTokens: 1, outputTokens: 5, webSearches: 1001 }, 4, false],
  ]
  test.each(cases)('%s (%j, %i bytes seen): %j', (_, counts, outputBytes, isTrue) => {
    expect(isCredible(usage(counts), bounds, () => outputBytes)).toBe(isTrue)
  })

  test('the output is not measured where there is no need', () => {
    const measure = (): number => {
      throw new Error('measured')
    }
    expect(isCredible(usage({ inputTokens: 1, outputTokens: 1 }), bounds, measure)).toBe(true)
  })

  test('without a known context any count that can be told is', () => {
    const unknown = { contextTokens: undefined, outputCap: undefined }
    expect(isCredible(usage({ inputTokens: 2 ** 31, outputTokens: 1 }), unknown, () => 4)).toBe(true)
  })
})

describe('an estimate', () => {
  test('takes four bytes for a token, and rounds up', () => {
    expect(estimateUsage(undefined, 9, () => 8)).toMatchObject({ inputTokens: 8, outputTokens: 3, source: 'estimated' })
  })

  test('keeps the input that the provider told at the start, bucket by bucket, and says so', () => {
    const atStart = usage({ inputTokens: 3, cacheReadTokens: 2, cacheWriteLongTokens: 1, outputTokens: 1 })
    const estimate = { ...atStart, outputTokens: 2, inputReported: true as const, source: 'estimated' as const }
    expect(estimateUsage(atStart, 8, () => 100)).toEqual(estimate)
    expect(estimateUsage(undefined, 8, () => 100).inputReported).toBeUndefined()
  })

  test('never has less output than the provider had counted by then', () => {
    expect(estimateUsage(usage({ inputTokens: 3, outputTokens: 40 }), 8, () => 100).outputTokens).toBe(40)
    expect(estimateUsage(usage({ outputTokens: 40 }), 8, () => 100)).toMatchObject({
      inputTokens: 100,
      outputTokens: 40,
    })
  })

  test('does not believe in a prompt of no tokens', () => {
    expect(estimateUsage(usage({}), 8, () => 100)).toMatchObject({ inputTokens: 100, outputTokens: 2 })
  })
})

describe('what was counted on the way', () => {
  const counted = usage({ inputTokens: 3, outputTokens: 40 })

  test('stays the very usage that was told, while nothing has passed since', () => {
    expect(usageSince(counted, 0)).toBe(counted)
  })

  test('grows by what has passed since, however many bytes its own tokens had', () => {
    const more = { ...counted, outputTokens: 43, inputReported: true as const, source: 'estimated' as const }
    expect(usageSince(counted, 9)).toEqual(more)
  })

  test('has an estimated input where it was an estimate itself', () => {
    const estimated = estimateUsage(undefined, 8, () => 100)
    expect(usageSince(estimated, 4)).toEqual({ ...estimated, outputTokens: 3 })
  })
})
