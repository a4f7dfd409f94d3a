// Providers that send comments without end: what a stream costs must not keep the callers of others waiting.

import { afterAll, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { failoverConfig, startGateway, stopAll } from '../parts/gateway.ts'
import { chat, messages } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { answerHello, wantsStream, wordsFor } from '../parts/upstream-words.ts'

const streamsMax = 3
const bystanders = 34
let comment = ''
let isFlooding = false

const upstream = startUpstream(async (call, reply) => {
  if (!wantsStream(call)) return await answerHello(call, reply)
  const { opening, says, ending } = wordsFor(call)
  const flood = Buffer.from(comment.repeat(200_000))
  await reply.startStream()
  await reply.chunk(opening + says('hello'))
  while (isFlooding && !call.isClosed()) await reply.chunk(flood)
  await reply.chunk(ending)
  await reply.finish()
})
const gateway = await startGateway({ config: failoverConfig([upstream.url]) })
afterAll(() => stopAll(gateway, upstream))

const question = (model: string, stream: boolean) => ({
  model,
  stream,
  max_tokens: 64,
  messages: [{ role: 'user', content: 'hi' }],
})

test.each([
  ['LF', ':\n\n', chat.model],
  ['CRLF', ':\r\n\r\n', chat.model],
  ['LF, translated', ':\n\n', messages.model],
])('U2: endless comments (%s) end no other request', async (_, text, model) => {
  comment = text
  isFlooding = true
  const streams = await Promise.all(Array.from({ length: streamsMax }, () => ask(gateway, chat, question(model, true))))
  const read = streams.map((response) => response.text())
  const statuses: number[] = []
  for (let n = 0; n < bystanders; n++) {
    const response = await ask(gateway, n % 2 ? chat : messages, question(chat.model, false))
    statuses.push(response.status)
    await response.text()
  }
  isFlooding = false
  expect(statuses).toEqual(Array(bystanders).fill(200))
  for (const answer of await Promise.all(read)) expect(answer).toContain('hello')
})
