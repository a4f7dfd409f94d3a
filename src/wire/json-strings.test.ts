import { expect, test } from 'bun:test'
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

test('reads a text alone, and nesting of any depth', () => {
  expect(visited('"x"')).toEqual([' = x'])
  const deep = visited(`${'['.repeat(100_000)}"x"${']'.repeat(100_000)}`)
  expect(deep).toHaveLength(1)
  expect(deep[0]).toEndWith('/0 = x')
})
