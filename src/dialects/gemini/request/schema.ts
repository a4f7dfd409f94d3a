// Rewrites a schema to the subset of JSON Schema that the provider accepts (`responseJsonSchema`, docs of 2026-11); one
// other keyword fails the request. Keywords are replaced by equivalents where possible; the rest is moved into the
// description. To add a keyword: to `accepted`, or to `holders` if it holds schemas.

import { JsonNode } from '../../../wire/json.ts'
import type { RawJson } from '../../canonical/conversation.ts'
import { jsonArray, jsonMembers, jsonObject, jsonString } from '../../canonical/json.ts'
import { objectRoot, rewriteSchemas, type SchemaBudget, type SchemaKeywords } from '../../request/schema.ts'

export interface SubsetSchema {
  readonly schema: RawJson
  /** A constraint moved into the description. */
  readonly loosened: boolean
}

const accepted = new Set([
  ...['$id', '$anchor', 'type', 'format', 'title', 'description', 'required', 'propertyOrdering'],
  ...['minItems', 'maxItems', 'minimum', 'maximum'],
])
const holders: SchemaKeywords = {
  one: new Set(['items', 'additionalProperties']),
  list: new Set(['prefixItems', 'anyOf', 'oneOf']),
  byName: new Set(['properties', '$defs']),
}
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
  if (root.get('definitions') && root.get('$defs')) return 'the schema has both `definitions` and `$defs`'
  const narrowing = new Narrowing()
  const schema = narrowing.narrow(root)
  return { schema, loosened: narrowing.loosened }
}

class Narrowing {
  loosened = false

  narrow(node: JsonNode): RawJson {
    // `true` accepts any value, like an empty schema.
    if (node.kind === 'true') return '{}'
    const members = node.members()
    if (!members) return node.text
    const kept = new Map<string, RawJson>()
    const described: string[] = []
    for (const member of members) {
      const { name } = member
      if (this.#keep(member, kept) || ignored.has(name)) continue
      described.push(`${name}: ${member.text}`)
      if (!hints.has(name)) this.loosened = true
    }
    if (described.length > 0) describe(kept, `(${described.join(', ')})`)
    return write(kept)
  }

  /** false = there is no equivalent. */
  #keep(member: JsonNode, kept: Map<string, RawJson>): boolean {
    const [keyword, schema] = this.#equivalent(member) ?? []
    if (keyword === undefined || schema === undefined || kept.has(keyword) || isCrowded(keyword, kept)) return false
    kept.set(keyword, schema)
    // The exclusion of the bound itself can only be described.
    return !member.name.startsWith('exclusive')
  }

  #equivalent(member: JsonNode): [keyword: string, schema: RawJson] | undefined {
    const { name, kind } = member
    if (accepted.has(name)) return [name, member.text]
    // The current name for a list in `items`.
    if (name === 'items' && kind === 'array') return ['prefixItems', this.#narrowed(member, 'prefixItems')]
    if (holders.one.has(name) && kind === 'true') return [name, 'true']
    if (holders.list.has(name) && kind !== 'array') return [name, '[]']
    const schema = rewriteSchemas(member, holders, (each) => this.narrow(each))
    if (schema !== undefined) return [name, schema]
    switch (name) {
      case 'definitions':
        return ['$defs', this.#narrowed(member, '$defs')]
      case '$ref':
        return [name, member.text.replace(/^"#\/definitions\//, '"#/$defs/')]
      case 'enum':
        return member.elements()?.every(isStringOrNumber) ? [name, member.text] : undefined
      case 'const':
        return isStringOrNumber(member) ? ['enum', jsonArray([member.text])] : undefined
      // allOf with one schema equals anyOf.
      case 'allOf':
        return member.elements()?.length === 1 ? ['anyOf', this.#narrowed(member, 'anyOf')] : undefined
      case 'exclusiveMinimum':
      case 'exclusiveMaximum':
        return kind === 'number' ? [name.endsWith('Minimum') ? 'minimum' : 'maximum', member.text] : undefined
    }
    return undefined
  }

  /** The value as that of another keyword. */
  #narrowed(value: JsonNode, keyword: string): RawJson {
    return rewriteSchemas(value, holders, (each) => this.narrow(each), keyword) ?? value.text
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

function isStringOrNumber({ kind }: JsonNode): boolean {
  return kind === 'string' || kind === 'number'
}

// Function parameters: an object at the root, in the provider's subset.

/** undefined if the function has no parameters. Returns a string with the reason if the schema cannot be used. */
export function toolParameters(raw: RawJson | undefined, budget: SchemaBudget): SubsetSchema | string | undefined {
  if (raw === undefined) return undefined
  const root = objectRoot(JsonNode.of(raw))
  return 'why' in root ? root.why : subsetSchema(root.schema, budget)
}
