// Answers that are a little unusual, as the official clients take them; and whole ones that stop in the middle.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { failoverConfig, type Gateway, startGateway, stopAll } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { bothSurfaces, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { answerHello, wordsFor } from '../parts/upstream-words.ts'

let clock = createJumpClock()
let first: Upstream
let second: Upstream
let gateway: Gateway

beforeEach(async () => {
  clock = createJumpClock()
  first = startUpstream(() => {})
  second = startUpstream(answerHello)
  gateway = await startGateway({ config: failoverConfig([first.url, second.url]), clock })
})

afterEach(() => stopAll(gateway, first, second))

const send = (surface: TestSurface, how: 'whole' | 'streamed' = 'whole') =>
  ask(gateway, surface, {
    model: surface.model,
    stream: how === 'streamed',
    max_tokens: 5,
    messages: [{ role: 'user', content: 'hi' }],
  })

const oddities: readonly [name: string, status: number, headers: Record<string, string>][] = [
  ['a 201', 201, {}],
  ['the 203 of a proxy', 203, {}],
  ['content-encoding: identity', 200, { 'content-encoding': 'identity' }],
  ['content-encoding: none', 200, { 'content-encoding': 'None' }],
  ['an empty content-encoding', 200, { 'content-encoding': '' }],
]

describe.each([...bothSurfaces])('on the $name surface', (surface) => {
  const json = { 'content-type': 'application/json' }

  test.each(oddities)('%s is an answer', async (_, status, headers) => {
    first.handle((call, reply) => reply.send(status, { ...json, ...headers }, wordsFor(call).whole))
    const response = await send(surface)
    expect([response.status, response.headers.get('x-tollgate-provider')]).toEqual([200, `${surface.name}-0`])
    expect(await response.text()).toContain('hello')
  })

  test('an event may be one line of megabytes, such as a picture', async () => {
    const picture = 'A'.repeat(3_000_000)
    first.handle(async (call, reply) => {
      const { opening, says, ending } = wordsFor(call)
      await reply.startStream()
      await reply.chunk(opening + says(picture) + ending)
      await reply.finish()
    })
    const response = await send(surface, 'streamed')
    const text = await response.text()
    expect(text.includes(picture)).toBe(true)
    expect(text).not.toContain('"error"')
  })

  test('a 204 is none', async () => {
    first.handle((_, reply) => reply.write('HTTP/1.1 204 No Content\r\n\r\n'))
    expect((await send(surface)).headers.get('x-tollgate-provider')).toBe(`${surface.name}-1`)
  })

  const heads: readonly [name: string, head: string][] = [
    ['whose length is known', 'content-length: 900\r\n\r\n'],
    ['in pieces', 'transfer-encoding: chunked\r\n\r\n'],
  ]

  test.each(heads)('a whole answer %s that stops in the middle is given up after 5 minutes', async (name, head) => {
    const begun = Promise.withResolvers<void>()
    first.handle(async (call, reply) => {
      const half = wordsFor(call).whole.slice(0, 20)
      await reply.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${head}`)
      await (name === 'in pieces' ? reply.chunk(half) : reply.write(half))
      begun.resolve()
    })
    const sent = send(surface)
    await begun.promise
    // Each step is looked at; the first begins the silence.
    for (const seconds of [0.1, 299, 2]) {
      await Bun.sleep(150)
      clock.jump(seconds)
    }
    const response = await sent
    expect([response.status, response.headers.get('x-tollgate-provider')]).toEqual([200, `${surface.name}-1`])
  })

  test('blank space is no beginning: a provider that works on may send it for minutes', async () => {
    const begun = Promise.withResolvers<() => void>()
    first.handle(async (call, reply) => {
      await reply.startStream({ 'content-type': 'application/json' })
      await reply.chunk('\n')
      begun.resolve(() => void reply.chunk(wordsFor(call).whole).then(() => reply.finish()))
    })
    const sent = send(surface)
    const finish = await begun.promise
    for (const seconds of [0.1, 200, 200]) {
      await Bun.sleep(150)
      clock.jump(seconds)
    }
    await Bun.sleep(150)
    finish()
    const response = await sent
    expect([response.status, response.headers.get('x-tollgate-provider')]).toEqual([200, `${surface.name}-0`])
  })
})
