// Providers that break off after content was delivered, in every way a connection can: the client gets an error in its
// surface's own form, nothing is made up, no other route is tried, and the record says so.

import { afterAll, describe, expect, test } from 'bun:test'
import { failoverConfig, startGateway, stopAll } from './parts/gateway.ts'
import { connect } from './parts/raw-client.ts'
import { bodyOf, bothSurfaces, requestBytes, type TestSurface } from './parts/surfaces.ts'
import { startUpstream, type UpstreamReply } from './parts/upstream.ts'
import { type Words, wordsFor } from './parts/upstream-words.ts'

const upstream = startUpstream(() => {})
const spare = startUpstream((_, reply) => reply.json(500, {}))
const gateway = await startGateway({ config: failoverConfig([upstream.url, spare.url]) })

afterAll(() => stopAll(gateway, upstream, spare))

/** How a provider ends what it has begun; the message must say so. */
const endings: Record<string, { end(reply: UpstreamReply, words: Words): void | Promise<void>; says: string }> = {
  'closes the connection': { end: (reply) => reply.cut(), says: 'broke off' },
  'resets the connection': { end: (reply) => reply.reset(), says: 'broke off' },
  'ends its body properly, without a last event': { end: (reply) => reply.finish(), says: 'closed the stream' },
  'closes in the middle of a record': {
    async end(reply, words) {
      await reply.chunk(words.says('half').slice(0, -20))
      await reply.finish()
    },
    says: 'closed the stream',
  },
  'closes in the middle of a chunk': {
    async end(reply, words) {
      await reply.write(`ffff\r\n${words.says('half').slice(0, -20)}`)
      reply.cut()
    },
    says: 'broke off',
  },
  'sends an error event': { end: (reply, words) => reply.chunk(words.error), says: 'reported an error' },
  'sends an error event and then goes on': {
    end: (reply, words) => reply.chunk(words.error + words.says('ghost') + words.ending),
    says: 'reported an error',
  },
  'sends a line without end': {
    end: (reply) => reply.chunk(`data: ${'x'.repeat(4_300_000)}`),
    says: 'sent an event without an end',
  },
}

for (const surface of bothSurfaces) {
  describe(`the ${surface.name} surface, when a provider`, () => {
    test.each(Object.keys(endings))('%s', async (how) => {
      const ending = endings[how]
      if (!ending) throw new Error(how)
      const ended = Promise.withResolvers<void>()
      let delivered = ''
      upstream.handle(async (call, reply) => {
        const words = wordsFor(call)
        delivered = (words.opening + words.says('hello')).replaceAll('"model":"up"', `"model":"${surface.model}"`)
        await reply.startStream()
        await reply.chunk(words.opening + words.says('hello'))
        // The client has it before the end comes, so that the provider is committed.
        await ended.promise
        await ending.end(reply, words)
      })
      const connection = await connect(gateway.url)
      await connection.send(requestBytes(surface, { key: gateway.key, body: bodyOf(surface, { stream: 'true' }) }))
      await connection.until('hello')
      ended.resolve()
      const response = await connection.response()
      if (response === 'closed') throw new Error('closed without an end')

      const id = response.headers.get('request-id')
      expect(response.status).toBe(200)
      expect(response.body.slice(0, delivered.length)).toBe(delivered)
      expectErrorRecord(surface, response.body.slice(delivered.length), id, ending.says)
      expect(spare.calls).toHaveLength(0)
      const record = gateway.logged().find(({ request_id }) => request_id === id)
      expect(record).toMatchObject({ status: 200, code: 'STREAM_INTERRUPTED', attempts: 1 })
      // The framing of the answer is whole: the connection can be used again.
      upstream.handle((call, reply) => reply.send(200, { 'content-type': 'application/json' }, wordsFor(call).whole))
      await connection.send(requestBytes(surface, { key: gateway.key }))
      expect(await connection.response()).toMatchObject({ status: 200 })
      connection.leave()
    })
  })
}

/** One record and nothing else, in the surface's own form. */
function expectErrorRecord(surface: TestSurface, text: string, id: string | null, says: string): void {
  const name = surface.name === 'chat' ? '' : 'event: error\n'
  expect(text).toStartWith(`${name}data: {`)
  expect(text).toEndWith('}\n\n')
  expect(text.split('\n\n')).toHaveLength(2)
  const data = JSON.parse(text.slice(`${name}data: `.length)) as { error: { message: string } }
  const { message } = data.error
  // Five bytes, as they are billed; not the one that Messages begins with.
  expect(message).toContain(`${surface.name}-0 ${says} after 2 output tokens. The answer ends here.`)
  expect(message).toContain(String(id))
  const error = { message, type: 'api_error', code: 'STREAM_INTERRUPTED' }
  if (surface.name === 'chat') expect<object>(data).toMatchObject({ error: { ...error, param: null } })
  else expect<object>(data).toMatchObject({ type: 'error', error, request_id: id })
}
