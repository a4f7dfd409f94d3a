import { expect, test } from 'bun:test'
import { tokenCounts } from '../../../test/parts/token-counts.ts'
import { readUsage } from './usage.ts'

const usage = (input: number, details: object, output = 5, reasoning: object = {}) => ({
  input_tokens: input,
  input_tokens_details: details,
  output_tokens: output,
  output_tokens_details: reasoning,
})

test('vector 61: cached and written tokens are part of the input, reasoning is part of the output', () => {
  expect(readUsage(usage(100, { cached_tokens: 70, cache_write_tokens: 20 }, 5, { reasoning_tokens: 3 }))).toEqual({
    ...tokenCounts(10, 5, 70, 20),
    reasoningTokens: 3,
    source: 'reported',
  })
})

test('no bucket is negative, and together they are never more than the input', () => {
  expect(readUsage(usage(50, { cached_tokens: 70, cache_write_tokens: 20 }))).toMatchObject({
    inputTokens: 0,
    cacheReadTokens: 50,
    cacheWriteTokens: 0,
  })
})

test('a count that was not reported is not zero', () => {
  expect(readUsage({ input_tokens: 3, output_tokens: 1 })).toEqual({
    ...tokenCounts(3, 1),
    cacheReported: 'none',
    source: 'reported',
  })
  expect(readUsage(usage(3, { cached_tokens: 1 }))).toMatchObject({ cacheReported: 'reads' })
  for (const value of [undefined, null, {}, { input_tokens: 1 }, { input_tokens: -1, output_tokens: 1 }]) {
    expect(readUsage(value)).toBeUndefined()
  }
})
