import { expect, test } from 'bun:test'
import { readUsage } from './usage.ts'

test('pitfall 109: cached tokens are inside the prompt, thoughts outside the answer', () => {
  const value = {
    promptTokenCount: 100,
    cachedContentTokenCount: 70,
    toolUsePromptTokenCount: 5,
    candidatesTokenCount: 20,
    thoughtsTokenCount: 8,
    totalTokenCount: 133,
  }
  expect(readUsage(value)).toEqual({
    inputTokens: 35,
    cacheReadTokens: 70,
    cacheWriteTokens: 0,
    cacheWriteLongTokens: 0,
    outputTokens: 28,
    reasoningTokens: 8,
    cacheReported: 'reads',
    source: 'reported',
  })
})

test('what is not reported is not zero, and no answer yet is none', () => {
  expect(readUsage({ promptTokenCount: 3 })).toEqual({
    inputTokens: 3,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    cacheWriteLongTokens: 0,
    outputTokens: 0,
    cacheReported: 'none',
    source: 'reported',
  })
})

test('more cached than there is leaves no negative count', () => {
  expect(readUsage({ promptTokenCount: 3, cachedContentTokenCount: 9 })).toMatchObject({
    inputTokens: 0,
    cacheReadTokens: 3,
  })
})

test.each([undefined, null, {}, { promptTokenCount: '3' }, { promptTokenCount: -1 }])('%j reports nothing', (value) => {
  expect(readUsage(value)).toBeUndefined()
})
