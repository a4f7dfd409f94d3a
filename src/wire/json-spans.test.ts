import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { JsonSpans, JsonTextMeter } from './json.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const names = ['model', 'usage', 'choices', 'error'] as const

/** The raw text of each member found; undefined where there is none. */
function found(data: Uint8Array, start = 0, end = data.length): Record<string, string | undefined> | false {
  const spans = new JsonSpans(names)
  if (!spans.read(data, start, end)) return false
  const entries = names.map((name) => {
    const span = spans.of[name]
    return [name, span.start === -1 ? undefined : new TextDecoder().decode(data.subarray(span.start, span.end))]
  })
  return Object.fromEntries(entries)
}

describe('the spans of chosen members', () => {
  test('are found in a chat chunk', () => {
    const chunk =
      '{"id":"c-1","created":17,"model":"m-1","choices":[{"delta":{"content":"}\\"{\\\\"},"usage":7}],"usage":null}'
    expect(found(bytes(chunk))).toEqual({
      model: '"m-1"',
      choices: '[{"delta":{"content":"}\\"{\\\\"},"usage":7}]',
      usage: 'null',
      error: undefined,
    })
  })

  test('are found with whitespace in every place', () => {
    const spaced = '\t{ "usage" :\r\n{ "a" : 1 } , "model"\n: 12 , "error":true }\n'
    expect(found(bytes(spaced))).toEqual({ usage: '{ "a" : 1 }', model: '12', error: 'true', choices: undefined })
  })

  test('are found inside a larger buffer', () => {
    const data = bytes('data: {"model":"é"}\n\n')
    expect(found(data, 6, data.length - 2)).toMatchObject({ model: '"é"' })
  })

  test('are those of the last member where a name appears twice', () => {
    expect(found(bytes('{"model":1,"model":2}'))).toMatchObject({ model: '2' })
  })

  test('are not taken from names that only begin alike, or from inner objects', () => {
    const nothing = { model: undefined, usage: undefined, choices: undefined, error: undefined }
    expect(found(bytes('{"mode":1,"models":2,"x":{"model":3},"":4}'))).toEqual(nothing)
    expect(found(bytes('{}'))).toEqual(nothing)
  })

  test('are forgotten from one event to the next, also when the next is no object', () => {
    const spans = new JsonSpans(['model'])
    expect(spans.read(bytes('{"model":1}'), 0, 11)).toBe(true)
    expect(spans.of.model).toEqual({ start: 9, end: 10 })
    expect(spans.read(bytes('{"x":1}'), 0, 7)).toBe(true)
    expect(spans.of.model).toEqual({ start: -1, end: -1 })
    expect(spans.read(bytes('{"model":1,'), 0, 11)).toBe(false)
    expect(spans.of.model).toEqual({ start: -1, end: -1 })
  })

  test.each([
    '',
    '[DONE]',
    '[1]',
    '"x"',
    '{',
    '{"a',
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    '{"a":"\\"}',
    '{"a":[}',
    '{a:1}',
  ])('are none in %p', (text) => {
    expect(found(bytes(text))).toBe(false)
  })

  test('end before the bytes that follow them', () => {
    expect(found(bytes('{"model":1}'), 0, 10)).toBe(false)
    expect(found(bytes('{"model":"abc"}'), 0, 13)).toBe(false)
  })

  test('are found behind strings of any length, wherever their escapes stand', () => {
    const unit = fc.constantFrom('a', 'b', '"', '\\', '\n', 'é', 'long enough to be searched for its end, '.repeat(2))
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 12 }), (units) => {
        const text = units.join('')
        const data = bytes(JSON.stringify({ x: { [text]: [text] }, model: text, usage: 1 }))
        expect(found(data)).toMatchObject({ model: JSON.stringify(text), usage: '1' })
        // The quote that ends it lies behind the end.
        expect(found(data, 0, data.length - ',"usage":1}'.length - 1)).toBe(false)
      }),
      { numRuns: 500 },
    )
  })

  test('hold what JSON.parse would give, in any document', () => {
    const key = fc.oneof(fc.constantFrom(...names), fc.string({ unit: 'grapheme' }))
    fc.assert(
      fc.property(fc.dictionary(key, fc.jsonValue({ maxDepth: 5 })), fc.constantFrom('', ' ', '\n'), (value, space) => {
        const written = JSON.stringify(value, null, space)
        const parsed = JSON.parse(written)
        const read = found(bytes(written))
        if (read === false) throw new Error('not read')
        for (const name of names) {
          const raw = read[name]
          expect(Object.hasOwn(parsed, name)).toBe(raw !== undefined)
          if (raw !== undefined) expect(JSON.parse(raw)).toEqual(parsed[name])
        }
      }),
      { numRuns: 500 },
    )
  })

  test('never loop or throw on any bytes', () => {
    const alphabet = fc.constantFrom(...bytes('{}[]",:\\ am1'))
    fc.assert(
      fc.property(fc.array(alphabet, { maxLength: 40 }), (soup) => {
        const data = new Uint8Array([...bytes('{"a'), ...soup])
        expect(typeof new JsonSpans(names).read(data, 0, data.length)).toBe('boolean')
      }),
      { numRuns: 2000 },
    )
  })
})

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
