// Rewrites a schema to the subset of JSON Schema that the provider accepts (`responseJsonSchema`, docs of 2026-11); one
// other keyword fails the request. Keywords are replaced by equivalents where possible; the rest is moved into the
// description. To add a keyword: to `accepted`, or to the set that says how it holds schemas.

import { JsonNode } from '../../../wire/json-node.ts'
import type { RawJson } from '../../canonical/conversation.ts'
import { jsonArray, jsonMembers, jsonObject, jsonString } from '../../canonical/json.ts'
import type { SchemaBudget } from '../../request/schema.ts'

export interface SubsetSchema {
  readonly schema: RawJson
  /** A constraint moved into the description. */
  readonly loosened: boolean
}

const accepted = new Set([
  ...['$id', '$anchor', 'type', 'format', 'title', 'description', 'required', 'propertyOrdering'],
  ...['minItems', 'maxItems', 'minimum', 'maximum'],
])
/** Keywords that hold a schema, a list of schemas, or schemas by name. */
const schemaKeywords = new Set(['items', 'additionalProperties'])
const listKeywords = new Set(['prefixItems', 'anyOf', 'oneOf'])
const mapKeywords = new Set(['properties', '$defs'])
/** Keywords of no use to a model. */
const ignored = new Set(['$schema', '$comment', 'deprecated', 'readOnly', 'writeOnly', 'strict'])
/** Keywords that describe but do not constrain. */
const hints = new Set(['default', 'examples'])

/** Returns a string with the reason if the schema cannot be used. */
export function subsetSchema(raw: RawJson, budget: SchemaBudget): SubsetSchema | string {
  const tooMuch = budget.take(raw)
  if (tooMuch !== undefined) return tooMuch
  const root = JsonNode.of(raw)
  if (!root.members()) return 'the schema must be a JSON object without repeated names'
  if (root.member('definitions') && root.member('$defs')) return 'the schema has both `definitions` and `$defs`'
  const narrowing = new Narrowing()
  const schema = narrowing.narrow(root)
  return { schema, loosened: narrowing.loosened }
}

class Narrowing {
  loosened = false

  narrow(node: JsonNode): RawJson {
    // `true` accepts any value, like an empty schema.
    if (node.isWord('true')) return '{}'
    const members = node.members()
    if (!members) return node.text
    const kept = new Map<string, RawJson>()
    const described: string[] = []
    for (const [name, value] of members) {
      if (this.#keep(name, value, kept) || ignored.has(name)) continue
      described.push(`${name}: ${value.text}`)
      if (!hints.has(name)) this.loosened = true
    }
    if (described.length > 0) describe(kept, `(${described.join(', ')})`)
    return write(kept)
  }

  /** false = there is no equivalent. */
  #keep(name: string, value: JsonNode, kept: Map<string, RawJson>): boolean {
    const [keyword, schema] = this.#equivalent(name, value) ?? []
    if (keyword === undefined || schema === undefined || kept.has(keyword) || isCrowded(keyword, kept)) return false
    kept.set(keyword, schema)
    // The exclusion of the bound itself can only be described.
    return !name.startsWith('exclusive')
  }

  #equivalent(name: string, value: JsonNode): [keyword: string, schema: RawJson] | undefined {
    if (accepted.has(name)) return [name, value.text]
    if (schemaKeywords.has(name) && !value.elements()) {
      return [name, value.isWord('true') ? 'true' : this.narrow(value)]
    }
    if (listKeywords.has(name)) return [name, this.#narrowAll(value.elements() ?? [])]
    if (mapKeywords.has(name)) return [name, this.#narrowNamed(value)]
    switch (name) {
      case 'definitions':
        return ['$defs', this.#narrowNamed(value)]
      case '$ref':
        return [name, value.text.replace(/^"#\/definitions\//, '"#/$defs/')]
      case 'enum':
        return value.elements()?.every(isStringOrNumber) ? [name, value.text] : undefined
      case 'const':
        return isStringOrNumber(value) ? ['enum', jsonArray([value.text])] : undefined
      // The current name for a list in `items`.
      case 'items':
        return ['prefixItems', this.#narrowAll(value.elements() ?? [])]
      // allOf with one schema equals anyOf.
      case 'allOf':
        return value.elements()?.length === 1 ? ['anyOf', this.#narrowAll(value.elements() ?? [])] : undefined
      case 'exclusiveMinimum':
      case 'exclusiveMaximum':
        return isNumber(value) ? [name.endsWith('Minimum') ? 'minimum' : 'maximum', value.text] : undefined
    }
    return undefined
  }

  #narrowAll(schemas: readonly JsonNode[]): RawJson {
    return jsonArray(schemas.map((schema) => this.narrow(schema)))
  }

  #narrowNamed(value: JsonNode): RawJson {
    const members = value.members()
    return members ? jsonMembers(members.map(([name, schema]) => [name, this.narrow(schema)] as const)) : value.text
  }
}

/** A reference may become an anyOf (see `write`), so it excludes another one. */
function isCrowded(keyword: string, kept: ReadonlyMap<string, RawJson>): boolean {
  return (keyword === '$ref' && kept.has('anyOf')) || (keyword === 'anyOf' && kept.has('$ref'))
}

/** A reference must be the only member, so one with siblings becomes an anyOf of one. */
function write(kept: ReadonlyMap<string, RawJson>): RawJson {
  const reference = kept.get('$ref')
  const hasSiblings = [...kept.keys()].some((name) => !name.startsWith('$'))
  if (reference === undefined || !hasSiblings) return jsonMembers([...kept])
  const others = [...kept].filter(([name]) => name !== '$ref')
  return jsonMembers([...others, ['anyOf', jsonArray([jsonObject({ $ref: reference })])]])
}

function describe(kept: Map<string, RawJson>, more: string): void {
  const text: unknown = JSON.parse(kept.get('description') ?? '""')
  kept.set('description', jsonString(typeof text === 'string' && text !== '' ? `${text} ${more}` : more))
}

function isNumber({ text }: JsonNode): boolean {
  return /^[-\d]/.test(text)
}

function isStringOrNumber(value: JsonNode): boolean {
  return value.text.startsWith('"') || isNumber(value)
}

// Function parameters: an object at the root, in the provider's subset.

export interface ToolParameters {
  /** undefined = the function has no parameters. */
  readonly schema: RawJson | undefined
  /** A constraint moved into the description. */
  readonly loosened: boolean
}

/** Returns a string with the reason if the schema cannot be used. */
export function toolParameters(raw: RawJson | undefined, budget: SchemaBudget): ToolParameters | string {
  if (raw === undefined) return { schema: undefined, loosened: false }
  const members = JsonNode.of(raw).members()
  if (!members) return 'its schema must be a JSON object without repeated names'
  const type = members.find(([name]) => name === 'type')?.[1].text
  if (type === '"object"') return subsetSchema(raw, budget)
  // Absent, or a union that includes object.
  const isObject = type === undefined || type === 'null' || (type.startsWith('[') && type.includes('"object"'))
  if (!isObject) return `the root of its schema must have the type object, not ${type}`
  const others = members.flatMap(([name, value]) => (name === 'type' ? [] : [[name, value.text] as const]))
  return subsetSchema(jsonMembers([['type', '"object"'], ...others]), budget)
}
