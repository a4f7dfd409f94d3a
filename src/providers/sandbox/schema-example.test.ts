import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { exampleOf } from './schema-example.ts'

describe('an example of a schema', () => {
  test.each<[string, unknown, unknown]>([
    ['a string', { type: 'string' }, 'sandbox'],
    ['the first of an enum', { type: 'string', enum: ['celsius', 'kelvin'] }, 'celsius'],
    ['a constant', { const: 'v1' }, 'v1'],
    ['a number', { type: 'number' }, 1],
    ['an integer', { type: 'integer' }, 1],
    ['a boolean', { type: 'boolean' }, true],
    ['null', { type: 'null' }, null],
    ['one item', { type: 'array', items: { type: 'integer' } }, [1]],
    ['the type that is not null', { type: ['null', 'integer'] }, 1],
    ['the first of anyOf', { anyOf: [{ type: 'boolean' }, { type: 'string' }] }, true],
    ['no keywords', {}, 'sandbox'],
    ['no schema at all', undefined, 'sandbox'],
  ])('%s', (_, schema, example) => {
    expect(exampleOf(schema)).toEqual(example)
  })

  test('objects have their required properties and no others, however deep', () => {
    const place = {
      type: 'object',
      required: ['lat'],
      properties: { lat: { type: 'number' }, note: { type: 'string' } },
    }
    const schema = { type: 'object', required: ['city', 'at'], properties: { city: { type: 'string' }, at: place } }
    expect(exampleOf(schema)).toEqual({ city: 'sandbox', at: { lat: 1 } })
  })

  test('references are followed', () => {
    const schema = {
      type: 'object',
      required: ['u'],
      properties: { u: { $ref: '#/$defs/u' } },
      $defs: { u: { enum: [7] } },
    }
    expect(exampleOf(schema)).toEqual({ u: 7 })
  })

  test('a reference to itself ends', () => {
    const node = { type: 'object', required: ['a', 'b'], properties: { a: { $ref: '#' }, b: { $ref: '#' } } }
    expect(JSON.stringify(exampleOf(node)).length).toBeLessThan(20_000)
    expect(exampleOf({ $ref: '#' })).toBe('sandbox')
  })

  test('names that every object inherits are not taken for properties', () => {
    const example = exampleOf({ type: 'object', required: ['constructor', '__proto__'], properties: {} })
    expect(JSON.stringify(example)).toBe('{"constructor":"sandbox","__proto__":"sandbox"}')
  })

  test('any JSON is taken for a schema without an exception', () => {
    fc.assert(fc.property(fc.jsonValue(), (schema) => exampleOf(schema) !== undefined))
  })
})
