import { describe, expect, test } from 'bun:test'
import { isStrictSchema } from './strict-schema.ts'

/** An object whose only property has the schema. */
const around = (schema: string, more = '') =>
  `{"type":"object","properties":{"a":${schema}},"required":["a"],"additionalProperties":false${more}}`
const isTaken = (schema: string, more?: string) => isStrictSchema(around(schema, more))

describe('strict are schemas', () => {
  test('whose objects are closed and whose properties are all required, at any depth', () => {
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

  test('of the keywords the provider takes', () => {
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

  test('of the formats the provider takes', () => {
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

  test('whose references stand alone and stay inside', () => {
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

  test('and a property may have the name of a keyword', () => {
    expect(
      isStrictSchema(
        '{"type":"object","properties":{"allOf":{"type":"string"}},"required":["allOf"],"additionalProperties":false}',
      ),
    ).toBe(true)
  })
})
