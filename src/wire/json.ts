// JSON in its bytes: finds values, reads them and edits them in place, so that everything else keeps its bytes. It does not
// know what a member means.
//
//   const root = readJson(body)
//   if (root instanceof JsonFault) return refuse(root.message)
//   const edits = new JsonEdits(body)
//   edits.put(root, 'model', '"gpt-5"')
//   for (const message of root.get('messages')?.elements() ?? []) {
//     if (message.get('role')?.string === 'assistant') edits.remove(message)
//   }
//   return edits.apply()
//
// A document starts with `readJson` for a request, which is checked completely; `peekJson` for a provider's bytes on their
// way through, which are checked hardly at all; or `JsonNode.of` for a text that is known to be JSON.

import { isUtf8 } from 'node:buffer'
import { assert } from '../kernel/failure.ts'
import {
  closeBrace,
  closeBracket,
  colon,
  comma,
  hasByteOrderMark,
  lowerF,
  lowerN,
  lowerT,
  openBrace,
  openBracket,
  quote,
  utf8FaultOffset,
  utf8Text,
} from './bytes.ts'
import { checkJsonObject, isSpace, type JsonEnds, passSpace, passString, passValue, readJsonEnds } from './json-scan.ts'

export class JsonFault {
  constructor(
    readonly reason: 'syntax' | 'duplicate' | 'depth' | 'utf8' | 'not-object' | 'too-many',
    readonly message: string,
    readonly offset: number,
    /** The member that appears twice. */
    readonly name?: string,
  ) {}
}

/** The object of a body. Refuses what JSON.parse refuses, and duplicate, too deep or too many members. */
export function readJson(body: Uint8Array): JsonNode | JsonFault {
  if (body.length === 0) return new JsonFault('syntax', 'the body is empty', 0)
  if (!isUtf8(body)) return new JsonFault('utf8', 'the body is not UTF-8', utf8FaultOffset(body))
  if (hasByteOrderMark(body)) return new JsonFault('syntax', 'the body begins with a byte order mark', 0)
  const object = checkJsonObject(body)
  if ('reason' in object) return new JsonFault(object.reason, object.message, object.offset)
  const root = new JsonNode({ bytes: body }, object.start, object.end)
  return root.fault ?? root
}

/**
 * The object in [start, end), for bytes that pass through; undefined if they are not an object, or not all of one. Of a
 * name that appears twice the last one counts, as in JSON.parse.
 */
export function peekJson(bytes: Uint8Array, start: number, end: number): JsonNode | undefined {
  const root = new JsonNode({ bytes, isPeeked: true }, passSpace(bytes, start, end), end)
  return root.members() && root
}

// ── Values ──

export type JsonKind = 'string' | 'number' | 'object' | 'array' | 'true' | 'false' | 'null'

/** Byte offsets of a value. */
export interface JsonSpan {
  readonly start: number
  readonly end: number
}

/** An object with more is not read: millions of members fit into a body, and take fifty times its size in memory. */
export const jsonMembersMax = 4096
/** An object with at least this many members gets a map: comparing a few names costs less. */
const mappedMembers = 24

/** What all values of a document share. */
interface Document {
  readonly bytes: Uint8Array
  /** Avoids scanning inner levels again when the document is read level by level. */
  readonly ends?: JsonEnds
  /** Not checked: names may appear twice. */
  readonly isPeeked?: boolean
}

/** The members of an object, by name and in their order. */
class Members {
  readonly list: JsonNode[] = []
  private byName: Map<string, JsonNode> | undefined

  add(member: JsonNode): void {
    this.list.push(member)
    if (this.byName) this.byName.set(member.name, member)
    else if (this.list.length === mappedMembers) this.byName = new Map(this.list.map((each) => [each.name, each]))
  }

  find(name: string): JsonNode | undefined {
    if (this.byName) return this.byName.get(name)
    // From the end: if a name appears twice in bytes that were not checked, the last one counts.
    for (let i = this.list.length - 1; i >= 0; i--) if (this.list[i]?.name === name) return this.list[i]
    return undefined
  }
}

/** The elements of an array, as far as they were read. */
interface Elements {
  readonly list: JsonNode[]
  /** Where the next one is read; -1 = all were. */
  next: number
}

/** One value of a document, with its name if it is a member. What is inside is read on first use, and remembered. */
export class JsonNode implements JsonSpan {
  private object: Members | JsonFault | undefined
  private array: Elements | undefined

  constructor(
    private readonly document: Document,
    readonly start: number,
    /** Of an object that is peeked at, the limit until its members are read. */
    public end: number,
    /** Decoded; '' for an element, and for the document itself. */
    readonly name = '',
    /** The opening quote of the name. */
    readonly nameStart = start,
    readonly parent?: JsonNode,
  ) {}

  /** Any value, from a text that is known to be JSON. */
  static of(text: string): JsonNode {
    const bytes = encoder.encode(text)
    const start = passSpace(bytes, 0, bytes.length)
    const ends = readJsonEnds(bytes)
    return new JsonNode({ bytes, ends }, start, passValue(bytes, start, bytes.length, ends))
  }

  /** The whole document. */
  get bytes(): Uint8Array {
    return this.document.bytes
  }

  /** By the first byte, which decides it. */
  get kind(): JsonKind {
    switch (this.document.bytes[this.start]) {
      case quote:
        return 'string'
      case openBrace:
        return 'object'
      case openBracket:
        return 'array'
      case lowerT:
        return 'true'
      case lowerF:
        return 'false'
      case lowerN:
        return 'null'
      default:
        return 'number'
    }
  }

  /** As written. */
  get text(): string {
    return utf8Text(this.document.bytes, this.start, this.end)
  }

  /** Decoded; undefined if the value is not a string. */
  get string(): string | undefined {
    return this.kind === 'string' ? stringText(this.document.bytes, this.start, this.end) : undefined
  }

  /** As JSON.parse returns it; undefined if bytes that were only peeked at are not JSON. */
  value(): unknown {
    return this.document.isPeeked ? parse(this.text) : this.checkedValue()
  }

  /** Scalars without the parser: a request has about four, at a microsecond each. */
  private checkedValue(): unknown {
    switch (this.kind) {
      case 'string':
        return this.string
      case 'number':
        return Number(this.text)
      case 'true':
        return true
      case 'false':
        return false
      case 'null':
        return null
      default:
        return parse(this.text)
    }
  }

  /** Whether its bytes contain these. */
  includes(word: Uint8Array): boolean {
    const { bytes } = this.document
    return Buffer.from(bytes.buffer, bytes.byteOffset + this.start, this.end - this.start).includes(word)
  }

  /** Whether an array or object has nothing inside. */
  get isEmpty(): boolean {
    return passSpace(this.document.bytes, this.start + 1, this.end) === this.end - 1
  }

  /** A member of an object; undefined if there is none, or `members` is undefined. */
  get(name: string): JsonNode | undefined {
    const object = this.readObject()
    return object instanceof Members ? object.find(name) : undefined
  }

  /** In their order; undefined if this is not an object, one of its names appears twice, or there are too many. */
  members(): readonly JsonNode[] | undefined {
    const object = this.readObject()
    return object instanceof Members ? object.list : undefined
  }

  /** Why `members` is undefined for an object. */
  get fault(): JsonFault | undefined {
    const object = this.readObject()
    return object instanceof JsonFault ? object : undefined
  }

  /** In their order; undefined if this is not an array. */
  elements(): readonly JsonNode[] | undefined {
    return this.readArray(Number.POSITIVE_INFINITY)
  }

  /** An element of an array. The elements after it are not read: those of a long conversation are rarely needed. */
  at(index: number): JsonNode | undefined {
    return this.readArray(index + 1)?.[index]
  }

  private readObject(): Members | JsonFault | undefined {
    if (this.object === undefined && this.document.bytes[this.start] === openBrace) this.object = this.readMembers()
    return this.object
  }

  private readMembers(): Members | JsonFault {
    const { bytes, ends, isPeeked = false } = this.document
    const members = new Members()
    let at = passSpace(bytes, this.start + 1, this.end)
    // Only an empty object ends here: after a comma a member must follow.
    while (bytes[at] !== closeBrace || members.list.length > 0) {
      const nameEnd = at < this.end && bytes[at] === quote ? passString(bytes, at, this.end) : -1
      const colonAt = nameEnd === -1 ? this.end : passSpace(bytes, nameEnd, this.end)
      const start = passSpace(bytes, colonAt + 1, this.end)
      const end = bytes[colonAt] === colon ? passValue(bytes, start, this.end, ends) : -1
      if (end === -1) return new JsonFault('syntax', 'expected a member', at)
      const name = nameText(bytes, at, nameEnd)
      if (!isPeeked && members.find(name)) return new JsonFault('duplicate', `\`${name}\` appears twice`, at, name)
      if (members.list.length === jsonMembersMax) return new JsonFault('too-many', 'too many members', at)
      members.add(new JsonNode(this.document, start, end, name, at, this))
      at = passSpace(bytes, end, this.end)
      if (bytes[at] !== comma) break
      at = passSpace(bytes, at + 1, this.end)
    }
    if (at >= this.end || bytes[at] !== closeBrace) return new JsonFault('syntax', 'expected `,` or `}`', at)
    this.end = at + 1
    return members
  }

  /** At least `count` elements, if there are as many; undefined if this is not an array. */
  private readArray(count: number): readonly JsonNode[] | undefined {
    if (this.kind !== 'array') return undefined
    this.array ??= { list: [], next: this.start + 1 }
    const { list } = this.array
    while (list.length < count && this.array.next !== -1) this.array.next = this.readElement(list, this.array.next)
    return list
  }

  /** Returns where the next one is read. */
  private readElement(list: JsonNode[], from: number): number {
    const { bytes, ends } = this.document
    const start = passSpace(bytes, from, this.end)
    const end = bytes[start] === closeBracket ? -1 : passValue(bytes, start, this.end, ends)
    if (end === -1) return -1
    list.push(new JsonNode(this.document, start, end, '', start, this))
    const next = passSpace(bytes, end, this.end)
    return bytes[next] === comma ? next + 1 : -1
  }
}

/** undefined if the text is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** The span includes the quotes. A bad escape is left as it is: only bytes that were peeked at can have one. */
function stringText(bytes: Uint8Array, start: number, end: number): string {
  const raw = utf8Text(bytes, start + 1, end - 1)
  const decoded = raw.includes('\\') ? parse(`"${raw}"`) : raw
  return typeof decoded === 'string' ? decoded : raw
}

/** Names that were decoded before, by a hash of a few of their bytes: nearly every body has the same ones. */
const knownNames: (string | undefined)[] = Array(1024).fill(undefined)
const knownLengthMax = 32

function nameText(bytes: Uint8Array, start: number, end: number): string {
  const length = end - start - 2
  if (length < 1 || length > knownLengthMax) return stringText(bytes, start, end)
  const middle = bytes[(start + end) >> 1] as number
  const place = ((bytes[start + 1] as number) * 37 + middle * 11 + (bytes[end - 2] as number) * 5 + length) & 1023
  const known = knownNames[place]
  if (known !== undefined && isAsciiText(bytes, start + 1, known, length)) return known
  const name = stringText(bytes, start, end)
  if (name.length === length) knownNames[place] = name
  return name
}

/** Whether the bytes are this text; false if either is not ASCII. */
function isAsciiText(bytes: Uint8Array, start: number, text: string, length: number): boolean {
  if (text.length !== length) return false
  for (let at = 0; at < length; at++) {
    const byte = bytes[start + at] as number
    if (byte !== text.charCodeAt(at) || byte > 0x7f) return false
  }
  return true
}

// ── Edits ──

interface Change extends JsonSpan {
  /** Take the place of the span. */
  readonly bytes: Uint8Array
}

/** Members that are added to one object, as JSON with commas between them. */
interface Added {
  first: string
  last: string
}

const encoder = new TextEncoder()
const noBytes = new Uint8Array(0)

/** Edits of one document. They may come in any order, and must not overlap. */
export class JsonEdits {
  private readonly changes: Change[] = []
  // Created on first use: most requests need neither.
  private removed: Set<JsonNode> | undefined
  private added: Map<JsonNode, Added> | undefined

  constructor(private readonly bytes: Uint8Array) {}

  get isEmpty(): boolean {
    return this.changes.length === 0 && !this.removed && !this.added
  }

  /** Replaces a value. */
  set(node: JsonNode, json: string | Uint8Array): void {
    this.change(node.start, node.end, json)
  }

  /** Sets a member of an object, or adds it. */
  put(object: JsonNode, name: string, json: string | Uint8Array, place?: keyof Added): void {
    const member = object.get(name)
    if (member) this.set(member, json)
    else this.add(object, name, json, place)
  }

  /** Adds a member that the object does not have. */
  add(object: JsonNode, name: string, json: string | Uint8Array, place: keyof Added = 'last'): void {
    this.added ??= new Map()
    const added = this.added.get(object) ?? { first: '', last: '' }
    const value = typeof json === 'string' ? json : utf8Text(json, 0, json.length)
    const comma = added[place] === '' ? '' : ','
    added[place] += `${comma}${JSON.stringify(name)}:${value}`
    this.added.set(object, added)
  }

  /** Adds an element before one of an array. */
  addBefore({ start }: JsonNode, json: string): void {
    this.change(start, start, `${json},`)
  }

  rename({ nameStart, start }: JsonNode, name: string): void {
    this.change(nameStart, start, `${JSON.stringify(name)}:`)
  }

  /** Removes a member or an element, with a comma. */
  remove(node: JsonNode): void {
    this.removed ??= new Set()
    this.removed.add(node)
  }

  isRemoved(node: JsonNode): boolean {
    return this.removed?.has(node) ?? false
  }

  /** The document with the edits. One allocation; everything else is copied byte for byte. */
  apply(): Uint8Array<ArrayBuffer> {
    if (this.removed)
      for (const container of new Set(this.removed.values().map(({ parent }) => parent))) this.cut(container)
    if (this.added) for (const [object, added] of this.added) this.insert(object, added)
    this.added = undefined
    this.removed = undefined
    // A member that is added first stands before a removal at the same place.
    this.changes.sort((a, b) => a.start - b.start || a.end - b.end)
    return splice(this.bytes, this.changes)
  }

  private change(start: number, end: number, json: string | Uint8Array): void {
    this.changes.push({ start, end, bytes: typeof json === 'string' ? encoder.encode(json) : json })
  }

  /** Each goes with the comma after it; those at the end go with the comma before. */
  private cut(container: JsonNode | undefined): void {
    const children = container?.members() ?? container?.elements() ?? []
    const lastKept = children.findLastIndex((child) => !this.isRemoved(child))
    for (const [i, child] of children.entries()) {
      if (!this.isRemoved(child)) continue
      const start = i > lastKept ? (children[i - 1]?.end ?? child.nameStart) : child.nameStart
      const end = i > lastKept ? child.end : (children[i + 1]?.nameStart ?? child.end)
      this.changes.push({ start, end, bytes: noBytes })
    }
  }

  private insert(object: JsonNode, { first, last }: Added): void {
    const start = object.start + 1
    const isBare = object.isEmpty || (this.removed && object.members()?.every((member) => this.isRemoved(member)))
    if (isBare) return this.change(start, start, first === '' || last === '' ? first + last : `${first},${last}`)
    if (first !== '') this.change(start, start, `${first},`)
    let end = object.end - 1
    while (isSpace(this.bytes[end - 1] as number)) end--
    if (last !== '') this.change(end, end, `,${last}`)
  }
}

/** Below this size a zeroed array costs no more than a view of an uninitialised one. */
const zeroedBytesMax = 8192

/** Buffer's method works on any Uint8Array, and copies a part of it without a view, which costs more than the copy. */
const copy = Buffer.prototype.copy

/** `changes`: in order. */
function splice(body: Uint8Array, changes: readonly Change[]): Uint8Array<ArrayBuffer> {
  let length = body.length
  let last = 0
  for (const { start, end, bytes } of changes) {
    assert(start >= last && end >= start && end <= body.length, 'edits of this document that do not overlap')
    length += bytes.length - (end - start)
    last = end
  }
  // A large array is not zeroed, which takes a fifth of the time for 100 kB; every byte is written below.
  const spliced =
    length < zeroedBytesMax ? new Uint8Array(length) : new Uint8Array(Buffer.allocUnsafeSlow(length).buffer)
  let from = 0
  let to = 0
  for (const { start, end, bytes } of changes) {
    copy.call(body, spliced, to, from, start)
    to += start - from
    spliced.set(bytes, to)
    to += bytes.length
    from = end
  }
  copy.call(body, spliced, to, from, body.length)
  return spliced
}
