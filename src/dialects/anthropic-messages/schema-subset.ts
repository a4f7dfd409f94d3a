// The part of JSON Schema that the provider can hold a model to. A schema is brought into it by leaving out what it
// cannot enforce, which is told in the description instead, and by closing objects.

import { JsonNode } from '../../wire/json-node.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../request/json-text.ts'

export interface SubsetSchema {
  readonly schema: RawJson
  /** Something the schema demanded is only told now. */
  readonly loosened: boolean
}

/** Enforced as they stand (docs of 2026-11). */
const enforced = new Set(['type', 'enum', 'const', 'required', '$ref', 'title', 'description', 'default'])
/** Hold a schema, or several. */
const single = new Set(['items'])
const lists = new Set(['anyOf', 'allOf', 'oneOf'])
const named = new Set(['properties', '$defs', 'definitions'])
/** Say nothing about a value. */
const silent = new Set(['$schema', '$id', '$comment', 'examples', 'deprecated', 'readOnly', 'writeOnly', 'strict'])
const formats = ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid']

/** Far above what the provider compiles; each level of nesting reads what is below it again. */
const schemaCharactersMax = 200_000

/** A text says why there is no such schema. */
export function subsetSchema(raw: RawJson): SubsetSchema | string {
  if (raw.length > schemaCharactersMax) return `it is longer than ${schemaCharactersMax} characters`
  const root = JsonNode.of(raw)
  if (!root.members()) return 'the schema must be a JSON object without repeated names'
  const fault = referenceFault(root)
  if (fault) return fault
  const state = { loosened: false }
  const schema = narrow(root, state)
  return { schema, loosened: state.loosened }
}

/** Whether a schema lies in the part already. */
export function fitsSubset(raw: RawJson): boolean {
  const result = subsetSchema(raw)
  return typeof result !== 'string' && !result.loosened && closesObjects(JsonNode.of(raw))
}

function narrow(node: JsonNode, state: { loosened: boolean }): RawJson {
  const members = node.members()
  // true, false, or names that stand twice: the provider will say what it thinks of it.
  if (!members) return node.text
  const kept: [string, RawJson][] = []
  const told: string[] = []
  let description: string | undefined
  for (const [name, value] of members) {
    if (name === 'description') description = textOf(value)
    else if (name === 'additionalProperties') {
      if (value.text !== 'false') told.push(`${name}: ${value.text}`)
    } else if (enforced.has(name)) kept.push([name, value.text])
    else if (single.has(name)) kept.push([name, narrow(value, state)])
    // One of several is as near as it gets to exactly one.
    else if (lists.has(name)) kept.push([name === 'oneOf' ? 'anyOf' : name, narrowAll(value, state)])
    else if (named.has(name)) kept.push([name, narrowNamed(value, state)])
    else if (isEnforced(name, value)) kept.push([name, value.text])
    else if (!silent.has(name)) told.push(`${name}: ${value.text}`)
  }
  if (told.length > 0) state.loosened = true
  const words = [description, told.length > 0 ? `(${told.join(', ')})` : undefined].filter(Boolean).join(' ')
  if (words !== '') kept.push(['description', jsonString(words)])
  if (isObjectSchema(members)) kept.push(['additionalProperties', 'false'])
  return jsonObject(kept)
}

function isEnforced(name: string, value: JsonNode): boolean {
  if (name === 'format') return formats.includes(textOf(value) ?? '')
  return name === 'minItems' && (value.text === '0' || value.text === '1')
}

function narrowAll(value: JsonNode, state: { loosened: boolean }): RawJson {
  const elements = value.elements()
  return elements ? jsonArray(elements.map((element) => narrow(element, state))) : value.text
}

function narrowNamed(value: JsonNode, state: { loosened: boolean }): RawJson {
  const members = value.members()
  return members ? jsonObject(members.map(([name, schema]) => [name, narrow(schema, state)] as const)) : value.text
}

function isObjectSchema(members: readonly [string, JsonNode][]): boolean {
  return members.some(([name, value]) => name === 'properties' || (name === 'type' && /"object"/.test(value.text)))
}

function textOf(value: JsonNode): string | undefined {
  const parsed: unknown = JSON.parse(value.text)
  return typeof parsed === 'string' ? parsed : undefined
}

/** Every schema inside, itself included; how deep a body nests is limited when it is read. */
function* schemasIn(node: JsonNode): Generator<JsonNode> {
  const members = node.members()
  if (!members) return
  yield node
  for (const [name, value] of members) {
    if (single.has(name)) yield* schemasIn(value)
    else if (lists.has(name)) for (const element of value.elements() ?? []) yield* schemasIn(element)
    else if (named.has(name)) for (const [, schema] of value.members() ?? []) yield* schemasIn(schema)
  }
}

/** The rest of what narrowing would change. */
function closesObjects(root: JsonNode): boolean {
  for (const schema of schemasIn(root)) {
    const members = schema.members() ?? []
    if (schema.member('oneOf')) return false
    if (isObjectSchema(members) && schema.member('additionalProperties')?.text !== 'false') return false
  }
  return true
}

/** References must lead to definitions inside the schema, and nowhere back to themselves. */
function referenceFault(root: JsonNode): string | undefined {
  const inside = new Map<string, string[]>()
  const referencesOf = (node: JsonNode) =>
    [...schemasIn(node)].flatMap((schema) => {
      const reference = schema.member('$ref')
      return reference ? [textOf(reference) ?? ''] : []
    })
  for (const list of ['$defs', 'definitions']) {
    for (const [name, schema] of root.member(list)?.members() ?? []) {
      inside.set(`#/${list}/${name}`, referencesOf(schema))
    }
  }
  const outside = referencesOf(root).find((reference) => reference !== '#' && !inside.has(reference))
  if (outside !== undefined) return `the reference \`${outside}\` leads to no definition in the schema`
  if (referencesOf(root).includes('#')) return 'recursive schemas are not supported'
  return hasCycle(inside) ? 'recursive schemas are not supported' : undefined
}

/** Each name is walked once, however many ways lead to it. */
function hasCycle(next: ReadonlyMap<string, readonly string[]>): boolean {
  const state = new Map<string, 'open' | 'done'>()
  const closes = (name: string): boolean => {
    const known = state.get(name)
    if (known !== undefined) return known === 'open'
    state.set(name, 'open')
    if ((next.get(name) ?? []).some(closes)) return true
    state.set(name, 'done')
    return false
  }
  return [...next.keys()].some(closes)
}
