// The headers about the caller's limits, on each surface in its own form, with numbers worked out by hand.

import { afterAll, expect, test } from 'bun:test'
import { chat, messages } from '../parts/surfaces.ts'
import { createStepClock } from './step-clock.ts'
import { startTenancy } from './tenancy.ts'

const clock = createStepClock('2027-01-15T08:00:00Z')

const tenancy = await startTenancy({ clock })

afterAll(() => tenancy[Symbol.asyncDispose]())

const limitHeadersOf = (headers: Headers) =>
  Object.fromEntries([...headers].filter(([name]) => name.includes('ratelimit')))

test('the chat surface returns limit, remaining and reset of requests, also when refused', async () => {
  const { key } = await tenancy.tenant({ credit: '1', with: { limits: { requests_per_minute: 2 } } })
  const first = await tenancy.generate(chat, key, 'sandbox/echo')
  const all = (remaining: string, reset: string) => ({
    'x-ratelimit-limit-requests': '2',
    'x-ratelimit-remaining-requests': remaining,
    'x-ratelimit-reset-requests': reset,
  })
  // One request is half of a minute's worth.
  expect([first.status, limitHeadersOf(first.headers)]).toEqual([200, all('1', '30s')])
  const second = await tenancy.generate(chat, key, 'sandbox/echo', { stream: true })
  expect([second.status, limitHeadersOf(second.headers)]).toEqual([200, all('0', '1m0s')])
  const third = await tenancy.generate(chat, key, 'sandbox/echo')
  expect([third.status, limitHeadersOf(third.headers)]).toEqual([429, all('0', '1m0s')])
})

test('the message surface returns the same, with the reset as a time', async () => {
  const { key } = await tenancy.tenant({ credit: '1', with: { limits: { requests_per_minute: 2 } } })
  const reply = await tenancy.generate(messages, key, 'sandbox/echo')
  const reset = new Date(clock.now() + 30_000).toISOString().replace('.000Z', 'Z')
  expect([reply.status, limitHeadersOf(reply.headers)]).toEqual([
    200,
    {
      'anthropic-ratelimit-requests-limit': '2',
      'anthropic-ratelimit-requests-remaining': '1',
      'anthropic-ratelimit-requests-reset': reset,
    },
  ])
})

test('the headers are of the tightest scope, and absent without limits', async () => {
  const { workspaceId, projectId, key } = await tenancy.tenant({ credit: '1' })
  expect(limitHeadersOf((await tenancy.generate(chat, key, 'sandbox/echo')).headers)).toEqual({})
  await tenancy.must('PUT', `/api/workspaces/${workspaceId}/limits`, { requests_per_minute: 10 })
  await tenancy.must('PUT', `/api/projects/${projectId}/limits`, { requests_per_minute: 4 })
  const { headers } = await tenancy.generate(chat, key, 'sandbox/echo')
  expect(headers.get('x-ratelimit-limit-requests')).toBe('4')
  expect(headers.get('x-ratelimit-remaining-requests')).toBe('3')
})
