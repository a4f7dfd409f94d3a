// Whether a schema may be sent as strict: every object closed and every property required. The provider answers anything
// else with a 400, so a wish for strictness is only passed on where it can be met.

import type { RawJson } from '../canonical/conversation.ts'
import { isRecord, parseJson } from '../canonical/json-value.ts'

/** Members of a schema that hold schemas, by the way they hold them. */
const lists: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems'])
const maps: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions'])

export function isStrictSchema(schema: RawJson): boolean {
  const root = parseJson(schema)
  if (!isRecord(root) || root.type !== 'object') return false
  const open: unknown[] = [root]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (!isRecord(node)) continue
    if (isObjectSchema(node) && !isClosed(node)) return false
    open.push(...schemasIn(node))
  }
  return true
}

function isObjectSchema({ type, properties }: Record<string, unknown>): boolean {
  return type === 'object' || (Array.isArray(type) && type.includes('object')) || properties !== undefined
}

function isClosed({ properties, required, additionalProperties }: Record<string, unknown>): boolean {
  const needed: unknown[] = Array.isArray(required) ? required : []
  const names = isRecord(properties) ? Object.keys(properties) : []
  return additionalProperties === false && names.every((name) => needed.includes(name))
}

function schemasIn(schema: Record<string, unknown>): unknown[] {
  return Object.entries(schema).flatMap(([name, value]): unknown[] => {
    if (name === 'items') return Array.isArray(value) ? value : [value]
    if (lists.has(name)) return Array.isArray(value) ? value : []
    return maps.has(name) && isRecord(value) ? Object.values(value) : []
  })
}
