// Where the members of a JSON object lie in its bytes, so that a body can be checked and edited without being parsed
// and written again. Knows JSON, not what any member means.

import { isUtf8 } from 'node:buffer'
import { assert } from '../kernel/assert.ts'
import { closeBrace, comma, lowerF, lowerN, lowerT, minus, nine, openBrace, openBracket, quote, zero } from './ascii.ts'
import type { JsonEnds } from './json-ends.ts'
import { JsonScanner } from './json-scanner.ts'
import { hasByteOrderMark, utf8FaultOffset, utf8Text } from './utf8.ts'

/** Containers inside containers, the top-level object being the first. */
export const jsonDepthMax = 64
/** A request has some dozens; millions would fit into a body and cost fifty times its size. */
export const jsonMembersMax = 4096

export interface JsonMember {
  /** Decoded. */
  readonly name: string
  /** The opening quote of the name. All are byte offsets into the body. */
  readonly start: number
  readonly valueStart: number
  readonly valueEnd: number
}

export class JsonMembers {
  constructor(
    private readonly byName: ReadonlyMap<string, JsonMember>,
    readonly list: readonly JsonMember[],
    /** The object's opening brace. */
    readonly start: number,
    /** Behind its closing brace. */
    readonly end: number,
  ) {}

  find(name: string): JsonMember | undefined {
    return this.byName.get(name)
  }
}

export class JsonFault {
  constructor(
    readonly reason: 'syntax' | 'duplicate' | 'depth' | 'utf8' | 'not-object' | 'too-many',
    readonly message: string,
    readonly offset: number,
    /** The member that stands twice. */
    readonly name?: string,
  ) {}
}

/** Checks the whole document. Refuses what JSON.parse refuses, and duplicate, too deep or too many members. */
export function readJsonMembers(body: Uint8Array, depthMax: number = jsonDepthMax): JsonMembers | JsonFault {
  if (body.length === 0) return new JsonFault('syntax', 'the body is empty', 0)
  if (!isUtf8(body)) return new JsonFault('utf8', 'the body is not UTF-8', utf8FaultOffset(body))
  if (hasByteOrderMark(body)) return new JsonFault('syntax', 'the body begins with a byte order mark', 0)
  return readObject(body, new JsonScanner(body, 0, body.length, depthMax))
}

/** The same for a value inside a body that has been checked before; offsets are into that body. */
export function readJsonValueMembers(
  body: Uint8Array,
  start: number,
  end: number,
  ends?: JsonEnds,
): JsonMembers | JsonFault {
  return readObject(body, new JsonScanner(body, start, end, jsonDepthMax, ends))
}

function readObject(body: Uint8Array, scanner: JsonScanner): JsonMembers | JsonFault {
  const first = scanner.peek()
  const start = scanner.at
  if (first === -1) return new JsonFault('syntax', 'unexpected end of the body', start)
  if (first !== openBrace) return new JsonFault('not-object', 'expected a JSON object', start)
  scanner.at++
  const byName = new Map<string, JsonMember>()
  const list: JsonMember[] = []
  let next = scanner.peek()
  if (next !== closeBrace) {
    do {
      const member = readMember(body, scanner)
      if (member === undefined) return faultOf(scanner)
      const { name } = member
      if (byName.has(name)) return new JsonFault('duplicate', `\`${name}\` stands twice`, member.start, name)
      if (list.push(member) > jsonMembersMax) return new JsonFault('too-many', 'too many members', member.start)
      byName.set(name, member)
      next = scanner.peek()
      if (next === comma) scanner.at++
    } while (next === comma)
  }
  if (next !== closeBrace) return faultOf(scanner, 'expected `,` or `}`')
  scanner.at++
  const end = scanner.at
  if (scanner.peek() !== -1) return faultOf(scanner, 'unexpected bytes behind the object')
  return new JsonMembers(byName, list, start, end)
}

function readMember(body: Uint8Array, scanner: JsonScanner): JsonMember | undefined {
  scanner.peek()
  const start = scanner.at
  if (!scanner.passName()) return undefined
  const nameEnd = scanner.nameEnd
  scanner.peek()
  const valueStart = scanner.at
  if (!scanner.passValue(1)) return undefined
  return { name: stringText(body, start, nameEnd), start, valueStart, valueEnd: scanner.at }
}

function faultOf(scanner: JsonScanner, message = 'bad JSON'): JsonFault {
  if (scanner.fault === undefined) scanner.fail(message)
  const { fault } = scanner
  assert(fault, 'a scan that stopped has a fault')
  return new JsonFault(fault.reason, fault.message, fault.offset)
}

/** The span includes the quotes and has been checked. */
function stringText(body: Uint8Array, start: number, end: number): string {
  const raw = utf8Text(body, start + 1, end - 1)
  return raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw
}

export type JsonKind = 'string' | 'number' | 'object' | 'array' | 'true' | 'false' | 'null'

export function memberKind(body: Uint8Array, member: JsonMember): JsonKind {
  const first = body[member.valueStart] as number
  if (first === quote) return 'string'
  if (first === openBrace) return 'object'
  if (first === openBracket) return 'array'
  if (first === lowerT) return 'true'
  if (first === lowerF) return 'false'
  if (first === lowerN) return 'null'
  assert(first === minus || (first >= zero && first <= nine), 'a member of another body')
  return 'number'
}

/** undefined if the value is not a string. */
export function memberText(body: Uint8Array, member: JsonMember): string | undefined {
  if (memberKind(body, member) !== 'string') return undefined
  return stringText(body, member.valueStart, member.valueEnd)
}

/** undefined if the value is neither true nor false. */
export function memberBoolean(body: Uint8Array, member: JsonMember): boolean | undefined {
  const kind = memberKind(body, member)
  return kind === 'true' ? true : kind === 'false' ? false : undefined
}

/** undefined if the value is not a number; beyond the range of a double it is infinite, as JSON.parse has it. */
export function memberNumber(body: Uint8Array, member: JsonMember): number | undefined {
  if (memberKind(body, member) !== 'number') return undefined
  return Number(utf8Text(body, member.valueStart, member.valueEnd))
}

/** Puts `bytes` in the place of [start, end). */
export interface ByteEdit {
  readonly start: number
  readonly end: number
  readonly bytes: Uint8Array
}

/** Up to here a zeroed array costs no more than a view of one that is not. */
const zeroedBytesMax = 8192

/** Buffer's method works on any Uint8Array, and copies a part of it without a view, which costs more than the copy. */
const copy = Buffer.prototype.copy

/** One allocation; what lies outside the edits is copied byte for byte. Edits are in order and do not overlap. */
export function spliceBytes(body: Uint8Array, edits: readonly ByteEdit[]): Uint8Array<ArrayBuffer> {
  let length = body.length
  let last = 0
  for (const { start, end, bytes } of edits) {
    assert(start >= last && end >= start && end <= body.length, 'edits in order, inside the body, not overlapping')
    length += bytes.length - (end - start)
    last = end
  }
  // A large one is not zeroed, at a fifth of the price for 100 kB; every byte is written below.
  const spliced =
    length < zeroedBytesMax ? new Uint8Array(length) : new Uint8Array(Buffer.allocUnsafeSlow(length).buffer)
  let from = 0
  let to = 0
  for (const { start, end, bytes } of edits) {
    copy.call(body, spliced, to, from, start)
    to += start - from
    spliced.set(bytes, to)
    to += bytes.length
    from = end
  }
  copy.call(body, spliced, to, from, body.length)
  return spliced
}

/** The edit that adds a member at the end of the object; at most one such edit for an object without members. */
export function insertMember(body: Uint8Array, members: JsonMembers, name: string, jsonText: string): ByteEdit {
  assert(body[members.end - 1] === closeBrace, 'members of this body')
  assert(members.find(name) === undefined, 'a new member')
  const last = members.list.at(-1)
  const at = last?.valueEnd ?? members.start + 1
  const text = `${JSON.stringify(name)}:${jsonText}`
  return { start: at, end: at, bytes: new TextEncoder().encode(last ? `,${text}` : text) }
}
