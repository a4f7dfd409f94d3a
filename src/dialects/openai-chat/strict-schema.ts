// Whether a schema may be sent as strict: every object closed and every property required. OpenAI answers anything else
// with a 400, so a wish for strictness is only passed on where it can be met.

import type { RawJson } from '../canonical/conversation.ts'
import { isRecord, parseJson } from '../canonical/json-value.ts'

export function isStrictSchema(schema: RawJson): boolean {
  const root = parseJson(schema)
  return isRecord(root) && root.type === 'object' && isClosed(root)
}

const lists = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const maps = ['properties', '$defs', 'definitions']

function isClosed(schema: unknown): boolean {
  if (!isRecord(schema)) return true
  const types = Array.isArray(schema.type) ? schema.type : [schema.type]
  if ((types.includes('object') || schema.properties !== undefined) && !isClosedObject(schema)) return false
  return (
    isClosed(schema.items) &&
    lists.every((name) => valuesOf(schema[name]).every(isClosed)) &&
    maps.every((name) => valuesOf(schema[name]).every(isClosed))
  )
}

function isClosedObject({ properties, required, additionalProperties }: Record<string, unknown>): boolean {
  const names = isRecord(properties) ? Object.keys(properties) : []
  return additionalProperties === false && names.every((name) => Array.isArray(required) && required.includes(name))
}

function valuesOf(value: unknown): unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value) : []
}
