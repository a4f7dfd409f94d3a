import { expect, test } from 'bun:test'
import { earlyHeadersMs } from './early-headers.ts'

test.each([
  [undefined, 10_000],
  // The usual ten minutes of the official clients.
  ['600', 10_000],
  ['12.5', 10_000],
  ['5', 4_000],
  ['0.5', 400],
  ['0', 10_000],
  ['-3', 10_000],
  ['', 10_000],
  ['soon', 10_000],
])('a client that says it waits for %p seconds gets its headers within %p ms', (seconds, expected) => {
  const headers = new Headers(seconds === undefined ? {} : { 'x-stainless-timeout': seconds })
  expect(earlyHeadersMs(headers)).toBe(expected)
})

test.each([
  [{ 'x-stainless-read-timeout': '5' }, 4_000],
  [{ 'x-stainless-read-timeout': '2.5', 'x-stainless-timeout': 'NOT_GIVEN' }, 2_000],
  [{ 'x-stainless-read-timeout': '5', 'x-stainless-timeout': '600' }, 4_000],
  [{ 'x-stainless-read-timeout': '600', 'x-stainless-timeout': '5' }, 4_000],
  [{ 'x-stainless-read-timeout': 'inf' }, 10_000],
])('of two times the shorter one counts: %p is %p ms', (said, expected) => {
  expect(earlyHeadersMs(new Headers(said))).toBe(expected)
})
