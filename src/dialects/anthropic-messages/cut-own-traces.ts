// Two things in a history come from this gateway and no provider of this dialect takes them: thinking signed by us, and
// the empty text block that stands for an answer without content. They are cut out of the caller's bytes.

import { hasBytes } from '../../wire/find-bytes.ts'
import { readJsonElements } from '../../wire/json-elements.ts'
import {
  type ByteEdit,
  JsonFault,
  type JsonMember,
  type JsonMembers,
  memberKind,
  memberText,
  readJsonValueMembers,
} from '../../wire/json-members.ts'
import type { JsonSpan } from '../../wire/json-spans.ts'
import { cutSpans } from '../byte-lane/edits.ts'
import { isOwnSignature } from '../canonical/signature.ts'

/** A body that holds none of these, as almost every one, is not looked at any further. Writers differ in the space. */
const traces = ['"tg1.', '"text":""', '"text": ""'].map((text) => Buffer.from(text))

/** In order and not overlapping. */
export function ownTraceEdits(body: Uint8Array, members: JsonMembers): ByteEdit[] {
  if (!traces.some((trace) => hasBytes(body, trace))) return []
  const messages = members.find('messages')
  if (!messages || memberKind(body, messages) !== 'array') return []
  const spans = readJsonElements(body, messages.valueStart, messages.valueEnd)
  const inside = spans.map((span) => cutsInMessage(body, span))
  const whole = cutSpans(spans, (i) => inside[i] === 'all')
  const parts = inside.flatMap((cuts) => (cuts === 'all' ? [] : cuts))
  return [...whole, ...parts].sort((a, b) => a.start - b.start)
}

function cutsInMessage(body: Uint8Array, span: JsonSpan): ByteEdit[] | 'all' {
  const message = objectMembers(body, span)
  const role = message?.find('role')
  const content = message?.find('content')
  if (!role || !content || memberText(body, role) !== 'assistant' || memberKind(body, content) !== 'array') return []
  const blocks = readJsonElements(body, content.valueStart, content.valueEnd)
  const cut = blocks.map((block) => isOwnTrace(body, block))
  if (cut.length > 0 && cut.every(Boolean)) return 'all'
  return cutSpans(blocks, (i) => cut[i] === true)
}

function isOwnTrace(body: Uint8Array, span: JsonSpan): boolean {
  const block = objectMembers(body, span)
  const text = (name: string) => block && memberTextOf(body, block.find(name))
  switch (text('type')) {
    case 'text':
      return text('text') === ''
    case 'thinking':
      return isOwnSignature(text('signature') ?? '')
    case 'redacted_thinking':
      return isOwnSignature(text('data') ?? '')
    default:
      return false
  }
}

function memberTextOf(body: Uint8Array, member: JsonMember | undefined): string | undefined {
  return member && memberText(body, member)
}

/** undefined if it is not an object, or one whose names the provider has to judge. */
function objectMembers(body: Uint8Array, { start, end }: JsonSpan): JsonMembers | undefined {
  const members = readJsonValueMembers(body, start, end)
  return members instanceof JsonFault ? undefined : members
}
