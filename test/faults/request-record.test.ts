// The record of a request whose headers were sent before a provider answered: which route was being tried when its client
// left, and what the translation for the route that answered dropped.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { recordedRequest } from '../parts/manage.ts'
import { connect, type RawConnection } from '../parts/raw-client.ts'
import { bodyOf, messages, requestBytes } from '../parts/surfaces.ts'
import { startUpstream, type Upstream, type UpstreamReply } from '../parts/upstream.ts'
import { chatWords } from '../parts/upstream-words.ts'

let clock = createJumpClock()
let upstream: Upstream
let gateway: Gateway
let connection: RawConnection
let reply: UpstreamReply

/** A request of the messages surface at a chat provider, which loses a setting; headers have gone out early. */
beforeEach(async () => {
  clock = createJumpClock()
  const asked = Promise.withResolvers<UpstreamReply>()
  upstream = startUpstream((_, reply) => asked.resolve(reply))
  gateway = await startGateway({
    config: `
providers: [{ id: acme, dialect: openai-chat, base_url: "${upstream.url}/v1", api_key: k }]
models: [{ id: test/messages, price: free, routes: [{ provider: acme, model: up }] }]
`,
    clock,
  })
  connection = await connect(gateway.url)
  const body = bodyOf(messages, { stream: 'true', top_k: '5' })
  await connection.send(requestBytes(messages, { key: gateway.key, body }))
  reply = await asked.promise
  clock.jump(11)
  await connection.until(': keep-alive\n\n')
})

afterEach(async () => {
  connection.leave()
  await gateway.stop()
  upstream.stop()
})

test('a client that leaves meanwhile leaves the name of who was being asked', async () => {
  clock.jump(9)
  connection.leave()
  expect(await recordedRequest(gateway)).toMatchObject({
    status: 499,
    provider: 'acme',
    upstream_model: 'up',
    attempts: [{ provider: 'acme', outcome: 'client left' }],
  })
})

test('records what the answer lost, although its headers were sent before', async () => {
  await reply.startStream()
  await reply.chunk(chatWords.opening + chatWords.says('hello') + chatWords.ending)
  await reply.finish()
  await connection.response()
  const record = await recordedRequest(gateway)
  expect(record).toMatchObject({ status: 200, provider: 'acme', lane: 'translation' })
  expect(JSON.stringify(record.warnings)).toContain('/top_k')
})
