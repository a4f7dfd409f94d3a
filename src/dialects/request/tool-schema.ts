// The schema of a tool's input as Anthropic and OpenAI take it: an object at the root, without a choice between schemas there.
// What stands below the root is passed on as it was written.

import { JsonNode } from '../../wire/json-node.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from './json-text.ts'

export interface ToolSchema {
  readonly schema: RawJson
  /** Something was merged, and the schema says less than it did. */
  readonly folded?: boolean
  /** For the description: what the schema can no longer say. */
  readonly note?: string
}

/** A root that offers more alternatives is not a tool anyone would describe in words. */
const branchesMax = 64

const combinators = ['oneOf', 'anyOf', 'allOf'] as const

/** A text says why the schema cannot be used. */
export function toolSchema(raw: RawJson | undefined): ToolSchema | string {
  if (raw === undefined) return { schema: '{"type":"object","properties":{}}' }
  const members = JsonNode.of(raw).members()
  if (!members) return 'its schema must be a JSON object without repeated names'
  const root = new Map(members)
  const type = root.get('type')?.text
  if (!isObjectType(type)) return `the root of its schema must have the type object, not ${type}`
  if (combinators.some((name) => root.has(name))) return fold(root)
  if (type === '"object"') return { schema: raw }
  const others = members.filter(([name]) => name !== 'type')
  return { schema: jsonObject([['type', '"object"'], ...others.map(([name, node]) => [name, node.text] as const)]) }
}

/** Whether the root can stay as it was written. */
export function isPlainObject(root: Readonly<Record<string, unknown>>): boolean {
  return root.type === 'object' && !combinators.some((name) => name in root)
}

/** Absent, object, or a union that object is part of. */
function isObjectType(type: string | undefined): boolean {
  return (
    type === undefined || type === 'null' || type === '"object"' || (type.startsWith('[') && type.includes('"object"'))
  )
}

type Schema = ReadonlyMap<string, JsonNode>

/** Merges what stands under the root's combinators into one object. */
function fold(root: Schema): ToolSchema | string {
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
  const merged = jsonObject([...properties].map(([name, schemas]) => [name, oneSchema(schemas)] as const))
  const schema = jsonObject([
    ['type', '"object"'],
    ['properties', merged],
    ['required', required.size > 0 ? jsonArray([...required].map(jsonString)) : undefined],
    ...[...root].flatMap(([name, node]) => (keptAtRoot(name) ? [[name, node.text] as const] : [])),
  ])
  return { schema, folded: true, ...(notes.length > 0 ? { note: notes.join(' ') } : {}) }
}

function keptAtRoot(name: string): boolean {
  return !['type', 'properties', 'required', 'additionalProperties', ...combinators].includes(name)
}

/** A text says what cannot be merged. */
function branchesOf(root: Schema, name: string): Schema[] | string {
  const branches: Schema[] = []
  const nodes = root.get(name)?.elements() ?? []
  if (nodes.length > branchesMax) return `\`${name}\` at the root of its schema has more than ${branchesMax} schemas`
  for (const node of nodes) {
    const branch = resolve(node, root)
    if (!branch) return `\`${name}\` at the root of its schema cannot be merged`
    branches.push(branch)
  }
  return branches
}

/** A plain object schema, or a reference to one inside the document; undefined = neither. */
function resolve(node: JsonNode, root: Schema): Schema | undefined {
  let members = node.members()
  const reference = members?.find(([name]) => name === '$ref')?.[1].text
  if (reference !== undefined) {
    const [, list, name] = /^"#\/(\$defs|definitions)\/([^/"\\~%]+)"$/.exec(reference) ?? []
    members = list && name ? root.get(list)?.member(name)?.members() : undefined
  }
  if (!members) return undefined
  const branch = new Map(members)
  const isPlain = isObjectType(branch.get('type')?.text) && !['$ref', ...combinators].some((word) => branch.has(word))
  return isPlain ? branch : undefined
}

function addProperties(properties: Map<string, RawJson[]>, schema: Schema): void {
  for (const [name, node] of schema.get('properties')?.members() ?? []) {
    const known = properties.get(name) ?? []
    if (!known.includes(node.text)) properties.set(name, [...known, node.text])
  }
}

function oneSchema(schemas: readonly RawJson[]): RawJson {
  const [only = '{}'] = schemas
  return schemas.length === 1 ? only : jsonObject([['anyOf', jsonArray(schemas)]])
}

function requiredOf(schema: Schema): Set<string> {
  const names: unknown = JSON.parse(schema.get('required')?.text ?? '[]')
  return new Set(Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [])
}

function noteOn(name: 'oneOf' | 'anyOf', branches: readonly Schema[]): string {
  const sets = branches.map((branch) => {
    const fields = [...requiredOf(branch)]
    const names = fields.length > 0 ? fields : [...(branch.get('properties')?.members() ?? [])].map(([field]) => field)
    return names.join(', ') || 'nothing more'
  })
  const count = name === 'oneOf' ? 'exactly one' : 'at least one'
  return `The input must have ${count} of these sets of fields: ${sets.map((set) => `(${set})`).join(' or ')}.`
}
