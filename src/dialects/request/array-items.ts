// An array that does not say what it holds may hold anything. OpenAI wants that spelled out, at any depth: "array schema
// missing items" is a 400 for the whole request.

import { JsonNode } from '../../wire/json-node.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { isRecord } from '../canonical/json-value.ts'
import { jsonArray, jsonObject } from './json-text.ts'

/** What holds a schema, several, or several by name; whatever else a schema has is data. */
const single: ReadonlySet<string> = new Set([
  ...['items', 'additionalProperties', 'contains', 'propertyNames', 'unevaluatedItems', 'unevaluatedProperties'],
  ...['not', 'if', 'then', 'else'],
])
const lists: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems', 'items'])
const named: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions',
])

/** What needs no change is the very text that came: prompt caches depend on it. */
export function withArrayItems(schema: RawJson): RawJson {
  return mended(JsonNode.of(schema)) ?? schema
}

/** Whether there is something to do, for the many schemas where there is not: far quicker than to find their texts. */
export function lacksArrayItems(schema: unknown): boolean {
  if (!isRecord(schema)) return false
  if (isArrayType(schema.type) && schema.items === undefined) return true
  return Object.entries(schema).some(([name, value]) => {
    if (named.has(name)) return isRecord(value) && Object.values(value).some(lacksArrayItems)
    if (lists.has(name) && Array.isArray(value)) return value.some(lacksArrayItems)
    return single.has(name) && lacksArrayItems(value)
  })
}

function isArrayType(type: unknown): boolean {
  return type === 'array' || (Array.isArray(type) && type.includes('array'))
}

/** undefined = as it is; how deep a body nests is limited when it is read. */
function mended(schema: JsonNode): RawJson | undefined {
  const type = schema.member('type')?.text
  const lacksItems = type !== undefined && isArrayType(JSON.parse(type)) && !schema.member('items')
  return mendedObject(schema, mendedMember, lacksItems ? '{}' : undefined)
}

function mendedMember(value: JsonNode, name: string): RawJson | undefined {
  if (named.has(name)) return mendedObject(value, mended)
  if (lists.has(name) && value.elements()) return mendedList(value)
  return single.has(name) ? mended(value) : undefined
}

function mendedObject(
  object: JsonNode,
  mend: (value: JsonNode, name: string) => RawJson | undefined,
  items?: RawJson,
): RawJson | undefined {
  const members = (object.members() ?? []).map(([name, value]) => ({ name, value, changed: mend(value, name) }))
  if (items === undefined && members.every(({ changed }) => changed === undefined)) return undefined
  const written = members.map(({ name, value, changed }) => [name, changed ?? value.text] as const)
  return jsonObject([...written, ['items', items]])
}

function mendedList(list: JsonNode): RawJson | undefined {
  const elements = (list.elements() ?? []).map((element) => ({ element, changed: mended(element) }))
  if (elements.every(({ changed }) => changed === undefined)) return undefined
  return jsonArray(elements.map(({ element, changed }) => changed ?? element.text))
}
