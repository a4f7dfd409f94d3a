import { expect, test } from 'bun:test'
import { retryAfterMs } from './retry-after.ts'

const now = 'Sun, 15 Nov 2026 12:00:00 GMT'
const day = 86_400_000

test.each<[Record<string, string>, number | undefined]>([
  [{}, undefined],
  [{ 'retry-after': '7' }, 7000],
  [{ 'retry-after': '0.5' }, 500],
  [{ 'retry-after-ms': '20', 'retry-after': '1' }, 20],
  [{ 'retry-after-ms': 'soon', 'retry-after': '1' }, 1000],
  [{ 'retry-after': 'Sun, 15 Nov 2026 12:00:34 GMT', date: now }, 34_000],
  [{ 'retry-after': 'Sun, 15 Nov 2026 12:00:34 GMT' }, undefined],
  [{ 'retry-after': 'later' }, undefined],
  // 2026-11-15 12:00:34 UTC, by those who send the moment as a number.
  [{ 'retry-after': '1794744034', date: now }, 34_000],
  [{ 'retry-after-ms': '1794744034000', date: now }, 34_000],
  [{ 'retry-after': '1794744034' }, undefined],
  [{ 'retry-after': '1e9', date: now }, undefined],
])('a wait is read in each spelling: %o', (headers, expected) => {
  expect(retryAfterMs(new Headers(headers))).toBe(expected)
})

test.each<Record<string, string>>([
  { 'retry-after': '100000' },
  { 'retry-after-ms': '100000000' },
  { 'retry-after': '999999999', date: now },
  { 'retry-after': 'Infinity', date: now },
  { 'retry-after': 'Thu, 01 Jan 2037 00:00:00 GMT', date: now },
])('a very long wait is a day, not none: %o', (headers) => {
  expect(retryAfterMs(new Headers(headers))).toBe(day)
})

test.each<Record<string, string>>([
  { 'retry-after': '0' },
  { 'retry-after-ms': '0' },
  { 'retry-after': now, date: now },
])('a wait of nothing is a second, which both headers can say: %o', (headers) => {
  expect(retryAfterMs(new Headers(headers))).toBe(1000)
})

test('a time that is over, or below zero, says nothing', () => {
  expect(retryAfterMs(new Headers({ 'retry-after': '-5' }))).toBeUndefined()
  expect(retryAfterMs(new Headers({ 'retry-after': 'Sun, 15 Nov 2026 11:00:00 GMT', date: now }))).toBeUndefined()
})
