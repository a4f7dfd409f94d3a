// The part of JSON Schema that the provider can hold a model to. A schema is brought into it by leaving out what it
// cannot enforce, which is told in the description instead, and by closing objects.

import { JsonNode } from '../../wire/json-node.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import { type MergeBudget, mergeAllOf } from './merge-all-of.ts'

export interface SubsetSchema {
  readonly schema: RawJson
  /** Something the schema demanded is only told now. */
  readonly loosened: boolean
  /** Something the schema allowed is shut out now: an object for any fields has only those it names. */
  readonly tightened: boolean
}

/** Enforced as they stand (docs of 2026-11). */
const enforced = new Set(['type', 'enum', 'const', 'required', '$ref', 'title', 'default'])
/** Hold a schema, or several. */
const single = new Set(['items'])
const lists = new Set(['anyOf', 'allOf', 'oneOf'])
const named = new Set(['properties', '$defs', 'definitions'])
/** Say nothing about a value. */
const silent = new Set(['$schema', '$id', '$comment', 'examples', 'deprecated', 'readOnly', 'writeOnly', 'strict'])
const formats = ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid']

/** Why there is no such schema. */
export interface SubsetFault {
  readonly why: string
  /** It can be read as it stands, only not compiled. */
  readonly isAudio: boolean
}

export function subsetSchema(raw: RawJson, merges: MergeBudget): SubsetSchema | SubsetFault {
  const narrowed = narrowedSchema(raw, merges)
  if ('why' in narrowed) return narrowed
  const { schema, narrowing } = narrowed
  return { schema, loosened: narrowing.loosened, tightened: narrowing.tightened }
}

/** Whether a schema lies in the part already. */
export function fitsSubset(raw: RawJson, merges: MergeBudget): boolean {
  const narrowed = narrowedSchema(raw, merges)
  return 'narrowing' in narrowed && !narrowed.narrowing.loosened && !narrowed.narrowing.rewritten
}

function narrowedSchema(raw: RawJson, merges: MergeBudget): { schema: RawJson; narrowing: Narrowing } | SubsetFault {
  const tooMuch = merges.schemas.take(raw)
  if (tooMuch !== undefined) return { why: tooMuch, isAudio: true }
  const root = JsonNode.of(raw)
  if (!root.members()) return { why: 'the schema must be a JSON object without repeated names', isAudio: false }
  const fault = referenceFault(root)
  if (fault) return fault
  const narrowing = new Narrowing(root, merges)
  return { schema: narrowing.narrow(root), narrowing }
}

class Narrowing {
  loosened = false
  tightened = false
  /** The schema as it was written is not in the part, whether or not it says the same now. */
  rewritten = false

  constructor(
    private readonly root: JsonNode,
    private readonly merges: MergeBudget,
  ) {}

  narrow(written: JsonNode): RawJson {
    const node = this.#merged(written)
    const members = node.members()
    // true, false, or names that stand twice: the provider will say what it thinks of it.
    if (!members) return node.text
    const kept = new Map<string, RawJson>()
    const told: string[] = []
    const orNull = nullableType(node)
    for (const [name, value] of members) {
      if (name === 'nullable' && (orNull || value.text === 'false')) continue
      if (!this.#keep(name, value, kept) && !isSilent(name)) told.push(`${name}: ${value.text}`)
    }
    if (orNull) {
      this.rewritten = true
      kept.set('type', orNull)
    }
    if (told.length > 0) this.loosened = true
    const description = textOf(node.member('description'))
    const words = [description, told.length > 0 ? `(${told.join(', ')})` : undefined].filter(Boolean).join(' ')
    if (words !== '') kept.set('description', jsonString(words))
    if (isObjectSchema(node)) this.#close(node, kept)
    return jsonObject([...kept])
  }

  #merged(node: JsonNode): JsonNode {
    const elements = node.member('allOf')?.elements()
    if (!elements || elements.every(isTakenInAllOf)) return node
    this.rewritten = true
    return mergeAllOf(node, this.root, this.merges) ?? node
  }

  /** false = the provider cannot be held to it. */
  #keep(name: string, value: JsonNode, kept: Map<string, RawJson>): boolean {
    // One of several is as near as it gets to exactly one.
    const word = name === 'oneOf' ? 'anyOf' : name
    const schema = this.#inside(name, value)
    if (schema === undefined || kept.has(word)) return false
    if (word !== name) this.rewritten = true
    kept.set(word, schema)
    return true
  }

  #inside(name: string, value: JsonNode): RawJson | undefined {
    if (enforced.has(name) || isEnforced(name, value)) return value.text
    if (single.has(name)) return this.narrow(value)
    if (name === 'allOf' && !value.elements()?.every(isTakenInAllOf)) return undefined
    if (lists.has(name)) {
      const elements = value.elements()
      return elements ? jsonArray(elements.map((element) => this.narrow(element))) : value.text
    }
    if (!named.has(name)) return undefined
    const members = value.members()
    return members ? jsonObject(members.map(([field, schema]) => [field, this.narrow(schema)] as const)) : value.text
  }

  /** The provider takes objects only with the fields they name. */
  #close(node: JsonNode, kept: Map<string, RawJson>): void {
    const others = node.member('additionalProperties')?.text
    const namesFields = (node.member('properties')?.members() ?? []).length > 0
    const isElsewhere = !namesFields && namesFieldsElsewhere(node)
    if (others !== 'false' || isElsewhere) this.rewritten = true
    if (isElsewhere) {
      kept.delete('type')
      return
    }
    const isOpen = others === undefined ? !namesFields || node.member('patternProperties') : others !== 'false'
    if (isOpen) this.tightened = true
    kept.set('additionalProperties', 'false')
  }
}

/** The description is written anew, and how an object is closed is decided for itself. */
function isSilent(name: string): boolean {
  return silent.has(name) || name === 'description' || name === 'additionalProperties'
}

/** `nullable` in words that the provider knows, where nothing but the type says what a value is. */
function nullableType(node: JsonNode): RawJson | undefined {
  const type = textOf(node.member('type'))
  if (node.member('nullable')?.text !== 'true' || type === undefined) return undefined
  const isElsewhere = ['enum', 'const', '$ref', ...lists].some((name) => node.member(name))
  return isElsewhere ? undefined : jsonArray([jsonString(type), '"null"'])
}

function isEnforced(name: string, value: JsonNode): boolean {
  if (name === 'format') return formats.includes(textOf(value) ?? '')
  return name === 'minItems' && (value.text === '0' || value.text === '1')
}

/** Nothing in it that refers to something, or that would be closed for itself. */
function isTakenInAllOf(element: JsonNode): boolean {
  for (const schema of schemasIn(element)) if (schema.member('$ref') || isObjectSchema(schema)) return false
  return true
}

function isObjectSchema(node: JsonNode): boolean {
  const type = node.member('type')?.text
  if (type !== undefined) return type.includes('"object"')
  return ['properties', 'additionalProperties', 'patternProperties'].some((name) => node.member(name))
}

/** An object that is one of several, or another one: there it is closed, and there it is said to be an object. */
function namesFieldsElsewhere(node: JsonNode): boolean {
  const type = node.member('type')?.text
  if (type !== undefined && type !== '"object"') return false
  if (node.member('$ref')) return true
  const choices = (node.member('anyOf') ?? node.member('oneOf'))?.elements() ?? []
  return choices.length > 0 && choices.every((choice) => choice.member('$ref') || isObjectSchema(choice))
}

function textOf(value: JsonNode | undefined): string | undefined {
  const parsed: unknown = value && JSON.parse(value.text)
  return typeof parsed === 'string' ? parsed : undefined
}

/** Every schema inside, itself included; how deep a body nests is limited when it is read. */
export function* schemasIn(node: JsonNode): Generator<JsonNode> {
  const members = node.members()
  if (!members) return
  yield node
  for (const [name, value] of members) {
    if (single.has(name)) yield* schemasIn(value)
    else if (lists.has(name)) for (const element of value.elements() ?? []) yield* schemasIn(element)
    else if (named.has(name)) for (const [, schema] of value.members() ?? []) yield* schemasIn(schema)
  }
}

/** References must lead to definitions inside the schema, and nowhere back to themselves. */
function referenceFault(root: JsonNode): SubsetFault | undefined {
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
  if (outside !== undefined) {
    return { why: `the reference \`${outside}\` leads to no definition in the schema`, isAudio: false }
  }
  const isRecursive = referencesOf(root).includes('#') || hasCycle(inside)
  return isRecursive ? { why: 'recursive schemas are not supported', isAudio: true } : undefined
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
