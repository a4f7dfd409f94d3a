// A value inside a body that has been checked, found on demand: for the few places whose text is needed exactly as it
// was written, while everything else is read from the parsed body.

import { openBracket, space } from './ascii.ts'
import { readJsonElements } from './json-elements.ts'
import { type JsonEnds, readJsonEnds } from './json-ends.ts'
import { JsonFault, type JsonMembers, readJsonValueMembers } from './json-members.ts'
import type { JsonSpan } from './json-spans.ts'
import { utf8Text } from './utf8.ts'

/** Remembers its children: however many texts are taken from inside a container, it is scanned once. */
export class JsonNode {
  #members: JsonMembers | JsonFault | undefined
  #byName: Map<string, JsonNode> | undefined
  #elements: JsonNode[] | undefined

  constructor(
    private readonly body: Uint8Array,
    readonly span: JsonSpan,
    /** Where it is read level by level, so that no level passes what is below it again. */
    private readonly ends?: JsonEnds,
  ) {}

  /** A document that stands alone and is known to be JSON. */
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

  /** undefined if there is none, if this is not an object, or if one of its names stands twice. */
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

  /** The members in their order; undefined if this is not an object, or one of its names stands twice. */
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

  /** As its text is, of which most are too long to be one. */
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
