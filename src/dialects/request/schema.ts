// JSON Schemas of tools and output formats, rewritten to what OpenAI and Anthropic accept. Schemas that need no change
// keep their exact text, because prompt caches depend on it.
//
// SchemaBudget limits how much of a request's schemas is rewritten: each part costs microseconds of the event loop, and
// a body has room for thousands.

import { JsonNode } from '../../wire/json.ts'
import type { FunctionTool, RawJson } from '../canonical/conversation.ts'
import {
  isRecord,
  jsonArray,
  jsonMembers,
  jsonObject,
  jsonString,
  listOf,
  parseJson,
  recordOf,
} from '../canonical/json.ts'
import type { WarningList } from './fields.ts'

/** Per schema; far above what any provider compiles. */
export const schemaCharactersMax = 200_000
/** All schemas together: 250 tools of 4,000 characters. */
const togetherMax = 1_000_000

export class SchemaBudget {
  #charactersLeft = togetherMax

  /** Returns the reason, and takes nothing, if the schema is too long. */
  take({ length }: RawJson): string | undefined {
    if (length > schemaCharactersMax) return `it is longer than ${schemaCharactersMax} characters`
    if (length > this.#charactersLeft) return `the schemas of a request may have ${togetherMax} characters together`
    this.#charactersLeft -= length
    return undefined
  }
}

// Where a schema holds other schemas. Each target has a table of the keywords it knows; all other keywords hold data.

/** Keywords that hold a schema, a list of schemas, or schemas by name. */
export interface SchemaKeywords {
  readonly one: ReadonlySet<string>
  readonly list: ReadonlySet<string>
  readonly byName: ReadonlySet<string>
}

const allKeywords: SchemaKeywords = {
  one: new Set([
    ...['items', 'additionalProperties', 'contains', 'propertyNames', 'unevaluatedItems', 'unevaluatedProperties'],
    ...['not', 'if', 'then', 'else'],
  ]),
  list: new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems', 'items']),
  byName: new Set(['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions']),
}

type ParsedSchema = Readonly<Record<string, unknown>>

/** All schemas inside a parsed one, including itself. The nesting depth is limited when the body is read. */
export function* schemasIn(schema: unknown, keywords: SchemaKeywords): Generator<ParsedSchema> {
  if (!isRecord(schema)) return
  yield schema
  for (const [name, value] of Object.entries(schema)) {
    const inner = keywords.byName.has(name)
      ? Object.values(recordOf(value))
      : keywords.list.has(name) && Array.isArray(value)
        ? value
        : keywords.one.has(name)
          ? [value]
          : []
    for (const each of inner) yield* schemasIn(each, keywords)
  }
}

/** A keyword's value with the schemas in it rewritten; undefined if it holds none. `name`: of the keyword. */
export function rewriteSchemas(
  value: JsonNode,
  keywords: SchemaKeywords,
  rewrite: (schema: JsonNode) => RawJson,
  name = value.name,
): RawJson | undefined {
  const elements = keywords.list.has(name) ? value.elements() : undefined
  if (elements) return jsonArray(elements.map(rewrite))
  if (keywords.byName.has(name)) {
    const members = value.members()
    return members ? jsonMembers(members.map((schema) => [schema.name, rewrite(schema)] as const)) : value.text
  }
  return keywords.one.has(name) ? rewrite(value) : undefined
}

/** Names and texts, for `jsonMembers`. */
export function asWritten(members: readonly JsonNode[] = []): (readonly [name: string, value: RawJson])[] {
  return members.map(({ name, text }) => [name, text])
}

/** The schema that a reference leads to; undefined if it is outside the document or does not exist. */
export function definitionAt(reference: JsonNode, root: JsonNode): JsonNode | undefined {
  const [, list, name] = /^#\/(\$defs|definitions)\/(.+)$/s.exec(String(reference.value())) ?? []
  return list && name ? root.get(list)?.get(name) : undefined
}

// Function parameters in the form OpenAI accepts: an object at the root, with `properties` even if empty, without a
// choice between schemas at the root, and with `items` in every array.

type Described = Pick<FunctionTool, 'schema' | 'description' | 'pointer'>

/** The description includes what the schema can no longer express. */
export function functionParameters(
  tool: Described,
  { warnings, schemas }: { readonly warnings: WarningList; readonly schemas: SchemaBudget },
) {
  const { schema = '{}', description, pointer = '/tools' } = tool
  if (isAccepted(parseJson(schema)) || schemas.take(schema) !== undefined) return { parameters: schema, description }
  const merged = toolSchema(tool)
  // A schema that cannot be merged may still be accepted by a less strict host.
  if (typeof merged === 'string') return { parameters: addItems(JsonNode.of(schema)), description }
  if (merged.folded) warnings.add('tool_schema_merged', pointer)
  return { parameters: addItems(withProperties(JsonNode.of(merged.schema))), description: merged.description }
}

/** True for most schemas: no change needed. */
function isAccepted(root: unknown): boolean {
  return isRecord(root) && isPlainObject(root) && isRecord(root.properties) && !lacksArrayItems(root)
}

function withProperties(root: JsonNode): JsonNode {
  const properties = root.get('properties')
  if (properties && properties.kind !== 'null') return root
  return JsonNode.of(
    jsonMembers([...asWritten(root.members()).filter(([name]) => name !== 'properties'), ['properties', '{}']]),
  )
}

// Tool schemas in the form that Anthropic and OpenAI accept: an object at the root, without a choice between schemas
// there. Everything below the root stays as written.

export interface ToolSchema {
  readonly schema: RawJson
  /** The tool's, with what the schema can no longer express. */
  readonly description: string | undefined
  /** Schemas were merged, and the result is less strict. */
  readonly folded?: boolean
}

/** More alternatives than any sensible tool has. */
const branchesMax = 64

const combinators = ['oneOf', 'anyOf', 'allOf'] as const

/** Returns a string with the reason if the schema cannot be used. */
export function toolSchema({ schema: raw, description }: Described): ToolSchema | string {
  if (raw === undefined) return { schema: '{"type":"object","properties":{}}', description }
  const root = JsonNode.of(raw)
  const schema = objectRoot(root)
  if ('why' in schema) return schema.why
  return combinators.some((name) => root.get(name)) ? fold(root, description) : { ...schema, description }
}

/** The schema with the type object at its root. */
export function objectRoot(root: JsonNode): { readonly schema: RawJson } | { readonly why: string } {
  const members = root.members()
  if (!members) return { why: 'its schema must be a JSON object without repeated names' }
  const type = root.get('type')?.text
  if (type === '"object"') return { schema: root.text }
  if (!isObjectType(type)) return { why: `the root of its schema must have the type object, not ${type}` }
  return { schema: jsonMembers([['type', '"object"'], ...asWritten(members).filter(([name]) => name !== 'type')]) }
}

export function isPlainObject(root: Readonly<Record<string, unknown>>): boolean {
  return root.type === 'object' && !combinators.some((name) => name in root)
}

/** Absent, object, or a union that includes object. */
function isObjectType(type: string | undefined): boolean {
  return (
    type === undefined || type === 'null' || type === '"object"' || (type.startsWith('[') && type.includes('"object"'))
  )
}

/** Merges the schemas under the root's combinators into one object. */
function fold(root: JsonNode, description: string | undefined): ToolSchema | string {
  const properties = new Map<string, RawJson[]>()
  addProperties(properties, root)
  const required = requiredOf(root)
  const notes: string[] = []
  for (const name of combinators) {
    const branches = branchesOf(root, name)
    if (typeof branches === 'string') return branches
    if (branches.length === 0) continue
    for (const branch of branches) addProperties(properties, branch)
    const lists = branches.map(requiredOf)
    const always = name === 'allOf' ? lists : [lists.reduce((common, list) => common.intersection(list))]
    for (const list of always) for (const field of list) required.add(field)
    if (name !== 'allOf') notes.push(noteOn(name, branches))
  }
  const merged = [...properties].map(
    ([name, schemas]) => [name, schemas.length === 1 ? schemas[0] : jsonObject({ anyOf: jsonArray(schemas) })] as const,
  )
  const schema = jsonMembers([
    ['type', '"object"'],
    ['properties', jsonMembers(merged)],
    ['required', required.size > 0 ? jsonArray([...required].map(jsonString)) : undefined],
    ...asWritten(root.members()).filter(([name]) => !mergedAtRoot.has(name)),
  ])
  const described = notes.length > 0 ? [description, notes.join(' ')].filter(Boolean).join('\n\n') : description
  return { schema, folded: true, description: described }
}

const mergedAtRoot = new Set(['type', 'properties', 'required', 'additionalProperties', ...combinators])

/** Returns a string with the reason if the branches cannot be merged. */
function branchesOf(root: JsonNode, name: string): JsonNode[] | string {
  const branches: JsonNode[] = []
  const nodes = root.get(name)?.elements() ?? []
  if (nodes.length > branchesMax) return `\`${name}\` at the root of its schema has more than ${branchesMax} schemas`
  for (const node of nodes) {
    const branch = resolveBranch(node, root)
    if (!branch) return `\`${name}\` at the root of its schema cannot be merged`
    branches.push(branch)
  }
  return branches
}

/** A plain object schema, or a reference to one inside the document; otherwise undefined. */
function resolveBranch(node: JsonNode, root: JsonNode): JsonNode | undefined {
  const reference = node.get('$ref')
  const branch = reference ? definitionAt(reference, root) : node
  if (!branch?.members() || !isObjectType(branch.get('type')?.text)) return undefined
  return ['$ref', ...combinators].some((word) => branch.get(word)) ? undefined : branch
}

function addProperties(properties: Map<string, RawJson[]>, schema: JsonNode): void {
  for (const { name, text } of schema.get('properties')?.members() ?? []) {
    const known = properties.get(name) ?? []
    if (!known.includes(text)) properties.set(name, [...known, text])
  }
}

function requiredOf(schema: JsonNode): Set<string> {
  const names = listOf(schema.get('required')?.value())
  return new Set(names.filter((name) => typeof name === 'string'))
}

function noteOn(name: 'oneOf' | 'anyOf', branches: readonly JsonNode[]): string {
  const sets = branches.map((branch) => {
    const fields = [...requiredOf(branch)]
    const names =
      fields.length > 0 ? fields : (branch.get('properties')?.members() ?? []).map(({ name: field }) => field)
    return names.join(', ') || 'nothing more'
  })
  const count = name === 'oneOf' ? 'exactly one' : 'at least one'
  return `The input must have ${count} of these sets of fields: ${sets.map((set) => `(${set})`).join(' or ')}.`
}

// An array without `items` may hold anything. OpenAI requires `items` at any depth: "array schema missing items" is a
// 400 for the whole request.

function lacksArrayItems(schema: unknown): boolean {
  return schemasIn(schema, allKeywords).some((each) => mayBe(each, 'array') && each.items === undefined)
}

/** The original text if no change is needed. */
function addItems(schema: JsonNode): RawJson {
  const members = lacksArrayItems(schema.value()) ? schema.members() : undefined
  if (!members) return schema.text
  const type = schema.get('type')?.value()
  return jsonMembers([
    ...members.map((each) => [each.name, rewriteSchemas(each, allKeywords, addItems) ?? each.text] as const),
    ['items', mayBe({ type }, 'array') && !schema.get('items') ? '{}' : undefined],
  ])
}

function mayBe({ type }: ParsedSchema, word: string): boolean {
  return type === word || (Array.isArray(type) && type.includes(word))
}

// Whether a schema may be sent as strict in OpenAI's sense. OpenAI answers any keyword outside its subset of JSON
// Schema with a 400, so strictness is only requested if all keywords are known (structured outputs guide, 2026-11). To
// add a keyword: to `strictKeywords`, or to `strictHolders` if it holds schemas.

/** `default` and string lengths are missing on purpose: some models and hosts still refuse them. */
const strictKeywords: ReadonlySet<string> = new Set([
  ...['type', 'enum', 'const', 'title', 'description', 'required', 'additionalProperties', '$schema'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minItems', 'maxItems'],
  // OpenAI's helper writes this for zod's `nullable()`.
  'nullable',
])
const strictFormats: readonly unknown[] = [
  ...['date-time', 'time', 'date', 'duration'],
  ...['email', 'hostname', 'ipv4', 'ipv6', 'uuid'],
]
const strictHolders: SchemaKeywords = {
  one: new Set(['items']),
  list: new Set(['anyOf']),
  byName: new Set(['properties', '$defs', 'definitions']),
}

export function isStrictSchema(schema: RawJson): boolean {
  if (schema.length > schemaCharactersMax) return false
  const root = parseJson(schema)
  if (!isRecord(root) || root.type !== 'object' || root.anyOf !== undefined) return false
  return schemasIn(root, strictHolders).every(isStrictNode)
}

function isStrictNode(schema: ParsedSchema): boolean {
  // A reference must be the only member.
  if (schema.$ref !== undefined) return Object.keys(schema).length === 1 && String(schema.$ref).startsWith('#')
  const hasType = schema.type !== undefined || Array.isArray(schema.anyOf)
  return (
    hasType &&
    Object.entries(schema).every(([name, value]) => isStrictMember(name, value)) &&
    (!mayBe(schema, 'array') || schema.items !== undefined) &&
    (!(mayBe(schema, 'object') || schema.properties !== undefined) || isClosed(schema))
  )
}

function isStrictMember(name: string, value: unknown): boolean {
  if (name === 'format') return strictFormats.includes(value)
  // Lookahead and lookbehind are not supported.
  if (name === 'pattern') return typeof value === 'string' && !/\(\?<?[=!]/.test(value)
  if (strictHolders.list.has(name)) return Array.isArray(value) && value.every(isRecord)
  if (strictHolders.byName.has(name)) return isRecord(value) && Object.values(value).every(isRecord)
  return strictHolders.one.has(name) ? isRecord(value) : strictKeywords.has(name)
}

/** No additional properties, and all properties required. */
function isClosed({ properties, required, additionalProperties }: ParsedSchema): boolean {
  const needed = new Set(listOf(required))
  return (
    additionalProperties === false && isRecord(properties) && Object.keys(properties).every((name) => needed.has(name))
  )
}
