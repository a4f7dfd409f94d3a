// Addresses that a tenant brings with a key, through the management API and a call: no connection reaches a listener on
// this machine unless the operator has named it.

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { allSurfaces, chat } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { chatWords } from '../parts/upstream-words.ts'
import { failureOf, startTenancy, until } from './tenancy.ts'

/** The forms of security.md S3 that need no name server; PORT is the canary's. */
const corpus = [
  ...['http://127.0.0.1:PORT', 'https://127.0.0.1:PORT', 'http://127.0.0.2:PORT', 'http://127.1:PORT'],
  ...['http://0x7f.1:PORT', 'http://0x7f000001:PORT', 'http://2130706433:PORT', 'http://017700000001:PORT'],
  ...['http://0.0.0.0:PORT', 'http://0:PORT', 'http://[::1]:PORT', 'http://[::]:PORT'],
  ...['http://[::ffff:127.0.0.1]:PORT', 'http://[::ffff:7f00:1]:PORT', 'http://[64:ff9b::7f00:1]:PORT'],
  ...['http://[2002:7f00:1::]:PORT', 'http://localhost:PORT', 'http://localhost.:PORT', 'http://LOCALHOST:PORT'],
  ...['http://user@127.0.0.1:PORT', 'http://127.0.0.1:PORT#@api.groq.com', 'http://127.0.0.1:PORT?@api.groq.com'],
  ...['https://api.groq.com@127.0.0.1:PORT', 'https://api.groq.com\\@127.0.0.1:PORT', 'http://127.0.0.1:PORT/\r\nX: y'],
  ...['http://127.0.0.1\t:PORT', 'http://127.0.0.1:PORT/ ', '//127.0.0.1:PORT', 'http:127.0.0.1:PORT'],
  ...['file:///etc/passwd', 'gopher://127.0.0.1:PORT', 'unix:///tmp/socket', '', 'http://１２７.０.０.１:PORT'],
  ...['https://169.254.169.254', 'http://[fd00:ec2::254]', 'http://100.64.0.1', 'http://10.0.0.1', 'http://[fe80::1]'],
]

const config = (own: string) => `
models:
  - { id: own/model, price: free, routes: [{ provider: groq, model: g }] }
own_keys: ${own}
`
const wide = '{ base_urls: true, plain_http: true }'
const canaryAllowed = '{ base_urls: true, plain_http: true, allow_hosts: ["127.0.0.1"] }'

function startCanary() {
  const upstream = startUpstream((_, reply) => reply.send(200, { 'content-type': 'application/json' }, chatWords.whole))
  return { ...upstream, port: new URL(upstream.url).port, [Symbol.dispose]: () => upstream.stop() }
}

test('S1, S3: no spelling of a private address is stored or called', async () => {
  using canary = startCanary()
  await using tenancy = await startTenancy({ config: config(wide) })
  const { workspaceId, key } = await tenancy.tenant()
  const path = `/api/workspaces/${workspaceId}/credentials/groq`
  for (const form of corpus) {
    const url = form.replaceAll('PORT', canary.port)
    const { status, body } = await tenancy.api('PUT', path, { api_key: 'gsk-of-the-tenant', base_url: url })
    expect([form, status, body.error.param]).toEqual([form, 400, 'base_url'])
    expect(body.error.message).toStartWith('`base_url` must ')
  }
  const inside = { api_key: 'gsk-of-the-tenant', base_url: 'https://10.0.0.1/v1' }
  // As the configuration file names it.
  expect((await tenancy.api('PUT', path, inside)).body.error.message).toContain('own_keys.allow_hosts')
  expect((await tenancy.api('GET', path)).status).toBe(404)
  expect((await tenancy.generate(chat, key, 'own/model')).status).toBe(404)
  expect([canary.calls.length, canary.openConnections()]).toEqual([0, 0])
})

test('S1: if the operator does not allow custom addresses none is accepted, not even a public one', async () => {
  await using tenancy = await startTenancy({ config: config('{ base_urls: false }') })
  const { workspaceId } = await tenancy.tenant()
  const body = { api_key: 'gsk-of-the-tenant', base_url: 'https://93.184.216.34/v1' }
  const reply = await tenancy.api('PUT', `/api/workspaces/${workspaceId}/credentials/groq`, body)
  expect([reply.status, reply.body.error.param]).toEqual([400, 'base_url'])
  expect(reply.body.error.message).toContain('own_keys.base_urls')
})

test('an address with the path of a call, or of another dialect, is refused as it is in the configuration file', async () => {
  await using tenancy = await startTenancy({ config: config(canaryAllowed) })
  const { workspaceId } = await tenancy.tenant()
  const refused = async (provider: string, url: string) => {
    const body = { api_key: 'gsk-of-the-tenant', base_url: `http://127.0.0.1:1${url}` }
    const reply = await tenancy.api('PUT', `/api/workspaces/${workspaceId}/credentials/${provider}`, body)
    return [reply.status, reply.body.error.param, reply.body.error.message]
  }
  const whole = '`base_url` must end before the path of a call, which is appended (https://HOST/v1)'
  expect(await refused('groq', '/v1/chat/completions')).toEqual([400, 'base_url', `${whole}.`])
  expect(await refused('groq', '/v1/messages')).toEqual([
    ...[400, 'base_url'],
    `${whole}, and this is the path of dialect anthropic-messages.`,
  ])
  expect(await refused('anthropic', '/v1')).toEqual([
    ...[400, 'base_url'],
    '`base_url` must not end in /v1: the anthropic-messages dialect appends it; leave it out.',
  ])
})

test('the default address of a provider is always accepted', async () => {
  await using tenancy = await startTenancy({ config: config('{ base_urls: false }') })
  const { workspaceId } = await tenancy.tenant()
  const path = `/api/workspaces/${workspaceId}/credentials/groq`
  for (const url of ['https://api.groq.com/openai/v1', 'HTTPS://API.groq.com:443/openai/v1/']) {
    const stored = await tenancy.must('PUT', path, { api_key: 'gsk-of-the-tenant', base_url: url })
    expect(stored).toMatchObject({ provider: 'groq', base_url: null })
  }
  for (const url of [
    'https://api.groq.com',
    'https://api.groq.com.evil.test/openai/v1',
    'http://api.groq.com/openai/v1',
  ]) {
    expect((await tenancy.api('PUT', path, { api_key: 'gsk-of-the-tenant', base_url: url })).status).toBe(400)
  }
})

test('S2: the guard checks every call: an address that has become private is not called', async () => {
  using canary = startCanary()
  await using tenancy = await startTenancy({ config: config(canaryAllowed) })
  const { workspaceId, key } = await tenancy.tenant()
  const path = `/api/workspaces/${workspaceId}/credentials/groq`
  const credential = { api_key: 'gsk-of-the-tenant', base_url: `${canary.url}/v1` }
  await tenancy.must('PUT', path, credential)
  // It records every call.
  expect((await tenancy.generate(chat, key, 'own/model')).status).toBe(200)
  expect(canary.calls).toHaveLength(1)
  for (const narrower of [wide, '{ base_urls: false }']) {
    writeFileSync(tenancy.gateway.configPath, config(narrower))
    const { workspaceId: other } = await tenancy.tenant()
    await until(
      async () => (await tenancy.api('PUT', `/api/workspaces/${other}/credentials/groq`, credential)).status === 400,
    )
    for (const surface of allSurfaces) {
      const reply = await tenancy.generate(surface, key, 'own/model')
      // It may pass, which is a 404 on the two endpoints of the specification only.
      const expected =
        surface.name === 'chat' || surface.name === 'messages' ? [404, 'NOT_FOUND'] : [503, 'UNAVAILABLE']
      expect([narrower, reply.status, failureOf(surface, reply)[0]]).toEqual([narrower, ...expected])
      expect(reply.text).not.toContain(canary.url)
    }
    expect(canary.calls).toHaveLength(1)
    writeFileSync(tenancy.gateway.configPath, config(canaryAllowed))
    await until(
      async () => (await tenancy.api('PUT', `/api/workspaces/${other}/credentials/groq`, credential)).status === 200,
    )
  }
})

test('S4, S6: a redirect is a failed attempt, and the key is sent nowhere else', async () => {
  using canary = startCanary()
  const redirecting = startUpstream((_, reply) =>
    reply.send(307, { location: `${canary.url}/v1/chat/completions` }, ''),
  )
  await using tenancy = await startTenancy({ config: config(canaryAllowed) })
  const { workspaceId, key } = await tenancy.tenant()
  const credential = { api_key: 'gsk-of-the-tenant', base_url: `${redirecting.url}/v1` }
  await tenancy.must('PUT', `/api/workspaces/${workspaceId}/credentials/groq`, credential)
  const reply = await tenancy.generate(chat, key, 'own/model')
  expect(reply.status).toBe(404)
  expect(redirecting.calls.length).toBeGreaterThan(0)
  expect(canary.calls).toHaveLength(0)
  redirecting.stop()
})
