// A model whose only route is slow: a local server with a long prompt, or a host that buffers tool arguments. No other
// route could answer sooner, so the gateway waits, whatever latency it measured before.

import { afterEach, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { type Gateway, startGateway, stopAll, upstreamConfig } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { bothSurfaces } from '../parts/surfaces.ts'
import { startUpstream, type Upstream, type UpstreamCall, type UpstreamReply } from '../parts/upstream.ts'
import { answerHello, wordsFor } from '../parts/upstream-words.ts'

let gateway: Gateway
let upstream: Upstream
afterEach(() => stopAll(gateway, upstream))

/** From this many answers on, a route's first events are expected within 15 s where they usually take less than 5. */
const learned = 20
const pauseSeconds = 90

const cells = bothSurfaces.flatMap((surface) =>
  ['test/chat', 'test/messages'].flatMap((model) => [true, false].map((stream) => ({ surface, model, stream }))),
)

test('a first event after 90 s and a pause of 90 s in mid-answer', async () => {
  const clock = createJumpClock()
  /** How many calls have come to each of their two pauses. */
  const pausing = [0, 0]
  const pass = async (which: 0 | 1): Promise<void> => {
    const untilMs = clock.monotonicMs() + pauseSeconds * 1000
    pausing[which] = (pausing[which] ?? 0) + 1
    while (clock.monotonicMs() < untilMs) await Bun.sleep(5)
  }
  const answerSlowly = async (call: UpstreamCall, reply: UpstreamReply): Promise<void> => {
    const { opening, says, ending, whole } = wordsFor(call)
    await pass(0)
    if (call.json().stream !== true) {
      const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${whole.length}\r\n\r\n`
      await reply.write(head + whole.slice(0, 30))
      await pass(1)
      return reply.write(whole.slice(30))
    }
    await reply.startStream()
    await reply.chunk(opening + says('hel'))
    await pass(1)
    await reply.chunk(says('lo') + ending)
    await reply.finish()
  }
  upstream = startUpstream(answerHello)
  gateway = await startGateway({ config: upstreamConfig(upstream.url), clock })
  const send = ({ surface, model, stream }: (typeof cells)[number]) =>
    ask(gateway, surface, { model, stream, max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] })
  for (const cell of cells) {
    const quick = await Promise.all(Array.from({ length: learned }, async () => (await send(cell)).text()))
    expect(quick).toHaveLength(learned)
  }
  const before = upstream.calls.length
  upstream.handle(answerSlowly)
  const answers = cells.map(async (cell) => {
    const response = await send(cell)
    return { cell, status: response.status, text: await response.text() }
  })
  for (const which of [0, 1]) {
    while ((pausing[which] ?? 0) < cells.length) await Bun.sleep(5)
    // In steps, so that the gateway, which looks ten times a second, has every reason to lose patience.
    for (let seconds = 0; seconds < pauseSeconds; seconds += 10) {
      clock.jump(10)
      await Bun.sleep(120)
    }
  }
  for (const { cell, status, text } of await Promise.all(answers)) {
    expect(status).toBe(200)
    expect(text).not.toContain('"error"')
    const words = [...text.matchAll(/"(?:content|text)":"([^"]*)"/g)].map(([, word]) => word)
    expect(words.join('')).toBe('hello')
    if (cell.stream) expect(text).toContain(cell.surface.name === 'chat' ? '[DONE]' : 'message_stop')
  }
  expect(upstream.calls.length - before).toBe(cells.length)
})
