// Habits of clients and proxies: too many slashes, a HEAD before a GET, compressed bodies, missing keys.

import { afterAll, expect, test } from 'bun:test'
import { startGateway } from '../parts/gateway.ts'
import { connect } from '../parts/raw-client.ts'

const models = Array.from({ length: 25 }, (_, n) => `acme/m${String(n).padStart(2, '0')}`)
const config = `
providers:
  - { id: acme, dialect: openai-chat, base_url: "http://127.0.0.1:9/v1", api_key: key-of-the-operator }
models:
${models.map((id) => `  - { id: ${id}, price: free, routes: [{ provider: acme, model: m }] }`).join('\n')}
`

const gateway = await startGateway({ config, env: { TOLLGATE_SANDBOX: 'on' } })
afterAll(() => gateway.stop())

const bearer = () => ({ authorization: `Bearer ${gateway.key}` })
const echo = { model: 'sandbox/echo', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }

function post(path: string, headers: Record<string, string> = {}, body: string | Uint8Array = JSON.stringify(echo)) {
  const sent = { 'content-type': 'application/json', ...bearer(), ...headers }
  return fetch(gateway.url + path, { method: 'POST', headers: sent, body: body as Uint8Array<ArrayBuffer> | string })
}

test('GET /v1/models lists all models with the fields of both APIs', async () => {
  const ask = async (query: string) => {
    const headers = { ...bearer(), 'anthropic-version': '2023-06-01' }
    return (await (await fetch(`${gateway.url}/v1/models${query}`, { headers })).json()) as {
      data: { id: string }[]
      has_more: boolean
    }
  }
  const all = await ask('')
  expect(all.has_more).toBe(false)
  expect(all.data.map(({ id }) => id)).toEqual(expect.arrayContaining(models))
  const page = await ask('?limit=20')
  expect([page.data.length, page.has_more]).toEqual([20, true])
})

test('a generation is served at /v1/chat/completions/', async () => {
  expect((await post('/v1/chat/completions/')).status).toBe(200)
})

test.each(['/v1/models/', '/v1/models/sandbox/echo/'])('%s is served', async (path) => {
  const connection = await connect(gateway.url)
  await connection.send(`GET ${path} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${gateway.key}\r\n\r\n`)
  expect(await connection.response()).toMatchObject({ status: 200 })
  connection.leave()
})

test('the head of what can be read can be asked for alone', async () => {
  for (const path of ['/v1/models', '/v1/models/sandbox/echo']) {
    const connection = await connect(gateway.url)
    await connection.send(`HEAD ${path} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${gateway.key}\r\n\r\n`)
    const response = await connection.response({ bodyless: true })
    if (response === 'closed') throw new Error('no answer')
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
    await connection.send('GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n')
    expect(await connection.response()).toMatchObject({ status: 200, body: 'ok\n' })
    connection.leave()
  }
})

test('a packed body is refused for what it is, a body that says it is not packed is taken', async () => {
  const packed = await post('/v1/chat/completions', { 'content-encoding': 'gzip' }, Bun.gzipSync(JSON.stringify(echo)))
  const { error } = (await packed.json()) as { error: { code: string; message: string } }
  expect([packed.status, error.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
  expect(error.message).toContain('Content-Encoding')
  expect(error.message).toContain('gzip')
  expect((await post('/v1/chat/completions', { 'content-encoding': 'identity' })).status).toBe(200)
})

test('a 401 says how to authenticate, and nothing else does', async () => {
  for (const path of ['/v1/chat/completions', '/v1/messages']) {
    const response = await post(path, { authorization: 'Bearer sk-wrong' })
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="Tollgate"'])
  }
  const models = await fetch(`${gateway.url}/v1/models`)
  expect([models.status, models.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="Tollgate"'])
  expect((await post('/v1/chat/completions', {}, '{')).headers.get('www-authenticate')).toBeNull()
})

test.each(['2023-02-30', '0000-01-01'])('%s is no version of /v1/messages', async (version) => {
  const response = await post('/v1/messages', { 'anthropic-version': version })
  expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('anthropic-version')])
})
