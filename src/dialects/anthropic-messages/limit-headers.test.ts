import { expect, test } from 'bun:test'
import { limitHeaders } from './limit-headers.ts'

// 2027-01-15T08:00:00Z
const now = 1_800_000_000_000

test('each limit is told by three headers, the reset as a moment in whole seconds, never too early', () => {
  expect(limitHeaders({}, now)).toEqual({})
  expect(limitHeaders({ requests: { limit: 60, remaining: 59, resetMs: 1 } }, now)).toEqual({
    'anthropic-ratelimit-requests-limit': '60',
    'anthropic-ratelimit-requests-remaining': '59',
    'anthropic-ratelimit-requests-reset': '2027-01-15T08:00:01Z',
  })
  expect(limitHeaders({ tokens: { limit: 150_000, remaining: 0, resetMs: 360_000 } }, now + 250)).toEqual({
    'anthropic-ratelimit-tokens-limit': '150000',
    'anthropic-ratelimit-tokens-remaining': '0',
    'anthropic-ratelimit-tokens-reset': '2027-01-15T08:06:01Z',
  })
  const whole = limitHeaders({ tokens: { limit: 1, remaining: 1, resetMs: 0 } }, now)
  expect(whole['anthropic-ratelimit-tokens-reset']).toBe('2027-01-15T08:00:00Z')
})
