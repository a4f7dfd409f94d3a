import { expect, test } from 'bun:test'
import { type ConfigDocument, type ConfigPath, readDocument } from './document.ts'

function good(text: string): ConfigDocument {
  const document = readDocument('t.yaml', text)
  if ('faults' in document) throw new Error(document.faults.map((fault) => fault.message).join())
  return document
}

function faultsOf(text: string): string[] {
  const document = readDocument('t.yaml', text)
  return 'faults' in document ? document.faults.map(({ where, message }) => `${where} ${message}`) : []
}

function whereIs(text: string, path: ConfigPath, at: 'value' | 'key' = 'value'): string {
  const document = good(text)
  return document.place(document.offset(path, at))
}

const yaml = `# comment
models:
  - id: a
    price: { input: "1" }
  - id: b
`

test('knows the positions of values and keys', () => {
  expect(whereIs(yaml, ['models', 0, 'price', 'input'])).toBe('t.yaml:4:21')
  expect(whereIs(yaml, ['models', 0, 'price', 'input'], 'key')).toBe('t.yaml:4:14')
  expect(whereIs(yaml, ['models', 1, 'id'])).toBe('t.yaml:5:9')
  expect(good(yaml).line(['models', 1])).toBe(5)
})

test('reports a missing value at its container', () => {
  expect(whereIs(yaml, ['models', 1, 'routes'])).toBe('t.yaml:5:5')
  expect(whereIs(yaml, ['models', 0, 'price', 'over', '5', 'input'])).toBe('t.yaml:4:12')
  expect(whereIs('', ['models'])).toBe('t.yaml:1:1')
})

test('follows aliases to their values', () => {
  const text = 'a: &x\n  k: 1\nb: *x\n'
  expect(good(text).value).toEqual({ a: { k: 1 }, b: { k: 1 } })
  expect(whereIs(text, ['b', 'k'])).toBe('t.yaml:2:6')
})

test('reads JSON, also indented with tabs', () => {
  const text = '{\n\t"models": [\n\t\t{ "id": "a\\/b \\ud83d\\ude00" }\n\t]\n}\n'
  expect(good(text).value).toEqual({ models: [{ id: 'a/b 😀' }] })
  expect(whereIs(text, ['models', 0, 'id'])).toBe('t.yaml:3:11')
})

test('reads keys as text even if they look like numbers', () => {
  expect(good('over: { 200000: a }').value).toEqual({ over: { '200000': 'a' } })
  expect(faultsOf('over: { 200000: a, "200000": b }')).toEqual([
    't.yaml:1:20 this key is used twice in the same mapping',
  ])
})

test.each([
  ['a list that is not closed', 'a: 1\nb: [1, 2\n', 't.yaml:'],
  ['a key that appears twice', 'a: 1\nb: 2\na: 3\n', 't.yaml:3:1 '],
  ['a tab as indentation', 'a:\n\tb: 1\n', 't.yaml:2:1 '],
  ['a second document', 'a: 1\n---\nb: 2\n', 't.yaml:2:1 '],
  ['an unknown tag', 'a: !env FOO\n', 't.yaml:1:4 '],
  ['an alias without an anchor', 'a: 1\nb: *foo\n', 't.yaml:2:4 '],
])('%s is a fault with its line', (_, text, start) => {
  expect(faultsOf(text)[0]).toStartWith(start)
})

test('a syntax error is one fault, whatever follows it', () => {
  expect(faultsOf('a: { b: 1 }}\nc: { d: 2 }\ne: [1, 2]\n')).toHaveLength(1)
})

test('two keys that appear twice are two faults', () => {
  expect(faultsOf('a: 1\na: 2\nb: 1\nb: 2\n').map((fault) => fault.slice(0, 9))).toEqual(['t.yaml:2:', 't.yaml:4:'])
})

test.each([
  ['a map', `providers:\n  - { id: a, api_key: \${ACME_KEY} }\nmodels: []\n`, 't.yaml:2:24'],
  ['a list', `a: [\${ACME_KEY}]\nb: 1\n`, 't.yaml:1:6'],
])('a variable without quotes in %s in braces or brackets is one fault that says to quote it', (_, text, where) => {
  expect(faultsOf(text)).toEqual([
    `${where} not valid YAML: put a \${VARIABLE} inside { } or [ ] in double quotes, because a plain value ends at its brace`,
  ])
})

test.each([
  'api_key: "x" canary\n',
  '{ api_key: x }}\ncanary',
  'api_key: *canary\n',
  'api_key: !canary x\n',
  'api_key: |canary\n  x\n',
  'api_key: "\\ucanary"\n',
  'api_key: [canary\n',
  'canary\napi_key: x\n',
  '- x\ncanary: 1\n',
  'api_key: "canary\nb: c\n',
  'a: 1\na: canary\n',
])('a fault in %j does not quote the file', (text) => {
  const faults = faultsOf(text)
  expect(faults).not.toEqual([])
  expect(faults.join('\n')).not.toContain('canary')
})

test('too many aliases are a fault, not an exception', () => {
  const levels = Array.from({ length: 9 }, (_, i) => `l${i + 1}: &l${i + 1} [${Array(9).fill(`*l${i}`).join(', ')}]`)
  expect(faultsOf(`l0: &l0 [x]\n${levels.join('\n')}\n`)).toHaveLength(1)
})
