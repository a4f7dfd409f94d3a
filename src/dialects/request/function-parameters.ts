// The schema of a function's arguments, for providers that refuse an object which does not say what it holds, even
// nothing. The rest stays as it was written.

import { JsonNode } from '../../wire/json-node.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { jsonObject } from './json-text.ts'

const noParameters = '{"type":"object","properties":{}}'

export function functionParameters(schema: RawJson | undefined): RawJson {
  if (schema === undefined) return noParameters
  const root = JsonNode.of(schema)
  const properties = root.member('properties')
  if (root.member('type')?.text !== '"object"' || (properties && properties.text !== 'null')) return schema
  const others = (root.members() ?? []).filter(([name]) => name !== 'properties')
  return jsonObject([...others.map(([name, value]) => [name, value.text] as const), ['properties', '{}']])
}
