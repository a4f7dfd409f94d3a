import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readJsonElements } from './json-elements.ts'
import { JsonFault, readJsonMembers } from './json-members.ts'
import { JsonNode } from './json-node.ts'

test('a value is found by name and by place, with its text as written', () => {
  const body = new TextEncoder().encode('{"a": [ {"n":1.0} , "é" ],"b":null}')
  const members = readJsonMembers(body)
  if (members instanceof JsonFault) throw new Error('a good body')
  const root = JsonNode.root(body, members)
  expect(root.member('a')?.element(0)?.text).toBe('{"n":1.0}')
  expect(root.member('a')?.element(0)?.member('n')?.text).toBe('1.0')
  expect(root.member('a')?.element(1)?.text).toBe('"é"')
  expect(root.member('a')?.element(2)).toBeUndefined()
  expect(root.member('c')).toBeUndefined()
  expect(root.member('b')?.member('x')).toBeUndefined()
})

test('members and elements come in their order; a name that stands twice hides them all', () => {
  const node = JsonNode.of(' {"2":1,"1":[2,3]}')
  expect(node.members()?.map(([name, value]) => [name, value.text])).toEqual([
    ['2', '1'],
    ['1', '[2,3]'],
  ])
  expect(node.elements()).toBeUndefined()
  expect(
    node
      .member('1')
      ?.elements()
      ?.map(({ text }) => text),
  ).toEqual(['2', '3'])
  expect(JsonNode.of('{"a":1,"a":2}').members()).toBeUndefined()
  expect(JsonNode.of('[]').elements()).toEqual([])
})

test('the elements of any array are those that parsing it gives', () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue({ maxDepth: 3 })), fc.constantFrom('', ' ', '\n'), (values, space) => {
      const text = `[${values.map((value) => space + JSON.stringify(value) + space).join(',')}${values.length ? '' : space}]`
      const body = new TextEncoder().encode(text)
      const found = readJsonElements(body, 0, body.length).map(({ start, end }) =>
        JSON.parse(new TextDecoder().decode(body.subarray(start, end))),
      )
      expect(found).toEqual(JSON.parse(text))
    }),
  )
})
