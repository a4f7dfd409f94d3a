// Abnormal endings of translated replies: the client leaves, the provider breaks off, pauses, or sends an unknown stop
// reason. The client gets no more than is true, and the record has the rest for the operator.

import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { requestRecords, startGateway, stopAll, upstreamConfig } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { connect, type RawConnection } from '../parts/raw-client.ts'
import { bodyOf, bothSurfaces, chat, messages, requestBytes, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type UpstreamCall } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'

/** A day passes between two tests: what was learned of the providers' health is over. */
const clock = createJumpClock()

const upstream = startUpstream(() => {})
const twice = (id: string, provider: string) =>
  `  - { id: test/${id}, price: free, routes: [{ provider: ${provider}, model: first, priority: 1 }, { provider: ${provider}, model: second, priority: 2 }] }\n`
const extra = twice('chat-twice', 'chatty') + twice('messages-twice', 'messy')
const gateway = await startGateway({ config: upstreamConfig(upstream.url, extra), clock })
beforeEach(() => {
  clock.jump(86_400)
  upstream.calls.length = 0
})
afterAll(() => stopAll(gateway, upstream))

/** Each surface with the model that is served in the other dialect. */
const crossing = [
  { surface: chat, model: 'test/messages-twice' },
  { surface: messages, model: 'test/chat-twice' },
]

async function open(surface: TestSurface, model: string): Promise<RawConnection> {
  const connection = await connect(gateway.url)
  const body = bodyOf(surface, { model: JSON.stringify(model), stream: 'true' })
  await connection.send(requestBytes(surface, { key: gateway.key, body }))
  return connection
}

const recordCount = async () => (await requestRecords(gateway, 0)).length
/** The record of the next request, once it is there. */
const recordAfter = async (before: number) => (await requestRecords(gateway, before + 1))[before] ?? {}

describe.each(crossing)('on $surface.name', ({ surface, model }) => {
  test('pitfall 166 and 168: a client that leaves ends the call, and pays for what it got', async () => {
    const before = await recordCount()
    const seen = Promise.withResolvers<UpstreamCall>()
    upstream.handle(async (call, reply) => {
      await reply.startStream()
      await reply.chunk(wordsFor(call).opening + wordsFor(call).says('hello'))
      seen.resolve(call)
    })
    const connection = await open(surface, model)
    await connection.until('hello')
    connection.leave()
    await (await seen.promise).closed
    const record = await recordAfter(before)
    expect(record).toMatchObject({ status: 499, attempts: 1 })
    // The usage reported up front, or an estimate; and of the output no less than came.
    expect(record.input_tokens).toBeGreaterThan(0)
    expect(record.output_tokens).toBeGreaterThan(0)
    expect(upstream.calls).toHaveLength(1)
  })

  test('pitfall 167: after the client has left, a refusal starts no other try', async () => {
    const before = await recordCount()
    const asked = Promise.withResolvers<void>()
    const left = Promise.withResolvers<void>()
    upstream.handle(async (_, reply) => {
      asked.resolve()
      await left.promise
      await reply.json(429, { error: { message: 'slow down' } })
    })
    const connection = await open(surface, model)
    await asked.promise
    connection.leave()
    expect(await recordAfter(before)).toMatchObject({ status: 499 })
    left.resolve()
    // Whatever the refusal could start has been started once a later request is through.
    await (await ask(gateway, surface, bodyOf(surface, { model: '"test/chat"' }))).text()
    expect(upstream.calls.map((call) => call.json().model)).toEqual(['first', 'upstream-chat-1'])
  })

  test('pitfall 138: after content a failure is the end: no other route, no second start', async () => {
    const seen = Promise.withResolvers<void>()
    upstream.handle(async (call, reply) => {
      await reply.startStream()
      await reply.chunk(wordsFor(call).opening + wordsFor(call).says('hello'))
      await seen.promise
      reply.cut()
    })
    const connection = await open(surface, model)
    await connection.until('hello')
    seen.resolve()
    const response = await connection.response()
    if (response === 'closed') throw new Error('closed without an end')
    expect(response.body.match(/"role":"assistant"/g)).toHaveLength(1)
    expect(response.body).toContain('STREAM_INTERRUPTED')
    expect(upstream.calls).toHaveLength(1)
  })

  test('pitfall 138: before content another route takes over, and the client sees one reply', async () => {
    upstream.handle(async (call, reply) => {
      await reply.startStream()
      await reply.chunk(wordsFor(call).opening)
      if (call.json().model === 'first') return reply.cut()
      await reply.chunk(wordsFor(call).says('hello') + wordsFor(call).ending)
      await reply.finish()
    })
    const response = await (await open(surface, model)).response()
    if (response === 'closed') throw new Error('closed without an end')
    expect(response.body.match(/"role":"assistant"/g)).toHaveLength(1)
    expect(response.body.match(/hello/g)).toHaveLength(1)
    expect(upstream.calls.map((call) => call.json().model)).toEqual(['first', 'second'])
  })
})

/** A stream of a Messages provider with extra records. */
function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}

/** The whole reply of a chat client and what the record notes about it. */
async function endingWith(
  stopReason: string,
  extra = '',
): Promise<{ choice: Record<string, unknown>; notes: unknown }> {
  upstream.handle(async (call, reply) => {
    await reply.startStream()
    await reply.chunk(wordsFor(call).opening + wordsFor(call).says('hello') + extra)
    await reply.chunk(
      event('content_block_stop', { index: 0 }) +
        event('message_delta', { delta: { stop_reason: stopReason }, usage: { output_tokens: 2 } }) +
        event('message_stop', {}),
    )
    await reply.finish()
  })
  const before = await recordCount()
  const response = await ask(gateway, chat, bodyOf(chat, { model: '"test/messages"' }))
  const { choices } = (await response.json()) as { choices: [Record<string, unknown>] }
  return { choice: choices[0], notes: (await recordAfter(before)).notes }
}

describe('a Messages provider behind the chat surface', () => {
  test('vector 78: a pause that cannot have been requested ends with its own word and a note', async () => {
    const { choice, notes } = await endingWith('pause_turn')
    expect(choice).toMatchObject({ finish_reason: 'stop', native_finish_reason: 'pause_turn' })
    expect(notes).toEqual(['paused with "pause_turn", not continued'])
  })

  test('vector 78: tools that could make it pause are refused on the chat surface', async () => {
    for (const changed of [
      { web_search_options: '{}' },
      { tools: '[{"type":"web_search_20250305","name":"web_search"}]' },
    ]) {
      const response = await ask(gateway, chat, bodyOf(chat, { model: '"test/messages"', ...changed }))
      expect(response.status).toBe(400)
    }
    expect(upstream.calls).toHaveLength(0)
  })

  test('an unknown stop reason is an end, with a note', async () => {
    const { choice, notes } = await endingWith('out_of_ideas')
    expect(choice.finish_reason).toBe('stop')
    expect(notes).toEqual(['ended with "out_of_ideas", taken for an ordinary end'])
  })

  test('pitfall 149: one bad record is left out and counted, the rest arrives', async () => {
    const { choice, notes } = await endingWith('end_turn', 'event: content_block_delta\ndata: {"type":\n\n')
    expect(choice).toMatchObject({ finish_reason: 'stop', message: { content: 'hello' } })
    expect(notes).toEqual(['1 unreadable records left out'])
  })

  test('an ordinary end is not worth a note', async () => {
    expect((await endingWith('end_turn')).notes).toBeUndefined()
  })
})

test.each([...bothSurfaces])('a chat provider that ends without a word is noted, on $name', async (surface) => {
  upstream.handle(async (call, reply) => {
    await reply.startStream()
    await reply.chunk(`${wordsFor(call).opening}${wordsFor(call).says('hello')}data: [DONE]\n\n`)
    await reply.finish()
  })
  const before = await recordCount()
  const response = await ask(gateway, surface, bodyOf(surface, { model: '"test/chat"', stream: 'true' }))
  expect(await response.text()).toContain('hello')
  const { notes } = await recordAfter(before)
  // On its own surface the provider's bytes pass unread.
  expect(notes).toEqual(surface === chat ? undefined : ['ended with "", taken for an ordinary end'])
})
