// The schema of a function's parameters: an object at the root, in the words the provider reads.

import { JsonNode } from '../../wire/json-node.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { jsonObject } from '../canonical/json.ts'
import type { SchemaBudget } from '../request/schema.ts'
import { subsetSchema } from './schema-subset.ts'

export interface ToolParameters {
  /** undefined = the function takes none. */
  readonly schema: RawJson | undefined
  /** Something the schema demanded is only told now. */
  readonly loosened: boolean
}

/** A text says why the schema cannot be used. */
export function toolParameters(raw: RawJson | undefined, budget: SchemaBudget): ToolParameters | string {
  if (raw === undefined) return { schema: undefined, loosened: false }
  const members = JsonNode.of(raw).members()
  if (!members) return 'its schema must be a JSON object without repeated names'
  const type = members.find(([name]) => name === 'type')?.[1].text
  if (type === '"object"') return subsetSchema(raw, budget)
  // Absent, or a union that object is part of.
  const isObject = type === undefined || type === 'null' || (type.startsWith('[') && type.includes('"object"'))
  if (!isObject) return `the root of its schema must have the type object, not ${type}`
  const others = members.flatMap(([name, value]) => (name === 'type' ? [] : [[name, value.text] as const]))
  return subsetSchema(jsonObject([['type', '"object"'], ...others]), budget)
}
