import { describe, expect, test } from 'bun:test'
import { fitsSubset as fitsSubsetWithin, MergeBudget, subsetSchema } from './schema.ts'

const fitsSubset = (raw: string) => fitsSubsetWithin(raw, new MergeBudget())

function narrowed(schema: object, merges = new MergeBudget()) {
  const result = subsetSchema(JSON.stringify(schema), merges)
  if ('why' in result) throw new Error(result.why)
  const { schema: text, loosened, tightened } = result
  return { text, schema: JSON.parse(text), loosened, tightened }
}
/** Around a schema that belongs to a field, which is where most of them stand. */
const field = (schema: object, more: object = {}) => ({
  type: 'object',
  properties: { f: schema },
  additionalProperties: false,
  ...more,
})
const fieldOf = (schema: object, more?: object) => {
  const { schema: sent, ...facts } = narrowed(field(schema, more))
  return { ...facts, schema: sent.properties.f }
}
const a = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
const b = { type: 'object', properties: { b: { type: 'integer' } }, required: ['b'] }
const same = { loosened: false, tightened: false }

describe('schemas that all hold', () => {
  const $defs = { A: a }
  const reference = { $ref: '#/$defs/A' }

  test('a reference wrapped up to carry remarks stays one', () => {
    expect(fieldOf({ allOf: [reference], description: 'd' }, { $defs })).toMatchObject({
      ...same,
      schema: { $ref: '#/$defs/A', description: 'd' },
    })
    expect(narrowed({ allOf: [reference], $defs })).toMatchObject({
      ...same,
      schema: { $ref: '#/$defs/A', $defs: { A: { ...a, additionalProperties: false } } },
    })
  })

  test('objects become one, and are closed as one', () => {
    const both = {
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'integer' } },
      required: ['a', 'b'],
      additionalProperties: false,
    }
    expect(fieldOf({ allOf: [a, b] })).toMatchObject({ ...same, schema: both })
    expect(fieldOf({ allOf: [reference, { ...b, additionalProperties: false }] }, { $defs }).schema).toEqual(both)
    expect(fieldOf({ ...a, allOf: [{ allOf: [b, true] }, reference] }, { $defs }).schema).toEqual(both)
    expect(
      fieldOf({
        allOf: [
          { ...a, title: 'A' },
          { ...b, title: 'B' },
        ],
        title: 'own',
      }).schema,
    ).toEqual({
      ...both,
      title: 'own',
    })
  })

  test('contradicting schemas are described, never sent', () => {
    const other = { type: 'object', properties: { a: { type: 'integer' } } }
    const { schema, loosened } = fieldOf({ allOf: [reference, other], description: 'd' }, { $defs })
    expect(schema).toEqual({ description: `d (allOf: ${JSON.stringify([reference, other])})` })
    expect(loosened).toBe(true)
    // Closed without a field, this one would allow nothing at all.
    expect(fieldOf({ type: 'object', allOf: [reference, other] }, { $defs }).tightened).toBe(true)
  })

  test('leaves schemas without objects and references unchanged', () => {
    const texts = { allOf: [{ type: 'string', format: 'date' }, { enum: ['2026-11-15'] }] }
    expect(fieldOf(texts)).toMatchObject({ ...same, schema: texts })
    expect(fitsSubset(JSON.stringify(field(texts)))).toBe(true)
    expect(fitsSubset(JSON.stringify(field({ allOf: [reference] }, { $defs })))).toBe(false)
  })

  test('references that multiply are not followed without end', () => {
    const levels = Array.from({ length: 40 }, (_, i) => [
      `D${i}`,
      i === 39 ? a : { allOf: [{ $ref: `#/$defs/D${i + 1}` }, { $ref: `#/$defs/D${i + 1}` }] },
    ])
    const { text } = narrowed(field({ $ref: '#/$defs/D0' }, { $defs: Object.fromEntries(levels) }))
    expect(text.length).toBeLessThan(10_000)
    // Each use would be another copy.
    const long = { ...a, title: 'x'.repeat(20_000) }
    const uses = Object.fromEntries(
      Array.from({ length: 100 }, (_, i) => [`p${i}`, { allOf: [{ $ref: '#/$defs/L' }, b] }]),
    )
    const copies = narrowed({ type: 'object', properties: uses, $defs: { L: long } })
    expect(copies.text.length).toBeLessThan(300_000)
    expect(copies.loosened).toBe(true)
  })
})

describe('merging comes to an end', () => {
  const other = { type: 'object', properties: { a: { type: 'integer' } } }
  const mergeable = { allOf: [a, b] }
  /** Fields that cannot be merged, and behind them one that can. */
  const behind = (failures: number) => ({
    type: 'object',
    properties: {
      ...Object.fromEntries(Array.from({ length: failures }, (_, i) => [`p${i}`, { allOf: [a, other] }])),
      last: mergeable,
    },
  })
  const names = (schema: { properties: { last: object } }) => Object.keys(schema.properties.last)

  test('even if it fails again and again', () => {
    expect(names(narrowed(behind(20)).schema)).toContain('properties')
    expect(names(narrowed(behind(300)).schema)).toEqual(['description'])
  })

  test('for all schemas of a request together', () => {
    const merges = new MergeBudget()
    narrowed(behind(300), merges)
    expect(names(narrowed(behind(0), merges).schema)).toEqual(['description'])
  })
})

describe('a value that may be null', () => {
  test('is one of two types', () => {
    const text = { type: ['string', 'null'] }
    expect(fieldOf({ type: 'string', nullable: true })).toMatchObject({ ...same, schema: text })
    expect(fitsSubset(JSON.stringify(field({ type: 'string', nullable: true })))).toBe(false)
    expect(fieldOf({ nullable: true, type: 'string', description: 'd' }).schema).toEqual({ ...text, description: 'd' })
    expect(fieldOf({ type: 'string', nullable: false })).toMatchObject({ ...same, schema: { type: 'string' } })
  })

  test('is only described beside listed values', () => {
    const listed = fieldOf({ type: 'string', enum: ['x'], nullable: true })
    expect(listed.schema).toEqual({ type: 'string', enum: ['x'], description: '(nullable: true)' })
    expect(listed.loosened).toBe(true)
  })
})

describe('a choice', () => {
  test('oneOf becomes anyOf; beside another anyOf it is described', () => {
    const choices = [{ type: 'string' }, { type: 'null' }]
    expect(fieldOf({ oneOf: choices })).toMatchObject({ ...same, schema: { anyOf: choices } })
    const { text, loosened } = fieldOf({ anyOf: choices, oneOf: [{ enum: ['x'] }] })
    expect(text).toContain(`"f":{"anyOf":${JSON.stringify(choices)},"description":"(oneOf: [{\\"enum\\":[\\"x\\"]}])"}`)
    expect(loosened).toBe(true)
  })

  test('between objects is closed where their fields are', () => {
    const closed = [a, b].map((one) => ({ ...one, additionalProperties: false }))
    expect(fieldOf({ type: 'object', anyOf: [a, b] })).toMatchObject({ ...same, schema: { anyOf: closed } })
    expect(fieldOf({ type: 'object', $ref: '#/$defs/A' }, { $defs: { A: a } }).schema).toEqual({ $ref: '#/$defs/A' })
    const conditions = { ...a, anyOf: [{ required: ['a'] }, { required: [] }] }
    expect(fieldOf(conditions).schema).toEqual({ ...conditions, additionalProperties: false })
  })
})

describe('an object', () => {
  const isTightened = (schema: object) => fieldOf(schema).tightened

  test('is closed around the fields it names', () => {
    expect(fieldOf(a)).toMatchObject({ ...same, schema: { ...a, additionalProperties: false } })
    expect(fitsSubset(JSON.stringify(field(a)))).toBe(false)
    expect(fitsSubset(JSON.stringify(field({ ...a, additionalProperties: false })))).toBe(true)
  })

  test('for fields it does not name is tightened by that', () => {
    for (const open of [
      { type: 'object' },
      { type: ['object', 'null'] },
      { type: 'object', properties: {} },
      { type: 'object', additionalProperties: { type: 'string' } },
      { additionalProperties: { type: 'string' } },
      { ...a, additionalProperties: true },
      { ...a, additionalProperties: {} },
      { ...a, patternProperties: { '^x': {} } },
    ]) {
      expect([open, isTightened(open)]).toEqual([open, true])
    }
    expect(isTightened({ type: 'object', additionalProperties: false })).toBe(false)
    expect(isTightened({ type: 'string' })).toBe(false)
    expect(isTightened({})).toBe(false)
  })

  test('does not tell of fields that it no longer takes', () => {
    const { schema, loosened } = fieldOf({ ...a, additionalProperties: { type: 'string' } })
    expect(schema).toEqual({ ...a, additionalProperties: false })
    expect(loosened).toBe(false)
  })
})
