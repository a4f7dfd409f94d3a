import { expect, test } from 'bun:test'
import { connect } from '../../test/parts/raw-client.ts'
import { startUpstream, type UpstreamHandler } from '../../test/parts/upstream.ts'
import { type ProxyOptions, startProxy } from './local-proxy.ts'
import { exitCodes, Refusal } from './refusal.ts'
import { type SignIn, signedOut } from './stored-sign-ins.ts'

const key = 'local-secret'
const signIn = { access_token: 'ey.current.token' } as SignIn

async function open(handler: UpstreamHandler, token: ProxyOptions['token'] = async () => signIn) {
  const upstream = startUpstream(handler)
  const proxy = await startProxy({ gateway: upstream.url, key, port: 0, token })
  return {
    ...{ url: proxy.url, port: new URL(proxy.url).port, upstream },
    async [Symbol.asyncDispose]() {
      await proxy.stop()
      upstream.stop()
    },
  }
}

const ok: UpstreamHandler = (_, reply) => reply.json(200, { fine: true })

for (const [name, sent, passed] of [
  ['authorization', `Bearer ${key}`, `Bearer ${signIn.access_token}`],
  ['x-api-key', key, signIn.access_token],
  ['x-goog-api-key', key, signIn.access_token],
] as const) {
  test(`puts the token where the local key was: ${name}`, async () => {
    await using proxy = await open(ok)
    const body = '{"model": "acme/large",  "spaces":  "stay"}'
    const headers = { [name]: sent, 'content-type': 'application/json', 'x-session-id': 's-1' }
    const answer = await fetch(`${proxy.url}/v1/messages?beta=true`, { method: 'POST', headers, body })
    expect([answer.status, await answer.json()]).toEqual([200, { fine: true }])
    const [call] = proxy.upstream.calls
    expect([call?.method, call?.path, Buffer.from(call?.body ?? []).toString()]).toEqual([
      'POST',
      '/v1/messages?beta=true',
      body,
    ])
    const keys = ['authorization', 'x-api-key', 'x-goog-api-key'].map((each) => call?.headers.get(each) ?? null)
    expect(keys.filter((each) => each !== null)).toEqual([passed])
    expect([call?.headers.get(name), call?.headers.get('x-session-id')]).toEqual([passed, 's-1'])
    expect(call?.headers.get('host')).toBe(new URL(proxy.upstream.url).host)
  })
}

test('drops a key of another kind that a client sends beside the local one', async () => {
  await using proxy = await open(ok)
  await fetch(`${proxy.url}/v1/messages`, { headers: { authorization: `Bearer ${key}`, 'x-api-key': 'sk-ant-mine' } })
  const [call] = proxy.upstream.calls
  expect([call?.headers.get('authorization'), call?.headers.get('x-api-key')]).toEqual([
    `Bearer ${signIn.access_token}`,
    null,
  ])
})

test('refuses a request without its key, in the dialect of the path, and passes nothing on', async () => {
  await using proxy = await open(ok)
  const message = expect.stringContaining("Tollgate's local proxy")
  for (const headers of [{}, { authorization: 'Bearer local-secre' }, { 'x-api-key': 'sk-tg-other' }]) {
    const answer = await fetch(`${proxy.url}/v1/chat/completions`, { method: 'POST', headers, body: '{}' })
    expect([answer.status, await answer.json()]).toEqual([401, { error: expect.objectContaining({ message }) }])
  }
  expect(proxy.upstream.calls).toEqual([])
})

test('refuses other names in the Host header, also with the key: a page may resolve its name to this machine', async () => {
  await using proxy = await open(ok)
  for (const host of [
    'evil.example',
    `evil.example:${proxy.port}`,
    '127.0.0.1',
    `127.0.0.1.evil.example:${proxy.port}`,
  ]) {
    const client = await connect(proxy.url)
    await client.send(`GET /v1/models HTTP/1.1\r\nhost: ${host}\r\nx-api-key: ${key}\r\n\r\n`)
    expect(await client.response()).toMatchObject({ status: 403 })
    client.leave()
  }
  expect(proxy.upstream.calls).toEqual([])
  const client = await connect(proxy.url)
  await client.send(`GET /v1/models HTTP/1.1\r\nhost: localhost:${proxy.port}\r\nx-api-key: ${key}\r\n\r\n`)
  expect(await client.response()).toMatchObject({ status: 200 })
  client.leave()
})

test('when signed out, says what to run, in the dialect of the path', async () => {
  await using proxy = await open(ok, () => Promise.reject(signedOut('https://gate.example.com')))
  const message =
    "Tollgate's local proxy: you are signed out of https://gate.example.com. Run `tollgate login https://gate.example.com`, then retry."
  const ask = async (path: string) => {
    const answer = await fetch(proxy.url + path, { method: 'POST', headers: { 'x-api-key': key }, body: '{}' })
    expect([answer.status, answer.headers.get('x-should-retry')]).toEqual([401, 'false'])
    return await answer.json()
  }
  expect(await ask('/v1/messages')).toMatchObject({ type: 'error', error: { type: 'authentication_error', message } })
  expect(await ask('/v1/chat/completions')).toMatchObject({ error: { message, code: 'UNAUTHORIZED' } })
  expect(await ask('/v1beta/models/acme/large:generateContent')).toMatchObject({
    error: { message, status: 'UNAUTHENTICATED' },
  })
  expect(proxy.upstream.calls).toEqual([])
})

test('requests that arrive together wait for one token', async () => {
  let asked = 0
  const given = Promise.withResolvers<SignIn>()
  await using proxy = await open(ok, () => {
    asked++
    return given.promise
  })
  const client = () => fetch(`${proxy.url}/v1/models`, { headers: { 'x-api-key': key } })
  const answers = Array.from({ length: 20 }, client)
  // Served on the same thread: it comes after them, and is refused at once.
  expect((await fetch(`${proxy.url}/v1/models`)).status).toBe(401)
  given.resolve(signIn)
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(20).fill(200))
  expect(asked).toBe(1)
})

test('passes a stream byte for byte, each part as it arrives', async () => {
  const parts = ['event: a\ndata: {"x":  1}\n\n', ': ping\n\n', 'data: \u00e9\u{1f600}\r\n\r\n']
  const next = parts.map(() => Promise.withResolvers<void>())
  await using proxy = await open(async (_, reply) => {
    await reply.startStream({ 'x-request-id': 'req_1' })
    for (const [at, part] of parts.entries()) {
      await next[at]?.promise
      await reply.chunk(part)
    }
    await reply.finish()
  })
  next[0]?.resolve()
  const answer = await fetch(`${proxy.url}/v1/messages`, { method: 'POST', headers: { 'x-api-key': key }, body: '{}' })
  expect([answer.headers.get('content-type'), answer.headers.get('x-request-id')]).toEqual([
    'text/event-stream',
    'req_1',
  ])
  const decoder = new TextDecoder()
  let received = ''
  let at = 0
  for await (const bytes of answer.body ?? []) {
    received += decoder.decode(bytes, { stream: true })
    // The next part is sent only when this one has arrived.
    if (received === parts.slice(0, at + 1).join('')) next[++at]?.resolve()
  }
  expect(received).toBe(parts.join(''))
})

test('passes a compressed answer as it is', async () => {
  const bytes = Bun.gzipSync('{"data": []}')
  await using proxy = await open((_, reply) => reply.send(200, { 'content-encoding': 'gzip' }, bytes))
  const headers = { 'x-api-key': key, 'accept-encoding': 'gzip' }
  const answer = await fetch(`${proxy.url}/v1/models`, { headers, decompress: false })
  expect([answer.headers.get('content-encoding'), Buffer.from(await answer.arrayBuffer())]).toEqual([
    'gzip',
    Buffer.from(bytes),
  ])
  // Not asked for by this client, so not by the proxy.
  const client = await connect(proxy.url)
  await client.send(`GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1:${proxy.port}\r\nx-api-key: ${key}\r\n\r\n`)
  await client.response()
  expect(proxy.upstream.calls.map((call) => call.headers.get('accept-encoding'))).toEqual(['gzip', 'identity'])
  client.leave()
})

test('passes statuses, redirects and errors of the gateway on', async () => {
  await using proxy = await open((_, reply) =>
    reply.send(307, { location: 'https://elsewhere.example/', 'retry-after': '7' }, 'moved'),
  )
  const answer = await fetch(`${proxy.url}/v1/models`, { headers: { 'x-api-key': key }, redirect: 'manual' })
  expect([answer.status, answer.headers.get('location'), answer.headers.get('retry-after')]).toEqual([
    307,
    'https://elsewhere.example/',
    '7',
  ])
})

test('a client that leaves ends the request at the gateway', async () => {
  await using proxy = await open(async (_, reply) => {
    await reply.startStream()
    await reply.chunk('data: 1\n\n')
  })
  const client = await connect(proxy.url)
  await client.send(
    `POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1:${proxy.port}\r\nx-api-key: ${key}\r\ncontent-length: 2\r\n\r\n{}`,
  )
  await client.until('data: 1')
  client.leave()
  await proxy.upstream.calls[0]?.closed
})

test('an answer that the gateway breaks off is broken off, without an end', async () => {
  const arrived = Promise.withResolvers<void>()
  await using proxy = await open(async (_, reply) => {
    await reply.startStream()
    await reply.chunk('data: 1\n\n')
    await arrived.promise
    reply.cut()
  })
  const client = await connect(proxy.url)
  await client.send(
    `POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1:${proxy.port}\r\nx-api-key: ${key}\r\ncontent-length: 2\r\n\r\n{}`,
  )
  await client.until('data: 1\n\n')
  arrived.resolve()
  await client.closed
  expect(client.received()).not.toContain('\r\n0\r\n')
})

test('says in the dialect of the path that the gateway cannot be reached', async () => {
  await using proxy = await open(ok)
  proxy.upstream.stop()
  const answer = await fetch(`${proxy.url}/v1/messages`, { method: 'POST', headers: { 'x-api-key': key }, body: '{}' })
  expect([answer.status, answer.headers.get('retry-after'), await answer.json()]).toEqual([
    503,
    '1',
    {
      ...{ type: 'error', request_id: expect.any(String) },
      error: expect.objectContaining({ message: expect.stringContaining(`cannot reach ${proxy.upstream.url}`) }),
    },
  ])
})

test('refuses a port that is in use, with another one to try', async () => {
  await using proxy = await open(ok)
  const options = { gateway: proxy.upstream.url, key, port: Number(proxy.port), token: async () => signIn }
  await expect(startProxy(options)).rejects.toThrow(
    new Refusal(exitCodes.failed, `port ${proxy.port} is in use, perhaps by another tollgate proxy.`),
  )
})
