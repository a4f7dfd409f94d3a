// What the strict schemas of one request may hold together. The provider compiles all of them into one grammar, and
// refuses a request whose schemas go beyond these numbers (docs of 2026-11).

import { JsonNode } from '../../wire/json-node.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { schemasIn } from './schema-subset.ts'

export class StrictBudget {
  #tools = 20
  #optional = 24
  #unions = 16

  /** false = it would be too much, and nothing is taken. */
  takeTool(schema: RawJson): boolean {
    if (this.#tools === 0 || !this.take(schema)) return false
    this.#tools--
    return true
  }

  /** For a schema that is not a tool's: the form of the answer. */
  take(schema: RawJson): boolean {
    const { optional, unions } = costOf(schema)
    if (optional > this.#optional || unions > this.#unions) return false
    this.#optional -= optional
    this.#unions -= unions
    return true
  }
}

/** Fields that may be missing, and values that may be one of several things, at any depth. */
function costOf(schema: RawJson): { optional: number; unions: number } {
  let optional = 0
  let unions = 0
  for (const node of schemasIn(JsonNode.of(schema))) {
    const required = new Set(
      node
        .member('required')
        ?.elements()
        ?.map(({ text }) => JSON.parse(text) as unknown),
    )
    const fields = node.member('properties')?.members() ?? []
    optional += fields.filter(([name]) => !required.has(name)).length
    if (node.member('anyOf') || node.member('type')?.elements()) unions++
  }
  return { optional, unions }
}
