// The two places where a reply differs from what the provider sent: the model's name, and the cost in its usage.

import { type ByteEdit, insertMember, JsonFault, type JsonMember, readJsonValueMembers } from '../wire/json-members.ts'
import type { JsonSpan } from '../wire/json-spans.ts'
import { utf8Text } from '../wire/utf8.ts'

/** A member's value as a span. */
export function spanOf(member: JsonMember): JsonSpan {
  return { start: member.valueStart, end: member.valueEnd }
}

/** Adds `cost` to the usage object at the span, or replaces the one a provider put there. */
export function costEdit(bytes: Uint8Array, span: JsonSpan, cost: string): ByteEdit | undefined {
  const members = readJsonValueMembers(bytes, span.start, span.end)
  if (members instanceof JsonFault) return undefined
  const existing = members.find('cost')
  if (!existing) return insertMember(bytes, members, 'cost', cost)
  return { start: existing.valueStart, end: existing.valueEnd, bytes: new TextEncoder().encode(cost) }
}

/** The JSON value at a span; undefined if the provider's bytes do not parse. */
export function parseSpan(bytes: Uint8Array, span: JsonSpan): unknown {
  if (span.start < 0) return undefined
  try {
    return JSON.parse(utf8Text(bytes, span.start, span.end))
  } catch {
    return undefined
  }
}

/** Whether a member is there and is not null. */
export function isPresent(bytes: Uint8Array, span: JsonSpan): boolean {
  return span.start >= 0 && bytes[span.start] !== letterN
}

const letterN = 0x6e
