// Schemas that all hold at once, written as one. The provider takes no reference among them, and objects that are closed
// one by one contradict each other.

import { JsonNode } from '../../wire/json-node.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { jsonArray, jsonObject } from '../canonical/json.ts'
import { SchemaBudget, schemaCharactersMax } from '../request/schema.ts'

type Members = readonly (readonly [name: string, value: JsonNode])[]

/** References may lead to the same schemas over and over. */
const partsMax = 64

/** So that schemas are merged in 200 places at most. */
const mergeCharactersMin = 1000

/** What may still be merged in one request. Attempts that fail are work too, and count. */
export class MergeBudget {
  charactersLeft = schemaCharactersMax
  readonly schemas = new SchemaBudget()
}

/** Say something about a schema, not about its values: what stands outside is nearer to the place. */
const remarks = new Set(['title', 'description', 'default', 'examples', '$comment'])

/** undefined = they do not become one, or one longer than is left. The references must be free of cycles. */
export function mergeAllOf(node: JsonNode, root: JsonNode, budget: MergeBudget): JsonNode | undefined {
  const reference = onlyReference(node)
  if (reference) return reference
  if (budget.charactersLeft <= 0) return undefined
  const parts: Members[] = []
  const isWhole = collect(node, root, parts)
  const members = parts.flat()
  const characters = members.reduce((sum, [, { span }]) => sum + span.end - span.start, 0)
  if (!isWhole || characters > budget.charactersLeft) {
    budget.charactersLeft -= (parts.length + 1) * mergeCharactersMin
    return undefined
  }
  budget.charactersLeft -= characters + mergeCharactersMin
  const merged = new Map<string, RawJson>()
  for (const [name, value] of members) {
    const known = merged.get(name)
    const joined = known === undefined ? value.text : join(name, known, value.text)
    if (joined === undefined) return undefined
    merged.set(name, joined)
  }
  return JsonNode.of(jsonObject([...merged]))
}

/** A reference that was only wrapped up to carry remarks, or the root's definitions, can stay one. */
function onlyReference(node: JsonNode): JsonNode | undefined {
  const members = node.members() ?? []
  const elements = node.member('allOf')?.elements() ?? []
  const target = elements[0]?.members()
  const isPlain = members.every(([name]) => ['allOf', '$defs', 'definitions'].includes(name) || remarks.has(name))
  if (!isPlain || elements.length !== 1 || target?.length !== 1 || target[0]?.[0] !== '$ref') return undefined
  const others = members.filter(([name]) => name !== 'allOf')
  return JsonNode.of(jsonObject([...target, ...others].map(([name, { text }]) => [name, text] as const)))
}

/** The schema's own members, then those of all it refers to. false = one of them is no object, or they are too many. */
function collect(node: JsonNode, root: JsonNode, parts: Members[]): boolean {
  const members = node.members()
  if (!members) return node.text === 'true'
  if (parts.length === partsMax) return false
  parts.push(members.filter(([name]) => name !== 'allOf' && name !== '$ref'))
  const reference = node.member('$ref')
  const target = reference ? definition(reference, root) : undefined
  if (reference && !target) return false
  const inner = [...(target ? [target] : []), ...(node.member('allOf')?.elements() ?? [])]
  return inner.every((one) => collect(one, root, parts))
}

function definition(reference: JsonNode, root: JsonNode): JsonNode | undefined {
  const [, list, name] = /^#\/(\$defs|definitions)\/(.+)$/s.exec(String(JSON.parse(reference.text))) ?? []
  return list && name ? root.member(list)?.member(name) : undefined
}

/** What both say of one keyword; undefined = that cannot be said in one. */
function join(name: string, outer: RawJson, inner: RawJson): RawJson | undefined {
  if (outer === inner || remarks.has(name)) return outer
  if (name === 'required') return union(outer, inner)
  if (name === 'properties') return joinProperties(outer, inner)
  if (name !== 'additionalProperties') return undefined
  if (outer === 'true' || inner === 'false') return inner
  return inner === 'true' || outer === 'false' ? outer : undefined
}

function union(one: RawJson, other: RawJson): RawJson {
  const texts = [one, other].flatMap((list) => JsonNode.of(list).elements() ?? []).map(({ text }) => text)
  return jsonArray([...new Set(texts)])
}

function joinProperties(one: RawJson, other: RawJson): RawJson | undefined {
  const [first, second] = [JsonNode.of(one).members(), JsonNode.of(other).members()]
  if (!first || !second) return undefined
  const joined = new Map<string, RawJson>()
  for (const [name, { text }] of [...first, ...second]) {
    if ((joined.get(name) ?? text) !== text) return undefined
    joined.set(name, text)
  }
  return jsonObject([...joined])
}
