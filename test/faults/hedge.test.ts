// A model with `hedge`: if its first route is slower than usual a second one is called as well. The quicker answer is
// passed on, the other call is ended at once, and the caller pays for one answer.

import { afterEach, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { type Gateway, requestRecords, startGateway, stopAll } from '../parts/gateway.ts'
import { recordedRequest } from '../parts/manage.ts'
import { chat } from '../parts/surfaces.ts'
import { startUpstream, type Upstream, type UpstreamCall } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'

let gateway: Gateway
let first: Upstream
let second: Upstream
afterEach(() => stopAll(gateway, first, second))

const warmUps = 39

async function start(hedge: string): Promise<void> {
  first = startUpstream(answerHello)
  second = startUpstream(answerHello)
  gateway = await startGateway({
    config: `
providers:
  - { id: chat-0, dialect: openai-chat, base_url: "${first.url}/v1", api_key: k }
  - { id: chat-1, dialect: anthropic-messages, base_url: "${second.url}", api_key: k }
models:
  - id: test/chat
    price: { input: "1.00", output: "2.00" }
    ${hedge}
    routes: [{ provider: chat-0, model: up, priority: 0 }, { provider: chat-1, model: up, priority: 1 }]
`,
  })
  // Twenty answers tell what is usual; of the twenty requests that make up a hedge the last one is still to come.
  for (let n = 0; n < warmUps; n++) await (await send()).text()
  expect(second.calls).toHaveLength(0)
}

function send(more: object = {}): Promise<Response> {
  return ask(gateway, chat, { model: 'test/chat', stream: true, messages: [{ role: 'user', content: 'hi' }], ...more })
}

test('a slow first route is overtaken, ended, and costs the caller nothing', async () => {
  await start('hedge: true')
  first.handle(() => {})
  const response = await send()
  expect(await response.text()).toContain('[DONE]')
  expect(response.headers.get('x-tollgate-provider')).toBe('chat-1')
  await first.calls.at(-1)?.closed
  expect(second.calls).toHaveLength(1)
  const record = (await requestRecords(gateway, warmUps + 1)).at(-1)
  expect(await recordedRequest(gateway, warmUps + 1)).toMatchObject({
    lane: 'translation',
    attempts: [
      { provider: 'chat-0', outcome: 'superseded' },
      { provider: 'chat-1', outcome: 'ok' },
    ],
  })
  // 3 in at $1, 2 out at $2 per million.
  expect(record).toMatchObject({ status: 200, provider: 'chat-1', cost: '0.000007' })
})

test('ends the second call if the first route answers after all', async () => {
  await start('hedge: true')
  const slow = Promise.withResolvers<() => void>()
  first.handle((call, reply) => slow.resolve(() => void answerHello(call, reply)))
  const asked = Promise.withResolvers<UpstreamCall>()
  second.handle((call) => asked.resolve(call))
  const sent = send()
  const other = await asked.promise
  ;(await slow.promise)()
  const response = await sent
  expect(await response.text()).toContain('[DONE]')
  expect(response.headers.get('x-tollgate-provider')).toBe('chat-0')
  await other.closed
  // As it answered, and not as the one was asked that was begun last.
  expect(await recordedRequest(gateway, warmUps + 1)).toMatchObject({
    lane: 'bytes',
    attempts: [
      { provider: 'chat-1', outcome: 'superseded' },
      { provider: 'chat-0', outcome: 'ok' },
    ],
  })
  expect((await requestRecords(gateway, warmUps + 1)).at(-1)).toMatchObject({ status: 200, provider: 'chat-0' })
})

const notHedged: readonly [why: string, config: string, body: object][] = [
  ['did not ask for it', '', {}],
  ['gets a request with tools', 'hedge: true', { tools: [{ type: 'function', function: { name: 'f' } }] }],
  ['gets a request for a whole answer', 'hedge: true', { stream: false }],
]

test.each(notHedged)('a model that %s is not hedged', async (_, config, body) => {
  await start(config)
  const reached = Promise.withResolvers<() => void>()
  first.handle((call, reply) => reached.resolve(() => void answerHello(call, reply)))
  const sent = send(body)
  const goOn = await reached.promise
  // Long after the few milliseconds that are usual here.
  await Bun.sleep(100)
  expect(second.calls).toHaveLength(0)
  goOn()
  expect((await sent).status).toBe(200)
})
