import { expect, test } from 'bun:test'
import { estimatedInput, type Usage } from '../kernel/usage.ts'
import { PreviousTurns } from './learned.ts'

const usage: Usage = { ...estimatedInput(10), cacheWriteTokens: 1000, source: 'reported' }

test('only one request at a time counts on the cache of a turn, until it is given back or another is learned', () => {
  const turns = new PreviousTurns({ monotonicMs: () => 0 })
  turns.learn('s', 4000, usage)
  const taken = turns.take('s', 4400, 0.25)
  // 1,010 tokens in 4,000 bytes, and 400 bytes more at the same ratio; 98 % of 1,000 are expected to be read.
  expect(taken).toMatchObject({ inputTokens: 1111, cachedTokens: 980 })
  expect(turns.take('s', 4400, 0.25)).toBeUndefined()
  if (taken) turns.giveBack('s', taken.turn)
  expect(turns.take('s', 4400, 0.25)).toMatchObject({ cachedTokens: 980 })
  turns.learn('s', 4400, usage)
  expect(turns.take('s', 4400, 0.25)).toMatchObject({ inputTokens: 1010, cachedTokens: 980 })
})
