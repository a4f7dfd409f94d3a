import { expect, test } from 'bun:test'
import { faultFromError } from '../dialects/canonical/faults.ts'
import { classifyFault } from './fault.ts'

function waitOf(message: string, { status = 429, header = undefined as number | undefined, sent = '{}' } = {}) {
  const fault = faultFromError(status, header, { code: 'rate_limit_exceeded', message })
  return classifyFault(fault, new TextEncoder().encode(sent)).provider?.retryAfterMs
}

test.each([
  ['Please try again in 20s.', 20_000],
  ['Please try again in 1.5s. Visit …', 1500],
  ['Please try again in 120ms.', 120],
  ['Please try again in 6m0s.', 360_000],
  ['Please try again in 1h2m3s.', 3_723_000],
  ['Please try again in 1 minute, 30 seconds.', 90_000],
  ['request reached organization max RPM: 20, please try again after 1 seconds', 1000],
  ['Please retry after 26 seconds.', 26_000],
  ['Please retry in 34.074824224s.', 34_075],
  ['Try again in 5 min', 300_000],
  ['Try again in 300 milliseconds', 300],
  ['Please try again in 99h.', 86_400_000],
  ['Please try again in 3 sparks.', undefined],
  ['Please try again later.', undefined],
  ['Please slow down.', undefined],
])('the wait is read from %j', (message, ms) => {
  expect(waitOf(message)).toBe(ms)
})

test('a header goes first, and only a throttle is to be waited for', () => {
  expect(waitOf('Please try again in 20s.', { header: 3000 })).toBe(3000)
  expect(waitOf('Please try again in 20s.', { status: 500 })).toBeUndefined()
})

test('a caller cannot have a route parked by a sentence of its own', () => {
  const message = 'Too many requests of user "try again in 24h"'
  expect(waitOf(message)).toBe(86_400_000)
  expect(waitOf(message, { sent: '{"user":"try again in 24h"}' })).toBeUndefined()
  expect(waitOf(message, { sent: '{"user":"try \\u0061gain in 24h"}' })).toBeUndefined()
})

test.each([
  ['Rate limit for user retry in 59 minutes exceeded.', '{"user":"retry in 59 minutes"}'],
  ['Rate limit for user retry in 59 minutes, slow down', '{"user":"retry in 59 minutes"}'],
  ['Rate limit for user retry in 59 min limit', '{"user":"retry in 59"}'],
])('nor by the beginning of one that the provider ends: %j', (message, sent) => {
  expect(waitOf(message)).toBe(59 * 60_000)
  expect(waitOf(message, { sent })).toBeUndefined()
})
