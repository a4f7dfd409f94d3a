// The part of JSON Schema that the provider reads (`responseJsonSchema`, docs of 2026-11); one word outside of it fails
// the request. A schema is brought into it by saying the same in its words where it can, and telling the rest in the
// description. To add a word: to `taken`, or to the set that says how it holds schemas.

import { JsonNode } from '../../wire/json-node.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import type { SchemaBudget } from '../request/schema.ts'

export interface SubsetSchema {
  readonly schema: RawJson
  /** Something the schema demanded is only told now. */
  readonly loosened: boolean
}

const taken = new Set([
  ...['$id', '$anchor', 'type', 'format', 'title', 'description', 'required', 'propertyOrdering'],
  ...['minItems', 'maxItems', 'minimum', 'maximum'],
])
/** Hold a schema, or several. */
const single = new Set(['items', 'additionalProperties'])
const lists = new Set(['prefixItems', 'anyOf', 'oneOf'])
const named = new Set(['properties', '$defs'])
/** Say nothing that a model could use. */
const silent = new Set(['$schema', '$comment', 'deprecated', 'readOnly', 'writeOnly', 'strict'])
/** Say something, and demand nothing. */
const hints = new Set(['default', 'examples'])

/** A text says why there is no such schema. */
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
    // `true` takes any value, and so does a schema that says nothing.
    if (node.isWord('true')) return '{}'
    const members = node.members()
    if (!members) return node.text
    const kept = new Map<string, RawJson>()
    const told: string[] = []
    for (const [name, value] of members) {
      if (this.#keep(name, value, kept) || silent.has(name)) continue
      told.push(`${name}: ${value.text}`)
      if (!hints.has(name)) this.loosened = true
    }
    if (told.length > 0) describe(kept, `(${told.join(', ')})`)
    return write(kept)
  }

  /** false = there is no place for it. */
  #keep(name: string, value: JsonNode, kept: Map<string, RawJson>): boolean {
    const [word, schema] = this.#inOwnWords(name, value) ?? []
    if (word === undefined || schema === undefined || kept.has(word) || isCrowded(word, kept)) return false
    kept.set(word, schema)
    // The bound itself is excluded, which can only be told.
    return !name.startsWith('exclusive')
  }

  #inOwnWords(name: string, value: JsonNode): [word: string, schema: RawJson] | undefined {
    if (taken.has(name)) return [name, value.text]
    if (single.has(name) && !value.elements()) {
      return [name, value.isWord('true') ? 'true' : this.narrow(value)]
    }
    if (lists.has(name)) return [name, this.#narrowAll(value.elements() ?? [])]
    if (named.has(name)) return [name, this.#narrowNamed(value)]
    switch (name) {
      case 'definitions':
        return ['$defs', this.#narrowNamed(value)]
      case '$ref':
        return [name, value.text.replace(/^"#\/definitions\//, '"#/$defs/')]
      case 'enum':
        return value.elements()?.every(isWordOrNumber) ? [name, value.text] : undefined
      case 'const':
        return isWordOrNumber(value) ? ['enum', jsonArray([value.text])] : undefined
      // What `items` is called today where it is a list.
      case 'items':
        return ['prefixItems', this.#narrowAll(value.elements() ?? [])]
      // All of one are any of one.
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
    return members ? jsonObject(members.map(([name, schema]) => [name, this.narrow(schema)] as const)) : value.text
  }
}

/** The choice that a reference becomes leaves no room for another. */
function isCrowded(word: string, kept: ReadonlyMap<string, RawJson>): boolean {
  return (word === '$ref' && kept.has('anyOf')) || (word === 'anyOf' && kept.has('$ref'))
}

/** Beside a reference nothing else may stand, so that one with company becomes a choice of one. */
function write(kept: ReadonlyMap<string, RawJson>): RawJson {
  const reference = kept.get('$ref')
  const hasCompany = [...kept.keys()].some((name) => !name.startsWith('$'))
  if (reference === undefined || !hasCompany) return jsonObject([...kept])
  const others = [...kept].filter(([name]) => name !== '$ref')
  return jsonObject([...others, ['anyOf', jsonArray([jsonObject([['$ref', reference]])])]])
}

function describe(kept: Map<string, RawJson>, more: string): void {
  const said: unknown = JSON.parse(kept.get('description') ?? '""')
  kept.set('description', jsonString(typeof said === 'string' && said !== '' ? `${said} ${more}` : more))
}

function isNumber({ text }: JsonNode): boolean {
  return /^[-\d]/.test(text)
}

function isWordOrNumber(value: JsonNode): boolean {
  return value.text.startsWith('"') || isNumber(value)
}
