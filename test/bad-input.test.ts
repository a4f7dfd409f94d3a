// Bodies that are wrong, on both surfaces, over bare sockets: the contract's status and shape with the field named, and
// the same connection takes a good request right after.

import { afterAll, describe, expect, test } from 'bun:test'
import { startGateway, stopAll, upstreamConfig } from './parts/gateway.ts'
import { connect } from './parts/raw-client.ts'
import {
  bodyOf,
  bothSurfaces,
  chat,
  type ExpectedFailure,
  expectFailure,
  requestBytes,
  type TestSurface,
} from './parts/surfaces.ts'
import { startUpstream } from './parts/upstream.ts'
import { eitherAnswer } from './parts/upstream-words.ts'

const upstream = startUpstream((_, reply) => reply.json(200, eitherAnswer))
const gateway = await startGateway({ config: upstreamConfig(upstream.url) })

afterAll(() => stopAll(gateway, upstream))

/** Sends each body on one connection, a good request after every one. */
async function refuseAll(
  surface: TestSurface,
  bodies: Iterable<Uint8Array | string>,
  expected: ExpectedFailure,
): Promise<void> {
  const connection = await connect(gateway.url)
  const callsBefore = upstream.calls.length
  let good = 0
  for (const body of bodies) {
    await connection.send(requestBytes(surface, { key: gateway.key, body }))
    expectFailure(surface, await connection.response(), expected)
    await connection.send(requestBytes(surface, { key: gateway.key }))
    expect(await connection.response()).toMatchObject({ status: 200 })
    good++
  }
  // Nothing of what was refused has reached the provider.
  expect(upstream.calls.length - callsBefore).toBe(good)
  connection.leave()
}

const text = (bytes: string): Buffer => Buffer.from(bytes, 'latin1')
const invalid: ExpectedFailure = { code: 'INVALID_REQUEST' }

/** Bodies that are not one JSON object in UTF-8, made from a good one. */
const notJson: Record<string, (good: string) => (Uint8Array | string)[]> = {
  'an empty body': () => ['', ' ', '\r\n\t '],
  'a body cut short at any byte': (good) => Array.from(good, (_, at) => good.slice(0, at)).slice(1),
  'a body with more behind it': (good) => [`${good}x`, `${good}${good}`, `${good},`, `${good}\0`, `${good}]`],
  'a body that is no object': () => ['[]', '"x"', 'null', 'true', '12', '[{"model":"test/chat"}]', 'hello', '<xml/>'],
  'what only looks like JSON': (good) => [
    good.replaceAll('"', "'"),
    good.replace('}', ',}'),
    good.replace(/}$/, ',}'),
    good.replace('{', '{,'),
    good.replace(/}$/, ',"x":NaN}'),
    good.replace(/}$/, ',"x":01}'),
    good.replace(/}$/, ',"x":.5}'),
    good.replace(/}$/, ',"x":+1}'),
    good.replace(/}$/, ',"x":1.}'),
    good.replace(/}$/, ',"x":0x10}'),
    good.replace(/}$/, ',"x":undefined}'),
    good.replace(/}$/, ',x:1}'),
    good.replace(/}$/, '/* x */}'),
    good.replace(':', ' '),
    good.replace('hi', 'h\ni'),
    good.replace('hi', '\\x41'),
    good.replace('hi', '\\u00g0'),
    good.replace('hi', '\\'),
  ],
  'deep nesting': (good) =>
    [64, 1000, 100_000].map((deep) => good.replace(/}$/, `,"x":${'['.repeat(deep)}${']'.repeat(deep)}}`)),
  'deep nesting that never ends': (good) => [good.replace(/}$/, `,"x":${'{"a":'.repeat(50_000)}`)],
  'bytes that are not UTF-8': (good) => [
    text(good.replace('hi', '\xff')),
    text(good.replace('hi', '\xc3')),
    text(good.replace('hi', '\xc0\xaf')),
    text(good.replace('hi', '\xed\xa0\x80')),
    text(good.replace('hi', '\xf5\x80\x80\x80')),
    Buffer.from(good, 'utf16le'),
    Buffer.concat([text('\xff\xfe'), Buffer.from(good, 'utf16le')]),
    Bun.gzipSync(good),
  ],
  'a byte order mark twice': (good) => [`\ufeff\ufeff${good}`],
  'more members than anyone has': (good) => [
    good.replace(/}$/, `,${Array.from({ length: 5000 }, (_, at) => `"x${at}":1`).join()}}`),
  ],
}

/** A field with a raw value it must not have. Without a list of surfaces, on both. */
interface WrongField {
  readonly field: string
  readonly values: readonly (string | undefined)[]
  readonly says?: string | RegExp
  readonly only?: TestSurface['name']
}

const wrongFields: readonly WrongField[] = [
  { field: 'model', values: [undefined, 'null'], says: 'missing' },
  { field: 'model', values: ['5', '{}', '[]', 'true', '["test/chat"]'], says: 'must be a string' },
  { field: 'model', values: ['""', '" "', '"\\n"'], says: 'empty' },
  { field: 'messages', values: [undefined, 'null'], says: 'missing' },
  { field: 'messages', values: ['"hi"', '{}', '1', 'false'], says: 'must be an array' },
  { field: 'messages', values: ['[]', '[ ]', '[\n\t]'], says: 'empty' },
  { field: 'stream', values: ['"true"', '1', '{}', '[]'], says: 'must be true or false' },
  { field: 'max_tokens', values: ['"5"', 'true', '[5]', '{}'], says: 'must be a whole number' },
  { field: 'max_tokens', values: ['-1', '1.5', '1e400', '1e16', '-0.5'], says: 'must be a whole number' },
  { field: 'max_tokens', values: ['0'], says: 'at least 1', only: 'chat' },
  { field: 'max_tokens', values: [undefined, 'null'], says: 'missing', only: 'messages' },
  { field: 'max_completion_tokens', values: ['"5"', '0', '2.5', '{}'], says: 'must be a whole number', only: 'chat' },
  { field: 'n', values: ['0', '9', '1.5', '-1'], says: 'from 1 to 8', only: 'chat' },
  { field: 'n', values: ['"2"', '{}'], says: 'must be a whole number', only: 'chat' },
  { field: 'tools', values: ['{}', '"f"', '1'], says: 'must be an array' },
  { field: 'temperature', values: ['"hot"', '{}', '[1]', 'true'], says: 'must be a number' },
  { field: 'stream_options', values: ['"x"', '[]', 'true', '1'], says: 'must be an object', only: 'chat' },
  {
    field: 'stream_options',
    values: ['{"include_usage":true,"include_usage":false}'],
    says: 'twice',
    only: 'chat',
  },
  { field: 'system', values: ['5', '{}', 'true'], says: 'must be a string or an array', only: 'messages' },
]

for (const surface of bothSurfaces) {
  describe(`the ${surface.name} surface refuses`, () => {
    test.each(Object.keys(notJson))('%s', async (says) => {
      await refuseAll(surface, notJson[says]?.(bodyOf(surface)) ?? [], invalid)
    })

    const fields = wrongFields.filter(({ only }) => only === undefined || only === surface.name)
    test.each(fields)('`$field` of $values', async ({ field, values, says }) => {
      const bodies = values.map((value) => bodyOf(surface, { [field]: value }))
      await refuseAll(surface, bodies, { code: 'INVALID_REQUEST', param: field, says })
    })

    test('a member that appears twice, however it is spelled', async () => {
      const good = bodyOf(surface)
      const twice = [`"model":"${surface.model}"`, '"model":"other/model"', '"mod\\u0065l":1', '"\\u006dodel":null']
      const bodies = twice.map((member) => good.replace(/}$/, `,${member}}`))
      await refuseAll(surface, bodies, { code: 'INVALID_REQUEST', param: 'model', says: 'twice' })
      await refuseAll(surface, [good.replace('{', '{"é":1,"é":2,')], { code: 'INVALID_REQUEST', param: 'é' })
    })

    test('a model that does not exist, and says which one is near', async () => {
      const unknown = ['"test/nothing-like-it"', '"__proto__"', '"constructor"', '"a\\u0000b"', '"../../etc"', '"é😀"']
      const bodies = unknown.map((model) => bodyOf(surface, { model }))
      await refuseAll(surface, bodies, { code: 'NOT_FOUND', param: 'model', says: 'No model' })
      const near = [bodyOf(surface, { model: JSON.stringify(`${surface.model}s`) })]
      await refuseAll(surface, near, { code: 'NOT_FOUND', param: 'model', says: `Did you mean \`${surface.model}\`` })
      const [first = '', ...letters] = surface.model
      const inOtherCase = [bodyOf(surface, { model: JSON.stringify([first.toUpperCase(), ...letters].join('')) })]
      const says = `Names of models are case-sensitive: send \`${surface.model}\`.`
      await refuseAll(surface, inOtherCase, { code: 'NOT_FOUND', param: 'model', says })
      const long = [bodyOf(surface, { model: JSON.stringify('x'.repeat(50_000)) })]
      await refuseAll(surface, long, { code: 'NOT_FOUND', param: 'model', says: /^.{0,300}$/ })
    })

    test('no body that is merely unusual', async () => {
      const connection = await connect(gateway.url)
      const nested = `${'['.repeat(63)}${']'.repeat(63)}`
      const unusual = [
        bodyOf(surface, { x: nested }),
        bodyOf(surface, { x: '{"a":1,"a":2}', '': '""', __proto__x: '{"__proto__":{"y":1}}' }),
        bodyOf(surface, { messages: '[{"role":"user","content":"\\ud800 \\u0000"}]' }),
        bodyOf(surface, { temperature: 'null', tools: 'null', stream: 'null' }),
        `\n ${bodyOf(surface)} \r\n`,
        `\ufeff${bodyOf(surface)}`,
      ]
      for (const body of unusual) {
        await connection.send(requestBytes(surface, { key: gateway.key, body }))
        expect(await connection.response()).toMatchObject({ status: 200 })
      }
      connection.leave()
    })
  })
}

test('the chat surface refuses a wrong type inside stream_options by its path', async () => {
  const bodies = ['"yes"', '1', '{}', '[]'].map((value) =>
    bodyOf(chat, { stream: 'true', stream_options: `{"include_usage":${value}}` }),
  )
  await refuseAll(chat, bodies, { code: 'INVALID_REQUEST', param: 'stream_options.include_usage' })
})

test('the chat surface, which takes bodies of Responses too, names their fields', async () => {
  const body = (changed: Readonly<Record<string, string>>) => bodyOf(chat, { messages: undefined, ...changed })
  await refuseAll(chat, [body({ input: '[]' }), body({ input: '5' })], { code: 'INVALID_REQUEST', param: 'input' })
  const stateful = body({ input: '"hi"', previous_response_id: '"resp_1"' })
  await refuseAll(chat, [stateful], { code: 'INVALID_REQUEST', param: 'previous_response_id' })
})
