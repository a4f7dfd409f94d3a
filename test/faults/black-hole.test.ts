// A provider behind a dead line: connections to it are neither made nor refused. It must not be waited for like one that
// thinks, least of all by those who asked for a whole answer and would wait ten minutes.

import { afterEach, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { type BlackHole, openBlackHole } from '../parts/black-hole.ts'
import { type Gateway, startGateway } from '../parts/gateway.ts'
import { createJumpClock, type JumpClock } from '../parts/jump-clock.ts'
import { chat, messages } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { behave } from './misbehave.ts'

let gateway: Gateway
let upstream: Upstream
let hole: BlackHole | undefined
afterEach(async () => {
  await gateway.stop()
  upstream.stop()
  await hole?.stop()
  hole = undefined
})

function configFor(urls: readonly string[], timeouts = ''): string {
  const providers = urls.map((url, at) => `{ id: p${at}, dialect: openai-chat, base_url: "${url}/v1", api_key: k }`)
  const routes = urls.map((_, at) => `{ provider: p${at}, model: up, priority: ${at}, timeouts: { ${timeouts} } }`)
  return `providers: [${providers.join(', ')}]\nmodels: [{ id: test/m, price: free, routes: [${routes.join(', ')}] }]\n`
}

/** Less than what would pass for a pause of the whole process. */
const stepSeconds = 0.9

/** Lets time pass until there is an answer, and tells how many seconds it took. */
async function secondsUntil(clock: JumpClock, answer: Promise<unknown>): Promise<number> {
  let isOver = false
  const over = answer.finally(() => {
    isOver = true
  })
  let seconds = 0
  while (!isOver && seconds < 60) {
    clock.jump(stepSeconds)
    seconds += stepSeconds
    // The gateway looks ten times a second.
    await Bun.sleep(110)
  }
  await over
  return seconds
}

const cells = [
  { surface: chat, stream: true },
  { surface: messages, stream: false },
]

describe.each(cells)('$surface.name surface, streamed: $stream', ({ surface, stream }) => {
  const body = { model: 'test/m', stream, max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }

  test('another route answers after a connection could have been made twice', async () => {
    hole = await openBlackHole()
    upstream = startUpstream((call, reply) => behave({ call, reply, streams: call.json().stream === true }))
    const clock = createJumpClock()
    gateway = await startGateway({ config: configFor([`http://127.0.0.1:${hole.port}`, upstream.url]), clock })
    const answer = ask(gateway, surface, body)
    // Fifteen is the least that a first event gets; a whole answer gets six hundred.
    expect(await secondsUntil(clock, answer)).toBeWithin(6, 15)
    const response = await answer
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('hello')
    expect(response.headers.get('x-tollgate-provider')).toBe('p1')
    expect(response.headers.get('x-tollgate-attempts')).toBe('2')
  })
})

test('the time for a connection is the one that the route was given', async () => {
  hole = await openBlackHole()
  upstream = startUpstream((call, reply) => behave({ call, reply, streams: false }))
  const clock = createJumpClock()
  const config = configFor([`http://127.0.0.1:${hole.port}`, upstream.url], 'connect_ms: 8000')
  gateway = await startGateway({ config, clock })
  const answer = ask(gateway, chat, { model: 'test/m', messages: [{ role: 'user', content: 'hi' }] })
  expect(await secondsUntil(clock, answer)).toBeWithin(16, 60)
})

test('who takes connections may think', async () => {
  upstream = startUpstream(async (call, reply) => {
    while (clock.monotonicMs() < 25_000) await Bun.sleep(5)
    await behave({ call, reply, streams: false })
  })
  const clock = createJumpClock()
  gateway = await startGateway({ config: configFor([upstream.url, upstream.url]), clock })
  const answer = ask(gateway, chat, { model: 'test/m', messages: [{ role: 'user', content: 'hi' }] })
  expect(await secondsUntil(clock, answer)).toBeGreaterThanOrEqual(25)
  const { headers } = await answer
  expect(headers.get('x-tollgate-provider')).toBe('p0')
  expect(headers.get('x-tollgate-attempts')).toBe('1')
})
