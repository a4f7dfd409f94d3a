import { expect, test } from 'bun:test'
import { addJsonResourceAttributes, addResourceAttributes } from './otlp-attributes.ts'

// Written by hand from the protobuf encoding: a field of bytes is its number × 8 + 2, the length, and the bytes.

const bytes = (...parts: readonly (number | string)[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.of(part) : Buffer.from(part, 'latin1'))))

/** `a=b` as an attribute in a resource: 0a 08, name 0a 01 a, value 12 03, its text 0a 01 b. */
const plain = '\x0a\x08\x0a\x01a\x12\x03\x0a\x01b'
const added = '\x0a\x12\x0a\x0atollgate.k\x12\x04\x0a\x02id'

const add = (body: Uint8Array) => addResourceAttributes(body, { 'tollgate.k': 'id' })

test('adds attributes to the resource of every group, and leaves the rest byte for byte', () => {
  const group = (resource: string) =>
    bytes(0x0a, String.fromCharCode(resource.length), resource, '\x12\x03xyz', '\x1a\x01u')
  const whole = (resource: string) => {
    const inner = group(resource)
    return bytes(0x0a, inner.length, inner.toString('latin1'))
  }
  // A second group, and fields of every type that this does not know: a number, 8 bytes, 4 bytes.
  const unknown = bytes(0x10, 0x96, 0x01, 0x19, '12345678', 0x25, '1234')
  const sent = Buffer.concat([whole(plain), unknown, whole('')])
  expect(Buffer.from(add(sent) ?? [])).toEqual(Buffer.concat([whole(plain + added), unknown, whole(added)]))
})

test('adds a resource where there is none, and joins one that is there in parts', () => {
  expect(Buffer.from(add(bytes(0x0a, 0x05, '\x12\x03xyz')) ?? [])).toEqual(
    bytes(0x0a, 2 + added.length + 5, 0x0a, added.length, added, '\x12\x03xyz'),
  )
  const parts = bytes(0x0a, plain.length, plain, 0x0a, plain.length, plain)
  expect(Buffer.from(add(bytes(0x0a, parts.length, parts.toString('latin1'))) ?? [])).toEqual(
    bytes(0x0a, 2 + plain.length * 2 + added.length, 0x0a, plain.length * 2 + added.length, plain + plain + added),
  )
  expect(add(bytes())).toEqual(bytes())
})

test('a client cannot claim to be somebody else', () => {
  const claimed = '\x0a\x12\x0a\x0atollgate.k\x12\x04\x0a\x02me'
  const resource = claimed + plain
  const sent = bytes(0x0a, resource.length + 2, 0x0a, resource.length, resource)
  expect(Buffer.from(add(sent) ?? [])).toEqual(
    bytes(0x0a, 2 + plain.length + added.length, 0x0a, plain.length + added.length, plain + added),
  )
})

test('lengths of more than a byte are kept', () => {
  const long = 'x'.repeat(300)
  // 300 is ac 02; the group has 2 + 20 of the resource and 3 + 300 of the rest, 325 = c5 02.
  const sent = bytes(0x0a, 0xaf, 0x02, 0x12, 0xac, 0x02, long)
  expect(Buffer.from(add(sent) ?? [])).toEqual(
    bytes(0x0a, 0xc5, 0x02, 0x0a, added.length, added, 0x12, 0xac, 0x02, long),
  )
})

test('what is no message is refused', () => {
  for (const body of [
    bytes(0x0a),
    bytes(0x0a, 0x05, 'xyz'),
    bytes(0x0a, 0x01, 0x0a),
    bytes(0x0b),
    bytes(0x02, 0x00),
    bytes('{"resourceMetrics":[]}'),
    bytes(0x08, ...Array(11).fill(0xff)),
  ]) {
    expect([body.toString('hex'), add(body)]).toEqual([body.toString('hex'), undefined])
  }
})

const addJson = (text: string) => addJsonResourceAttributes(Buffer.from(text), { 'tollgate.k': 'id' })
const ours = { key: 'tollgate.k', value: { stringValue: 'id' } }

test('adds attributes to every resource in JSON too, in place of claimed ones', () => {
  const plain = { key: 'a', value: { stringValue: 'b' } }
  const claimed = { key: 'tollgate.k', value: { stringValue: 'me' } }
  const sent = {
    resourceLogs: [{ resource: { attributes: [claimed, plain] }, scopeLogs: [{ at: '9007199254740993' }] }, {}],
    other: 1,
  }
  expect(addJson(JSON.stringify(sent))).toEqual({
    resourceLogs: [
      { resource: { attributes: [plain, ours] }, scopeLogs: [{ at: '9007199254740993' }] },
      { resource: { attributes: [ours] } },
    ],
    other: 1,
  })
  for (const name of ['resourceMetrics', 'resourceSpans'])
    expect(addJson(`{"${name}":[{}]}`)).toEqual({ [name]: [{ resource: { attributes: [ours] } }] })
})

test('JSON that is no message has no result', () => {
  const deep = `${'['.repeat(500_000)}`
  for (const text of ['', '{', '[]', 'null', '{"resourceLogs":{}}', '{"resourceLogs":[1]}', deep])
    expect(addJson(text)).toBeUndefined()
  expect(addJson('{"resourceLogs":[{"resource":{"attributes":[null]}}]}')).toBeUndefined()
})
