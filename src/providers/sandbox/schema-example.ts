// One value that fits a JSON Schema, always the same: the arguments of a tool call, or JSON output. Knows the common
// keywords; any other schema gets some value, never an exception.

import { isRecord } from '../../dialects/canonical/json.ts'

type JsonObject = Readonly<Record<string, unknown>>

const depthMax = 8
// References can branch: eight levels of a hundred properties each would be 10¹⁶ values.
const valuesMax = 1_000

export function exampleOf(schema: unknown): unknown {
  let values = 0

  function example(at: unknown, depth: number): unknown {
    values += 1
    const resolved = resolve(at, schema)
    const fixed = member(resolved, 'const') ?? listMember(resolved, 'enum')[0]
    if (isScalar(fixed)) return fixed
    const deeper = depth < depthMax && values < valuesMax
    const union =
      listMember(resolved, 'anyOf')[0] ?? listMember(resolved, 'oneOf')[0] ?? listMember(resolved, 'allOf')[0]
    const type = typeOf(resolved)
    if (type === undefined && union !== undefined) return deeper ? example(union, depth + 1) : 'sandbox'
    switch (type) {
      case 'object':
        return deeper ? exampleObject(resolved, depth) : {}
      case 'array':
        return deeper ? [example(member(resolved, 'items'), depth + 1)] : []
      case 'number':
      case 'integer':
        return 1
      case 'boolean':
        return true
      case 'null':
        return null
      default:
        return 'sandbox'
    }
  }

  function exampleObject(at: JsonObject, depth: number): JsonObject {
    const properties = member(at, 'properties')
    const names = listMember(at, 'required').filter((name) => typeof name === 'string')
    const entries: [string, unknown][] = []
    for (const name of new Set(names)) {
      if (values >= valuesMax) break
      entries.push([name, example(member(properties, name), depth + 1)])
    }
    return Object.fromEntries(entries)
  }

  return example(schema, 0)
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

function typeOf(schema: JsonObject): string | undefined {
  const type = member(schema, 'type')
  if (typeof type === 'string') return type
  if (Array.isArray(type)) return type.find((name) => typeof name === 'string' && name !== 'null') ?? 'null'
  return isRecord(member(schema, 'properties')) ? 'object' : undefined
}

/** Follows references within the document; a few hops, because they may form a circle. */
function resolve(schema: unknown, root: unknown): JsonObject {
  let at = schema
  for (let hop = 0; hop < depthMax; hop += 1) {
    const reference = member(at, '$ref')
    if (typeof reference !== 'string') break
    at = reference
      .split('/')
      .slice(1)
      .reduce<unknown>((value, key) => member(value, key.replaceAll('~1', '/').replaceAll('~0', '~')), root)
  }
  return isRecord(at) ? at : {}
}

/** An own member; `constructor` and other inherited names are not members. */
function member(value: unknown, key: string): unknown {
  return isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

function listMember(value: unknown, key: string): readonly unknown[] {
  const found = member(value, key)
  return Array.isArray(found) ? found : []
}
