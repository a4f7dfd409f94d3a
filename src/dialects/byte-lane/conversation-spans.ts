// Where the parts lie with which a conversation begins. They are the same in every turn of it: of the messages only what
// comes up to the first of the caller's, since everything behind grows.

import { openBracket } from '../../wire/ascii.ts'
import { readJsonElementsUntil } from '../../wire/json-elements.ts'
import { JsonFault, memberText, readJsonValueMembers } from '../../wire/json-members.ts'
import type { JsonSpan } from '../../wire/json-spans.ts'
import type { Envelope } from '../canonical/envelope.ts'

/** No part where the body has no such member. */
export function memberSpans({ members }: Envelope, name: string): JsonSpan[] {
  const member = members.find(name)
  return member ? [{ start: member.valueStart, end: member.valueEnd }] : []
}

/** `instructing`: roles of messages that stand before what the caller says first. */
export function firstMessageSpans(envelope: Envelope, instructing: ReadonlySet<string>): JsonSpan[] {
  const [list] = memberSpans(envelope, 'messages')
  if (list === undefined || envelope.body[list.start] !== openBracket) return []
  return readJsonElementsUntil(envelope.body, list.start, list.end, (span) => {
    const message = readJsonValueMembers(envelope.body, span.start, span.end)
    const role = message instanceof JsonFault ? undefined : message.find('role')
    return role === undefined || !instructing.has(memberText(envelope.body, role) ?? '')
  })
}
