// Edits of a request that is passed on as bytes, so that it stays within what is paid for: the output cap does not
// exceed the hold, the service tier is the priced one, and no unpaid models are used. Each dialect supplies its field
// names.

import {
  type ByteEdit,
  JsonFault,
  type JsonMember,
  type JsonMembers,
  memberKind,
  memberText,
  readJsonElements,
  readJsonValueMembers,
} from '../../wire/json-members.ts'
import type { JsonSpan } from '../../wire/json-spans.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import type { Envelope, Warning } from '../canonical/translation.ts'

/** What to change in the caller's body for this provider. */
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
  readonly rules: TargetRules
}

/** The cap that is sent; undefined = none. */
export function sentCap({ outputCap }: Envelope, edits: RequestEdits): number | undefined {
  const affordable = edits.affordableOutputCap ?? Number.POSITIVE_INFINITY
  const cap = Math.min(outputCap ?? edits.defaultOutputCap ?? affordable, affordable)
  // Do not add a cap only to state the model's maximum: hosts may refuse one that does not fit beside the prompt.
  return cap === Number.POSITIVE_INFINITY ? undefined : Math.min(cap, edits.maxOutputTokens ?? cap)
}

/** The same warning about the caller's cap that a translation gives. */
export function capWarnings({ outputCap }: Envelope, edits: RequestEdits, member: JsonMember | undefined): Warning[] {
  const { affordableOutputCap = Number.POSITIVE_INFINITY, maxOutputTokens = Number.POSITIVE_INFINITY } = edits
  const isClamped = outputCap !== undefined && Math.min(outputCap, affordableOutputCap) > maxOutputTokens
  return isClamped && member ? [{ code: 'max_tokens_clamped', field: `/${member.name}` }] : []
}

/** The member `name` if it requests a more expensive service tier that is not paid for. */
export function dearerMember(
  { body, members }: Envelope,
  { rules, isOwn }: RequestEdits,
  name: string,
  dearer: readonly string[],
): JsonMember | undefined {
  const member = rules.fastTier === true || isOwn ? undefined : members.find(name)
  return member && dearer.includes(memberText(body, member) ?? '') ? member : undefined
}

export function tierWarning({ name }: JsonMember): Warning {
  return { code: 'service_tier_dropped', field: `/${name}` }
}

/**
 * Whether a request must be translated instead of passed on, because its host returns long outputs only as a stream.
 * Translations always stream. `usualOutputCap` is sent if the caller gave no cap.
 */
export function mustStream(
  { stream, outputCap }: Envelope,
  { unstreamedOutputMax }: TargetRules,
  usualOutputCap: number | undefined,
): boolean {
  if (stream || unstreamedOutputMax === undefined) return false
  return (outputCap ?? usualOutputCap ?? 0) > unstreamedOutputMax
}

// Strips everything that would make the provider call other models than the one that is paid for: members that name
// models, tools that are models themselves, and plugins that call several. Nobody would be charged for them, and
// allowlists would not apply. Requests with the workspace's own credential keep them. Everything else stays byte for
// byte.

export interface UnpaidModels {
  /** Members of the body to remove. */
  readonly members: readonly string[]
  /** Edits that remove elements of lists. */
  readonly edits: readonly ByteEdit[]
  readonly warnings: readonly Warning[]
}

/** OpenRouter plugins that call no other model. */
const plainPlugins: ReadonlySet<string> = new Set(['web', 'file-parser', 'response-healing'])
/** OpenRouter tools that are not models. */
const plainTools: ReadonlySet<string> = new Set([
  ...['openrouter:web_search', 'openrouter:web_fetch', 'openrouter:datetime'],
])
const openRouterTools = 'openrouter:'

/** Only a list that contains one of these is parsed. `\u00` is included because any letter of a name may be escaped. */
const toolWords = ['"model"', openRouterTools, '\\u00'].map((word) => Buffer.from(word))

/** `names`: members in which the dialect's hosts accept other models. */
export function unpaidModels(
  { body, members }: Envelope,
  { isOwn }: RequestEdits,
  names: readonly string[],
): UnpaidModels | undefined {
  if (isOwn) return undefined
  const isNamed = names.some((name) => members.find(name))
  const tools = members.find('tools')
  const plugins = members.find('plugins')
  const cuts: ElementCuts[] = []
  if (tools && mayHave(body, tools, toolWords)) cuts.push(elementCuts(body, tools, isModelTool))
  if (plugins) cuts.push(elementCuts(body, plugins, callsOtherModels))
  if (!isNamed && cuts.length === 0) return undefined
  const named = members.list.filter(({ name }) => names.includes(name)).map(({ name }) => name)
  const whole = [...named, ...cuts.flatMap(({ whole: names }) => names)]
  if (whole.length === 0 && cuts.every(({ edits }) => edits.length === 0)) return undefined
  const dropped = whole.map((name) => ({ code: `${name}_dropped`, field: `/${name}` }))
  return {
    // A tool choice is invalid without tools.
    members: whole.includes('tools') && members.find('tool_choice') ? [...whole, 'tool_choice'] : whole,
    edits: cuts.flatMap(({ edits }) => edits),
    warnings: [...dropped, ...cuts.flatMap(({ warnings }) => warnings)],
  }
}

function mayHave(body: Uint8Array, { valueStart, valueEnd }: JsonMember, words: readonly Buffer[]): boolean {
  const bytes = Buffer.from(body.buffer, body.byteOffset + valueStart, valueEnd - valueStart)
  return words.some((word) => bytes.includes(word))
}

interface ElementCuts {
  /** The member itself, if all its elements are removed. */
  readonly whole: readonly string[]
  readonly edits: readonly ByteEdit[]
  readonly warnings: readonly Warning[]
}

function elementCuts(
  body: Uint8Array,
  member: JsonMember,
  isCut: (element: JsonMembers, body: Uint8Array) => boolean,
): ElementCuts {
  if (memberKind(body, member) !== 'array') return { whole: [], edits: [], warnings: [] }
  const spans = readJsonElements(body, member.valueStart, member.valueEnd)
  const cut = spans.map((span) => isUnread(body, span) || isCut(readObject(body, span), body))
  if (cut.length > 0 && !cut.includes(false)) return { whole: [member.name], edits: [], warnings: [] }
  const places = [...cut.keys()].filter((i) => cut[i])
  const code = `${member.name.slice(0, -1)}_dropped`
  return {
    whole: [],
    edits: cutSpans(spans, (i) => cut[i] === true),
    warnings: places.map((i) => ({ code, field: `/${member.name}/${i}` })),
  }
}

/** Parsers disagree about duplicate names, so such an element may be anything and is removed. */
function isUnread(body: Uint8Array, { start, end }: JsonSpan): boolean {
  return readJsonValueMembers(body, start, end) instanceof JsonFault
}

function readObject(body: Uint8Array, { start, end }: JsonSpan): JsonMembers {
  return readJsonValueMembers(body, start, end) as JsonMembers
}

/** A caller's tool may use any name inside its schema, but has no `model` member itself. */
function isModelTool(tool: JsonMembers, body: Uint8Array): boolean {
  const type = textOf(tool, 'type', body)
  return tool.find('model') !== undefined || (type.startsWith(openRouterTools) && !plainTools.has(type))
}

function callsOtherModels(plugin: JsonMembers, body: Uint8Array): boolean {
  return !plainPlugins.has(textOf(plugin, 'id', body))
}

function textOf(object: JsonMembers, name: string, body: Uint8Array): string {
  const member = object.find(name)
  return (member && memberText(body, member)) ?? ''
}

// Removing elements of a list, or members of an object, without changing the rest.

const noBytes = new Uint8Array(0)

/**
 * `spans` are all elements of the container, in order. Each is removed with the comma after it, those at the end with
 * the comma before.
 */
export function cutSpans(spans: readonly JsonSpan[], isCut: (index: number) => boolean): ByteEdit[] {
  const lastKept = spans.findLastIndex((_, i) => !isCut(i))
  return spans.flatMap((span, i): ByteEdit[] => {
    if (!isCut(i)) return []
    const next = spans[i + 1]
    const start = i > lastKept ? (spans[i - 1]?.end ?? span.start) : span.start
    const end = i > lastKept || !next ? span.end : next.start
    return [{ start, end, bytes: noBytes }]
  })
}

export function cutMembers({ list }: JsonMembers, names: readonly string[]): ByteEdit[] {
  const spans = list.map(({ start, valueEnd }) => ({ start, end: valueEnd }))
  return cutSpans(spans, (i) => names.includes(list[i]?.name ?? ''))
}
