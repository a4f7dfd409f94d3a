import { describe, expect, test } from 'bun:test'
import { fitsSubset, MergeBudget } from '../anthropic-messages/request/schema.ts'
import { subsetSchema } from '../gemini/request/schema.ts'
import { WarningList } from './fields.ts'
import { functionParameters, isStrictSchema, SchemaBudget } from './schema.ts'

const schema = (length: number) => {
  const [front, behind] = ['{"type":"string","description":"', '"}']
  return front + 'x'.repeat(length - front.length - behind.length) + behind
}

test('a schema may have 200,000 characters, and all of a request a million', () => {
  const budget = new SchemaBudget()
  expect(budget.take(schema(200_001))).toBe('it is longer than 200000 characters')
  for (let taken = 0; taken < 4; taken++) expect(budget.take(schema(200_000))).toBeUndefined()
  expect(budget.take(schema(199_000))).toBeUndefined()
  expect(budget.take(schema(1001))).toBe('the schemas of a request may have 1000000 characters together')
  expect(budget.take(schema(1000))).toBeUndefined()
})

test('both dialects that rewrite schemas have a budget for all schemas of a request', () => {
  const [budget, merges] = [new SchemaBudget(), new MergeBudget()]
  for (let taken = 0; taken < 5; taken++) {
    expect(subsetSchema(schema(200_000), budget)).toMatchObject({ loosened: false })
    expect(fitsSubset(schema(200_000), merges)).toBe(true)
  }
  expect(subsetSchema(schema(100), budget)).toContain('together')
  expect(fitsSubset(schema(100), merges)).toBe(false)
})

function sent(schema: string | undefined, description?: string) {
  const warnings = new WarningList()
  const context = { warnings, schemas: new SchemaBudget() }
  const result = functionParameters({ schema, description, pointer: '/tools/0' }, context)
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

test('a schema that needs no change stays as written', () => {
  for (const schema of [
    '{ "type":"object", "properties":{"2":{"const":1.0},"1":{}} }',
    '{"type":"object","properties":{}}',
    ' {"type":"object", "properties":{"a":{ "type":"array", "items":{"type":["array","null"],"items":true} }}}',
    // Values that look like a schema.
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

test('an array without item type accepts any item, at any depth', () => {
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

test('a choice at the root is merged and explained in the description, or kept if it cannot be merged', () => {
  const choice = '{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}'
  expect(sent(choice, 'Finds.')).toEqual({
    parameters: '{"type":"object","properties":{"a":{},"b":{}}}',
    description: 'Finds.\n\nThe input must have at least one of these sets of fields: (a) or (b).',
    warned: ['tool_schema_merged /tools/0'],
  })
  const nested = '{"anyOf":[{"anyOf":[{"type":"object"}]}]}'
  expect(sent(nested, 'd')).toEqual({ parameters: nested, description: 'd', warned: [] })
})

/** An object whose only property has the schema. */
const around = (schema: string, more = '') =>
  `{"type":"object","properties":{"a":${schema}},"required":["a"],"additionalProperties":false${more}}`
const isTaken = (schema: string, more?: string) => isStrictSchema(around(schema, more))

describe('strict are schemas', () => {
  test('with closed objects and only required properties, at any depth', () => {
    expect(isTaken('{"type":"string"}')).toBe(true)
    expect(isStrictSchema('{"type":"object","properties":{},"additionalProperties":false}')).toBe(true)
    expect(isStrictSchema('{"type":"object","properties":{}}')).toBe(false)
    expect(isStrictSchema('{"type":"object","additionalProperties":false}')).toBe(false)
    expect(isStrictSchema('{"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":false}')).toBe(
      false,
    )
    const list = (items: string) => `{"anyOf":[{"type":"null"},{"type":"array","items":${items}}]}`
    expect(isTaken(list(around('{"type":"integer"}')))).toBe(true)
    expect(isTaken(list('{"type":"object","properties":{}}'))).toBe(false)
    expect(isTaken(list('{"type":["object","null"]}'))).toBe(false)
    expect(isTaken('{"$ref":"#/$defs/x"}', ',"$defs":{"x":{"type":"object","properties":{}}}')).toBe(false)
  })

  test('with an object at the root, and no choice', () => {
    expect(isStrictSchema('{"type":"array","items":{"type":"string"}}')).toBe(false)
    expect(isTaken('{"type":"string"}', ',"anyOf":[{"type":"object"}]')).toBe(false)
    expect(isStrictSchema('true')).toBe(false)
  })

  test('with the keywords that the provider accepts', () => {
    for (const members of [
      '"type":["string","null"],"description":"d","title":"t"',
      '"type":"string","pattern":"^a(?:b)+$"',
      '"type":"string","enum":["a","b"]',
      '"type":"string","const":"a"',
      '"type":"string","nullable":true',
      '"type":"number","minimum":0,"exclusiveMaximum":9,"multipleOf":3',
      '"type":"array","items":{"type":"string"},"minItems":2,"maxItems":4',
    ]) {
      expect([members, isTaken(`{${members}}`)]).toEqual([members, true])
    }
    for (const members of [
      '"type":"string","minLength":1',
      '"type":"string","default":"a"',
      '"type":"string","pattern":"a(?=b)"',
      '"type":"string","pattern":"(?<!a)b"',
      '"type":"array","items":{"type":"string"},"uniqueItems":true',
      '"type":"string","not":{"const":"a"}',
      '"allOf":[{"type":"string"}]',
      '"oneOf":[{"type":"string"}]',
      '"type":"string","x-own":1',
    ]) {
      expect([members, isTaken(`{${members}}`)]).toEqual([members, false])
    }
  })

  test('with the formats that the provider accepts', () => {
    const ofFormat = (format: string) => isTaken(`{"type":"string","format":"${format}"}`)
    for (const format of 'date-time time date duration email hostname ipv4 ipv6 uuid'.split(' ')) {
      expect([format, ofFormat(format)]).toEqual([format, true])
    }
    for (const format of ['uri', 'regex', 'int32', '']) expect([format, ofFormat(format)]).toEqual([format, false])
  })

  test('that say what each value is', () => {
    expect(isTaken('{}')).toBe(false)
    expect(isTaken('true')).toBe(false)
    expect(isTaken('{"const":"a"}')).toBe(false)
    expect(isTaken('{"anyOf":[{"type":"string"},{}]}')).toBe(false)
    expect(isTaken('{"type":"array"}')).toBe(false)
    expect(isTaken('{"type":"array","items":[{"type":"string"}]}')).toBe(false)
  })

  test('with references that have no siblings and stay inside the schema', () => {
    const defs = ',"$defs":{"x":{"type":"string"}}'
    expect(isTaken('{"$ref":"#/$defs/x"}', defs)).toBe(true)
    expect(isTaken('{"$ref":"#"}')).toBe(true)
    expect(isTaken('{"$ref":"#/$defs/x","description":"d"}', defs)).toBe(false)
    expect(isTaken('{"$ref":"https://x/y.json"}')).toBe(false)
  })

  test('short enough to be compiled', () => {
    const long = (length: number) => around(`{"type":"string","title":"${'x'.repeat(length)}"}`)
    const frame = long(0).length
    expect(isStrictSchema(long(200_000 - frame))).toBe(true)
    expect(isStrictSchema(long(200_001 - frame))).toBe(false)
  })

  test('with a property that has the name of a keyword', () => {
    expect(
      isStrictSchema(
        '{"type":"object","properties":{"allOf":{"type":"string"}},"required":["allOf"],"additionalProperties":false}',
      ),
    ).toBe(true)
  })
})
