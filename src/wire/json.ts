// JSON in its bytes, without parsing it and writing it again. Two readers: `readJsonMembers` checks the whole of a request
// and finds its members, so that it can be edited in place; `JsonSpans` and `JsonTextMeter` look into the passing events of
// a provider and check next to nothing. Neither knows what a member means.

import { isUtf8 } from 'node:buffer'
import { assert } from '../kernel/failure.ts'
import {
  backslash,
  carriageReturn,
  closeBrace,
  closeBracket,
  colon,
  comma,
  dot,
  hasByteOrderMark,
  hexDigit,
  isDigit,
  isHex,
  lineFeed,
  lowerE,
  lowerF,
  lowerN,
  lowerT,
  lowerU,
  minus,
  nine,
  openBrace,
  openBracket,
  plus,
  quote,
  space,
  specialMarks,
  tab,
  topBits,
  utf8FaultOffset,
  utf8Text,
  zero,
} from './bytes.ts'
/** Byte offsets of a value; both -1 when the member is not there. */
export interface JsonSpan {
  readonly start: number
  readonly end: number
}

/** Containers inside containers, the top-level object being the first. */
export const jsonDepthMax = 64
/** A request has a few dozen; millions would fit into a body and take fifty times its size in memory. */
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
    readonly list: readonly JsonMember[],
    /** The object's opening brace. */
    readonly start: number,
    /** After its closing brace. */
    readonly end: number,
    /** Only for many members: comparing a few costs less than a map. */
    private readonly byName: ReadonlyMap<string, JsonMember> | undefined,
  ) {}

  find(name: string): JsonMember | undefined {
    return this.byName ? this.byName.get(name) : findIn(this.list, name)
  }
}

/** An object with at least this many members gets a map. */
const mappedMembers = 24

function findIn(list: readonly JsonMember[], name: string): JsonMember | undefined {
  for (let at = 0; at < list.length; at++) {
    const member = list[at] as JsonMember
    if (member.name === name) return member
  }
  return undefined
}

export class JsonFault {
  constructor(
    readonly reason: 'syntax' | 'duplicate' | 'depth' | 'utf8' | 'not-object' | 'too-many',
    readonly message: string,
    readonly offset: number,
    /** The member that appears twice. */
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
  const list: JsonMember[] = []
  let byName: Map<string, JsonMember> | undefined
  let next = scanner.peek()
  if (next !== closeBrace) {
    do {
      const member = readMember(body, scanner)
      if (member === undefined) return faultOf(scanner)
      const { name } = member
      const isTwice = byName ? byName.has(name) : findIn(list, name) !== undefined
      if (isTwice) return new JsonFault('duplicate', `\`${name}\` appears twice`, member.start, name)
      if (list.push(member) > jsonMembersMax) return new JsonFault('too-many', 'too many members', member.start)
      if (byName) byName.set(name, member)
      else if (list.length === mappedMembers) byName = new Map(list.map((each) => [each.name, each]))
      next = scanner.peek()
      if (next === comma) scanner.at++
    } while (next === comma)
  }
  if (next !== closeBrace) return faultOf(scanner, 'expected `,` or `}`')
  scanner.at++
  const end = scanner.at
  if (scanner.peek() !== -1) return faultOf(scanner, 'unexpected bytes after the object')
  return new JsonMembers(list, start, end, byName)
}

function readMember(body: Uint8Array, scanner: JsonScanner): JsonMember | undefined {
  scanner.peek()
  const start = scanner.at
  if (!scanner.passName()) return undefined
  const nameEnd = scanner.nameEnd
  scanner.peek()
  const valueStart = scanner.at
  if (!scanner.passValue(1)) return undefined
  return { name: nameText(body, start, nameEnd), start, valueStart, valueEnd: scanner.at }
}

/** Names that were decoded before, by a hash of a few of their bytes: nearly every body has the same ones. */
const knownNames: (string | undefined)[] = Array(256).fill(undefined)
const knownLengthMax = 32

function nameText(body: Uint8Array, start: number, end: number): string {
  const length = end - start - 2
  if (length < 1 || length > knownLengthMax) return stringText(body, start, end)
  const place = ((body[start + 1] as number) * 5 + (body[end - 2] as number) * 3 + length) & 255
  const known = knownNames[place]
  if (known !== undefined && isAsciiText(body, start + 1, known, length)) return known
  const name = stringText(body, start, end)
  if (name.length === length) knownNames[place] = name
  return name
}

/** Whether the bytes are this text; false if either is not ASCII. */
function isAsciiText(body: Uint8Array, start: number, text: string, length: number): boolean {
  if (text.length !== length) return false
  for (let at = 0; at < length; at++) {
    const byte = body[start + at] as number
    if (byte !== text.charCodeAt(at) || byte > 0x7f) return false
  }
  return true
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

/** The value as JSON.parse returns it. */
export function memberValue(body: Uint8Array, member: JsonMember): unknown {
  const { valueStart, valueEnd } = member
  switch (memberKind(body, member)) {
    case 'string':
      return stringText(body, valueStart, valueEnd)
    case 'number':
      return Number(utf8Text(body, valueStart, valueEnd))
    case 'true':
      return true
    case 'false':
      return false
    case 'null':
      return null
    default:
      return JSON.parse(utf8Text(body, valueStart, valueEnd))
  }
}

/** undefined if the value is neither true nor false. */
export function memberBoolean(body: Uint8Array, member: JsonMember): boolean | undefined {
  const kind = memberKind(body, member)
  return kind === 'true' ? true : kind === 'false' ? false : undefined
}

// ── Edits ──

/** Puts `bytes` in the place of [start, end). */
export interface ByteEdit {
  readonly start: number
  readonly end: number
  readonly bytes: Uint8Array
}

/** Below this size a zeroed array costs no more than a view of an uninitialised one. */
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
  // A large array is not zeroed, which takes a fifth of the time for 100 kB; every byte is written below.
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

// ── Inside a checked body ──

/** [start, end) is an array of a body that readJsonMembers has accepted. */
export function readJsonElements(body: Uint8Array, start: number, end: number, ends?: JsonEnds): JsonSpan[] {
  return passElements(new JsonScanner(body, start, end, jsonDepthMax, ends), () => false)
}

/** The same up to and including the first element for which isLast is true. */
export function readJsonElementsUntil(
  body: Uint8Array,
  start: number,
  end: number,
  isLast: (span: JsonSpan) => boolean,
): JsonSpan[] {
  return passElements(new JsonScanner(body, start, end, jsonDepthMax), isLast)
}

function passElements(scanner: JsonScanner, isLast: (span: JsonSpan) => boolean): JsonSpan[] {
  assert(scanner.peek() === openBracket, 'the span of an array')
  scanner.at++
  const spans: JsonSpan[] = []
  let next = scanner.peek()
  while (next !== closeBracket) {
    const from = scanner.at
    assert(scanner.passValue(1), 'an element of a body that has been checked')
    const span = { start: from, end: scanner.at }
    spans.push(span)
    if (isLast(span)) return spans
    next = scanner.peek()
    if (next !== comma) break
    scanner.at++
    scanner.peek()
  }
  assert(next === closeBracket, 'the span of a whole array')
  return spans
}

// A value, found on demand: for the few places whose text is needed exactly as written, while
// everything else is read from the parsed body.

/** Remembers its children, so that a container is scanned once however many texts are taken from it. */
export class JsonNode {
  #members: JsonMembers | JsonFault | undefined
  #byName: Map<string, JsonNode> | undefined
  #elements: JsonNode[] | undefined

  constructor(
    private readonly body: Uint8Array,
    readonly span: JsonSpan,
    /** Avoids scanning inner levels again when the document is read level by level. */
    private readonly ends?: JsonEnds,
  ) {}

  /** A separate document that is known to be JSON. */
  static of(text: string): JsonNode {
    const body = new TextEncoder().encode(text)
    let start = 0
    while ((body[start] ?? 0xff) <= space) start++
    return new JsonNode(body, { start, end: body.length }, readJsonEnds(body))
  }

  /** The body's own object, whose members are known already. */
  static root(body: Uint8Array, members: JsonMembers): JsonNode {
    const node = new JsonNode(body, { start: members.start, end: members.end })
    node.#members = members
    return node
  }

  /** undefined if there is none, if this is not an object, or if one of its names appears twice. */
  member(name: string): JsonNode | undefined {
    const known = this.#byName?.get(name)
    if (known) return known
    const found = this.#read()?.find(name)
    if (!found) return undefined
    const node = new JsonNode(this.body, { start: found.valueStart, end: found.valueEnd }, this.ends)
    this.#byName ??= new Map()
    this.#byName.set(name, node)
    return node
  }

  /** The members in their order; undefined if this is not an object, or one of its names appears twice. */
  members(): [name: string, value: JsonNode][] | undefined {
    return this.#read()?.list.flatMap(({ name }) => {
      const value = this.member(name)
      return value ? [[name, value]] : []
    })
  }

  /** undefined if this is not an array. */
  elements(): readonly JsonNode[] | undefined {
    if (this.body[this.span.start] !== openBracket) return undefined
    this.#elements ??= readJsonElements(this.body, this.span.start, this.span.end, this.ends).map(
      (span) => new JsonNode(this.body, span, this.ends),
    )
    return this.#elements
  }

  element(index: number): JsonNode | undefined {
    return this.elements()?.[index]
  }

  /** Checks the length first: most texts are longer. */
  isWord(word: 'true' | 'false' | 'null'): boolean {
    return this.span.end - this.span.start === word.length && this.text === word
  }

  get text(): string {
    return utf8Text(this.body, this.span.start, this.span.end)
  }

  #read(): JsonMembers | undefined {
    this.#members ??= readJsonValueMembers(this.body, this.span.start, this.span.end, this.ends)
    return this.#members instanceof JsonFault ? undefined : this.#members
  }
}

// ── The scanner ──

// Walks over JSON as RFC 8259 defines it, without recursion and without building values: it only says where things end
// and whether they are well-formed. UTF-8 is checked before, by the caller.

interface ScanFault {
  readonly reason: 'syntax' | 'depth'
  readonly message: string
  readonly offset: number
}

/** 1 for each byte that makes an escape with the backslash in front of it alone. */
const shortEscapes = new Uint8Array(256)
for (const byte of new TextEncoder().encode('"\\/bfnrt')) shortEscapes[byte] = 1
const trueWord = new TextEncoder().encode('true')
const falseWord = new TextEncoder().encode('false')
const nullWord = new TextEncoder().encode('null')

/** The first bytes of a string are compared one by one: only a longer one is worth the DataView, which takes 4 µs. */
const steppedBytes = 4096
/** 1 for each byte that ends a plain part of a string: a quote, a backslash or a control character. */
const stringStops = new Uint8Array(256)
stringStops.fill(1, 0, space)
stringStops[quote] = stringStops[backslash] = 1

/** Every pass… method starts at `at`, and either moves `at` past what it names or sets `fault` and returns false. */
class JsonScanner {
  fault: ScanFault | undefined
  /** After the closing quote of the last name. */
  nameEnd = 0

  /** Made for the first long string: it needs the ArrayBuffer of the body. */
  private words: DataView | undefined

  constructor(
    private readonly body: Uint8Array,
    public at: number,
    private readonly end: number,
    private readonly depthMax: number,
    /** The ends of containers, if they are known. */
    private readonly ends?: JsonEnds,
  ) {}

  /** Passes whitespace and returns the byte after it; -1 at the end. */
  peek(): number {
    const { body, end } = this
    let at = this.at
    let byte = -1
    while (at < end) {
      byte = body[at] as number
      if (byte > space || (byte !== space && byte !== lineFeed && byte !== carriageReturn && byte !== tab)) break
      at++
    }
    this.at = at
    return at < end ? byte : -1
  }

  /** One value and everything inside it; `depth` counts the containers around it. */
  passValue(depth: number): boolean {
    if (this.ends !== undefined && this.passKnown(this.ends)) return true
    const first = this.peek()
    if (first !== openBrace && first !== openBracket) return this.passScalar(first)
    // The byte that will close each container opened here, the innermost last.
    const closers: number[] = []
    for (;;) {
      const byte = this.peek()
      if (byte === openBrace || byte === openBracket) {
        if (depth + closers.length >= this.depthMax) return this.fail('nested too deeply', 'depth')
        this.at++
        const closer = byte + 2
        if (this.peek() === closer) {
          this.at++
        } else {
          closers.push(closer)
          if (byte === openBrace && !this.passName()) return false
          continue
        }
      } else if (!this.passScalar(byte)) {
        return false
      }
      // A value has ended: close what ends with it, up to the comma in front of the next one.
      for (;;) {
        const closer = closers.at(-1)
        if (closer === undefined) return true
        const next = this.peek()
        if (next === comma) {
          this.at++
          if (closer === closeBrace && !this.passName()) return false
          break
        }
        if (next !== closer) return this.fail(`expected \`,\` or \`${String.fromCharCode(closer)}\``)
        this.at++
        closers.pop()
      }
    }
  }

  private passKnown(ends: JsonEnds): boolean {
    this.peek()
    const end = ends[this.at] ?? 0
    if (end === 0) return false
    this.at = end
    return true
  }

  /** A member's name and its colon. */
  passName(): boolean {
    if (this.peek() !== quote) return this.fail('expected a name in double quotes')
    if (!this.passString()) return false
    this.nameEnd = this.at
    if (this.peek() !== colon) return this.fail('expected `:` after a name')
    this.at++
    return true
  }

  passString(): boolean {
    const { body, end } = this
    let at = this.at + 1
    const stop = Math.min(at + steppedBytes, end)
    while (at < stop && stringStops[body[at] as number] === 0) at++
    if (at < stop && body[at] === quote) {
      this.at = at + 1
      return true
    }
    while (at < end) {
      at = this.passPlain(at)
      // One of the next four bytes is special, or fewer than four are left.
      for (const stop = Math.min(at + 4, end); at < stop; at++) {
        const byte = body[at] as number
        if (byte === quote) {
          this.at = at + 1
          return true
        }
        if (byte === backslash) {
          this.at = at + 1
          if (!this.passEscape()) return false
          at = this.at
          break
        }
        if (byte < space) {
          this.at = at
          return this.fail('a raw control character in a string')
        }
      }
    }
    this.at = end
    return this.fail('unterminated string')
  }

  /** A syntax error at the end of the bytes means that the body is incomplete. */
  fail(message: string, reason: ScanFault['reason'] = 'syntax'): false {
    const isIncomplete = this.at >= this.end && reason === 'syntax'
    this.fault = { reason, message: isIncomplete ? 'unexpected end of the body' : message, offset: this.at }
    return false
  }

  /**
   * Passes string bytes eight at a time, and four at the end, while none of them is special. The prompts are most of what
   * a gateway reads, and this takes less than half the time of looking at single bytes.
   */
  private passPlain(from: number): number {
    const { body, end } = this
    this.words ??= new DataView(body.buffer, body.byteOffset, body.length)
    const { words } = this
    let at = from
    while (at + 8 <= end) {
      const marks = specialMarks(words.getInt32(at, true)) | specialMarks(words.getInt32(at + 4, true))
      if ((marks & topBits) !== 0) break
      at += 8
    }
    if (at + 4 <= end && (specialMarks(words.getInt32(at, true)) & topBits) === 0) at += 4
    return at
  }

  /** After a backslash. */
  private passEscape(): boolean {
    const byte = this.byteAt(this.at)
    if (byte === lowerU) {
      for (const stop = ++this.at + 4; this.at < stop; this.at++) {
        if (!isHex(this.byteAt(this.at))) return this.fail('a bad escape in a string')
      }
      return true
    }
    if (shortEscapes[byte] !== 1) return this.fail('a bad escape in a string')
    this.at++
    return true
  }

  private passScalar(byte: number): boolean {
    switch (byte) {
      case quote:
        return this.passString()
      case lowerT:
        return this.passWord(trueWord)
      case lowerF:
        return this.passWord(falseWord)
      case lowerN:
        return this.passWord(nullWord)
      default:
        if (byte === minus || isDigit(byte)) return this.passNumber()
        return this.fail('expected a value')
    }
  }

  private passWord(word: Uint8Array): boolean {
    for (const byte of word) {
      if (this.byteAt(this.at) !== byte) return this.fail('expected a value')
      this.at++
    }
    return true
  }

  private passNumber(): boolean {
    if (this.byteAt(this.at) === minus) this.at++
    if (this.byteAt(this.at) === zero) this.at++
    else if (!this.passDigits()) return false
    if (this.byteAt(this.at) === dot) {
      this.at++
      if (!this.passDigits()) return false
    }
    if ((this.byteAt(this.at) | 0x20) === lowerE) {
      this.at++
      const sign = this.byteAt(this.at)
      if (sign === plus || sign === minus) this.at++
      if (!this.passDigits()) return false
    }
    return true
  }

  private passDigits(): boolean {
    if (!isDigit(this.byteAt(this.at))) return this.fail('expected a digit')
    do this.at++
    while (isDigit(this.byteAt(this.at)))
    return true
  }

  private byteAt(at: number): number {
    return at < this.end ? (this.body[at] as number) : -1
  }
}

// The end of every object and array of a document, found in one scan. Reading a document level by level would otherwise
// scan the inner levels again and again.

/**
 * The offset after the closing bracket, by that of the opening one; 0 elsewhere. An array, because a document may be all
 * brackets: a map of them takes thirty times the memory and blocks the event loop for seconds.
 */
type JsonEnds = Uint32Array

/** The document must be valid JSON. */
export function readJsonEnds(body: Uint8Array): JsonEnds {
  const ends = new Uint32Array(body.length)
  const open: number[] = []
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (byte === quote) at = passString(body, at, body.length) - 1
    else if (byte === openBrace || byte === openBracket) open.push(at)
    else if (byte === closeBrace || byte === closeBracket) ends[open.pop() ?? at] = at + 1
  }
  return ends
}

// ── Passing events ──

// Finds members and measures text without allocation, and without validation beyond what is needed to keep its place. For
// bytes from a provider, where a mistake means that an event passes unedited; never for requests.

interface Slot {
  readonly name: Uint8Array
  readonly span: { start: number; end: number }
}

/** Finds the members with certain names. One instance serves many events, one after the other. */
export class JsonSpans<Name extends string> {
  readonly of: Readonly<Record<Name, JsonSpan>>
  readonly #slots: readonly Slot[]

  constructor(names: readonly Name[]) {
    this.#slots = names.map((name) => ({ name: new TextEncoder().encode(name), span: { start: -1, end: -1 } }))
    this.of = Object.fromEntries(names.map((name, i) => [name, this.#slots[i]?.span])) as Record<Name, JsonSpan>
  }

  /**
   * False if [start, end) is not one object, and then no member is there. Of a name written twice the last one counts,
   * as in JSON.parse; a name written with escapes is not recognised.
   */
  read(data: Uint8Array, start: number, end: number): boolean {
    this.#clear()
    if (this.#scan(data, start, end)) return true
    this.#clear()
    return false
  }

  #clear(): void {
    for (const { span } of this.#slots) {
      span.start = -1
      span.end = -1
    }
  }

  #scan(data: Uint8Array, start: number, end: number): boolean {
    let at = passSpace(data, start, end)
    if (at >= end || data[at] !== openBrace) return false
    at = passSpace(data, at + 1, end)
    if (at < end && data[at] === closeBrace) return true
    for (;;) {
      if (at >= end || data[at] !== quote) return false
      const nameEnd = passString(data, at, end)
      if (nameEnd === -1) return false
      const slot = this.#slotFor(data, at + 1, nameEnd - 1)
      at = passSpace(data, nameEnd, end)
      if (at >= end || data[at] !== colon) return false
      const valueStart = passSpace(data, at + 1, end)
      const valueEnd = passValue(data, valueStart, end)
      if (valueEnd === -1) return false
      if (slot !== undefined) {
        slot.span.start = valueStart
        slot.span.end = valueEnd
      }
      at = passSpace(data, valueEnd, end)
      if (at >= end) return false
      if (data[at] === closeBrace) return true
      if (data[at] !== comma) return false
      at = passSpace(data, at + 1, end)
    }
  }

  #slotFor(data: Uint8Array, start: number, end: number): Slot | undefined {
    for (const slot of this.#slots) {
      if (slot.name.length === end - start && equals(data, start, slot.name)) return slot
    }
    return undefined
  }
}

function passSpace(data: Uint8Array, from: number, end: number): number {
  let at = from
  while (at < end && isSpace(data[at] as number)) at++
  return at
}

function isSpace(byte: number): boolean {
  return byte <= space && (byte === space || byte === lineFeed || byte === carriageReturn || byte === tab)
}

/** The first bytes of a string are compared one by one: most strings end there, and a search only pays for longer ones. */
const searchedFrom = 64

/** The offset after the closing quote, or -1. */
function passString(data: Uint8Array, from: number, end: number): number {
  let at = from + 1
  while (at < end) {
    for (const stop = Math.min(end, at + searchedFrom); at < stop; at++) {
      const byte = data[at] as number
      if (byte === quote) return at + 1
      if (byte === backslash) at++
    }
    const found = data.indexOf(quote, at)
    if (found === -1 || found >= end) return -1
    at = found + 1
    if (!isEscaped(data, found)) return at
  }
  return -1
}

/** Whether an odd number of backslashes precedes it. */
function isEscaped(data: Uint8Array, at: number): boolean {
  let before = at
  while (data[before - 1] === backslash) before--
  return (at - before) % 2 === 1
}

function passValue(data: Uint8Array, from: number, end: number): number {
  if (from >= end) return -1
  const first = data[from] as number
  if (first === quote) return passString(data, from, end)
  if (first === openBrace || first === openBracket) return passContainer(data, from, end)
  let at = from
  while (at < end && !endsScalar(data[at] as number)) at++
  return at > from ? at : -1
}

function endsScalar(byte: number): boolean {
  return byte === comma || byte === closeBrace || byte === closeBracket || isSpace(byte)
}

/** Counts brackets of both kinds alike: in what a provider sent, they match. */
function passContainer(data: Uint8Array, from: number, end: number): number {
  let depth = 0
  let at = from
  while (at < end) {
    const byte = data[at] as number
    if (byte === quote) {
      at = passString(data, at, end)
      if (at === -1) return -1
      continue
    }
    at++
    // With bit 5 set a bracket is the brace of its side, and no other byte becomes one.
    const brace = byte | 0x20
    if (brace === openBrace) depth++
    else if (brace === closeBrace && --depth === 0) return at
  }
  return -1
}

// Counts the bytes of text in passing JSON: the strings under certain names, at any depth, unescaped, in UTF-8. Broken
// JSON is counted up to where it breaks.

/** One instance serves many events, one after the other. */
export class JsonTextMeter {
  /** Result of the last count: a bit for each watched name with a string that is not empty. */
  seen = 0
  readonly #names: readonly Uint8Array[]
  readonly #watched: readonly Uint8Array[]

  /** `watched`: names that set a bit of `seen`, whether or not their text is counted. */
  constructor(names: readonly string[], watched: readonly string[] = []) {
    this.#names = names.map((name) => new TextEncoder().encode(name))
    this.#watched = watched.map((name) => new TextEncoder().encode(name))
  }

  count(data: Uint8Array, start: number, end: number): number {
    let bytes = 0
    let isCounted = false
    let bit = 0
    this.seen = 0
    for (let at = start; at < end; at++) {
      const byte = data[at]
      if (byte === quote) {
        const close = passString(data, at, end) - 1
        if (close < 0) return bytes
        if (isBeforeColon(data, close + 1, end)) {
          isCounted = this.#has(data, at + 1, close)
          bit = this.#bitOf(data, at + 1, close)
        } else {
          if (isCounted) bytes += textBytes(data, at + 1, close)
          if (close > at + 1) this.seen |= bit
        }
        at = close
      } else if (byte === comma || byte === openBrace || byte === openBracket) {
        isCounted = false
        bit = 0
      }
    }
    return bytes
  }

  #bitOf(data: Uint8Array, start: number, end: number): number {
    for (let i = 0; i < this.#watched.length; i++) {
      const name = this.#watched[i] as Uint8Array
      if (name.length === end - start && equals(data, start, name)) return 1 << i
    }
    return 0
  }

  #has(data: Uint8Array, start: number, end: number): boolean {
    for (const name of this.#names) {
      if (name.length === end - start && equals(data, start, name)) return true
    }
    return false
  }
}

function isBeforeColon(data: Uint8Array, from: number, end: number): boolean {
  let at = from
  while (at < end && (data[at] as number) <= 0x20) at++
  return at < end && data[at] === colon
}

function equals(data: Uint8Array, start: number, name: Uint8Array): boolean {
  for (let i = 0; i < name.length; i++) if (data[start + i] !== name[i]) return false
  return true
}

function textBytes(data: Uint8Array, start: number, end: number): number {
  let bytes = 0
  for (let at = start; at < end; at++) {
    if (data[at] !== backslash) {
      bytes++
    } else if (data[at + 1] === lowerU) {
      bytes += escapedBytes(data, at + 2)
      at += 5
    } else {
      bytes++
      at++
    }
  }
  return bytes
}

/** UTF-8 bytes of a \u escape; the halves of a pair are two each, of the four that the pair has. */
function escapedBytes(data: Uint8Array, at: number): number {
  let code = 0
  for (let i = 0; i < 4; i++) code = code * 16 + hexDigit(data[at + i] ?? 0x30)
  if (code < 0x80) return 1
  if (code < 0x800) return 2
  return code >= 0xd800 && code < 0xe000 ? 2 : 3
}
