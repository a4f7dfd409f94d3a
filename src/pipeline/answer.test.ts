import { expect, test } from 'bun:test'
import type { Candidate } from '../routing/plan.ts'
import { routeHeaders } from './answer.ts'

test.each([
  ['gpt-5.1/eu 100%', 'gpt-5.1/eu 100%'],
  ['モデル-1', '%E3%83%A2%E3%83%87%E3%83%AB-1'],
  ['größe', 'gr%C3%B6%C3%9Fe'],
  // Half a surrogate pair, which is not a valid header.
  ['half \ud83d', 'half%20%EF%BF%BD'],
  ['two\nlines', 'two%0Alines'],
])('encodes the upstream model %j for a header', (upstreamModel, expected) => {
  const candidate = { provider: { id: 'acme' }, route: { upstreamModel } } as Candidate
  const headers = new Headers(routeHeaders('req_1', candidate, 1) as Record<string, string>)
  expect(headers.get('x-tollgate-upstream-model')).toBe(expected)
})
