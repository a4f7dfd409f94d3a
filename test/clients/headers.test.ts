import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { type Gateway, startGateway, stopAll, upstreamConfig } from '../parts/gateway.ts'
import { startUpstream, type Upstream, type UpstreamReply } from '../parts/upstream.ts'
import { usageIn, wordsOf } from '../parts/upstream-words.ts'

// The headers of every kind of answer, as a whole: what must be there is, and nothing else comes through.

let gateway: Gateway
let upstream: Upstream
// A gateway for each test: what one test's provider did wrong must not be held against the next one's.
beforeEach(async () => {
  upstream = startUpstream(() => {})
  gateway = await startGateway({ config: upstreamConfig(upstream.url) })
})
afterEach(() => stopAll(gateway, upstream))

const idPattern = /^req_[0-9A-HJKMNP-TV-Z]{26}$/

function send(method: string, path: string, { body, ...headers }: Record<string, string> = {}): Promise<Response> {
  return fetch(gateway.url + path, {
    method,
    headers: { 'x-api-key': gateway.key, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body }),
  })
}

const version = { 'anthropic-version': '2023-06-01' }
const echo = (more: object = {}) =>
  JSON.stringify({ model: 'sandbox/echo', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }], ...more })

const answers: readonly [what: string, status: number, ask: () => Promise<Response>][] = [
  ['a chat completion', 200, () => send('POST', '/v1/chat/completions', { body: echo() })],
  ['a chat stream', 200, () => send('POST', '/v1/chat/completions', { body: echo({ stream: true }) })],
  ['a message', 200, () => send('POST', '/v1/messages', { ...version, body: echo() })],
  ['a message stream', 200, () => send('POST', '/v1/messages', { ...version, body: echo({ stream: true }) })],
  ['a token count', 200, () => send('POST', '/v1/messages/count_tokens', { ...version, body: echo() })],
  ['the models', 200, () => send('GET', '/v1/models')],
  ['the models for message clients', 200, () => send('GET', '/v1/models', version)],
  ['one model', 200, () => send('GET', '/v1/models/sandbox/echo')],
  ['an unknown model', 404, () => send('GET', '/v1/models/sandbox/nobody', version)],
  ['a wrong key', 401, () => send('GET', '/v1/models', { 'x-api-key': 'sk-wrong' })],
  ['a wrong body', 400, () => send('POST', '/v1/chat/completions', { body: 'not json' })],
  ['a wrong media type', 415, () => send('POST', '/v1/messages', { 'content-type': 'text/plain', body: echo() })],
  ['a wrong method', 405, () => send('DELETE', '/v1/models')],
  ['a wrong path', 404, () => send('GET', '/nowhere')],
  ['the health of the process', 200, () => send('GET', '/healthz')],
  ['the readiness of the process', 200, () => send('GET', '/readyz')],
  ['a warm-up', 200, () => send('HEAD', '/api/hello')],
  ['an older warm-up', 200, () => send('HEAD', '/')],
  ['the head of the models', 200, () => send('HEAD', '/v1/models')],
  ['the catalog', 200, () => send('GET', '/')],
  ['a page of the catalog', 200, () => send('GET', '/catalog/sandbox/echo')],
  ['a page that is not there', 404, () => send('GET', '/catalog/sandbox/nobody')],
  ['the console', 200, () => send('GET', '/console')],
  ['the metrics without their token', 401, () => send('GET', '/metrics')],
  ['the public part of the management API', 200, () => send('GET', '/api/catalog')],
]

test.each(answers)('%s carries the request id in both headers', async (_, status, ask) => {
  const response = await ask()
  await response.arrayBuffer()
  expect(response.status).toBe(status)
  expect(response.headers.get('x-request-id')).toMatch(idPattern)
  expect(response.headers.get('request-id')).toBe(String(response.headers.get('x-request-id')))
})

test('no two requests have the same id, whatever id the client sent', async () => {
  const ids = new Set<string | null>()
  for (let i = 0; i < 3; i++) {
    ids.add((await send('GET', '/v1/models', { 'x-request-id': 'req_mine' })).headers.get('x-request-id'))
  }
  expect(ids.size).toBe(3)
  expect(ids).not.toContain('req_mine')
})

/** Headers that providers and their proxies send. Callers must not get them. */
const foreign = {
  'set-cookie': '__cf_bm=secret; path=/',
  server: 'cloudflare',
  'cf-ray': '8f0',
  via: '1.1 proxy',
  'openai-organization': 'org-of-the-operator',
  'openai-processing-ms': '12',
  'anthropic-organization-id': 'org-of-the-operator',
  'anthropic-ratelimit-requests-remaining': '7',
  'x-ratelimit-remaining-requests': '7',
  'x-request-id': 'req_upstream',
  'request-id': 'req_upstream',
  'x-should-retry': 'true',
  'x-tollgate-cost': '99',
  'x-custom': 'leak',
  'access-control-allow-origin': '*',
}

const surfaces = [
  { path: '/v1/chat/completions', provider: 'chatty', model: 'chat', words: wordsOf('chat') },
  { path: '/v1/messages', provider: 'messy', model: 'messages', words: wordsOf('messages') },
] as const

/** Written by the server itself, for the connection. */
const ofTheWire = ['date', 'content-length', 'transfer-encoding', 'connection', 'keep-alive']
const always = [
  'content-type',
  'request-id',
  'x-request-id',
  'x-tollgate-attempts',
  'x-tollgate-provider',
  'x-tollgate-upstream-model',
]

function namesOf(response: Response): string[] {
  return [...response.headers.keys()].filter((name) => !ofTheWire.includes(name)).sort()
}

for (const surface of surfaces) {
  describe(surface.path, () => {
    const said = { texts: ['hi'], usage: usageIn(surface.model, { input: 10, output: 5 }) }
    const ask = (stream: boolean, respond: (reply: UpstreamReply) => Promise<void>) => {
      upstream.handle((_, reply) => respond(reply))
      return send('POST', surface.path, { ...version, body: echo({ model: `test/${surface.model}`, stream }) })
    }
    const expectServed = (response: Response, attempts = 1) => {
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'x-tollgate-provider': surface.provider,
        'x-tollgate-upstream-model': `upstream-${surface.model}-1`,
        'x-tollgate-attempts': String(attempts),
      })
      expect(response.headers.get('x-request-id')).toMatch(idPattern)
    }

    test('a whole answer says who served it and what it cost, and nothing of the provider', async () => {
      const response = await ask(false, (reply) => reply.json(200, surface.words.whole(said), foreign))
      expectServed(response)
      expect(namesOf(response)).toEqual([...always, 'x-tollgate-cost'].sort())
      expect(response.headers.get('content-type')).toBe('application/json')
      // 10 × $1 + 5 × $2 per million
      expect(response.headers.get('x-tollgate-cost')).toBe('0.00002')
    })

    test('a stream says who serves it, and nothing of the provider', async () => {
      const response = await ask(true, async (reply) => {
        await reply.startStream(foreign)
        await reply.chunk(surface.words.opening(said) + surface.words.text('hi') + surface.words.ending(said))
        await reply.finish()
      })
      await response.arrayBuffer()
      expectServed(response)
      expect(namesOf(response)).toEqual([...always, 'cache-control', 'x-accel-buffering'].sort())
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-cache, no-transform',
        'x-accel-buffering': 'no',
      })
    })

    const refusals: readonly [status: number, becomes: number, more: readonly string[]][] = [
      [400, 400, []],
      [401, 404, ['x-should-retry']],
      [429, 429, ['retry-after', 'retry-after-ms']],
      [503, 404, ['x-should-retry', 'retry-after', 'retry-after-ms']],
    ]
    for (const stream of [false, true]) {
      test.each(refusals)(
        `a provider's %d, ${stream ? 'streamed' : 'whole'}, becomes a %d of our own`,
        async (...row) => {
          const [status, becomes, more] = row
          const response = await ask(stream, (reply) => reply.json(status, { error: { message: 'no' } }, foreign))
          expect(response.status).toBe(becomes)
          // A 503 may pass, so the only route is tried again.
          expectServed(response, status === 503 ? 3 : 1)
          expect(namesOf(response)).toEqual([...always, ...more].sort())
          if (becomes === 404) expect(response.headers.get('x-should-retry')).toBe(String(status === 503))
        },
      )
    }
  })
}
