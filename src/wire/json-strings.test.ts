import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { visitStrings } from './json-strings.ts'

function visited(json: string): string[] {
  const found: string[] = []
  visitStrings(Buffer.from(json), (text, path, isName) => {
    found.push(`${isName ? 'name ' : ''}${path.join('/')} = ${text}`)
  })
  return found
}

test('visits names and values with their place', () => {
  expect(visited(' {"a": [1, "x", {"b":"y"}], "c" :null,"d":"z"} ')).toEqual([
    'name a = a',
    'a/1 = x',
    'name a/2/b = b',
    'a/2/b = y',
    'name c = c',
    'name d = d',
    'd = z',
  ])
})

test('visits every value of a name that appears twice', () => {
  expect(visited('{"a":{"b":"x"},"a":"y"}')).toEqual(['name a = a', 'name a/b = b', 'a/b = x', 'name a = a', 'a = y'])
})

test('decodes escapes in names and values', () => {
  expect(visited('{"\\u0061\\n":"\\"\\u002d\\\\"}')).toEqual(['name a\n = a\n', 'a\n = "-\\'])
})

test('reads a text alone', () => {
  expect(visited('"x"')).toEqual([' = x'])
})

test('reads a thousand levels, and ends at more without an error', () => {
  const nested = (levels: number) => visited(`${'['.repeat(levels)}"x"${']'.repeat(levels)}`).length
  expect([nested(1_000), nested(1_001), nested(1_000_000)]).toEqual([1, 0, 0])
})

test('ends at what is no JSON', () => {
  expect(visited('{"a":"b","c')).toEqual(['name a = a', 'a = b'])
  expect(visited('}],,:"a\\q"')).toEqual([' = a\\q'])
  fc.assert(fc.property(fc.string(), (text) => void visited(text)))
})
