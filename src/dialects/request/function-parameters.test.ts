import { expect, test } from 'bun:test'
import { functionParameters } from './function-parameters.ts'

test('an object that names no properties gets none, spelled out', () => {
  expect(functionParameters(undefined)).toBe('{"type":"object","properties":{}}')
  expect(functionParameters('{"type":"object"}')).toBe('{"type":"object","properties":{}}')
  expect(functionParameters('{"type": "object", "additionalProperties": {"maximum": 1.0}}')).toBe(
    '{"type":"object","additionalProperties":{"maximum": 1.0},"properties":{}}',
  )
  expect(functionParameters('{"properties":null,"type":"object"}')).toBe('{"type":"object","properties":{}}')
})

test('everything else stays as it was written', () => {
  for (const schema of [
    '{ "type":"object", "properties":{"2":{"const":1.0},"1":{}} }',
    '{"type":"object","properties":{}}',
    '{"anyOf":[{"type":"object"}]}',
    '{}',
    'true',
  ]) {
    expect(functionParameters(schema)).toBe(schema)
  }
})
