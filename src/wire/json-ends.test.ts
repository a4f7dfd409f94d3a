import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readJsonEnds } from './json-ends.ts'
import { JsonNode } from './json-node.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

test('every object and array is found, and none in a string', () => {
  const ends = readJsonEnds(bytes(' {"a[":[1,{"b":"\\"]}"}],"c\\\\":{}} '))
  expect([...ends.entries()].filter(([, end]) => end > 0)).toEqual([
    [1, 33],
    [7, 23],
    [10, 22],
    [30, 32],
  ])
})

/** What is in a document, read level by level. */
function contentOf(node: JsonNode): unknown {
  const elements = node.elements()
  if (elements) return elements.map(contentOf)
  const members = node.members()
  return members ? Object.fromEntries(members.map(([name, value]) => [name, contentOf(value)])) : JSON.parse(node.text)
}

test('a document read level by level is what JSON.parse makes of it', () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(3), (text, spaces) => {
      const spaced = JSON.stringify(JSON.parse(text), null, spaces)
      expect(contentOf(JsonNode.of(spaced))).toEqual(JSON.parse(text))
    }),
  )
})

test('no level looks at what is below it again', () => {
  const text = '{"a":{"b":[{"c":"d"},1]}}'
  const body = bytes(text)
  const root = new JsonNode(body, { start: 0, end: body.length }, readJsonEnds(body))
  // Whoever passed over this would stop here.
  body.fill(0, text.indexOf('{"c"') + 1, text.indexOf(',1') - 1)
  const list = root.member('a')?.member('b')
  expect(list?.elements()?.map(({ span }) => span.end - span.start)).toEqual([9, 1])
  const plain = new JsonNode(body, { start: 0, end: body.length })
  expect(plain.member('a')).toBeUndefined()
})
