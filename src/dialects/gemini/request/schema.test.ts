import { describe, expect, test } from 'bun:test'
import { SchemaBudget } from '../../request/schema.ts'
import { subsetSchema } from './schema.ts'

const narrowed = (schema: object | string): { schema: unknown; loosened: boolean } => {
  const result = subsetSchema(typeof schema === 'string' ? schema : JSON.stringify(schema), new SchemaBudget())
  if (typeof result === 'string') throw new Error(result)
  return { schema: JSON.parse(result.schema), loosened: result.loosened }
}

describe('a schema in the words the provider reads', () => {
  test('pitfall 128 and 129: stays as it is, with null unions, references and enums of any type', () => {
    const schema = {
      $id: 'a',
      type: 'object',
      title: 'T',
      description: 'D',
      properties: {
        n: { type: ['integer', 'null'], minimum: 1, maximum: 9, format: 'int32' },
        l: { type: 'array', items: { $ref: '#/$defs/A' }, minItems: 1, maxItems: 2 },
        t: { type: 'array', prefixItems: [{ type: 'string' }, { enum: [1, 'b'] }] },
        u: { oneOf: [{ type: 'string' }, { type: 'null' }] },
      },
      required: ['n'],
      additionalProperties: { type: 'string' },
      $defs: { A: { anyOf: [{ type: 'string' }, { type: 'number' }] } },
    }
    expect(narrowed(schema)).toEqual({ schema, loosened: false })
  })

  test('keeps order and numbers as they were written', () => {
    const raw = '{"type":"object","properties":{"10":{"maximum":12345678901234567890},"2":{"minimum":1.0}}}'
    expect(subsetSchema(raw, new SchemaBudget())).toEqual({ schema: raw, loosened: false })
  })
})

describe('pitfall 127: what is outside of them', () => {
  test('is said in other words where they mean the same', () => {
    expect(
      narrowed({
        type: 'object',
        properties: {
          c: { const: 'x' },
          one: { allOf: [{ $ref: '#/definitions/A' }] },
          pair: { items: [{ type: 'string' }, true] },
          any: true,
        },
        definitions: { A: { type: 'string' } },
      }),
    ).toEqual({
      schema: {
        type: 'object',
        properties: {
          c: { enum: ['x'] },
          one: { anyOf: [{ $ref: '#/$defs/A' }] },
          pair: { prefixItems: [{ type: 'string' }, {}] },
          any: {},
        },
        $defs: { A: { type: 'string' } },
      },
      loosened: false,
    })
  })

  test('is moved into the description, and counts as loosened if it was a constraint', () => {
    expect(narrowed({ type: 'string', description: 'A name.', minLength: 2, pattern: '^a' })).toEqual({
      schema: { type: 'string', description: 'A name. (minLength: 2, pattern: "^a")' },
      loosened: true,
    })
    expect(narrowed({ type: 'string', default: 'b' })).toEqual({
      schema: { type: 'string', description: '(default: "b")' },
      loosened: false,
    })
    expect(narrowed({ allOf: [{ type: 'string' }, { minLength: 2 }] })).toEqual({
      schema: { description: '(allOf: [{"type":"string"},{"minLength":2}])' },
      loosened: true,
    })
    expect(narrowed({ enum: ['a', null] })).toEqual({ schema: { description: '(enum: ["a",null])' }, loosened: true })
  })

  test('turns exclusive bounds into inclusive ones, and tells', () => {
    expect(narrowed({ type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 5 })).toEqual({
      schema: {
        type: 'number',
        minimum: 0,
        maximum: 5,
        description: '(exclusiveMinimum: 0, exclusiveMaximum: 5)',
      },
      loosened: true,
    })
  })

  test('is left out where it says nothing', () => {
    expect(narrowed({ $schema: 'https://json-schema.org/draft-07', $comment: 'c', type: 'string' })).toEqual({
      schema: { type: 'string' },
      loosened: false,
    })
  })
})

test('keeps only keywords that begin with a dollar sign beside a reference', () => {
  expect(narrowed({ $ref: '#/$defs/A', description: 'D', $defs: { A: { type: 'string' } } }).schema).toEqual({
    description: 'D',
    $defs: { A: { type: 'string' } },
    anyOf: [{ $ref: '#/$defs/A' }],
  })
  // The choice that it becomes leaves no room for another, which is reported.
  expect(narrowed({ $ref: '#/$defs/A', anyOf: [{ type: 'string' }] })).toEqual({
    schema: { description: '(anyOf: [{"type":"string"}])', anyOf: [{ $ref: '#/$defs/A' }] },
    loosened: true,
  })
  expect(narrowed({ $ref: '#/$defs/A', $defs: {} }).schema).toEqual({ $ref: '#/$defs/A', $defs: {} })
})

test.each([
  ['[]', 'the schema must be a JSON object without repeated names'],
  ['{"type":"object","type":"string"}', 'the schema must be a JSON object without repeated names'],
  ['{"definitions":{},"$defs":{}}', 'the schema has both `definitions` and `$defs`'],
  [`{"description":"${'x'.repeat(200_000)}"}`, 'it is longer than 200000 characters'],
])('%.40s cannot be used', (raw, reason) => {
  expect(subsetSchema(raw, new SchemaBudget())).toBe(reason)
})
