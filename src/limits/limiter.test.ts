import { expect, test } from 'bun:test'
import { retryHeaders } from '../kernel/failure.ts'
import { limitFailure, type RateScope, type Refused } from './limiter.ts'

const key: RateScope = { kind: 'key', id: 'key_1', name: 'ci', limits: {} }
const project: RateScope = { kind: 'project', id: 'prj_1', name: 'web', limits: {} }
const workspace: RateScope = { kind: 'workspace', id: 'ws_1', name: 'acme', limits: {} }

const requests: Omit<Refused, 'scope'> = {
  kind: 'refused',
  limit: 'requests',
  max: 60,
  used: 60,
  asked: 1,
  retryAfterMs: 11_200,
  state: {},
}
const tokens = { limit: 'tokens', max: 200_000, used: 150_000, asked: 60_000, retryAfterMs: 3000 } as const
const concurrent = { limit: 'concurrent', max: 5, used: 5, asked: 1, retryAfterMs: 1000 } as const

const cases: readonly [Refused, string][] = [
  [{ ...requests, scope: project }, 'Project "web" used 60 of 60 requests per minute. Retry in 12 s.'],
  [{ ...requests, scope: key }, 'Key "ci" used 60 of 60 requests per minute. Retry in 12 s.'],
  [
    { ...requests, ...tokens, scope: workspace },
    'Workspace "acme" used 150000 of 200000 tokens per minute, and this request needs up to 60000. Retry in 3 s.',
  ],
  [{ ...requests, ...concurrent, scope: key }, 'Key "ci" has 5 of 5 concurrent requests running. Retry in 1 s.'],
]

test.each(cases)(
  'names the key, project or workspace that has the limit, the numbers and the wait',
  (refused, message) => {
    expect(limitFailure(refused).message).toBe(message)
  },
)

test('a refusal is a 429 with the wait in both headers; a short wait is left to the client', () => {
  const failure = limitFailure({ ...requests, scope: project })
  expect([failure.code, failure.status]).toEqual(['LIMIT_EXCEEDED', 429])
  expect(retryHeaders(failure)).toEqual({ 'retry-after': '12', 'retry-after-ms': '11200' })
})

test('tells clients not to retry above a minute', () => {
  const shouldRetry = (retryAfterMs: number) =>
    limitFailure({ ...requests, scope: key, retryAfterMs }).facts.shouldRetry
  expect(shouldRetry(60_000)).toBeUndefined()
  expect(shouldRetry(60_001)).toBe(false)
})
