import { expect, test } from 'bun:test'
import { tokenCounts } from '../../../test/parts/token-counts.ts'
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
    ...tokenCounts(35, 28, 70),
    reasoningTokens: 8,
    cacheReported: 'reads',
    source: 'reported',
  })
})

test('omits counts that are not reported, and counts no output before the answer', () => {
  expect(readUsage({ promptTokenCount: 3 })).toEqual({
    ...tokenCounts(3, 0),
    cacheReported: 'none',
    source: 'reported',
  })
})

test('a cache count above the input leaves no negative count', () => {
  expect(readUsage({ promptTokenCount: 3, cachedContentTokenCount: 9 })).toMatchObject({
    inputTokens: 0,
    cacheReadTokens: 3,
  })
})

test('sound is counted by modality, as a part of the prompt, of what came from a cache, and of the answer', () => {
  const audio = (tokenCount: number) => ({ modality: 'AUDIO', tokenCount })
  const value = {
    promptTokenCount: 1000,
    cachedContentTokenCount: 300,
    candidatesTokenCount: 50,
    thoughtsTokenCount: 10,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: 400 }, audio(600)],
    cacheTokensDetails: [audio(250), { modality: 'TEXT', tokenCount: 50 }],
    candidatesTokensDetails: [{ modality: 'TEXT', tokenCount: 20 }, audio(30)],
  }
  const counts = { inputTokens: 700, cacheReadTokens: 300, outputTokens: 60 }
  expect(readUsage(value)).toMatchObject({
    ...counts,
    ...{ audioInputTokens: 350, audioCacheReadTokens: 250, audioOutputTokens: 30 },
  })
  // Where the cache is not taken apart, as little of it as can be is sound.
  const { cacheTokensDetails: _, ...silent } = value
  expect(readUsage(silent)).toMatchObject({ ...counts, audioInputTokens: 600 })
  expect(readUsage(silent)).not.toHaveProperty('audioCacheReadTokens')
  expect(readUsage({ ...silent, promptTokensDetails: [audio(900)] })).toMatchObject({
    ...{ ...counts, audioInputTokens: 700, audioCacheReadTokens: 200 },
  })
  for (const details of [undefined, [], 'AUDIO', [null], [audio(-1)], [{ modality: 'AUDIO' }], [audio(0)]]) {
    const plain = readUsage({ ...value, promptTokensDetails: details, candidatesTokensDetails: details })
    expect(plain).toMatchObject(counts)
    expect(Object.keys(plain ?? {}).filter((name) => name.startsWith('audio'))).toEqual([])
  }
})

test.each([undefined, null, {}, { promptTokenCount: '3' }, { promptTokenCount: -1 }])('%j reports nothing', (value) => {
  expect(readUsage(value)).toBeUndefined()
})
