import { expect, test } from 'bun:test'
import { functionParameters } from './function-parameters.ts'
import { SchemaBudget } from './schema-budget.ts'
import { WarningList } from './warning-list.ts'

function sent(schema: string | undefined, description?: string) {
  const warnings = new WarningList()
  const context = { warnings, schemas: new SchemaBudget() }
  const result = functionParameters({ schema, description, place: '/tools/0' }, context)
  return { ...result, warned: warnings.list.map(({ code, field }) => `${code} ${field}`) }
}

test('an object that names no properties gets none, spelled out', () => {
  expect(sent(undefined).parameters).toBe('{"type":"object","properties":{}}')
  expect(sent('{"type":"object"}').parameters).toBe('{"type":"object","properties":{}}')
  expect(sent('{"type": "object", "additionalProperties": {"maximum": 1.0}}').parameters).toBe(
    '{"type":"object","additionalProperties":{"maximum": 1.0},"properties":{}}',
  )
  expect(sent('{"properties":null,"type":"object"}').parameters).toBe('{"type":"object","properties":{}}')
})

test('everything else stays as it was written', () => {
  for (const schema of [
    '{ "type":"object", "properties":{"2":{"const":1.0},"1":{}} }',
    '{"type":"object","properties":{}}',
    ' {"type":"object", "properties":{"a":{ "type":"array", "items":{"type":["array","null"],"items":true} }}}',
    // What looks like a schema and is a value.
    '{"type":"object","properties":{"a":{"default":{"type":"array"},"enum":[{"type":"array"}]}}}',
    'true',
    // More than is worth the work.
    `{"type":"object","properties":{"a":{"type":"array","description":"${'x'.repeat(200_000)}"}}}`,
  ]) {
    expect(sent(schema)).toEqual({ parameters: schema, description: undefined, warned: [] })
  }
})

test('a root that does not say so is said to be an object', () => {
  expect(sent('{}').parameters).toBe('{"type":"object","properties":{}}')
  expect(sent('{"properties":{"a":{}}}').parameters).toBe('{"type":"object","properties":{"a":{}}}')
})

test('an array that does not say what it holds may hold anything, wherever it stands', () => {
  const bare = '{"type":"array"}'
  const mended = '{"type":"array","items":{}}'
  for (const around of [
    (schema: string) => `{"type":"object","properties":{"a":${schema}}}`,
    (schema: string) => `{"type":"object","properties":{"a":{"type":"array","items":${schema}}}}`,
    (schema: string) => `{"type":"object","properties":{"a":{"anyOf":[{"type": "null"},${schema}]}}}`,
    (schema: string) => `{"type":"object","properties":{"a":{"additionalProperties":${schema}}}}`,
    (schema: string) => `{"type":"object","properties":{"items":{"$ref":"#/$defs/x"}},"$defs":{"x":${schema}}}`,
    (schema: string) => `{"type":"object","properties":{"type":${schema},"2":{"const": 1.0}}}`,
  ]) {
    expect(sent(around(bare)).parameters).toBe(around(mended))
  }
  const several = '{"type":["string","array"],"prefixItems":[{"type":"array"}]}'
  expect(JSON.parse(sent(`{"type":"object","properties":{"a":${several}}}`).parameters).properties.a).toEqual({
    type: ['string', 'array'],
    prefixItems: [{ type: 'array', items: {} }],
    items: {},
  })
})

test('a choice at the root is merged and told in words, and stays where it cannot be', () => {
  const choice = '{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}'
  expect(sent(choice, 'Finds.')).toEqual({
    parameters: '{"type":"object","properties":{"a":{},"b":{}}}',
    description: 'Finds.\n\nThe input must have at least one of these sets of fields: (a) or (b).',
    warned: ['tool_schema_merged /tools/0'],
  })
  const nested = '{"anyOf":[{"anyOf":[{"type":"object"}]}]}'
  expect(sent(nested, 'd')).toEqual({ parameters: nested, description: 'd', warned: [] })
})
