// Good requests with random damage to body and headers, against the running gateway: it answers every one with a 2xx or
// a 4xx in the surface's shape, stays up, and no prototype is touched. A failing seed is printed and can be replayed.

import { afterAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { startGateway, stopAll, upstreamConfig } from './parts/gateway.ts'
import { connect, type RawConnection, type RawResponse } from './parts/raw-client.ts'
import { addressed, allSurfaces, bodyOf, chat, messages, requestBytes, type TestSurface } from './parts/surfaces.ts'
import { startUpstream } from './parts/upstream.ts'
import { eitherAnswer } from './parts/upstream-words.ts'

const runs = 400

/** Responses and Gemini's API on the model of a chat provider: what is damaged is parsed. */
const surfaces: readonly TestSurface[] = allSurfaces.map((surface) =>
  surface === chat || surface === messages
    ? surface
    : { ...surface, model: chat.model, members: { ...surface.members, model: JSON.stringify(chat.model) } },
)

const prototypeBefore = Object.getOwnPropertyNames(Object.prototype)

const upstream = startUpstream(async (call, reply) => {
  if (Buffer.from(call.body).includes('"stream":true')) {
    await reply.startStream()
    await reply.chunk('data: {"choices":[{"delta":{"content":"x"}}]}\n\ndata: [DONE]\n\n')
    await reply.chunk('event: content_block_delta\ndata: {}\n\nevent: message_stop\ndata: {}\n\n')
    await reply.finish()
  } else await reply.json(200, eitherAnswer)
})
const gateway = await startGateway({ config: upstreamConfig(upstream.url, 'server: { body_bytes_max: 100000 }\n') })

afterAll(() => stopAll(gateway, upstream))

/** A member's value: any JSON, some of it shaped to hurt. */
const hostileValue = fc.oneof(
  fc.json({ maxDepth: 4 }),
  fc.constantFrom(
    '{"__proto__":{"polluted":true}}',
    '{"constructor":{"prototype":{"polluted":true}}}',
    '["__proto__"]',
    '"\\ud800"',
    '"\\u0000"',
    '1e999',
    '-0',
    '9007199254740993',
    '"data: [DONE]\\n\\n"',
    '{"include_usage":{}}',
    '[[[[[[[[[[]]]]]]]]]]',
    `"${'x'.repeat(3000)}"`,
  ),
)

const memberName = fc.oneof(
  fc.constantFrom('model', 'messages', 'stream', 'max_tokens', 'max_completion_tokens', 'stream_options', 'n', 'tools'),
  fc.constantFrom('input', 'store', 'contents', 'systemInstruction', 'generationConfig', 'toolConfig'),
  fc.constantFrom('system', 'temperature', '__proto__', 'constructor', 'toString', 'hasOwnProperty', ''),
  fc.string(),
)

/** A good body with some members replaced or added, then some of its bytes changed, dropped or repeated. */
const damagedBody = (surface: TestSurface): fc.Arbitrary<Uint8Array> => {
  const members = fc.array(fc.tuple(memberName, hostileValue), { maxLength: 3 })
  const cut = fc.record({
    at: fc.nat(200),
    drop: fc.nat(6),
    insert: fc.oneof(
      fc.uint8Array({ maxLength: 6 }),
      fc.constantFrom(...['"', '{', '[', ',', '\\', '\0', '﻿'].map(utf8)),
    ),
  })
  return fc.tuple(members, fc.array(cut, { maxLength: 3 })).map(([changed, cuts]) => {
    // Not an object: a member called __proto__ would vanish in it.
    const added = changed.map(([name, value]) => `,${JSON.stringify(name)}:${value}`).join('')
    let body: Uint8Array = utf8(addressed(surface, bodyOf(surface)).body.replace(/}$/, () => `${added}}`))
    for (const { at, drop, insert } of cuts) {
      body = Buffer.concat([body.subarray(0, at), insert, body.subarray(at + drop)])
    }
    return body
  })
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

/** Header values that HTTP can carry; what it cannot is the business of bad-http.test.ts. */
const headerValue = fc.oneof(
  fc.string({
    unit: fc
      .integer({ min: 0x20, max: 0xff })
      .filter((code) => code !== 0x7f)
      .map((code) => String.fromCharCode(code)),
  }),
  fc.constantFrom('', 'application/json', 'application/json;', 'Bearer', 'Bearer  ', 'Basic eA==', 'null', '0', '*/*'),
)
/** A malformed host is refused before the surfaces (bad-http.test.ts). */
const hostValue = fc.constantFrom(
  '',
  'x',
  'EXAMPLE.com:80',
  '127.0.0.1:',
  '[::1]:8080',
  "a%2F..!$&'()*+,;=~_-",
  'localhost:99999',
)
const otherHeaders = fc.dictionary(
  fc.constantFrom(
    'authorization',
    'x-api-key',
    'x-goog-api-key',
    'content-type',
    'anthropic-version',
    'anthropic-beta',
    'accept',
    'accept-encoding',
    'content-encoding',
    'cookie',
    'origin',
    'x-forwarded-for',
    'x-stainless-timeout',
    'x-stainless-read-timeout',
    'x-tollgate-strict',
    'x-request-id',
  ),
  headerValue,
  { maxKeys: 4 },
)
const damagedHeaders = fc
  .tuple(otherHeaders, fc.option(hostValue, { nil: undefined }))
  .map(([others, host]) => (host === undefined ? others : { ...others, host }))

function expectAnswer(surface: TestSurface, response: RawResponse | 'closed'): void {
  if (response === 'closed') throw new Error('the connection was closed instead of an answer')
  const { status, headers, body } = response
  if (status === 200) return
  expect(status).toBeGreaterThanOrEqual(400)
  expect(status).toBeLessThan(500)
  expect(headers.get('content-type')).toBe('application/json')
  const id = headers.get('request-id')
  const error = { type: expect.any(String), message: expect.any(String), code: expect.stringMatching(/^[A-Z_]+$/) }
  const parsed: unknown = JSON.parse(body)
  if (surface.name === 'gemini') {
    const google = { code: status, message: expect.any(String), status: expect.stringMatching(/^[A-Z_]+$/) }
    expect(parsed).toEqual({ error: { ...google, details: expect.any(Array) } })
  } else if (surface.name === 'messages') expect(parsed).toEqual({ type: 'error', error, request_id: id })
  else expect(parsed).toEqual({ error: { ...error, param: (parsed as { error: { param: unknown } }).error.param } })
}

/** Runs the property on one connection after another: a fresh one only where the last was closed. */
async function fuzz<Damage>(
  surface: TestSurface,
  damage: fc.Arbitrary<Damage>,
  bytesOf: (damage: Damage) => Uint8Array,
): Promise<void> {
  let connection: RawConnection | undefined
  await fc.assert(
    fc.asyncProperty(damage, async (damaged) => {
      if (!connection || connection.isClosed()) connection = await connect(gateway.url)
      await connection.send(bytesOf(damaged))
      expectAnswer(surface, await connection.response())
    }),
    { numRuns: runs, interruptAfterTimeLimit: 10_000 },
  )
  connection?.leave()
}

for (const surface of surfaces) {
  const target = addressed(surface, bodyOf(surface)).path
  describe(`the ${surface.name} surface`, () => {
    test('answers any damaged body', async () => {
      await fuzz(surface, damagedBody(surface), (body) => requestBytes(surface, { key: gateway.key, target, body }))
    })

    test('answers any bytes at all', async () => {
      const bytes = fc.oneof(
        fc.uint8Array({ maxLength: 200 }),
        fc.string({ unit: 'grapheme' }).map(utf8),
        fc.json().map(utf8),
      )
      await fuzz(surface, bytes, (body) => requestBytes(surface, { key: gateway.key, target, body }))
    })

    test('answers any headers', async () => {
      await fuzz(surface, damagedHeaders, (headers) => requestBytes(surface, { key: gateway.key, headers }))
    })
  })
}

test('no input has changed a prototype, and the gateway still serves', async () => {
  expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(prototypeBefore)
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  const defects = gateway.logged().filter(({ level }) => level === 'error')
  expect(defects).toEqual([])
  for (const surface of surfaces) {
    const connection = await connect(gateway.url)
    await connection.send(requestBytes(surface, { key: gateway.key }))
    expect(await connection.response()).toMatchObject({ status: 200 })
    connection.leave()
  }
})
