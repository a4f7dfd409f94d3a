// The WebSocket of /v1/responses: turns are charged as requests are, the connection remembers its last response, and hostile
// clients hurt only themselves. The cases of Open Responses are in test/conformance/open-responses.test.ts.

import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { openStage } from './conformance/cells.ts'
import { listOf, membersOf } from './conformance/checker/violation.ts'
import { type Gateway, startGateway, upstreamConfig } from './parts/gateway.ts'
import { manage } from './parts/manage.ts'
import { connect, type RawConnection } from './parts/raw-client.ts'
import { startUpstream, type UpstreamReply } from './parts/upstream.ts'
import { type Words, wordsFor } from './parts/upstream-words.ts'
import { closeCodeIn, frame, handshake, type Message, opcodes, SocketClient } from './parts/web-socket.ts'

const bodyMax = 100_000
const stage = await openStage(() => {}, `server: { body_bytes_max: ${bodyMax} }\n`)
const { gateway, upstream } = stage
afterAll(() => stage.stop())

const model = 'test/plain-1'
const user = (content: string) => ({ type: 'message', role: 'user', content })

beforeEach(() =>
  upstream.handle(async (call, reply) => {
    const words = wordsFor(call)
    await reply.startStream()
    await reply.chunk(words.opening + words.says('hello') + words.ending)
    await reply.finish()
  }, 'stay unasked'),
)

const responseOf = (messages: readonly Message[]) => membersOf(messages.at(-1)?.response)
const idOf = (messages: readonly Message[]) => String(responseOf(messages).id)
function errorOf(messages: readonly Message[]) {
  const { type, status, error } = messages.at(-1) ?? {}
  const { code, param, message } = membersOf(error)
  return { type, status, code, param, message }
}

/** Requests that ended since this was called. */
function startRecords(of: Gateway = gateway) {
  const all = () => of.logged().filter(({ message }) => message === 'request')
  const before = all().length
  return async (count: number): Promise<Record<string, unknown>[]> => {
    for (;;) {
      const records = all().slice(before)
      if (records.length >= count) return records
      await Bun.sleep(1)
    }
  }
}

/** An upstream that begins a stream and leaves the rest to the test. */
function hesitate() {
  const begun = Promise.withResolvers<{ reply: UpstreamReply; words: Words; closed: Promise<void> }>()
  upstream.handle(async (call, reply) => {
    const words = wordsFor(call)
    await reply.startStream()
    await reply.chunk(words.opening + words.says('hello'))
    begun.resolve({ reply, words, closed: call.closed })
  })
  return begun.promise
}

async function until(client: SocketClient, type: string): Promise<void> {
  for (let next = await client.next(); next?.type !== type; next = await client.next())
    if (!next) throw new Error(`closed before ${type}`)
}

// ── Turns ──

test('a turn is charged like a request, and the next one continues it with the new input alone', async () => {
  const records = startRecords()
  const client = await SocketClient.open(gateway)
  const first = await client.turn({ model, input: 'My name is Alice.', store: false, stream: true })
  expect(responseOf(first)).toMatchObject({ status: 'completed', store: false, previous_response_id: null })
  const second = await client.turn({
    ...{ model, store: false, previous_response_id: idOf(first) },
    input: [user('What is my name?')],
  })
  expect(responseOf(second)).toMatchObject({ status: 'completed', previous_response_id: idOf(first) })
  expect(listOf(upstream.calls.at(-1)?.json().messages)).toMatchObject([
    { role: 'user', content: 'My name is Alice.' },
    { role: 'assistant', content: 'hello' },
    { role: 'user', content: 'What is my name?' },
  ])
  const charged = await records(2)
  expect(charged.map(({ status, stream }) => [status, stream])).toEqual([
    [200, true],
    [200, true],
  ])
  expect(charged.map(({ cost }) => Number(cost) > 0)).toEqual([true, true])
  await client.close()
})

test('a turn without generation calls no provider and costs nothing; later turns continue it', async () => {
  const records = startRecords()
  const client = await SocketClient.open(gateway)
  const calls = upstream.calls.length
  const warmed = await client.turn({ model, input: [user('Be brief.')], generate: false, store: false, stream: true })
  expect(warmed.map(({ type }) => type)).toEqual(['response.created', 'response.in_progress', 'response.completed'])
  expect(responseOf(warmed)).toMatchObject({
    status: 'completed',
    output: [],
    usage: { total_tokens: 0 },
    store: false,
  })
  expect(upstream.calls).toHaveLength(calls)
  const answered = await client.turn({ model, input: [], previous_response_id: idOf(warmed), store: false })
  expect(responseOf(answered)).toMatchObject({ status: 'completed' })
  expect(listOf(upstream.calls.at(-1)?.json().messages)).toMatchObject([{ role: 'user', content: 'Be brief.' }])
  const [free, paid] = await records(2)
  expect([free?.cost, Number(paid?.cost) > 0]).toEqual([undefined, true])
  const unknown = await client.turn({ model: 'test/none', input: 'Hi.', generate: false })
  expect(errorOf(unknown)).toMatchObject({ status: 404, code: 'NOT_FOUND', param: 'model' })
  await client.close()
})

test('two connections remember apart', async () => {
  const [one, other] = await Promise.all([SocketClient.open(gateway), SocketClient.open(gateway)])
  const first = await one.turn({ model, input: 'Hi.', store: false })
  const stolen = await other.turn({ model, input: 'Go on.', previous_response_id: idOf(first), store: false })
  expect(errorOf(stolen)).toMatchObject({ status: 400, code: 'previous_response_not_found' })
  const own = await one.turn({ model, input: 'Go on.', previous_response_id: idOf(first), store: false })
  expect(responseOf(own).status).toBe('completed')
  await Promise.all([one.close(), other.close()])
})

test('turns that are sent together are answered one after the other', async () => {
  const client = await SocketClient.open(gateway)
  let running = 0
  upstream.handle(async (call, reply) => {
    expect(++running).toBe(1)
    const words = wordsFor(call)
    await reply.startStream()
    await reply.chunk(words.opening + words.says('hello'))
    running--
    await reply.chunk(words.ending)
    await reply.finish()
  })
  for (let at = 0; at < 5; at++) client.send({ type: 'response.create', model, input: `Turn ${at}.` })
  for (let at = 0; at < 5; at++) expect(responseOf(await client.answer()).status).toBe('completed')
  const asked = upstream.calls.slice(-5).map((call) => membersOf(listOf(call.json().messages)[0]).content)
  expect(asked).toEqual(['Turn 0.', 'Turn 1.', 'Turn 2.', 'Turn 3.', 'Turn 4.'])
  await client.close()
})

test('a failure of the provider is an error message, and the connection stays', async () => {
  const client = await SocketClient.open(gateway)
  upstream.handle((_, reply) => reply.json(400, { error: { message: 'no such thing' } }))
  expect(errorOf(await client.turn({ model, input: 'Hi.' }))).toMatchObject({ type: 'error', status: 400 })
  const streams = hesitate()
  client.send({ type: 'response.create', model, input: 'Hi.' })
  const { reply } = await streams
  await until(client, 'response.output_text.delta')
  reply.cut()
  const broken = await client.answer()
  expect(broken.at(-1)).toMatchObject({ type: 'response.failed', response: { status: 'failed' } })
  await client.close()
})

test("OpenAI's client works over its WebSocket", async () => {
  const openai = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1` })
  const socket = new ResponsesWS(openai)
  const completed = Promise.withResolvers<Record<string, unknown>>()
  socket.on('response.completed', ({ response }) => completed.resolve(response as never))
  socket.on('error', (error) => completed.reject(error))
  socket.send({ type: 'response.create', model, input: 'Hi.', store: false })
  expect(await completed.promise).toMatchObject({ status: 'completed', model })
  socket.close()
})

test('an idempotency key of the connection counts for each of its turns', async () => {
  const headers = { 'idempotency-key': 'socket-1' }
  const first = await SocketClient.open(gateway, headers)
  expect(responseOf(await first.turn({ model, input: 'One.' })).status).toBe('completed')
  expect(responseOf(await first.turn({ model, input: 'Two.' })).status).toBe('completed')
  await first.close()
  const calls = upstream.calls.length
  const again = await SocketClient.open(gateway, headers)
  expect(errorOf(await again.turn({ model, input: 'One.' }))).toMatchObject({ type: 'error' })
  expect(errorOf(await again.turn({ model, input: 'Changed.' }))).toMatchObject({ type: 'error', status: 400 })
  expect(upstream.calls).toHaveLength(calls)
  await again.close()
})

// ── Who may ──

test('a handshake is refused without a valid key, and elsewhere', async () => {
  const ask = async (bytes: string) => {
    const connection = await connect(gateway.url)
    await connection.send(bytes)
    const response = await connection.response()
    connection.leave()
    return response === 'closed' ? response : response.status
  }
  expect(await ask(handshake('sk-tg-wrong'))).toBe(401)
  for (const path of ['/v1/chat/completions', '/v1/messages', '/v1/responses/compact'])
    expect([path, await ask(handshake(gateway.key, {}, path))]).toEqual([path, 426])
  expect(await ask(handshake(gateway.key, { 'sec-websocket-version': '8' }))).toBe(426)
  expect(await ask(handshake(gateway.key, { 'sec-websocket-key': 'short' }))).toBe(426)
  expect(await ask(handshake(gateway.key).replace('HTTP/1.1', 'HTTP/1.0'))).toBe(405)
})

async function newWorkspace(amount: string): Promise<{ key: string; keyId: string; id: string }> {
  const { id } = await manage(gateway, 'POST', '/api/workspaces', { name: `socket ${Bun.randomUUIDv7()}` })
  await manage(gateway, 'POST', `/api/workspaces/${id}/topups`, { amount })
  const project = await manage(gateway, 'POST', `/api/workspaces/${id}/projects`, { name: 'socket' })
  const { secret: key, id: keyId } = await manage(gateway, 'POST', `/api/projects/${project.id}/keys`, {
    name: 'socket',
  })
  return { key, keyId, id }
}

test('a key that is revoked ends its connection with the next turn', async () => {
  const { key, keyId } = await newWorkspace('1')
  const client = await SocketClient.open({ url: gateway.url, key })
  expect(responseOf(await client.turn({ model, input: 'Hi.' })).status).toBe('completed')
  await manage(gateway, 'POST', `/api/keys/${keyId}/revoke`)
  expect(errorOf(await client.turn({ model, input: 'Hi.' }))).toMatchObject({ status: 401, code: 'UNAUTHORIZED' })
  expect(await client.closed).toMatchObject({ code: 1008 })
})

test('a wallet that empties between two turns is an error message, and the connection stays', async () => {
  const { key, id } = await newWorkspace('0.0002')
  const client = await SocketClient.open({ url: gateway.url, key })
  const turn = { model, input: 'Hi.', max_output_tokens: 5 }
  expect(responseOf(await client.turn(turn)).status).toBe('completed')
  let refused = await client.turn(turn)
  while (refused.at(-1)?.type !== 'error') refused = await client.turn(turn)
  expect(errorOf(refused)).toMatchObject({ status: 402, code: 'INSUFFICIENT_BALANCE' })
  await manage(gateway, 'POST', `/api/workspaces/${id}/topups`, { amount: '1' })
  expect(responseOf(await client.turn({ model, input: 'Hi.' })).status).toBe('completed')
  await client.close()
})

// ── Clients that leave ──

const leave = {
  'closes its WebSocket': async (connection: RawConnection) => connection.send(frame('', { opcode: opcodes.close })),
  'closes its connection': async (connection: RawConnection) => connection.leave(),
  'closes its sending side': async (connection: RawConnection) => connection.halfClose(),
}

test.each(Object.entries(leave))('a client that %s during a turn pays what was read', async (_, go) => {
  const records = startRecords()
  const connection = await connect(gateway.url)
  await connection.send(handshake(gateway.key))
  await connection.until('\r\n\r\n')
  const streams = hesitate()
  await connection.send(frame(JSON.stringify({ type: 'response.create', model, input: 'Hi.' })))
  const { closed } = await streams
  await connection.until('output_text.delta')
  await go(connection)
  await closed
  const [record] = await records(1)
  expect([record?.status, Number(record?.cost) > 0]).toEqual([499, true])
  connection.leave()
})

// ── Hostile clients ──

async function upgraded(of: Gateway = gateway): Promise<RawConnection> {
  const connection = await connect(of.url)
  await connection.send(handshake(of.key))
  await connection.until('\r\n\r\n')
  return connection
}

const hostile: Readonly<Record<string, { readonly sent: Buffer; readonly code: number }>> = {
  'a message above the limit of bodies': { sent: frame('', { announced: bodyMax + 1 }), code: 1009 },
  'a message of many frames above the limit': {
    sent: Buffer.concat([
      frame('x'.repeat(60_000), { isLast: false }),
      frame('x'.repeat(60_000), { opcode: 0, isLast: false }),
    ]),
    code: 1009,
  },
  'an exabyte': { sent: frame('', { announced: Number.MAX_SAFE_INTEGER }), code: 1009 },
  'text that is not UTF-8': { sent: frame(Buffer.from([0x7b, 0xff, 0xfe, 0x7d])), code: 1007 },
  'half a character': { sent: frame(Buffer.from('{"ü').subarray(0, 3)), code: 1007 },
  'a binary message': { sent: frame('{}', { opcode: opcodes.binary }), code: 1003 },
  'a frame that is not masked': { sent: frame('{}', { isMasked: false }), code: 1003 },
  'an unknown opcode': { sent: frame('{}', { opcode: 5 }), code: 1002 },
  'a continuation of nothing': { sent: frame('{}', { opcode: 0 }), code: 1002 },
  'a ping in parts': { sent: frame('a', { opcode: opcodes.ping, isLast: false }), code: 1002 },
  'a bit of an extension': { sent: Buffer.from([0xc1, 0x80, 1, 2, 3, 4]), code: 1002 },
}

describe('a client that sends', () => {
  test.each(Object.entries(hostile))('%s is closed with the code for it', async (_, { sent, code }) => {
    const connection = await upgraded()
    await connection.send(sent)
    await connection.closed
    expect(closeCodeIn(connection.bytes())).toBe(code)
  })

  test('messages that are no turns gets an error for each, in their order', async () => {
    const client = await SocketClient.open(gateway)
    const calls = upstream.calls.length
    const sent = [
      '',
      '{',
      '[]',
      'null',
      '{}',
      '{"type":"response.cancel"}',
      '{"type":"response.create","stream_id":"a"}',
    ]
    for (const message of sent) client.send(message)
    for (const message of sent) expect([message, errorOf(await client.answer()).status]).toEqual([message, 400])
    expect(upstream.calls).toHaveLength(calls)
    expect(responseOf(await client.turn({ model, input: 'Hi.' })).status).toBe('completed')
    await client.close()
  })

  test('thousands of messages at once keeps nobody waiting, and gets an answer to each', async () => {
    const client = await SocketClient.open(gateway)
    const count = 20_000
    for (let at = 0; at < count; at++) client.send('{}')
    const other = await SocketClient.open(gateway)
    expect(responseOf(await other.turn({ model, input: 'Hi.' })).status).toBe('completed')
    for (let at = 0; at < count; at++) expect((await client.next())?.type).toBe('error')
    await Promise.all([client.close(), other.close()])
  })
})

test('pings are answered during a turn', async () => {
  const connection = await upgraded()
  const streams = hesitate()
  await connection.send(frame(JSON.stringify({ type: 'response.create', model, input: 'Hi.' })))
  const { reply, words } = await streams
  await connection.send(frame('are you there', { opcode: opcodes.ping }))
  await connection.until('are you there')
  await reply.chunk(words.ending)
  await reply.finish()
  await connection.until('response.completed')
  connection.leave()
})

// ── Ends ──

test('a gateway that stops closes idle connections at once, and others after their turn', async () => {
  const provider = startUpstream(() => {})
  const stopping = await startGateway({ config: upstreamConfig(provider.url) })
  const begun = Promise.withResolvers<{ reply: UpstreamReply; words: Words }>()
  provider.handle(async (call, reply) => {
    await reply.startStream()
    const words = wordsFor(call)
    await reply.chunk(words.opening + words.says('hello'))
    begun.resolve({ reply, words })
  })
  const [idle, busy] = await Promise.all([SocketClient.open(stopping), SocketClient.open(stopping)])
  busy.send({ type: 'response.create', model: 'test/chat', input: 'Hi.' })
  busy.send({ type: 'response.create', model: 'test/chat', input: 'And then.' })
  const { reply, words } = await begun.promise
  await until(busy, 'response.output_text.delta')
  const stopped = stopping.stop()
  expect(await idle.closed).toMatchObject({ code: 1001 })
  await reply.chunk(words.ending)
  await reply.finish()
  expect(responseOf(await busy.answer()).status).toBe('completed')
  expect(await busy.closed).toMatchObject({ code: 1001 })
  expect(provider.calls).toHaveLength(1)
  await stopped
  provider.stop()
})

test('after an hour a connection ends with the next turn', async () => {
  const client = await SocketClient.open(gateway)
  stage.jump(3601)
  expect(errorOf(await client.turn({ model, input: 'Hi.' }))).toMatchObject({
    ...{ status: 400, code: 'websocket_connection_limit_reached' },
  })
  expect(await client.closed).toMatchObject({ code: 1000 })
})
