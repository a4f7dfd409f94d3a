// Keys and versions as clients send them, good and bad, on every endpoint that asks for a key: who is let in, what the
// others get, and that nothing of a refused value comes back.

import { afterAll, describe, expect, test } from 'bun:test'
import { createApiKey } from '../src/tenancy/api-key.ts'
import { startGateway, stopAll, upstreamConfig } from './parts/gateway.ts'
import { connect, type RawResponse } from './parts/raw-client.ts'
import {
  bothSurfaces,
  expectFailure,
  messages,
  type RequestParts,
  requestBytes,
  type TestSurface,
} from './parts/surfaces.ts'
import { startUpstream } from './parts/upstream.ts'
import { eitherAnswer } from './parts/upstream-words.ts'

const upstream = startUpstream((_, reply) => reply.json(200, eitherAnswer))
const gateway = await startGateway({ config: upstreamConfig(upstream.url) })

afterAll(() => stopAll(gateway, upstream))

type SentHeaders = Readonly<Record<string, string | undefined>>

async function ask(surface: TestSurface, parts: Omit<RequestParts, 'key'>): Promise<RawResponse | 'closed'> {
  const connection = await connect(gateway.url)
  await connection.send(requestBytes(surface, { key: gateway.key, ...parts }))
  const response = await connection.response()
  if (response !== 'closed') {
    await connection.send(requestBytes(surface, { key: gateway.key }))
    expect(await connection.response()).toMatchObject({ status: 200 })
  }
  connection.leave()
  return response
}

interface Endpoint {
  readonly surface: TestSurface
  readonly method: string
  readonly target: string
}

const endpoints: readonly Endpoint[] = [
  ...bothSurfaces.map((surface) => ({ surface, method: 'POST', target: surface.path })),
  { surface: messages, method: 'POST', target: '/v1/messages/count_tokens' },
  ...bothSurfaces.map((surface) => ({ surface, method: 'GET', target: '/v1/models' })),
  ...bothSurfaces.map((surface) => ({ surface, method: 'GET', target: `/v1/models/${surface.model}` })),
]

/** How a good key may be sent. */
const goodForms: Record<string, (key: string) => SentHeaders> = {
  'as bearer': (key) => ({ authorization: `Bearer ${key}` }),
  'as bearer in lower case': (key) => ({ authorization: `bearer ${key}` }),
  'as bearer in upper case': (key) => ({ authorization: `BEARER ${key}` }),
  'as bearer with more spaces': (key) => ({ authorization: `  Bearer   ${key}  ` }),
  'as x-api-key': (key) => ({ authorization: undefined, 'x-api-key': key }),
  'as x-api-key with spaces': (key) => ({ authorization: undefined, 'X-API-Key': `  ${key} ` }),
  'in both headers': (key) => ({ authorization: `Bearer ${key}`, 'x-api-key': key }),
  'as x-api-key beside the Basic of a proxy': (key) => ({ authorization: 'Basic dXNlcjpwYXNz', 'x-api-key': key }),
  'as bearer beside a foreign x-api-key': (key) => ({ authorization: `Bearer ${key}`, 'x-api-key': 'sk-ant-api03-x' }),
  'as x-api-key beside a foreign bearer': (key) => ({ authorization: 'Bearer sk-proj-abc', 'x-api-key': key }),
  'as bearer beside an unknown x-api-key': (key) => ({ authorization: `Bearer ${key}`, 'x-api-key': createApiKey() }),
  'as bearer beside an empty x-api-key': (key) => ({ authorization: `Bearer ${key}`, 'x-api-key': '' }),
}

const swapped = (key: string): string => key.slice(0, 10) + (key[10] === 'a' ? 'b' : 'a') + key.slice(11)

/** Refused values; they must not be in the response. */
const badForms: Record<string, (key: string) => SentHeaders> = {
  'nothing at all': () => ({}),
  'an empty header': () => ({ authorization: '' }),
  'a scheme without a key': () => ({ authorization: 'Bearer' }),
  'a key without a scheme': (key) => ({ authorization: key }),
  'another scheme': (key) => ({ authorization: `Token ${key}` }),
  'Basic alone': (key) => ({ authorization: `Basic ${Buffer.from(`:${key}`).toString('base64')}` }),
  'a key of somebody else': () => ({ authorization: 'Bearer sk-ant-api03-secret-of-a-provider-0000000000' }),
  'a key that is unknown here': () => ({ authorization: `Bearer ${createApiKey()}` }),
  'a key with one letter changed': (key) => ({ authorization: `Bearer ${swapped(key)}` }),
  'a key cut short': (key) => ({ authorization: `Bearer ${key.slice(0, -1)}` }),
  'a key with a letter more': (key) => ({ authorization: `Bearer ${key}x` }),
  'a key in another case': (key) => ({ authorization: `Bearer ${key.toUpperCase()}` }),
  'a key in quotes': (key) => ({ authorization: `Bearer "${key}"` }),
  'two keys in one header': (key) => ({ authorization: `Bearer ${swapped(key)}, Bearer ${key}` }),
  'a very long key': () => ({ authorization: `Bearer sk-tg-${'x'.repeat(12_000)}` }),
  'a key of other letters': () => ({ 'x-api-key': "sk-tg-'; DROP TABLE keys; --\xe9\xff" }),
  'unknown keys in both headers': () => ({ authorization: `Bearer ${createApiKey()}`, 'x-api-key': createApiKey() }),
  'the operator credential of the provider': () => ({ authorization: 'Bearer upstream-secret-chat' }),
}

for (const { surface, method, target } of endpoints) {
  const body = method === 'GET' ? '' : undefined
  const asked = { method, target, ...(body === undefined ? {} : { body }) }

  describe(`${method} ${target}, a client of the ${surface.name} surface`, () => {
    test.each(Object.keys(goodForms))('is let in with its key %s', async (form) => {
      const headers = goodForms[form]?.(gateway.key) ?? {}
      expect(await ask(surface, { ...asked, headers })).toMatchObject({ status: 200 })
    })

    test.each(Object.keys(badForms))('is refused with %s', async (form) => {
      const headers: SentHeaders = { authorization: undefined, ...badForms[form]?.(gateway.key) }
      const message = expectFailure(surface, await ask(surface, { ...asked, headers }), { code: 'UNAUTHORIZED' })
      for (const value of Object.values(headers)) {
        const secret = value?.replace(/^\w+ /, '') ?? ''
        if (secret.length > 8) expect(message).not.toContain(secret.slice(0, -4))
      }
      expect(message).not.toContain(gateway.key)
    })

    test('is refused with a key in the query', async () => {
      const query = `${target}?api_key=${gateway.key}&key=${gateway.key}`
      const response = await ask(surface, { ...asked, target: query, headers: { authorization: undefined } })
      expectFailure(surface, response, { code: 'UNAUTHORIZED', says: /Authorization: Bearer .*x-api-key: / })
    })

    test('is refused before anything else is looked at', async () => {
      const headers = { authorization: undefined, 'content-type': 'text/plain' }
      const bad = method === 'POST' ? { ...asked, body: '{' } : asked
      expectFailure(surface, await ask(surface, { ...bad, headers }), { code: 'UNAUTHORIZED' })
    })
  })
}

describe.each(['/v1/messages', '/v1/messages/count_tokens'])('the version on %s', (target) => {
  const wrong = [
    undefined,
    '',
    'latest',
    '2023-6-1',
    '20230601',
    '2025-13-01',
    '2025-01-32',
    '2025-00-10',
    '2023-06-01T00:00:00Z',
  ]
  test.each([...wrong, '2023-06-01, 2023-06-01', 'v2023-06-01', '١٩٩٩-٠١-٠١'])(
    '%s is refused, and the answer says what to send',
    async (version) => {
      const response = await ask(messages, { target, headers: { 'anthropic-version': version } })
      expectFailure(messages, response, {
        code: 'INVALID_REQUEST',
        param: 'anthropic-version',
        says: /send a date such as `anthropic-version: \d{4}-\d{2}-\d{2}`/,
      })
    },
  )

  test.each(['2023-06-01', '2026-10-21', '2025-01-01', '2099-12-31'])('%s is taken', async (version) => {
    expect(await ask(messages, { target, headers: { 'anthropic-version': version } })).toMatchObject({ status: 200 })
  })
})

describe('the list of models', () => {
  for (const surface of bothSurfaces) {
    test(`refuses an unknown model in the shape of the ${surface.name} surface`, async () => {
      for (const id of ['test/chad', 'test%2Fchad', '%00', `${'x'.repeat(2000)}`]) {
        const response = await ask(surface, { method: 'GET', target: `/v1/models/${id}`, body: '' })
        expectFailure(surface, response, { code: 'NOT_FOUND', param: 'model' })
      }
      // Not a path that could name one: it would have to be normalised first.
      for (const id of ['%', '..%2f..%2fetc']) {
        const response = await ask(surface, { method: 'GET', target: `/v1/models/${id}`, body: '' })
        expectFailure(surface, response, { code: 'INVALID_REQUEST' })
      }
    })

    test(`refuses other methods in the shape of the ${surface.name} surface`, async () => {
      for (const target of ['/v1/models', `/v1/models/${surface.model}`]) {
        const response = await ask(surface, { method: 'POST', target })
        expectFailure(surface, response, { code: 'METHOD_NOT_ALLOWED' })
        expect(response === 'closed' ? null : response.headers.get('allow')).toContain('GET')
      }
    })
  }

  test.each(['0', '-1', '1.5', 'abc', '1001', ''])('refuses a limit of "%s"', async (limit) => {
    const target = `/v1/models?limit=${encodeURIComponent(limit)}`
    const response = await ask(messages, { method: 'GET', target, body: '' })
    expectFailure(messages, response, { code: 'INVALID_REQUEST', param: 'limit' })
  })
})
