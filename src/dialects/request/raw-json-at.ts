// The text of one value inside a JSON document, exactly as its author wrote it.

import { JsonFault, readJsonMembers } from '../../wire/json-members.ts'
import { JsonNode } from '../../wire/json-node.ts'
import type { RawJson } from '../canonical/conversation.ts'

/** undefined if there is no such value, or the document is one that our own reader refuses. */
export function rawJsonAt(document: string, path: readonly (string | number)[]): RawJson | undefined {
  const body = new TextEncoder().encode(document)
  const members = readJsonMembers(body)
  if (members instanceof JsonFault) return undefined
  let node: JsonNode | undefined = JsonNode.root(body, members)
  for (const step of path) node = typeof step === 'number' ? node?.element(step) : node?.member(step)
  return node?.text
}
