// Reads the few body fields that the gateway itself relies on, with uniform error messages.

import { type Failure, invalidRequest } from '../../kernel/failure.ts'
import { openBracket } from '../../wire/bytes.ts'
import {
  JsonFault,
  type JsonKind,
  type JsonMember,
  type JsonMembers,
  memberBoolean,
  memberKind,
  memberNumber,
  memberText,
  readJsonElementsUntil,
  readJsonMembers,
  readJsonValueMembers,
} from '../../wire/json-members.ts'
import type { JsonSpan } from '../../wire/json-spans.ts'
import type { Envelope } from '../canonical/translation.ts'

/** Thrown to stop reading an envelope; readFields turns it into a result. */
class FieldRefused {
  constructor(readonly failure: Failure) {}
}

/** The top-level members of one body. Every method refuses a wrong type by field name. */
export class EnvelopeFields {
  constructor(
    readonly body: Uint8Array<ArrayBuffer>,
    readonly members: JsonMembers,
  ) {}

  /** undefined if the member is absent or null. */
  find(name: string): JsonMember | undefined {
    const member = this.members.find(name)
    return member && memberKind(this.body, member) !== 'null' ? member : undefined
  }

  requiredText(name: string): string {
    const member = this.find(name) ?? this.refuse(name, `\`${name}\` is missing.`)
    const text = memberText(this.body, member) ?? this.#wrongType(name, member, 'a string')
    return text.trim() === '' ? this.refuse(name, `\`${name}\` is empty.`) : text
  }

  /** Requires a list with at least one entry. */
  requiredList(name: string, whenMissing: () => string): void {
    const member = this.find(name) ?? this.refuse(name, whenMissing())
    if (memberKind(this.body, member) !== 'array') this.#wrongType(name, member, 'an array')
    if (isEmptyList(this.body, member)) this.refuse(name, `\`${name}\` is empty; at least one message is needed.`)
  }

  /** Whether it is a non-empty list. Other types are not judged here. */
  hasEntries(name: string): boolean {
    const member = this.find(name)
    return member !== undefined && memberKind(this.body, member) === 'array' && !isEmptyList(this.body, member)
  }

  optionalBoolean(name: string): boolean | undefined {
    const member = this.find(name)
    return member && (memberBoolean(this.body, member) ?? this.#wrongType(name, member, 'true or false'))
  }

  optionalInteger(name: string, least: number, most = Number.MAX_SAFE_INTEGER): number | undefined {
    const member = this.find(name)
    if (!member) return undefined
    const value = memberNumber(this.body, member) ?? this.#wrongType(name, member, 'a whole number')
    if (Number.isInteger(value) && value >= least && value <= most) return value
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`
    return this.refuse(name, `\`${name}\` must be a whole number ${range}.`)
  }

  optionalKind(name: string, kinds: readonly JsonKind[], expected: string): JsonMember | undefined {
    const member = this.find(name)
    if (member && !kinds.includes(memberKind(this.body, member))) this.#wrongType(name, member, expected)
    return member
  }

  refuse(param: string, message: string): never {
    return this.refuseWith(invalidRequest(message, param))
  }

  /** For refusals with more detail than the field. */
  refuseWith(failure: Failure): never {
    throw new FieldRefused(failure)
  }

  #wrongType(name: string, member: JsonMember, expected: string): never {
    return this.refuse(name, `\`${name}\` must be ${expected}, not ${describeKind(memberKind(this.body, member))}.`)
  }
}

/** Checks the body's JSON and passes its fields to `read`, which may refuse at any point. */
export function readFields<Value>(
  body: Uint8Array<ArrayBuffer>,
  read: (fields: EnvelopeFields) => Value,
): Value | Failure {
  const members = readJsonMembers(body)
  if (members instanceof JsonFault) return jsonFailure(members)
  try {
    return read(new EnvelopeFields(body, members))
  } catch (refused) {
    if (refused instanceof FieldRefused) return refused.failure
    throw refused
  }
}

function jsonFailure(fault: JsonFault): Failure {
  const where = fault.reason === 'not-object' ? '' : ` (byte ${fault.offset})`
  return invalidRequest(`The body is not usable JSON: ${fault.message}${where}.`, fault.name)
}

function isEmptyList(body: Uint8Array, member: JsonMember): boolean {
  for (let at = member.valueStart + 1; at < member.valueEnd - 1; at++) if ((body[at] as number) > 0x20) return false
  return true
}

function describeKind(kind: JsonKind): string {
  if (kind === 'true' || kind === 'false') return 'a boolean'
  return kind === 'array' || kind === 'object' ? `an ${kind}` : `a ${kind}`
}

// The spans of the body that are the same in every turn of a conversation. Of the messages, that is everything up to
// and including the caller's first, because the list grows at its end.

/** Empty if the body has no such member. */
export function memberSpans({ members }: Envelope, name: string): JsonSpan[] {
  const member = members.find(name)
  return member ? [{ start: member.valueStart, end: member.valueEnd }] : []
}

/** `instructing`: roles of messages that precede the caller's first one. */
export function firstMessageSpans(envelope: Envelope, instructing: ReadonlySet<string>): JsonSpan[] {
  const [list] = memberSpans(envelope, 'messages')
  if (list === undefined || envelope.body[list.start] !== openBracket) return []
  return readJsonElementsUntil(envelope.body, list.start, list.end, (span) => {
    const message = readJsonValueMembers(envelope.body, span.start, span.end)
    const role = message instanceof JsonFault ? undefined : message.find('role')
    return role === undefined || !instructing.has(memberText(envelope.body, role) ?? '')
  })
}
