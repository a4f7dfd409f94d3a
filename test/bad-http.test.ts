// Requests whose HTTP is wrong or merely odd, on both surfaces, over bare sockets: media types, sizes, methods, paths,
// hosts and framing. Where HTTP allows it, the same connection takes a good request right after.

import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { startGateway, stopAll, upstreamConfig } from './parts/gateway.ts'
import { connect, type RawConnection } from './parts/raw-client.ts'
import {
  bodyOf,
  bothSurfaces,
  expectFailure,
  type RequestParts,
  requestBytes,
  type TestSurface,
} from './parts/surfaces.ts'
import { startUpstream } from './parts/upstream.ts'
import { eitherAnswer } from './parts/upstream-words.ts'

const bodyBytesMax = 65_536

let connection: RawConnection

const upstream = startUpstream((_, reply) => reply.json(200, eitherAnswer))
const limits = `server: { body_bytes_max: ${bodyBytesMax} }\n`
const gateway = await startGateway({ config: upstreamConfig(upstream.url, limits) })

beforeEach(async () => {
  connection = await connect(gateway.url)
})

afterEach(() => connection.leave())

afterAll(() => stopAll(gateway, upstream))

async function ask(surface: TestSurface, parts: Omit<RequestParts, 'key'> = {}) {
  await connection.send(requestBytes(surface, { key: gateway.key, ...parts }))
  return connection.response({ bodyless: parts.method === 'HEAD' })
}

async function expectUsable(surface: TestSurface): Promise<void> {
  expect(await ask(surface)).toMatchObject({ status: 200 })
}

/** The parser answers before the gateway sees anything, and ends the connection. */
async function expectRefusedByParser(bytes: Uint8Array | string, statuses: readonly number[]): Promise<void> {
  const calls = upstream.calls.length
  await connection.send(bytes)
  const response = await connection.response()
  if (response === 'closed') throw new Error('closed without an answer')
  expect(statuses).toContain(response.status)
  await connection.closed
  expect(upstream.calls).toHaveLength(calls)
}

const chunked = (body: string): string => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`

for (const surface of bothSurfaces) {
  const { path } = surface

  describe(`the ${surface.name} surface, media type`, () => {
    const wrong = [undefined, 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']
    const odd = [
      '',
      'json',
      'application/jsonp',
      'application/json,text/html',
      'application/octet-stream',
      'x'.repeat(5000),
    ]
    test.each([...wrong, ...odd])('%s is refused by name', async (type) => {
      const says = type ? 'Content-Type: application/json; got' : 'Content-Type: application/json'
      const response = await ask(surface, { headers: { 'content-type': type } })
      expectFailure(surface, response, { code: 'UNSUPPORTED_MEDIA_TYPE', says })
      await expectUsable(surface)
    })

    const right = [
      'application/json; charset=utf-8',
      'APPLICATION/JSON',
      'application/vnd.api+json',
      'application/json ;x=y',
    ]
    test.each(right)('%s is taken', async (type) => {
      expect(await ask(surface, { headers: { 'content-type': type } })).toMatchObject({ status: 200 })
    })
  })

  describe(`the ${surface.name} surface, size`, () => {
    const filled = (length: number): string => {
      const rest = length - bodyOf(surface, { x: '""' }).length
      return bodyOf(surface, { x: `"${'y'.repeat(rest)}"` })
    }
    const tooLarge = { code: 'PAYLOAD_TOO_LARGE', says: '65536 bytes' }

    test('a body of exactly the limit is taken, with a length and in chunks', async () => {
      expect(await ask(surface, { body: filled(bodyBytesMax) })).toMatchObject({ status: 200 })
      const headers = { 'content-length': undefined, 'transfer-encoding': 'chunked' }
      expect(await ask(surface, { body: chunked(filled(bodyBytesMax)), headers })).toMatchObject({ status: 200 })
    })

    test('one byte more is refused by its length', async () => {
      expectFailure(surface, await ask(surface, { body: filled(bodyBytesMax + 1) }), tooLarge)
      await expectUsable(surface)
    })

    test('one byte more is refused in chunks', async () => {
      const headers = { 'content-length': undefined, 'transfer-encoding': 'chunked' }
      expectFailure(surface, await ask(surface, { body: chunked(filled(bodyBytesMax + 1)), headers }), tooLarge)
      await expectUsable(surface)
    })

    test('a length of gigabytes is refused before any of it is sent', async () => {
      const headers = { 'content-length': '8000000000' }
      expectFailure(surface, await ask(surface, { body: '', headers }), tooLarge)
    })
  })

  describe(`the ${surface.name} surface, method`, () => {
    test.each(['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE'])(
      '%s is answered with what is allowed',
      async (method) => {
        for (const body of ['', bodyOf(surface)]) {
          const response = await ask(surface, { method, body })
          expectFailure(surface, response, { code: 'METHOD_NOT_ALLOWED', says: /use POST/ })
          expect(response === 'closed' ? null : response.headers.get('allow')).toBe('POST')
          await expectUsable(surface)
        }
      },
    )

    test('HEAD is too, without a body', async () => {
      expect(await ask(surface, { method: 'HEAD', body: '' })).toMatchObject({ status: 405, body: '' })
      await expectUsable(surface)
    })

    test('one that HTTP does not have is refused', async () => {
      await expectRefusedByParser(`FROBNICATE ${path} HTTP/1.1\r\nhost: x\r\n\r\n`, [501])
    })
  })

  describe(`the ${surface.name} surface, path`, () => {
    const bare = path.slice('/v1'.length)
    const same = [bare, `/v1${path}`, `${path}?beta=true`, `${path}?`, `${path}/`, `http://other.example${path}`]
    test.each([...same, `${path}?x=/../\\//`])('%s leads there', async (target) => {
      expect(await ask(surface, { target })).toMatchObject({ status: 200 })
    })

    // A proxy that guards a prefix sees the path as it was sent; the gateway must not serve it as another one.
    const doubled = [`/${path}`, `/v1/${bare}`, `${path}//`, '//', '//api/keys', '/v1//api/keys']
    test.each(doubled)('%s is refused for its empty segment', async (target) => {
      const response = await ask(surface, { target })
      expectFailure(surface, response, { code: 'INVALID_REQUEST', says: /empty segment.*base URL/ })
      await expectUsable(surface)
    })

    const dots = [`/v1/x/..${bare}`, `/v1/x/%2e%2e${bare}`, `/v1/./${bare.slice(1)}`, `${path}/.`, `${path}/x/..`]
    const spellings = ['..', '%2e%2e', '%2E%2e', '.%2E', '%2e.'].map((parent) => `/v1/${parent}/api/keys`)
    const encoded = ['/v1/models/x%2F..%2F..%2Fapi', '/v1%2f..%2fapi/keys', '/v1/models/..%2Fx']
    const backslashes = ['/v1\\..\\api\\keys', path.replaceAll('/', '\\').replace('\\', '/'), '/v1/models/a%5Cb']
    const others = [
      '/v1%\\..\\api\\keys',
      '/v1/models/%zz',
      `${path}#x`,
      '/api/keys#/v1/models',
      '/v1/..#',
      'http://other.example/v1/../api/keys',
    ]
    const deep = [`/v1${'/x'.repeat(20)}`, `/v1${'/x'.repeat(20)}${'/..'.repeat(20)}/chat/completions`]
    test.each([...dots, ...spellings, ...encoded, ...backslashes, ...others, ...deep])(
      '%s is refused',
      async (target) => {
        const response = await ask(surface, { target })
        expectFailure(surface, response, { code: 'INVALID_REQUEST', says: 'does not normalise paths' })
        await expectUsable(surface)
      },
    )

    const near = [path.slice(0, -1), `${path}s`, path.replace('/v1', '/V1')]
    test.each(near)('%s does not, and the answer says what was meant', async (target) => {
      expectFailure(surface, await ask(surface, { target }), { code: 'NOT_FOUND', says: `Did you mean ${path}?` })
      await expectUsable(surface)
    })

    const nowhere = ['/v1', '/v2/chat', '/v1/%00', '/..;/v1', '/v1%2Fmodels', '/v1/__proto__', '/constructor']
    test.each([...nowhere, `${path}%00`, `${path};x=y`, `/v1/v1${path}`])('%s leads nowhere', async (target) => {
      expectFailure(surface, await ask(surface, { target }), { code: 'NOT_FOUND' })
      await expectUsable(surface)
    })

    test('no path is served in another form than it was sent', async () => {
      const pieces = '/ / \\ . .. %2e %2F %5c ; # % %ff %zz %00 \x7f é v1 api keys :s1 *'.split(' ')
      let random = 20_261_116
      const next = (below: number): number => {
        random = (random * 1_103_515_245 + 12_345) % 2_147_483_648
        return Math.floor((random / 2_147_483_648) * below)
      }
      for (let round = 0; round < 500; round++) {
        const target = `/q${Array.from({ length: 1 + next(9) }, () => pieces[next(pieces.length)]).join('')}`
        const response = await ask(surface, { method: 'GET', target: Buffer.from(target).toString('latin1'), body: '' })
        if (response === 'closed') throw new Error(`no answer to ${target}`)
        if (response.status === 400) continue
        expect(response.status).toBe(404)
        // The message names the path that nothing was found at.
        const [, served = ''] = / GET (\S+)\. /.exec(JSON.parse(response.body).error.message) ?? []
        const shown = served.replaceAll('%C3%A9', 'é').replaceAll('%7F', '\x7f')
        expect(shown).toBe(target)
      }
    })

    test('a very long one is not repeated in full', async () => {
      const message = expectFailure(surface, await ask(surface, { target: `/v1/${'x'.repeat(9000)}` }), {
        code: 'NOT_FOUND',
      })
      expect(message.length).toBeLessThan(500)
      await expectUsable(surface)
    })

    test.each(['/v1/responses/resp_1', '/responses/resp_1/input_items'])(
      '%s says that nothing is stored',
      async (target) => {
        const says = /is not served: responses are not stored here/
        expectFailure(surface, await ask(surface, { target }), { code: 'NOT_FOUND', says })
      },
    )
  })

  describe(`the ${surface.name} surface, host and framing`, () => {
    // None of these may change which path is matched.
    const hosts = ['..', 'x:99999', '1.2.3.4.5', '[1:2]', 'xn--', '', '*', "a!$&'()*+,;=~%zz"]
    test.each(hosts)('a host of "%s" changes nothing', async (host) => {
      expect(await ask(surface, { headers: { host } })).toMatchObject({ status: 200 })
      // Another path, which is served in another form.
      await connection.send(Buffer.from(`GET /healthz HTTP/1.1\r\nhost: ${host}\r\n\r\n`, 'latin1'))
      expect(await connection.response()).toMatchObject({ status: 200, body: 'ok\n' })
    })

    const malformed = ['x/v1/models?', 'x/v1/models#', 'a/b', 'a b', '[::1', 'u:p@x', 'http://y/', 'x:y', '\\', '\xe9']
    test.each(malformed)('a host of "%s" is refused', async (host) => {
      const bytes = requestBytes(surface, { key: gateway.key, headers: { host } })
      await expectRefusedByParser(Buffer.from(bytes.toString(), 'latin1'), [400])
    })

    test('a missing host is refused', async () => {
      await expectRefusedByParser(requestBytes(surface, { key: gateway.key, headers: { host: undefined } }), [400])
    })

    test.each(['http://x#', 'http://x\\', 'http://u:p@x', 'http://', 'http://x%2f', 'ftp://x', '*', 'x'])(
      'a target that starts with %s is refused',
      async (start) => {
        await expectRefusedByParser(requestBytes(surface, { key: gateway.key, target: start + path }), [400])
      },
    )

    const expecting = { expect: '100-continue' }
    test('Expect: 100-continue with a bad key is refused before any of the body is sent', async () => {
      const headers = { ...expecting, 'content-length': '5000', authorization: 'Bearer sk-tg-wrong' }
      const message = expectFailure(surface, await ask(surface, { body: '', headers }), { code: 'UNAUTHORIZED' })
      expect(message).toContain('does not accept this key')
    })

    test('Expect: 100-continue with a good key is served', async () => {
      const [head = '', body = ''] = requestBytes(surface, { key: gateway.key, headers: expecting })
        .toString()
        .split(/(?<=\r\n\r\n)/)
      await connection.send(head)
      await connection.until('HTTP/1.1 100 Continue')
      await connection.send(body)
      expect(await connection.response()).toMatchObject({ status: 200 })
    })

    test.each(['x', '100-continue, x'])('an expectation of "%s" is refused', async (expected) => {
      await expectRefusedByParser(requestBytes(surface, { key: gateway.key, headers: { expect: expected } }), [417])
    })

    const framings: Record<string, Record<string, string | undefined>> = {
      'a negative length': { 'content-length': '-1' },
      'a length that is no number': { 'content-length': 'abc' },
      'a length beyond counting': { 'content-length': '9'.repeat(30) },
      'two hosts': { 'x-a': 'b\r\nhost: x' },
      'two lengths': { 'content-length': '3\r\ncontent-length: 4' },
      'a length and chunks': { 'transfer-encoding': 'chunked' },
      'an unknown transfer coding': { 'content-length': undefined, 'transfer-encoding': 'gzip' },
      'chunks that are none': { 'content-length': undefined, 'transfer-encoding': 'chunked' },
      'a NUL in a header': { 'x-a': 'b\0c' },
      'a header without a colon': { 'x-a': 'b\r\nfoo' },
      'a space before the colon': { 'x-a ': 'b' },
      'a folded header': { 'x-a': 'b\r\n c' },
    }
    test.each(Object.keys(framings))('%s is refused', async (says) => {
      const bytes = requestBytes(surface, { key: gateway.key, headers: framings[says] ?? {} })
      await expectRefusedByParser(bytes, [400])
    })

    test('headers beyond 16 KiB are refused', async () => {
      const one = requestBytes(surface, { key: gateway.key, headers: { 'x-big': 'x'.repeat(20_000) } })
      await expectRefusedByParser(one, [431])
      connection = await connect(gateway.url)
      const many = Object.fromEntries(Array.from({ length: 2000 }, (_, at) => [`x-${at}`, 'y']))
      await expectRefusedByParser(requestBytes(surface, { key: gateway.key, headers: many }), [431])
    })

    test('more than 200 headers are refused', async () => {
      const many = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`x-${at}`, 'y']))
      await expectRefusedByParser(requestBytes(surface, { key: gateway.key, headers: many }), [431])
    })

    const chunkedBodies: Record<string, string> = {
      'a word after the size of a chunk': '2 x\r\n{}\r\n0\r\n\r\n',
      'a control character in a chunk extension': '2;a=\x01\r\n{}\r\n0\r\n\r\n',
      'a trailer without a colon': '2\r\n{}\r\n0\r\nabc\r\n\r\n',
      'a trailer with a NUL': '2\r\n{}\r\n0\r\na: \0\r\n\r\n',
      'chunk extensions of more than 16 KiB': `${`1;${'e'.repeat(2000)}\r\n \r\n`.repeat(9)}0\r\n\r\n`,
    }
    test.each(Object.keys(chunkedBodies))('%s is refused', async (says) => {
      const headers = { 'content-length': undefined, 'transfer-encoding': 'chunked' }
      const bytes = requestBytes(surface, { key: gateway.key, headers, body: chunkedBodies[says] ?? '' })
      const calls = upstream.calls.length
      await connection.send(bytes)
      // A fault that arrives together with the head is refused by the parser; a later one breaks the body.
      expect(await connection.response()).toMatchObject({ status: 400 })
      await connection.closed
      expect(upstream.calls).toHaveLength(calls)
    })

    test('bytes that are not HTTP are refused', async () => {
      // The parser takes the raw NUL in a target for a wrong version; a 505 is all it can say.
      const good = requestBytes(surface, { key: gateway.key }).toString()
      const garbage = [
        'GARBAGE\r\n\r\n',
        '\x16\x03\x01\0\xc8\x01\0\0\xc4\x03\x03',
        good.replace(' HTTP/1.1', '\0 HTTP/1.1'),
      ]
      for (const bytes of [...garbage, good.replace('HTTP/1.1', 'HTTP/2.0'), good.replace(path, path.slice(1))]) {
        connection = await connect(gateway.url)
        await expectRefusedByParser(bytes, [400, 505])
      }
    })
  })
}

test('clients may warm up their connection without a key', async () => {
  for (const path of ['/', '/api/hello']) {
    await connection.send(`HEAD ${path} HTTP/1.1\r\nhost: x\r\n\r\n`)
    expect(await connection.response({ bodyless: true })).toMatchObject({ status: 200, body: '' })
  }
})
