// What in a body has the provider ask other models than the one that is paid for: members that name them, tools that are a
// model themselves, plugins that ask several and judge. Nobody here would be charged for those, and no allowlist would see
// them, so on the operator's credential they are cut out; what is left stays byte for byte.

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
import type { Envelope } from '../canonical/envelope.ts'
import type { Warning } from '../canonical/translation.ts'
import { cutSpans } from './cut-spans.ts'
import type { RequestEdits } from './relay.ts'

export interface ForeignModels {
  /** Members of the body that go as a whole. */
  readonly members: readonly string[]
  /** Elements of lists that stay. */
  readonly edits: readonly ByteEdit[]
  readonly warnings: readonly Warning[]
}

/** OpenRouter's plugins that ask no other model. */
const plainPlugins: ReadonlySet<string> = new Set(['web', 'file-parser', 'response-healing'])
/** Its tools that are none. */
const plainTools: ReadonlySet<string> = new Set([
  ...['openrouter:web_search', 'openrouter:web_fetch', 'openrouter:datetime'],
])
const itsTools = 'openrouter:'

/** Only a list with one of these is taken apart. Every letter of a name can be written as an escape. */
const toolWords = ['"model"', itsTools, '\\u00'].map((word) => Buffer.from(word))

/** `names`: under which the dialect's hosts take other models. */
export function foreignModels(
  { body, members }: Envelope,
  { isOwn }: RequestEdits,
  names: readonly string[],
): ForeignModels | undefined {
  if (isOwn) return undefined
  const isNamed = names.some((name) => members.find(name))
  const tools = members.find('tools')
  const plugins = members.find('plugins')
  const cuts: ElementCuts[] = []
  if (tools && mayHave(body, tools, toolWords)) cuts.push(elementCuts(body, tools, isModel))
  if (plugins) cuts.push(elementCuts(body, plugins, isForeignPlugin))
  if (!isNamed && cuts.length === 0) return undefined
  const named = members.list.filter(({ name }) => names.includes(name)).map(({ name }) => name)
  const whole = [...named, ...cuts.flatMap(({ whole: names }) => names)]
  if (whole.length === 0 && cuts.every(({ edits }) => edits.length === 0)) return undefined
  const dropped = whole.map((name) => ({ code: `${name}_dropped`, field: `/${name}` }))
  return {
    // A choice among tools means nothing without any.
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
  /** The member itself, where nothing of it would stay. */
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

/** One with a name that stands twice is read by everybody in their own way, and may be anything. */
function isUnread(body: Uint8Array, { start, end }: JsonSpan): boolean {
  return readJsonValueMembers(body, start, end) instanceof JsonFault
}

function readObject(body: Uint8Array, { start, end }: JsonSpan): JsonMembers {
  return readJsonValueMembers(body, start, end) as JsonMembers
}

/** A tool of the caller's has a schema, in which any name may stand, but no model of its own. */
function isModel(tool: JsonMembers, body: Uint8Array): boolean {
  const type = textOf(tool, 'type', body)
  return tool.find('model') !== undefined || (type.startsWith(itsTools) && !plainTools.has(type))
}

function isForeignPlugin(plugin: JsonMembers, body: Uint8Array): boolean {
  return !plainPlugins.has(textOf(plugin, 'id', body))
}

function textOf(object: JsonMembers, name: string, body: Uint8Array): string {
  const member = object.find(name)
  return (member && memberText(body, member)) ?? ''
}
