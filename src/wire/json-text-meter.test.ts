import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { JsonTextMeter } from './json-text-meter.ts'

const meter = new JsonTextMeter(['content', 'arguments'])

function count(json: string): number {
  const data = new TextEncoder().encode(json)
  return meter.count(data, 0, data.length)
}

test('counts strings under the given names at any depth, and no others', () => {
  expect(count('{"role":"assistant","content":"four"}')).toBe(4)
  expect(count('[{"delta":{"tool_calls":[{"id":"call_1","function":{"name":"f","arguments":"{}"}}]}}]')).toBe(2)
  expect(count('{"content":null,"role":"content"}')).toBe(0)
  expect(count('{"content":["a"],"x":"b"}')).toBe(0)
  expect(count('{"content" : "ab" , "content":"c"}')).toBe(3)
})

test('an escape counts as the bytes it stands for', () => {
  expect(count(String.raw`{"content":"\n\"\\\u0041\u00e9\u20ac\ud83d\ude00"}`)).toBe(1 + 1 + 1 + 1 + 2 + 3 + 4)
})

test('the count is the length of the text in UTF-8, however it was escaped', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.boolean(), (text, isAscii) => {
      const json = JSON.stringify({ id: 'x', delta: { content: text } })
      const escaped = isAscii
        ? json.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
        : json
      expect(count(escaped)).toBe(Buffer.byteLength(text))
    }),
  )
})

test('broken JSON ends the count and nothing else', () => {
  expect(count('{"content":"ab","content":"never closed')).toBe(2)
  expect(count('{"content":"\\')).toBe(0)
})

test('watched names are seen where a string stands under them, once for each count', () => {
  const watching = new JsonTextMeter(['content'], ['end', 'content'])
  const seen = (json: string) => {
    watching.count(new TextEncoder().encode(json), 0, json.length)
    return watching.seen
  }
  expect(seen('[{"delta":{"content":"a"},"end":"stop"}]')).toBe(0b11)
  expect(seen('[{"delta":{"content":"a"},"end":null,"other":"end"}]')).toBe(0b10)
  expect(seen('[{"delta":{"content":""},"end":""}]')).toBe(0)
  expect(seen('[{"end":{"by":"us"}}]')).toBe(0)
})
