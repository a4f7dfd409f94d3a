import { expect, test } from 'bun:test'
import { limitHeaders } from './openai.ts'

test('each limit has three headers, and an unlimited caller gets none', () => {
  expect(limitHeaders({})).toEqual({})
  const requests = { limit: 60, remaining: 59, resetMs: 1000 }
  const ofRequests = {
    'x-ratelimit-limit-requests': '60',
    'x-ratelimit-remaining-requests': '59',
    'x-ratelimit-reset-requests': '1s',
  }
  expect(limitHeaders({ requests })).toEqual(ofRequests)
  const tokens = { limit: 150_000, remaining: 0, resetMs: 360_000 }
  expect(limitHeaders({ requests, tokens })).toEqual({
    ...ofRequests,
    'x-ratelimit-limit-tokens': '150000',
    'x-ratelimit-remaining-tokens': '0',
    'x-ratelimit-reset-tokens': '6m0s',
  })
})

test.each([
  [0, '0s'],
  [1, '1ms'],
  [350, '350ms'],
  [999, '999ms'],
  [1000, '1s'],
  [11_001, '12s'],
  [59_001, '1m0s'],
  [61_000, '1m1s'],
  [3_599_001, '1h0m0s'],
  [3_665_000, '1h1m5s'],
])('%d ms are written as %s, never less than they are', (resetMs, text) => {
  const headers = limitHeaders({ tokens: { limit: 1, remaining: 1, resetMs } })
  expect(headers['x-ratelimit-reset-tokens']).toBe(text)
})
