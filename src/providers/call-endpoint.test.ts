import { describe, expect, test } from 'bun:test'
import { holeTest, openBlackHole } from '../../test/parts/black-hole.ts'
import { connectionsRested, startUpstream } from '../../test/parts/upstream.ts'
import { systemClock } from '../kernel/clock.ts'
import { Secret } from '../kernel/secret.ts'
import { callEndpoint, isUnreachable } from './call-endpoint.ts'
import { createSign } from './credentials.ts'
import { builtInProviders } from './data/built-in.ts'
import type { AuthScheme, Endpoint, Provider, UpstreamRequest } from './provider.ts'
import { createProviders } from './registry.ts'

const usual = { 'content-type': 'application/json', 'accept-encoding': 'identity', 'user-agent': 'tollgate' }
const { signal } = new AbortController()
const body = new TextEncoder().encode('{"model":"m","messages":[]}')

/** The request that would be sent; nothing is sent. */
async function sentTo(endpoint: Endpoint, credential: string | undefined): Promise<UpstreamRequest> {
  let sent: UpstreamRequest | undefined
  const provider: Provider = {
    id: 'acme',
    endpoints: [endpoint],
    apiKey: credential === undefined ? undefined : new Secret(credential),
    source: 'a test',
    transport: async (request) => {
      sent = request
      return new Response('{}')
    },
  }
  const path = endpoint.wrapping?.endsWith('embedding') ? '/embeddings' : '/v1/messages'
  await callEndpoint(provider, endpoint, { path, headers: { 'x-dialect': '1' }, body, signal })
  if (!sent) throw new Error('nothing was sent')
  return sent
}

function endpointWith(auth: AuthScheme): Endpoint {
  const sign = createSign(auth, {
    clock: systemClock,
    operator: undefined,
    identity: { settings: {}, instance: undefined },
  })
  return { dialect: 'openai-chat', baseUrl: 'https://acme.example', auth, ...(sign && { sign }) }
}

test.each([
  ['bearer', { authorization: 'Bearer key-1' }],
  ['x-api-key', { 'x-api-key': 'key-1' }],
  ['x-goog-api-key', { 'x-goog-api-key': 'key-1' }],
  ['api-key', { 'api-key': 'key-1' }],
  ['none', {}],
  // Text that is not a pair of id and secret is an API key, sent as it is.
  ['sigv4', { authorization: 'Bearer key-1' }],
] as const)('the scheme %s sets exactly its headers', async (auth, proof) => {
  expect((await sentTo(endpointWith(auth), 'key-1')).headers).toEqual({ 'x-dialect': '1', ...usual, ...proof })
})

test('a pair signs, and the secret is not sent', async () => {
  const { headers } = await sentTo(endpointWith('sigv4'), 'AKID:shh-secret')
  expect(Object.keys(headers).sort()).toEqual(
    ['x-dialect', ...Object.keys(usual), 'authorization', 'x-amz-date'].sort(),
  )
  expect(headers.authorization).toStartWith('AWS4-HMAC-SHA256 Credential=AKID/')
  expect(JSON.stringify(headers)).not.toContain('shh-secret')
})

test('reports a proof to its signer only if the host refused it with 401', async () => {
  const refused: unknown[] = []
  const apiKey = new Secret('key-1')
  let proofs = 0
  const sign = Object.assign(async () => ({ authorization: `Bearer token-${++proofs}` }), {
    refused: (credential: Secret, proof: object) => refused.push([credential, proof]),
  })
  const endpoint: Endpoint = { ...endpointWith('google-oauth'), sign }
  for (const status of [200, 403, 401]) {
    const transport = async () => new Response('{}', { status })
    const provider: Provider = { id: 'acme', endpoints: [endpoint], apiKey, source: 'a test', transport }
    const response = await callEndpoint(provider, endpoint, { path: '/v1/messages', headers: {}, body, signal })
    expect(response.status).toBe(status)
  }
  expect(refused).toEqual([[apiKey, { authorization: 'Bearer token-3' }]])
})

test.each(['bearer', 'sigv4'] as const)('without a credential %s adds nothing', async (auth) => {
  expect((await sentTo(endpointWith(auth), undefined)).headers).toEqual({ 'x-dialect': '1', ...usual })
})

describe('every built-in provider', () => {
  const settings = (names: readonly string[]) => names.map((name) => [name, new Secret(`${name.toLowerCase()}-value`)])
  const opened = builtInProviders.flatMap(({ id, variable, keyNeeds = [], needs = [] }) => {
    const keys: Record<string, Secret> = Object.fromEntries(settings([variable, ...keyNeeds, ...needs]))
    const input = {
      entries: [],
      keys,
      sandboxOn: false,
      sandboxTransport: async () => new Response(),
      clock: systemClock,
    }
    const provider = createProviders(input).get(id)
    return (provider?.endpoints ?? []).map((endpoint) => [id, endpoint.dialect, endpoint] as const)
  })

  test('is opened by its variables', () => {
    expect(new Set(opened.map(([id]) => id)).size).toBe(builtInProviders.length)
  })

  const secrets = ['authorization', 'x-api-key', 'x-goog-api-key', 'api-key', 'x-amz-date']
  test.each(opened.filter(([, , { auth }]) => auth !== 'google-oauth'))(
    '%s gets exactly one credential in %s',
    async (_, __, endpoint) => {
      const { headers } = await sentTo(endpoint, 'id:secret')
      const found = Object.keys(headers).filter((name) => secrets.includes(name))
      const { auth } = endpoint
      const expected = auth === 'sigv4' ? ['x-amz-date', 'authorization'] : [auth === 'bearer' ? 'authorization' : auth]
      expect(found).toEqual(expected)
    },
  )
})

describe('a watched connection', () => {
  /** Calls over the network and records the watch's events. */
  function call(baseUrl: string, sent: Uint8Array<ArrayBuffer>, aborted: AbortSignal = signal) {
    const events: string[] = []
    const watch = { connecting: () => void events.push('connecting'), connected: () => void events.push('connected') }
    const endpoint: Endpoint = { ...endpointWith('none'), baseUrl }
    const provider: Provider = { id: 'acme', endpoints: [endpoint], apiKey: undefined, source: 'a test' }
    const request = { path: '/v1', headers: {}, body: sent, signal: aborted, watch }
    return { events, response: callEndpoint(provider, endpoint, request) }
  }

  test.each([0, 1, 70_000, 1_000_000])('carries a body of %d bytes with its length, unchanged', async (length) => {
    using upstream = usable(startUpstream((_, reply) => reply.json(200, {})))
    const sent = new Uint8Array(length).map((_, at) => at % 251)
    for (let n = 0; n < 2; n++) {
      const { events, response } = call(upstream.url, sent)
      expect((await response).status).toBe(200)
      await (await response).bytes()
      // The second call uses the connection of the first, which has rested.
      await connectionsRested()
      expect(events).toEqual(n === 0 ? ['connecting', 'connected'] : ['connected'])
      const { headers, body: received } = upstream.calls[n] ?? {}
      expect(headers?.get('content-length')).toBe(String(length))
      expect(headers?.has('transfer-encoding')).toBe(false)
      expect(Bun.hash(received ?? 'nothing')).toBe(Bun.hash(sent))
    }
  })

  test('is not connected while TLS is not established', async () => {
    const { promise: accepted, resolve } = Promise.withResolvers<void>()
    using server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => resolve() } })
    const controller = new AbortController()
    const { events, response } = call(`https://127.0.0.1:${server.port}`, body, controller.signal)
    await accepted
    controller.abort()
    await expect(response).rejects.toThrow()
    expect(events).toEqual(['connecting'])
  })

  holeTest('is not connected where connections are neither accepted nor refused', async () => {
    const hole = await openBlackHole()
    const controller = new AbortController()
    const { events, response } = call(`http://127.0.0.1:${hole.port}`, body, controller.signal)
    // On this machine a connection is made in far less.
    await Bun.sleep(50)
    controller.abort()
    await expect(response).rejects.toThrow()
    expect(events).toEqual(['connecting'])
    await hole.stop()
  })

  test('is not connected where it is refused', async () => {
    const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
    server.stop(true)
    const { events, response } = call(`http://127.0.0.1:${server.port}`, body)
    const refusal: unknown = await response.catch((error: unknown) => error)
    expect(isUnreachable(refusal)).toBe(true)
    expect(events).toEqual(['connecting'])
  })
})

function usable<Thing extends { stop(): void }>(thing: Thing): Thing & Disposable {
  return { ...thing, [Symbol.dispose]: () => thing.stop() }
}

test.each([undefined, true])('sends the same over sockets and by fetch: %p', async (byFetch) => {
  using upstream = usable(startUpstream((_, reply) => reply.json(200, { ok: true })))
  const events: string[] = []
  const watch = { connecting: () => void events.push('connecting'), connected: () => void events.push('connected') }
  const endpoint: Endpoint = { ...endpointWith('bearer'), baseUrl: `${upstream.url}/base`, ...(byFetch && { byFetch }) }
  const provider: Provider = { id: 'acme', endpoints: [endpoint], apiKey: new Secret('key-1'), source: 'a test' }
  const path = '/models/a b:generate?alt=sse'
  const response = await callEndpoint(provider, endpoint, { path, headers: { 'x-dialect': '1' }, body, signal, watch })
  expect(new TextDecoder().decode(await response.bytes())).toBe('{"ok":true}')
  const [call] = upstream.calls
  expect(call).toMatchObject({ method: 'POST', path: '/base/models/a%20b:generate?alt=sse', body })
  const { host } = new URL(upstream.url)
  const expected = { ...usual, 'x-dialect': '1', authorization: 'Bearer key-1', 'content-length': String(body.length) }
  expect(Object.fromEntries(call?.headers ?? [])).toMatchObject({ ...expected, host })
  expect(events).toEqual(byFetch ? [] : ['connecting', 'connected'])
})

test('a host without such a call is not dialled', async () => {
  const endpoint: Endpoint = { ...endpointWith('none'), dialect: 'anthropic-messages', wrapping: 'invoke-model' }
  const provider: Provider = {
    id: 'acme',
    endpoints: [endpoint],
    apiKey: undefined,
    source: 'a test',
    transport: () => Promise.reject(new Error('dialled')),
  }
  const path = '/v1/messages/count_tokens'
  expect((await callEndpoint(provider, endpoint, { path, headers: {}, body, signal })).status).toBe(404)
})
