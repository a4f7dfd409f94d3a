// A provider whose address neither accepts nor refuses connections must not be waited for like one that is generating:
// a unary call would wait ten minutes. A request that was sent is never ended for it.

import { afterEach, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { type BlackHole, holeTest, openBlackHole, startBusyServer } from '../parts/black-hole.ts'
import { type Gateway, startGateway } from '../parts/gateway.ts'
import { createJumpClock, type JumpClock } from '../parts/jump-clock.ts'
import { bothSurfaces, chat } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'

let gateway: Gateway
let upstream: Upstream | undefined
let hole: BlackHole | undefined
afterEach(async () => {
  await gateway.stop()
  upstream?.stop()
  upstream = undefined
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

/** Lets time pass until there is an answer and returns how many seconds it took; infinite after `secondsMax`. */
async function secondsUntil(clock: JumpClock, answer: Promise<unknown>, secondsMax = 60): Promise<number> {
  let isOver = false
  void answer.finally(() => {
    isOver = true
  })
  let seconds = 0
  while (!isOver && seconds < secondsMax) {
    clock.jump(stepSeconds)
    seconds += stepSeconds
    // The gateway looks ten times a second.
    await Bun.sleep(110)
  }
  return isOver ? seconds : Number.POSITIVE_INFINITY
}

const cells = bothSurfaces.flatMap((surface) => [true, false].map((stream) => ({ surface, stream })))

describe.each(cells)('$surface.name surface, streamed: $stream', ({ surface, stream }) => {
  const body = { model: 'test/m', stream, max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }

  holeTest('the next route answers once no connection was made in time', async () => {
    hole = await openBlackHole()
    upstream = startUpstream(answerHello)
    const clock = createJumpClock()
    // A whole answer has six hundred seconds.
    const config = configFor([`http://127.0.0.1:${hole.port}`, upstream.url], 'first_event_ms: 600000')
    gateway = await startGateway({ config, clock })
    const answer = ask(gateway, surface, body)
    expect(await secondsUntil(clock, answer)).toBeWithin(3, 60)
    const response = await answer
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('hello')
    expect(response.headers.get('x-tollgate-provider')).toBe('p1')
    expect(response.headers.get('x-tollgate-attempts')).toBe('2')
  })

  holeTest('a request that was sent is waited for, whether or not the provider accepts other connections', async () => {
    const busy = await startBusyServer()
    hole = busy
    upstream = startUpstream(answerHello)
    const clock = createJumpClock()
    const config = configFor([`http://127.0.0.1:${busy.port}`, upstream.url], 'first_event_ms: 600000')
    gateway = await startGateway({ config, clock })
    const answer = ask(gateway, surface, body)
    const text = answer.then((response) => response.text())
    await busy.received()
    // Four times as long as a connection may take.
    expect(await secondsUntil(clock, text, 12)).toBe(Number.POSITIVE_INFINITY)
    busy.reply({
      ...{ id: 'c1', object: 'chat.completion', created: 1, model: 'up' },
      choices: [{ index: 0, message: { role: 'assistant', content: 'generated once' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
    })
    expect((await answer).status).toBe(200)
    expect(await text).toContain('generated once')
    expect(upstream.calls).toHaveLength(0)
  })
})

holeTest('connect_ms of the route limits the wait for a connection', async () => {
  hole = await openBlackHole()
  upstream = startUpstream(answerHello)
  const clock = createJumpClock()
  const config = configFor([`http://127.0.0.1:${hole.port}`, upstream.url], 'connect_ms: 8000')
  gateway = await startGateway({ config, clock })
  const answer = ask(gateway, chat, { model: 'test/m', messages: [{ role: 'user', content: 'hi' }] })
  expect(await secondsUntil(clock, answer)).toBeWithin(8, 60)
})

test('a provider that accepts the connection may take its time, and no further connection is opened to it', async () => {
  upstream = startUpstream(async (call, reply) => {
    while (clock.monotonicMs() < 25_000) await Bun.sleep(5)
    await answerHello(call, reply)
  })
  const clock = createJumpClock()
  gateway = await startGateway({ config: configFor([upstream.url, upstream.url]), clock })
  const answer = ask(gateway, chat, { model: 'test/m', messages: [{ role: 'user', content: 'hi' }] })
  expect(await secondsUntil(clock, answer)).toBeGreaterThanOrEqual(25)
  const { headers } = await answer
  expect(headers.get('x-tollgate-provider')).toBe('p0')
  expect(headers.get('x-tollgate-attempts')).toBe('1')
  expect(upstream.acceptedConnections()).toBe(1)
})
