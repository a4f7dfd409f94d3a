// Rewrites a schema to the subset of JSON Schema that the provider can enforce: other keywords are moved into the
// description, and objects are closed.

import { JsonNode } from '../../../wire/json.ts'
import type { RawJson } from '../../canonical/conversation.ts'
import { jsonArray, jsonMembers, jsonString } from '../../canonical/json.ts'
import {
  asWritten,
  definitionAt,
  rewriteSchemas,
  SchemaBudget,
  type SchemaKeywords,
  schemaCharactersMax,
  schemasIn,
} from '../../request/schema.ts'

export interface SubsetSchema {
  readonly schema: RawJson
  /** A constraint moved into the description. */
  readonly loosened: boolean
  /** Values that were allowed are now excluded: an object for any fields has only those it names. */
  readonly tightened: boolean
  /** The original schema is not in the subset, even if the result means the same. */
  readonly rewritten: boolean
}

/** Enforced unchanged (docs of 2026-11). */
const enforced = new Set(['type', 'enum', 'const', 'required', '$ref', 'title', 'default'])
export const holders: SchemaKeywords = {
  one: new Set(['items']),
  list: new Set(['anyOf', 'allOf', 'oneOf']),
  byName: new Set(['properties', '$defs', 'definitions']),
}
/** Keywords that do not constrain values. */
const ignored = new Set(['$schema', '$id', '$comment', 'examples', 'deprecated', 'readOnly', 'writeOnly', 'strict'])
const formats = ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid']

/** Why a schema cannot be used. */
export interface SubsetFault {
  readonly why: string
  /** It is valid, but cannot be compiled. */
  readonly isValid: boolean
}

export function subsetSchema(raw: RawJson, merges: MergeBudget): SubsetSchema | SubsetFault {
  const tooMuch = merges.schemas.take(raw)
  if (tooMuch !== undefined) return { why: tooMuch, isValid: true }
  const root = JsonNode.of(raw)
  if (!root.members()) return { why: 'the schema must be a JSON object without repeated names', isValid: false }
  const fault = referenceFault(root)
  if (fault) return fault
  const narrowing = new Narrowing(root, merges)
  const schema = narrowing.narrow(root)
  const { loosened, tightened, rewritten } = narrowing
  return { schema, loosened, tightened, rewritten }
}

/** Whether a schema is in the subset already. */
export function fitsSubset(raw: RawJson, merges: MergeBudget): boolean {
  const result = subsetSchema(raw, merges)
  return 'schema' in result && !result.loosened && !result.rewritten
}

class Narrowing {
  loosened = false
  tightened = false
  rewritten = false

  constructor(
    private readonly root: JsonNode,
    private readonly merges: MergeBudget,
  ) {}

  narrow(written: JsonNode): RawJson {
    const node = this.#merged(written)
    const members = node.members()
    // true, false, or duplicate names: leave the error to the provider.
    if (!members) return node.text
    const kept = new Map<string, RawJson>()
    const described: string[] = []
    const orNull = nullableType(node)
    for (const member of members) {
      const { name } = member
      if (name === 'nullable' && (orNull || member.kind === 'false')) continue
      if (!this.#keep(member, kept) && !isIgnored(name)) described.push(`${name}: ${member.text}`)
    }
    if (orNull) {
      this.rewritten = true
      kept.set('type', orNull)
    }
    if (described.length > 0) this.loosened = true
    const words = [node.get('description')?.string, described.length > 0 ? `(${described.join(', ')})` : '']
    const description = words.filter(Boolean).join(' ')
    if (description !== '') kept.set('description', jsonString(description))
    if (isObjectSchema(node)) this.#close(node, kept)
    return jsonMembers([...kept])
  }

  #merged(node: JsonNode): JsonNode {
    const elements = node.get('allOf')?.elements()
    if (!elements || elements.every(isAcceptedInAllOf)) return node
    this.rewritten = true
    return mergeAllOf(node, this.root, this.merges) ?? node
  }

  /** false = the provider cannot enforce it. */
  #keep(member: JsonNode, kept: Map<string, RawJson>): boolean {
    // anyOf is the nearest equivalent of oneOf.
    const word = member.name === 'oneOf' ? 'anyOf' : member.name
    const schema = this.#inside(member)
    if (schema === undefined || kept.has(word)) return false
    if (word !== member.name) this.rewritten = true
    kept.set(word, schema)
    return true
  }

  #inside(member: JsonNode): RawJson | undefined {
    const { name } = member
    if (enforced.has(name) || isEnforced(member)) return member.text
    if (name === 'allOf' && !member.elements()?.every(isAcceptedInAllOf)) return undefined
    if (holders.list.has(name) && member.kind !== 'array') return member.text
    return rewriteSchemas(member, holders, (each) => this.narrow(each))
  }

  /** The provider only accepts closed objects. */
  #close(node: JsonNode, kept: Map<string, RawJson>): void {
    const others = node.get('additionalProperties')?.text
    const namesFields = (node.get('properties')?.members() ?? []).length > 0
    const isElsewhere = !namesFields && namesFieldsElsewhere(node)
    if (others !== 'false' || isElsewhere) this.rewritten = true
    if (isElsewhere) {
      kept.delete('type')
      return
    }
    const isOpen = others === undefined ? !namesFields || node.get('patternProperties') : others !== 'false'
    if (isOpen) this.tightened = true
    kept.set('additionalProperties', 'false')
  }
}

/** The description is rewritten, and closing is decided separately. */
function isIgnored(name: string): boolean {
  return ignored.has(name) || name === 'description' || name === 'additionalProperties'
}

/** `nullable` as a type union, if only the type constrains the value. */
function nullableType(node: JsonNode): RawJson | undefined {
  const type = node.get('type')?.string
  if (node.get('nullable')?.text !== 'true' || type === undefined) return undefined
  const isElsewhere = ['enum', 'const', '$ref', ...holders.list].some((name) => node.get(name))
  return isElsewhere ? undefined : jsonArray([jsonString(type), '"null"'])
}

function isEnforced(member: JsonNode): boolean {
  if (member.name === 'format') return formats.includes(member.string ?? '')
  return member.name === 'minItems' && (member.text === '0' || member.text === '1')
}

/** It contains neither references nor objects, which would be closed separately. */
function isAcceptedInAllOf(node: JsonNode): boolean {
  return schemasIn(node.value(), holders).every(
    (schema) => schema.$ref === undefined && !isObject(JSON.stringify(schema.type), (name) => name in schema),
  )
}

function isObjectSchema(node: JsonNode): boolean {
  return isObject(node.get('type')?.text, (name) => node.get(name) !== undefined)
}

function isObject(type: RawJson | undefined, has: (name: string) => boolean): boolean {
  if (type !== undefined) return type.includes('"object"')
  return ['properties', 'additionalProperties', 'patternProperties'].some(has)
}

/** An object defined by a choice or a reference: it is closed there. */
function namesFieldsElsewhere(node: JsonNode): boolean {
  const type = node.get('type')?.text
  if (type !== undefined && type !== '"object"') return false
  if (node.get('$ref')) return true
  const choices = (node.get('anyOf') ?? node.get('oneOf'))?.elements() ?? []
  return choices.length > 0 && choices.every((choice) => choice.get('$ref') || isObjectSchema(choice))
}

/** References must lead to definitions inside the schema, without cycles. */
function referenceFault(root: JsonNode): SubsetFault | undefined {
  const inside = new Map<string, string[]>()
  const referencesOf = (node: JsonNode) =>
    [...schemasIn(node.value(), holders)].flatMap(({ $ref }) => ($ref === undefined ? [] : [String($ref)]))
  for (const list of ['$defs', 'definitions']) {
    for (const schema of root.get(list)?.members() ?? []) inside.set(`#/${list}/${schema.name}`, referencesOf(schema))
  }
  const all = referencesOf(root)
  const outside = all.find((reference) => reference !== '#' && !inside.has(reference))
  if (outside !== undefined) {
    return { why: `the reference \`${outside}\` leads to no definition in the schema`, isValid: false }
  }
  return all.includes('#') || hasCycle(inside)
    ? { why: 'recursive schemas are not supported', isValid: true }
    : undefined
}

/** Each name is visited once, however many paths lead to it. */
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

// Merges allOf into one schema. The provider accepts no references in it, and objects that are closed separately
// contradict each other.

/** References may lead to the same schemas repeatedly. */
const partsMax = 64

/** Limits merging to 200 places. */
const mergeCharactersMin = 1000

/** The remaining budget for merging in one request. Failed attempts are work too, and count. */
export class MergeBudget {
  charactersLeft = schemaCharactersMax
  readonly schemas = new SchemaBudget()
}

/** Keywords about the schema, not its values: the outer one counts. */
const annotations = new Set(['title', 'description', 'default', 'examples', '$comment'])

/** undefined = they cannot be merged, or exceed the budget. References must be free of cycles. */
export function mergeAllOf(node: JsonNode, root: JsonNode, budget: MergeBudget): JsonNode | undefined {
  const reference = onlyReference(node)
  if (reference) return reference
  if (budget.charactersLeft <= 0) return undefined
  const parts: JsonNode[][] = []
  const isWhole = collect(node, root, parts)
  const members = parts.flat()
  const characters = members.reduce((sum, { start, end }) => sum + end - start, 0)
  if (!isWhole || characters > budget.charactersLeft) {
    budget.charactersLeft -= (parts.length + 1) * mergeCharactersMin
    return undefined
  }
  budget.charactersLeft -= characters + mergeCharactersMin
  const merged = new Map<string, RawJson>()
  for (const { name, text } of members) {
    const known = merged.get(name)
    const joined = known === undefined ? text : join(name, known, text)
    if (joined === undefined) return undefined
    merged.set(name, joined)
  }
  return JsonNode.of(jsonMembers([...merged]))
}

/** A reference that was only wrapped to carry annotations, or the root's definitions, stays a reference. */
function onlyReference(node: JsonNode): JsonNode | undefined {
  const members = node.members() ?? []
  const elements = node.get('allOf')?.elements() ?? []
  const target = elements[0]?.members()
  const isPlain = members.every(({ name }) => ['allOf', '$defs', 'definitions'].includes(name) || annotations.has(name))
  if (!isPlain || elements.length !== 1 || target?.length !== 1 || target[0]?.name !== '$ref') return undefined
  return JsonNode.of(jsonMembers(asWritten([...target, ...members.filter(({ name }) => name !== 'allOf')])))
}

/**
 * Collects the schema's own members, then those of everything it refers to. false = one of them is not an object, or
 * there are too many.
 */
function collect(node: JsonNode, root: JsonNode, parts: JsonNode[][]): boolean {
  const members = node.members()
  if (!members) return node.text === 'true'
  if (parts.length === partsMax) return false
  parts.push(members.filter(({ name }) => name !== 'allOf' && name !== '$ref'))
  const reference = node.get('$ref')
  const target = reference ? definitionAt(reference, root) : undefined
  if (reference && !target) return false
  const inner = [...(target ? [target] : []), ...(node.get('allOf')?.elements() ?? [])]
  return inner.every((one) => collect(one, root, parts))
}

/** The combination of two values of a keyword; undefined = they cannot be combined. */
function join(name: string, outer: RawJson, inner: RawJson): RawJson | undefined {
  if (outer === inner || annotations.has(name)) return outer
  if (name === 'required') {
    const texts = [outer, inner].flatMap((list) => JsonNode.of(list).elements() ?? []).map(({ text }) => text)
    return jsonArray([...new Set(texts)])
  }
  if (name === 'properties') return joinProperties(outer, inner)
  if (name !== 'additionalProperties') return undefined
  if (outer === 'true' || inner === 'false') return inner
  return inner === 'true' || outer === 'false' ? outer : undefined
}

function joinProperties(one: RawJson, other: RawJson): RawJson | undefined {
  const [first, second] = [JsonNode.of(one).members(), JsonNode.of(other).members()]
  if (!first || !second) return undefined
  const joined = new Map<string, RawJson>()
  for (const { name, text } of [...first, ...second]) {
    if ((joined.get(name) ?? text) !== text) return undefined
    joined.set(name, text)
  }
  return jsonMembers([...joined])
}
