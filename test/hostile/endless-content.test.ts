// A provider that never stops talking to a caller who wants one whole answer: what is gathered for it is bounded like any
// whole answer, whichever dialect it comes in.

import { afterAll, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { failoverConfig, startGateway, stopAll } from '../parts/gateway.ts'
import { bodyOf, chat, messages } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'
import { mebibyte } from './turn.ts'

let taken = 0

const upstream = startUpstream(async (call, reply) => {
  const { opening, says } = wordsFor(call)
  const record = Buffer.from(says('x'.repeat(256 * 1024)))
  taken = 0
  await reply.startStream()
  await reply.chunk(opening)
  while (taken < 300 * mebibyte && !call.isClosed()) {
    await reply.chunk(record)
    taken += record.length
  }
  reply.cut()
})
const gateway = await startGateway({ config: failoverConfig([upstream.url]) })
afterAll(() => stopAll(gateway, upstream))

test.each([
  { surface: chat, model: messages.model },
  { surface: messages, model: chat.model },
])('U3: a whole answer of $model for the $surface.name surface ends at 64 MiB', async ({ surface, model }) => {
  const response = await ask(gateway, surface, bodyOf(surface, { model: JSON.stringify(model) }))
  expect(response.status).toBe(404)
  expect(await response.json()).toMatchObject({ error: { code: 'NOT_FOUND' } })
  // The limit, and what lies in the buffers of two sockets.
  expect(taken).toBeLessThan(100 * mebibyte)
})
