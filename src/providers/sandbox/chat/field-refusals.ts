// The three sentences in which OpenAI finds fault with a field.

import { typeName, writeJson } from '../json-value.ts'
import { invalid, type Refusal } from '../refusal.ts'

export function missing(param: string): Refusal {
  return invalid(`Missing required parameter: '${param}'.`, { param, code: 'missing_required_parameter' })
}

export function wrongType(param: string, expected: string, value: unknown): Refusal {
  const message = `Invalid type for '${param}': expected ${expected}, but got ${typeName(value)} instead.`
  return invalid(message, { param, code: 'invalid_type' })
}

export function unknownValue(param: string, value: unknown, supported: readonly string[]): Refusal {
  if (value === undefined) return missing(param)
  const shown = typeof value === 'string' ? value : writeJson(value)
  const list = supported.map((name) => `'${name}'`).join(', ')
  return invalid(`Invalid value: '${shown}'. Supported values are: ${list}.`, { param, code: 'invalid_value' })
}
