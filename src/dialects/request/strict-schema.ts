// Whether a schema may be sent as strict in the dialects that know the word in OpenAI's sense. The provider answers one
// keyword outside of its part of JSON Schema with a 400, so a wish for strictness is only passed on where all of them are
// known (guide to structured outputs, 2026-11). To add a keyword: to `taken`, or to the set that says how it holds schemas.

import type { RawJson } from '../canonical/conversation.ts'
import { isRecord, parseJson } from '../canonical/json-value.ts'

/** `default` and the lengths of strings are missing on purpose: some models and hosts still refuse them. */
const taken: ReadonlySet<string> = new Set([
  ...['type', 'enum', 'const', 'title', 'description', 'required', 'additionalProperties', '$schema'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minItems', 'maxItems'],
  // What the provider's own helper makes of zod's `nullable()`.
  'nullable',
])
const formats: readonly unknown[] = [
  ...['date-time', 'time', 'date', 'duration'],
  ...['email', 'hostname', 'ipv4', 'ipv6', 'uuid'],
]
/** Hold a schema, or several by name. */
const single: ReadonlySet<string> = new Set(['items'])
const named: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions'])

type Schema = Record<string, unknown>

/** Far above what the provider compiles, and no work before it is refused there. */
const schemaCharactersMax = 200_000

export function isStrictSchema(schema: RawJson): boolean {
  if (schema.length > schemaCharactersMax) return false
  const root = parseJson(schema)
  if (!isRecord(root) || root.type !== 'object' || root.anyOf !== undefined) return false
  const open: unknown[] = [root]
  while (open.length > 0) {
    const node = open.pop()
    if (!isRecord(node) || !isTaken(node)) return false
    open.push(...schemasIn(node))
  }
  return true
}

function isTaken(schema: Schema): boolean {
  // A reference must stand alone.
  if (schema.$ref !== undefined) return Object.keys(schema).length === 1 && isInside(schema.$ref)
  const hasType = schema.type !== undefined || Array.isArray(schema.anyOf)
  return (
    hasType &&
    Object.entries(schema).every(([name, value]) => isTakenMember(name, value)) &&
    (!mayBe(schema, 'array') || schema.items !== undefined) &&
    (!(mayBe(schema, 'object') || schema.properties !== undefined) || isClosed(schema))
  )
}

function isTakenMember(name: string, value: unknown): boolean {
  if (name === 'format') return formats.includes(value)
  // Of the syntax of patterns, looking ahead or behind is missing.
  if (name === 'pattern') return typeof value === 'string' && !/\(\?<?[=!]/.test(value)
  if (name === 'anyOf') return Array.isArray(value)
  if (named.has(name)) return isRecord(value)
  return taken.has(name) || single.has(name)
}

function isInside(reference: unknown): boolean {
  return typeof reference === 'string' && reference.startsWith('#')
}

function mayBe({ type }: Schema, word: string): boolean {
  return type === word || (Array.isArray(type) && type.includes(word))
}

/** Nothing beside its properties, and none of them left out. */
function isClosed({ properties, required, additionalProperties }: Schema): boolean {
  const needed = new Set<unknown>(Array.isArray(required) ? required : [])
  return (
    additionalProperties === false && isRecord(properties) && Object.keys(properties).every((name) => needed.has(name))
  )
}

function schemasIn(schema: Schema): unknown[] {
  return Object.entries(schema).flatMap(([name, value]): unknown[] => {
    if (single.has(name)) return [value]
    if (name === 'anyOf') return Array.isArray(value) ? value : []
    return named.has(name) && isRecord(value) ? Object.values(value) : []
  })
}
