// A connection to a provider that has carried an answer to its end carries the next one too: the end of a body hardly
// ever comes with the last event, and a connection that is closed in between costs the next call a handshake.

import { afterEach, describe, expect, test } from 'bun:test'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import { ask } from '../parts/ask.ts'
import { type Gateway, startGateway, stopAll } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { bothSurfaces, messages } from '../parts/surfaces.ts'
import { startUpstream, type Upstream, type UpstreamHandler } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'

let gateway: Gateway
let upstream: Upstream
afterEach(() => stopAll(gateway, upstream))

async function start(handler: UpstreamHandler, clock: Clock = systemClock): Promise<void> {
  upstream = startUpstream(handler)
  gateway = await startGateway({
    clock,
    config: `
providers:
  - { id: chatty, dialect: openai-chat, base_url: "${upstream.url}/v1", api_key: k }
  - { id: messy, dialect: anthropic-messages, base_url: "${upstream.url}", api_key: k }
models:
  - { id: test/chat, price: free, routes: [{ provider: chatty, model: gpt-5 }] }
  - { id: test/messages, price: free, routes: [{ provider: messy, model: up }] }
`,
  })
}

const body = { max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }
const lanes = bothSurfaces.flatMap((surface) =>
  ['test/chat', 'test/messages'].flatMap((model) => [true, false].map((stream) => ({ surface, model, stream }))),
)

describe.each(lanes)('$surface.name surface, $model, streamed: $stream', ({ surface, model, stream }) => {
  test('an end that comes a little later is waited for, but not by the client', async () => {
    const closedBefore: boolean[] = []
    let clientHasAll = Promise.withResolvers<void>()
    await start(async (call, reply) => {
      const { opening, says, ending, whole } = wordsFor(call)
      if (call.json().stream !== true) return reply.send(200, { 'content-type': 'application/json' }, whole)
      await reply.startStream()
      await reply.chunk(opening + says('hello') + ending)
      await clientHasAll.promise
      closedBefore.push(call.isClosed())
      await reply.finish()
    })
    const isReused = () => new Set(upstream.calls.map(({ closed }) => closed)).size < upstream.calls.length
    for (let n = 1; n <= 30 && !isReused(); n++) {
      const response = await ask(gateway, surface, { model, stream, ...body })
      expect(await response.text()).toContain('hello')
      clientHasAll.resolve()
      // Until the gateway has seen the end of it, which is not visible from outside.
      await Bun.sleep(n * 30)
      clientHasAll = Promise.withResolvers()
    }
    expect(closedBefore).not.toContain(true)
    expect(isReused()).toBe(true)
  })
})

test('a provider that goes on behind the end of its answer is cut off', async () => {
  await start(async (call, reply) => {
    const { opening, says, ending } = wordsFor(call)
    await reply.startStream()
    await reply.chunk(opening + says('hello') + ending)
    while (!call.isClosed()) await reply.chunk(`: ${'x'.repeat(10_000)}\n\n`)
  })
  const response = await ask(gateway, messages, { model: 'test/messages', stream: true, ...body })
  expect(await response.text()).toContain('message_stop')
  await upstream.calls[0]?.closed
})

test.each([true, false])('one whose answer we ended at a stop sequence is at once, streamed: %p', async (stream) => {
  let saidAfter = 0
  // The clock stands still, so that only the cut at the stop sequence or the 64 KiB that are read out end the call.
  await start(async (call, reply) => {
    const { opening, says } = wordsFor(call)
    await reply.startStream()
    await reply.chunk(opening + says('hello ENOUGH'))
    for (; !call.isClosed(); saidAfter++) {
      await Bun.sleep(20)
      await reply.chunk(says('more'))
    }
  }, createJumpClock())
  const response = await ask(gateway, messages, { model: 'test/chat', stream, ...body, stop_sequences: ['ENOUGH'] })
  const text = await response.text()
  expect(text).toContain('"stop_sequence":"ENOUGH"')
  await upstream.calls[0]?.closed
  // 64 KiB would be more than 200.
  expect(saidAfter).toBeLessThan(200)
})
