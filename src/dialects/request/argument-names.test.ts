import { expect, test } from 'bun:test'
import { ArgumentNames } from './argument-names.ts'

test('a schema whose fields all have legal names stays as it was written', () => {
  const names = new ArgumentNames()
  for (const schema of [
    '{ "type":"object", "properties":{"a.b-c_1":{"const":1.0}}, "required":["a.b-c_1"] }',
    '{"type":"object"}',
    '{"type":"object","properties":{"$a":{},"$a":{}}}',
    // Nobody minds them below the root.
    '{"type":"object","properties":{"a":{"type":"object","properties":{"$filter":{}}}}}',
  ]) {
    expect(names.inSchema('f', schema)).toBe(schema)
  }
  expect([names.undo.size, names.inCall('f', '{ "$x":1 }')]).toEqual([0, '{ "$x":1 }'])
})

test('fields of other names are renamed in schema and calls, alike each time and without merging two', () => {
  const names = new ArgumentNames()
  const schema =
    '{"type":"object","properties":{"$filter":{"x":1.0},"_filter":{},"filter[id]":{}},"required":["filter[id]","_filter",1]}'
  const sent = names.inSchema('f', schema)
  const fields = Object.keys(JSON.parse(sent).properties)
  expect(fields).toEqual([
    expect.stringMatching(/^_filter_[0-9a-f]{8}$/),
    '_filter',
    expect.stringMatching(/^filter_id__/),
  ])
  expect(JSON.parse(sent).required).toEqual([fields[2], '_filter', 1])
  expect(sent).toContain('{"x":1.0}')
  expect(new ArgumentNames().inSchema('g', schema)).toBe(sent)
  expect(names.inCall('f', '{"$filter": 9007199254740993, "other":{"$filter":1}}')).toBe(
    `{"${fields[0]}":9007199254740993,"other":{"$filter":1}}`,
  )
  expect(names.inCall('g', '{"$filter":1}')).toBe('{"$filter":1}')
  const undo = new Map([
    [fields[0], '$filter'],
    [fields[2], 'filter[id]'],
  ])
  expect<unknown>(names.undo).toEqual(new Map([['f', undo]]))
})

test('beyond what one request may have rewritten, schemas stay as they are', () => {
  const names = new ArgumentNames()
  const schema = `{"type":"object","description":"${'a'.repeat(190_000)}","properties":{"$filter":{}}}`
  const kept = ['a', 'b', 'c', 'd', 'e', 'f'].map((tool) => names.inSchema(tool, schema) === schema)
  expect(kept).toEqual([false, false, false, false, false, true])
  expect(names.inCall('f', '{"$filter":1}')).toBe('{"$filter":1}')
})

test('a field that the schema does not name keeps its name in calls: a model that repeats it would not be undone', () => {
  const names = new ArgumentNames()
  names.inSchema('f', '{"type":"object","properties":{"$filter":{}}}')
  expect(names.inCall('f', '{"z$":1}')).toBe('{"z$":1}')
})
