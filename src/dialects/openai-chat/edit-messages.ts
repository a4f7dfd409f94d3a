// What of the messages changes on the way to a host of the same dialect: a role that the host does not know, reasoning that
// it refuses, misses, or that only this gateway can read. Almost every body has nothing of it and is not looked at further.

import { hasBytes } from '../../wire/find-bytes.ts'
import { readJsonElements } from '../../wire/json-elements.ts'
import {
  type ByteEdit,
  insertMember,
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
import type { TargetRules } from '../canonical/target-rules.ts'
import type { Envelope } from '../canonical/translation.ts'
import { reasoningFieldNames } from './parse-reasoning.ts'

const traces = {
  role: Buffer.from('"developer"'),
  assistant: Buffer.from('"assistant"'),
  reasoning: Buffer.from('"reasoning'),
  blocks: Buffer.from('"thinking_blocks"'),
  own: Buffer.from('"tg1.'),
}
const systemRole = new TextEncoder().encode('"system"')

/** In order within each message, and not overlapping. */
export function messageEdits({ body, members }: Envelope, rules: TargetRules): ByteEdit[] {
  const wishes: Wishes = {
    // Some hosts refuse the role; others drop the message without a word, and the whole system prompt with it.
    isRenamed: rules.systemRole === 'system' && hasBytes(body, traces.role),
    isBare: rules.reasoningMembers === false && (hasBytes(body, traces.reasoning) || hasBytes(body, traces.blocks)),
    isRid: hasBytes(body, traces.own),
    echo: rules.reasoningEcho && hasBytes(body, traces.assistant) ? rules.reasoningEcho : undefined,
  }
  const messages = members.find('messages')
  if (!messages || !(wishes.isRenamed || wishes.isBare || wishes.isRid || wishes.echo)) return []
  return readJsonElements(body, messages.valueStart, messages.valueEnd).flatMap((span) => edits(body, span, wishes))
}

interface Wishes {
  /** `developer` becomes `system`. */
  readonly isRenamed: boolean
  /** No reasoning at all goes back. */
  readonly isBare: boolean
  /** Reasoning that we have signed does not go back. */
  readonly isRid: boolean
  /** The member without which a message of the assistant is refused, also if another model wrote it. */
  readonly echo: TargetRules['reasoningEcho']
}

function edits(body: Uint8Array, span: JsonSpan, { isRenamed, isBare, isRid, echo }: Wishes): ByteEdit[] {
  const message = objectAt(body, span)
  const role = message?.find('role')
  if (!message || !role) return []
  const word = memberText(body, role)
  if (word === 'developer' && isRenamed) return [{ start: role.valueStart, end: role.valueEnd, bytes: systemRole }]
  if (word !== 'assistant') return []
  const own = isRid ? ownDetails(body, message) : []
  const cut = message.list.map(
    ({ name }) => (isBare && isReasoning(name)) || (own === 'all' && name === 'reasoning_details'),
  )
  const spans = message.list.map(({ start, valueEnd }) => ({ start, end: valueEnd }))
  const members = cutSpans(spans, (i) => cut[i] === true)
  const proofs = isRid ? ownProofs(body, message) : []
  return [...members, ...proofs, ...(own === 'all' || isBare ? [] : own), ...missedEcho(body, message, echo)]
}

/** Empty, as for a message that had none; the reasoning of others is not its to read. */
function missedEcho(body: Uint8Array, message: JsonMembers, echo: TargetRules['reasoningEcho']): ByteEdit[] {
  if (!echo || message.find(echo.field) || (echo.when === 'tool-turns' && !message.find('tool_calls'))) return []
  return [insertMember(body, message, echo.field, '""')]
}

/** Of calls, the same in the extension for one proof each. */
function ownProofs(body: Uint8Array, message: JsonMembers): ByteEdit[] {
  const calls = message.find('tool_calls')
  if (!calls || memberKind(body, calls) !== 'array') return []
  return readJsonElements(body, calls.valueStart, calls.valueEnd).flatMap((span) => {
    const list = objectAt(body, span)?.list ?? []
    const spans = list.map(({ start, valueEnd }) => ({ start, end: valueEnd }))
    return cutSpans(spans, (i) => list[i]?.name === 'extra_content' && holdsOwn(body, list[i]))
  })
}

function holdsOwn(body: Uint8Array, { valueStart, valueEnd }: JsonMember): boolean {
  return Buffer.from(body.buffer, body.byteOffset + valueStart, valueEnd - valueStart).includes(traces.own)
}

function isReasoning(name: string): boolean {
  return reasoningFieldNames.some((known) => known === name)
}

/** The entries of reasoning_details that we have signed, to be cut; `all` = there are no others. */
function ownDetails(body: Uint8Array, message: JsonMembers): ByteEdit[] | 'all' {
  const details = message.find('reasoning_details')
  if (!details || memberKind(body, details) !== 'array') return []
  const entries = readJsonElements(body, details.valueStart, details.valueEnd)
  const isOwn = entries.map((entry) => {
    const fields = objectAt(body, entry)
    return ['signature', 'data'].some((name) => isOwnSignature(textOf(body, fields?.find(name))))
  })
  if (isOwn.length > 0 && isOwn.every(Boolean)) return 'all'
  return cutSpans(entries, (i) => isOwn[i] === true)
}

function textOf(body: Uint8Array, member: JsonMember | undefined): string {
  return (member && memberText(body, member)) ?? ''
}

/** undefined if it is not an object, or one whose names the host has to judge. */
function objectAt(body: Uint8Array, { start, end }: JsonSpan): JsonMembers | undefined {
  const members = readJsonValueMembers(body, start, end)
  return members instanceof JsonFault ? undefined : members
}
