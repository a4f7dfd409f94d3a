// Edits of a request that is passed on as bytes, so that it stays within what is paid for: the output cap does not
// exceed the hold, the service tier is the priced one, and no unpaid models are used. Each dialect supplies its field
// names.

import { type Failure, invalidRequest } from '../../kernel/failure.ts'
import {
  type ByteEdit,
  JsonFault,
  type JsonMember,
  type JsonMembers,
  type JsonSpan,
  memberKind,
  memberText,
  readJsonElements,
  readJsonValueMembers,
  spliceBytes,
} from '../../wire/json.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import type { ContentTags, Envelope, Warning } from '../canonical/translation.ts'
import { routingMembers, shownWord } from '../request/fields.ts'

/** The changes to the caller's body for this provider. */
export interface RequestEdits {
  readonly upstreamModel: string
  /** Sent as the output cap if the caller gave none. */
  readonly defaultOutputCap: number | undefined
  /** Replaces a larger cap, or none: the wallet covers no more. */
  readonly affordableOutputCap?: number | undefined
  /** Replaces a larger cap: the model writes no more, and no more is held. */
  readonly maxOutputTokens?: number | undefined
  /** The workspace's own credential is used, so the provider bills the workspace at its own prices. */
  readonly isOwn?: boolean
  /** Absent = the body has none, or all are paid for. */
  readonly hostedTools?: HostedTools | undefined
  readonly rules: TargetRules
  /** The cache key of the caller's session; undefined = it has none. */
  sessionCacheKey?(): string | undefined
  /** Recognises what was issued to the caller's workspace. */
  readonly contentTags?: ContentTags | undefined
}

/** The tools that providers run, and bill apart from tokens, which callers of a model may use. */
export interface HostedTools {
  /** Searches have a price. */
  readonly searches: boolean
  /** Types without their date; the operator pays for these. */
  readonly allowed: readonly string[]
}

/** A body for a provider of the caller's own dialect. */
export interface EditedRequest {
  readonly body: Uint8Array<ArrayBuffer>
  readonly warnings: readonly Warning[]
  /** Why it must not be sent, such as a tool without a price. */
  readonly refused?: Failure | undefined
}

/** The names that a dialect's hosts use. */
export interface PaidMembers {
  /** The member that requests a more expensive service tier, and the values that do. */
  readonly tier: readonly [name: string, ...dearer: string[]]
  /** Members in which other models can be named. */
  readonly models: readonly string[]
  /** Types of tools that callers run themselves, or that cost only tokens. */
  readonly freeTools: RegExp
  /** A search that has no price is left out instead of refused, because clients offer it unasked. */
  readonly dropsSearches?: boolean
}

/** A list of tools in another place of the body than `tools`. */
export interface ToolList {
  readonly list: JsonMember
  /** As in `input[2].tools`. */
  readonly at: string
}

export class BodyEdits {
  readonly changes: ByteEdit[] = []
  // Made when they are needed, which most requests do not.
  #warnings: Warning[] | undefined
  #removed: string[] | undefined
  #added: string[] | undefined
  #refused: Failure | undefined

  constructor(
    private readonly envelope: Envelope,
    private readonly edits: RequestEdits,
  ) {
    for (const { name } of envelope.members.list) if (routingMembers.includes(name)) this.remove(name)
  }

  /** For dialects that have the model in the body. */
  nameModel(): void {
    const model = this.envelope.members.find('model')
    const { upstreamModel } = this.edits
    if (model) this.changes.push({ start: model.valueStart, end: model.valueEnd, bytes: jsonName(upstreamModel) })
    else this.add('model', JSON.stringify(upstreamModel))
  }

  replace({ valueStart, valueEnd }: JsonMember, json: string): void {
    this.changes.push(byteEdit(valueStart, valueEnd, json))
  }

  /** Removes members of the body, if it has them. */
  remove(...names: readonly string[]): void {
    for (const name of names) {
      if (!this.envelope.members.find(name)) continue
      this.#removed ??= []
      this.#removed.push(name)
    }
  }

  add(name: string, json: string): void {
    this.#added ??= []
    this.#added.push(`"${name}":${json}`)
  }

  warn(code: string, field: string): void {
    this.#warnings ??= []
    this.#warnings.push({ code, field })
  }

  /** The cap that is sent; undefined = none. Warns, like a translation, if it is below the caller's. */
  cap(written: JsonMember | undefined, pointer = `/${written?.name}`): number | undefined {
    const { affordableOutputCap: affordable = Number.POSITIVE_INFINITY, defaultOutputCap } = this.edits
    const { maxOutputTokens = Number.POSITIVE_INFINITY } = this.edits
    const { outputCap } = this.envelope
    const cap = Math.min(outputCap ?? defaultOutputCap ?? affordable, affordable)
    if (written && outputCap !== undefined && cap > maxOutputTokens) {
      this.warn('max_tokens_clamped', pointer)
    }
    // Do not add a cap only to state the model's maximum: hosts may refuse one that does not fit beside the prompt.
    return cap === Number.POSITIVE_INFINITY ? undefined : Math.min(cap, maxOutputTokens)
  }

  /** Adds the key of the caller's session for hosts that use one, and removes the caller's for hosts that refuse it. */
  editCacheKey(): void {
    const { body, members } = this.envelope
    const { rules } = this.edits
    if (rules.promptCacheKey === undefined) return
    const written = members.find('prompt_cache_key')
    const isSet = written !== undefined && memberKind(body, written) !== 'null'
    if (rules.promptCacheKey === false) {
      if (isSet) this.#drop('prompt_cache_key')
      else if (written) this.remove('prompt_cache_key')
      return
    }
    const key = isSet ? undefined : this.edits.sessionCacheKey?.()
    if (key === undefined) return
    if (written) this.replace(written, JSON.stringify(key))
    else this.add('prompt_cache_key', JSON.stringify(key))
  }

  /**
   * Removes a service tier that is not paid for, and everything that would make the provider call other models than the
   * one that is: members that name models, tools that are models themselves, and plugins that call several. They would
   * not be charged, and allowlists would not apply to them. Refuses tools that the provider runs and that have no price.
   * Requests with the workspace's own credential keep all of these.
   */
  removeUnpaid(paid: PaidMembers, moreTools: readonly ToolList[] = noLists): void {
    const { body, members } = this.envelope
    const { isOwn, hostedTools } = this.edits
    const [tier] = paid.tier
    if (isOwn) return
    const written = members.find(tier)
    if (written && paid.tier.includes(textAt(body, written), 1)) {
      this.remove(tier)
      this.warn('service_tier_dropped', `/${tier}`)
    }
    for (const { name } of members.list) if (paid.models.includes(name)) this.#drop(name)
    const tools = members.find('tools')
    const plugins = members.find('plugins')
    const lists = tools ? [{ list: tools, at: 'tools' }, ...moreTools] : moreTools
    for (const { list, at } of lists) {
      if (!hostedTools && !mayHave(body, list, toolWords)) continue
      this.#removeElements(list, at, (tool, i) => isModelTool(tool, body) || this.#isUnpaid(tool, `${at}[${i}]`, paid))
    }
    if (plugins) this.#removeElements(plugins, 'plugins', (plugin) => !isPaidPlugin(plugin, body, hostedTools))
  }

  /** Refuses the request, unless the tool can be left out. */
  #isUnpaid(tool: JsonMembers, at: string, { freeTools, dropsSearches = false }: PaidMembers): boolean {
    const { hostedTools } = this.edits
    const { body } = this.envelope
    const type = textAt(body, tool.find('type'))
    const environment = tool.find('environment')
    const isHosted = !freeTools.test(type) || (environment !== undefined && mayHave(body, environment, containerWords))
    if (!hostedTools || !isHosted) return false
    if (hostedTools.allowed.some((name) => type === name || type.startsWith(`${name}_`))) return false
    const isSearch = /^(openrouter:)?web_search/.test(type)
    if (isSearch && (hostedTools.searches || dropsSearches)) return !hostedTools.searches
    const what = `The provider runs the tool ${shownWord(type.slice(type.indexOf(':') + 1))} and bills it apart from tokens, but this model has no price for it.`
    this.refuse(
      `${what} Remove it, use a provider key of your own, or ask the operator to ${isSearch ? 'set `price.web_search`' : 'list it in `hosted_tools`'}.`,
      at,
    )
    return false
  }

  refuse(message: string, param: string): void {
    this.#refused ??= invalidRequest(message, param)
  }

  #drop(name: string): void {
    this.remove(name)
    this.warn(`${name}_dropped`, `/${name}`)
  }

  /** Parsers disagree about duplicate names, so an element with any may be anything and is removed. */
  #removeElements(list: JsonMember, at: string, isUnpaid: (element: JsonMembers, index: number) => boolean): void {
    const { body } = this.envelope
    const spans = elementsOf(body, list)
    const removed = spans.map((span, i) => {
      const element = objectAt(body, span)
      return !element || isUnpaid(element, i)
    })
    if (at === list.name && removed.length > 0 && !removed.includes(false)) {
      this.#drop(list.name)
      // A tool choice is invalid without tools.
      if (list.name === 'tools') this.remove('tool_choice')
      return
    }
    this.changes.push(...removeSpans(spans, (i) => removed[i] === true))
    const code = `${list.name.slice(0, -1)}_dropped`
    const pointer = `/${at.replaceAll(/\[(\d+)\]\./g, '/$1/')}`
    for (const [i, isRemoved] of removed.entries()) if (isRemoved) this.warn(code, `${pointer}/${i}`)
  }

  finish(): EditedRequest {
    const { body, members } = this.envelope
    const changes = this.#removed ? [...this.changes, ...removeMembers(members, this.#removed)] : this.changes
    if (this.#added) {
      const last = members.list.at(-1)?.valueEnd ?? members.start + 1
      changes.push(byteEdit(last, last, `,${this.#added.join(',')}`))
    }
    if (changes.length > 1) changes.sort(byStart)
    return { body: spliceBytes(body, changes), warnings: this.#warnings ?? noLists, refused: this.#refused }
  }
}

const noLists: readonly never[] = []

/** For edits that were not made in order. */
export function byStart(a: ByteEdit, b: ByteEdit): number {
  return a.start - b.start
}

const encoder = new TextEncoder()

/** The same few names are in nearly all requests. */
const jsonNames = new Map<string, Uint8Array>()
const jsonNamesMax = 1000

function jsonName(name: string): Uint8Array {
  const known = jsonNames.get(name)
  if (known) return known
  if (jsonNames.size >= jsonNamesMax) jsonNames.clear()
  const bytes = encoder.encode(JSON.stringify(name))
  jsonNames.set(name, bytes)
  return bytes
}

export function byteEdit(start: number, end: number, text: string): ByteEdit {
  return { start, end, bytes: encoder.encode(text) }
}

/** undefined if it is not an object, or has duplicate names, which the host has to judge. */
export function objectAt(body: Uint8Array, { start, end }: JsonSpan): JsonMembers | undefined {
  const members = readJsonValueMembers(body, start, end)
  return members instanceof JsonFault ? undefined : members
}

/** The same for the value of a member. */
export function objectIn(body: Uint8Array, member: JsonMember | undefined): JsonMembers | undefined {
  return member && objectAt(body, { start: member.valueStart, end: member.valueEnd })
}

/** '' if there is no such member, or it is not a string. */
export function textAt(body: Uint8Array, member: JsonMember | undefined): string {
  return (member && memberText(body, member)) ?? ''
}

/** The spans of a list's elements; none if it is not a list. */
export function elementsOf(body: Uint8Array, list: JsonMember | undefined): JsonSpan[] {
  return list && memberKind(body, list) === 'array' ? readJsonElements(body, list.valueStart, list.valueEnd) : []
}

/**
 * Whether a request must be translated instead of passed on, because its host returns long outputs only as a stream.
 * The translation lane then streams. `usualOutputCap` is sent if the caller gave no cap.
 */
export function mustStream(
  { stream, outputCap }: Envelope,
  { unstreamedOutputMax }: TargetRules,
  usualOutputCap: number | undefined,
): boolean {
  if (stream || unstreamedOutputMax === undefined) return false
  return (outputCap ?? usualOutputCap ?? 0) > unstreamedOutputMax
}

// Members that call other models.

/** OpenRouter plugins that call no other model. */
const plainPlugins: ReadonlySet<string> = new Set(['web', 'file-parser', 'response-healing'])
/** OpenRouter tools that are not models. */
const plainTools: ReadonlySet<string> = new Set([
  ...['openrouter:web_search', 'openrouter:web_fetch', 'openrouter:datetime'],
])
const openRouterTools = 'openrouter:'

/** Only a list that contains one of these is parsed. `\u00` is included because any letter of a name may be escaped. */
const toolWords = ['"model"', openRouterTools, '\\u00'].map((word) => Buffer.from(word))

function mayHave(body: Uint8Array, { valueStart, valueEnd }: JsonMember, words: readonly Buffer[]): boolean {
  const bytes = Buffer.from(body.buffer, body.byteOffset + valueStart, valueEnd - valueStart)
  return words.some((word) => bytes.includes(word))
}

/** A caller's tool may use any name inside its schema, but has no `model` member itself. */
function isModelTool(tool: JsonMembers, body: Uint8Array): boolean {
  const type = textAt(body, tool.find('type'))
  return tool.find('model') !== undefined || (type.startsWith(openRouterTools) && !plainTools.has(type))
}

function isPaidPlugin(plugin: JsonMembers, body: Uint8Array, hosted: HostedTools | undefined): boolean {
  const id = textAt(body, plugin.find('id'))
  return plainPlugins.has(id) && (id !== 'web' || !hosted || hosted.searches)
}

/** A shell in a container runs at the provider. */
const containerWords = [Buffer.from('container'), Buffer.from('\\u00')]

// Removing elements of a list, or members of an object, without changing the rest.

const noBytes = new Uint8Array(0)

/**
 * `spans` are all elements of the container, in order. Each is removed with the comma after it, those at the end with
 * the comma before.
 */
export function removeSpans(spans: readonly JsonSpan[], isRemoved: (index: number) => boolean): ByteEdit[] {
  const lastKept = spans.findLastIndex((_, i) => !isRemoved(i))
  return spans.flatMap((span, i): ByteEdit[] => {
    if (!isRemoved(i)) return []
    const next = spans[i + 1]
    const start = i > lastKept ? (spans[i - 1]?.end ?? span.start) : span.start
    const end = i > lastKept || !next ? span.end : next.start
    return [{ start, end, bytes: noBytes }]
  })
}

export function removeMembers(members: JsonMembers, names: readonly string[]): ByteEdit[] {
  return removeMembersIf(members, ({ name }) => names.includes(name))
}

export function removeMembersIf({ list }: JsonMembers, isRemoved: (member: JsonMember) => boolean): ByteEdit[] {
  const spans = list.map(({ start, valueEnd }) => ({ start, end: valueEnd }))
  return removeSpans(spans, (i) => list[i] !== undefined && isRemoved(list[i]))
}
