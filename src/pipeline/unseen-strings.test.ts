import { expect, test } from 'bun:test'
import { unseenInBody, unseenInRecords } from './unseen-strings.ts'

const inBody = (body: object, conversation: unknown, media: readonly string[] = []) =>
  unseenInBody(Buffer.from(JSON.stringify(body)), { conversation }, new Set(media))
const inRecords = (records: readonly object[], answer: unknown) =>
  unseenInRecords(
    records.map((record) => JSON.stringify(record)),
    { answer },
  )

test('lists what the document does not have, without words of the format', () => {
  const body = {
    model: 'acme/large',
    type: 'image_url',
    messages: [{ role: 'user', content: 'hi' }],
    note: 'n',
    'k-1': 1,
  }
  expect(inBody(body, { text: 'hi' })).toEqual([
    { field: '/note', text: 'n' },
    { field: '/k-1', text: 'k-1' },
  ])
})

test('lists every name of a body that cannot be read, once', () => {
  expect(inBody({ a: 'x', b: { a: 'x' } }, null)).toEqual([
    { field: '/a', text: 'a' },
    { field: '/a', text: 'x' },
    { field: '/b', text: 'b' },
    { field: '/b/a', text: 'x' },
  ])
})

test('lists strings of arguments that are written with escapes, and no others', () => {
  const text = '{"a":"plain","b":"two\\nlines","c\\u002dd":1}'
  const decoded = [
    { field: '/conversation/0/arguments/b', text: 'two\nlines' },
    { field: '/conversation/0/arguments/c-d', text: 'c-d' },
  ]
  expect(inBody({ a: 'plain', b: 'two\nlines' }, [{ arguments: text }])).toEqual(decoded)
})

test('joins the deltas of one place before it compares them', () => {
  const records = ['s', 'k', '-', '1'].map((transcript) => ({ id: 'c1', delta: { transcript } }))
  // Every piece is in the answer, and the transcript is not.
  expect(inRecords(records, { type: 'text', text: 'k1 and s-' })).toEqual([
    { field: '/id', text: 'c1' },
    { field: '/delta/transcript', text: 'sk-1' },
  ])
})

test('finds deltas in the texts of several blocks', () => {
  const deltas = ['on', 'e', 'tw', 'o'].map((text) => ({ type: 'text.delta', delta: text }))
  const blocks = [
    { type: 'text', text: 'one' },
    { type: 'thinking', text: 'between' },
    { type: 'text', text: 'two' },
  ]
  expect(inRecords(deltas, blocks)).toEqual([])
})

test('lists a record that is not JSON', () => {
  expect(unseenInRecords([': a comment'], { answer: [] })).toEqual([{ field: '', text: ': a comment' }])
})
