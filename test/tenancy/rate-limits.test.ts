// Limits of requests, tokens and concurrency over HTTP: the number of admitted requests is exact under concurrency, and a
// client that waits for the returned time is admitted. The clock moves only when a test says so.

import { afterAll, expect, test } from 'bun:test'
import { stopAll } from '../parts/gateway.ts'
import type { Reply } from '../parts/manage.ts'
import { connect } from '../parts/raw-client.ts'
import { allSurfaces, chat, messages } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'
import { createStepClock } from './step-clock.ts'
import { acmeConfig, failureOf, startTenancy, until } from './tenancy.ts'

const clock = createStepClock('2027-01-15T08:00:00Z')
/** While set, the provider keeps its callers waiting. */
let gate: PromiseWithResolvers<void> | undefined

const upstream = startUpstream(async (call, reply) => {
  await gate?.promise
  await reply.send(200, { 'content-type': 'application/json' }, wordsFor(call).whole)
})
const config = acmeConfig(upstream.url, { large: 'price: free, max_output_tokens: 1000' })
const tenancy = await startTenancy({ config, clock })

afterAll(() => stopAll(tenancy, upstream))

const call = (key: string, more: object = {}) =>
  tenancy.generate(chat, key, 'acme/large', { max_tokens: 1000, ...more })

/** So many requests over so many connections; answers with their statuses, counted. */
async function flood(key: string, count: number, connections = 50): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {}
  let left = count
  const client = async () => {
    while (left-- > 0) {
      const { status } = await call(key)
      statuses[status] = (statuses[status] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: connections }, client))
  return statuses
}

function waitOf({ status, headers }: Reply): { readonly seconds: number; readonly milliseconds: number } {
  expect(status).toBe(429)
  const seconds = headers.get('retry-after') ?? ''
  expect(seconds).toMatch(/^[1-9][0-9]*$/)
  return { seconds: Number(seconds), milliseconds: Number(headers.get('retry-after-ms')) }
}

/** Starts calls that the provider keeps waiting, until as many have reached it or been refused. */
async function startHeld(key: string, count: number, more: object = {}) {
  gate = Promise.withResolvers<void>()
  const before = upstream.calls.length
  const refused: Reply[] = []
  const all = Array.from({ length: count }, async () => {
    const reply = await call(key, more)
    if (reply.status === 429) refused.push(reply)
    return reply
  })
  await until(() => upstream.calls.length - before + refused.length === count)
  return {
    admitted: upstream.calls.length - before,
    refused,
    async finish() {
      gate?.resolve()
      gate = undefined
      return Promise.all(all)
    },
  }
}

test('R3: of 10,000 requests from 50 connections at 300 a minute, the burst and the refill are admitted', async () => {
  const { key } = await tenancy.tenant({ with: { limits: { requests_per_minute: 300 } } })
  expect(await flood(key, 5000)).toEqual({ 200: 300, 429: 4700 })
  // 300 a minute are 5 a second: 35 in 7 s.
  clock.pass(7000)
  expect(await flood(key, 2700)).toEqual({ 200: 35, 429: 2665 })
  // 7.5, of which half a request stays for later: with the 2.5 of the next half second that makes 3.
  clock.pass(1500)
  expect(await flood(key, 1000)).toEqual({ 200: 7, 429: 993 })
  clock.pass(500)
  expect(await flood(key, 900)).toEqual({ 200: 3, 429: 897 })
  // However long there are no requests, the burst is 300 and no more.
  clock.pass(3_600_000)
  expect(await flood(key, 400)).toEqual({ 200: 300, 429: 100 })
})

test('a refused client that waits for exactly the returned time is admitted', async () => {
  const { key } = await tenancy.tenant({ with: { limits: { requests_per_minute: 7 } } })
  expect(await flood(key, 50)).toEqual({ 200: 7, 429: 43 })
  for (let client = 0; client < 50; client++) {
    const refused = await call(key)
    const { milliseconds, seconds } = waitOf(refused)
    // 60 s ÷ 7 = 8571.43 ms, never rounded down; and not before.
    expect([milliseconds, seconds]).toEqual([8572, 9])
    clock.pass(client % 2 === 0 ? milliseconds : seconds * 1000)
    expect((await call(key)).status).toBe(200)
    // Whole again up to the last request, so that every client finds the same.
    clock.pass(60_000)
    expect(await flood(key, 8, 1)).toEqual({ 200: 7, 429: 1 })
  }
})

test('the refusal has the format of the surface, names the limit, and counts for every endpoint', async () => {
  const { workspaceId, projectId, key } = await tenancy.tenant()
  await tenancy.must('PUT', `/api/workspaces/${workspaceId}/limits`, { requests_per_minute: 2 })
  await tenancy.must('PUT', `/api/projects/${projectId}/limits`, { requests_per_minute: 100 })
  const { secret: other } = await tenancy.key(projectId, { limits: { requests_per_minute: 50 } })
  expect([(await call(key)).status, (await call(other)).status]).toEqual([200, 200])
  for (const surface of allSurfaces) {
    const reply = await tenancy.generate(surface, other, 'acme/large')
    const [code, message] = failureOf(surface, reply)
    const { type, status } = reply.body.error
    expect([code, type ?? status]).toEqual([
      'LIMIT_EXCEEDED',
      surface.name === 'gemini' ? 'RESOURCE_EXHAUSTED' : 'rate_limit_error',
    ])
    expect(message).toContain('Workspace "a tenant" used 2 of 2 requests per minute.')
    expect(waitOf(reply).milliseconds).toBe(30_000)
  }
  const authorization = `Bearer ${key}`
  const counting = { ...messages, path: '/v1/messages/count_tokens' }
  expect((await tenancy.generate(counting, key, 'acme/large')).status).toBe(429)
  expect((await tenancy.api('GET', '/v1/models', undefined, { authorization })).status).toBe(429)
})

test('tokens are reserved by estimate, also for simultaneous requests, and corrected by usage', async () => {
  const { key } = await tenancy.tenant({ with: { limits: { tokens_per_minute: 10_000 } } })
  // Each may use its cap of 1,000 and what the few words of the prompt come to: nine fit, a tenth does not.
  const held = await startHeld(key, 50)
  expect([held.admitted, held.refused.length]).toEqual([9, 41])
  const { milliseconds } = waitOf(held.refused[0] as Reply)
  clock.pass(milliseconds)
  const before = upstream.calls.length
  const late = call(key)
  await until(() => upstream.calls.length > before)
  const replies = await held.finish()
  expect(replies.filter(({ status }) => status === 200)).toHaveLength(9)
  expect((await late).status).toBe(200)
  clock.pass(60_000)
  expect((await call(key)).status).toBe(200)
})

test('the real usage counts: ten times 5 tokens of 10,000', async () => {
  const { key } = await tenancy.tenant({ with: { limits: { tokens_per_minute: 10_000 } } })
  const held = await startHeld(key, 9)
  expect(held.admitted).toBe(9)
  await held.finish()
  expect((await call(key)).status).toBe(200)
  // Counting tokens takes none, so it shows what is left. The clock stood still.
  const counting = await tenancy.generate({ ...messages, path: '/v1/messages/count_tokens' }, key, 'acme/large')
  expect(counting.headers.get('anthropic-ratelimit-tokens-remaining')).toBe('9950')
})

test('no more than the limit run concurrently, and a free slot goes to the next request', async () => {
  const { key } = await tenancy.tenant({ with: { limits: { concurrent_requests: 5 } } })
  const held = await startHeld(key, 50)
  expect([held.admitted, held.refused.length]).toEqual([5, 45])
  expect(waitOf(held.refused[0] as Reply).seconds).toBe(1)
  await held.finish()
  const again = await startHeld(key, 6)
  expect([again.admitted, again.refused.length]).toEqual([5, 1])
  await again.finish()
})

test('a changed limit applies to the next request, and what was used stays used', async () => {
  const { keyId, key } = await tenancy.tenant({ with: { limits: { requests_per_minute: 3 } } })
  expect(await flood(key, 10, 1)).toEqual({ 200: 3, 429: 7 })
  await tenancy.must('PUT', `/api/keys/${keyId}/limits`, { requests_per_minute: 5 })
  expect(await flood(key, 10, 1)).toEqual({ 200: 2, 429: 8 })
  await tenancy.must('PUT', `/api/keys/${keyId}/limits`, {})
  expect(await flood(key, 10, 1)).toEqual({ 200: 10 })
})

test('a request counts even if it cannot be served, but not if a limit refuses it', async () => {
  const { key } = await tenancy.tenant({ with: { limits: { requests_per_minute: 3 } } })
  const bad = [
    () => call(key, { messages: 'none' }),
    () => tenancy.generate(chat, key, 'acme/unknown'),
    () => tenancy.generate(messages, key, 'acme/large', { max_tokens: 0 }),
  ]
  const statuses: number[] = []
  for (const each of [...bad, ...bad]) statuses.push((await each()).status)
  expect(statuses).toEqual([400, 404, 400, 429, 429, 429])
  clock.pass(20_000)
  expect((await call(key)).status).toBe(200)
  expect((await call(key)).status).toBe(429)
})

test('a request takes its slot before its body is read', async () => {
  const { key } = await tenancy.tenant({ with: { limits: { concurrent_requests: 1 } } })
  const slow = await connect(tenancy.gateway.url)
  const head = ['POST /v1/chat/completions HTTP/1.1', 'Host: gateway', 'Content-Type: application/json']
  const body = JSON.stringify({ model: 'acme/large', messages: [{ role: 'user', content: 'hi' }] })
  await slow.send([...head, `Authorization: Bearer ${key}`, `Content-Length: ${body.length}`, '', ''].join('\r\n'))
  await slow.send(body.slice(0, 10))
  await until(async () => (await call(key)).status === 429)
  await slow.send(body.slice(10))
  expect(await slow.response()).toMatchObject({ status: 200 })
  expect((await call(key)).status).toBe(200)
  // One that leaves in the middle gives its place back.
  const gone = await connect(tenancy.gateway.url)
  await gone.send([...head, `Authorization: Bearer ${key}`, `Content-Length: ${body.length}`, '', '{'].join('\r\n'))
  await until(async () => (await call(key)).status === 429)
  gone.leave()
  await until(async () => (await call(key)).status === 200)
  slow.leave()
})

// The headers about the caller's limits, on each surface in its own form.
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

test('the messages surface returns the same, with the reset as a time', async () => {
  // The time in the header has whole seconds.
  clock.pass(1000 - (clock.now() % 1000))
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
