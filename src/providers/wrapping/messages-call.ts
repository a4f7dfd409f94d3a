// A Messages call taken apart for hosts that name the model in the path and the version in the body. The members travel
// as they are, byte for byte, but for those that a flag unlocks which the host does not know. `messages` goes last, so that
// what stays the same from turn to turn comes first: one host looks for a cached prompt by the beginning of the body
// (anthropics/anthropic-sdk-python#1927, 2026-09).

import { isRecord } from '../../dialects/canonical/json.ts'
import type { Warning } from '../../dialects/canonical/translation.ts'
import { pointerStep, WarningList } from '../../dialects/request/warnings.ts'
import { assert } from '../../kernel/assert.ts'
import { hasBytes, utf8Text } from '../../wire/bytes.ts'
import {
  JsonFault,
  type JsonMember,
  type JsonMembers,
  memberBoolean,
  memberKind,
  memberText,
  readJsonElementsUntil,
  readJsonMembers,
  spliceBytes,
} from '../../wire/json-members.ts'
import type { Endpoint } from '../provider.ts'
import { findLocked } from './locked-members.ts'

export const messagesPath = '/v1/messages'

export interface MessagesCall {
  readonly model: string
  readonly isStreamed: boolean
  /** The flags of the caller that the host knows, by the host's names. */
  readonly betas: readonly string[]
  /** The caller's flags and members that the host is not sent. */
  readonly warnings: readonly Warning[]
  /** Tools for a history that calls some where the request offers none; undefined where none are needed. */
  stubTools(): object | undefined
  /** The body with these members first, without those in `except` and those that no flag unlocks at the host. */
  bodyWith(first: Readonly<Record<string, unknown>>, except: readonly string[]): Uint8Array<ArrayBuffer>
}

export function readMessagesCall(
  given: Uint8Array<ArrayBuffer>,
  headers: Readonly<Record<string, string>>,
  endpoint: Pick<Endpoint, 'betas' | 'betaNames'>,
): MessagesCall {
  const warnings = new WarningList()
  const betas = knownBetas(headers['anthropic-beta'] ?? '', endpoint, warnings)
  const all = membersOf(given)
  const { edits, lost } = findLocked(given, all, betas)
  for (const place of lost) warnings.add(`${place.slice(place.lastIndexOf('/') + 1)}_dropped`, place)
  const body = edits.length === 0 ? given : spliceBytes(given, edits)
  const members = body === given ? all : membersOf(body)
  const model = members.find('model')
  const stream = members.find('stream')
  return {
    model: (model && memberText(body, model)) ?? '',
    isStreamed: stream !== undefined && memberBoolean(body, stream) === true,
    betas,
    warnings: warnings.list,
    stubTools: () => stubTools(body, members),
    bodyWith(first, except) {
      const left = new Set([...except, ...Object.keys(first)])
      const kept = members.list.filter(({ name }) => !left.has(name))
      const last = kept.filter(({ name }) => name === 'messages')
      const pieces: Uint8Array[] = [new TextEncoder().encode(JSON.stringify(first).slice(0, -1))]
      for (const { start, valueEnd } of [...kept.filter((each) => !last.includes(each)), ...last]) {
        pieces.push(comma, body.subarray(start, valueEnd))
      }
      return new Uint8Array(Buffer.concat([...pieces, closing]))
    },
  }
}

const comma = new TextEncoder().encode(',')
const closing = new TextEncoder().encode('}')

function membersOf(body: Uint8Array): JsonMembers {
  const members = readJsonMembers(body)
  assert(!(members instanceof JsonFault), 'a body that was checked or rendered here')
  return members
}

/** A flag that the host does not know would be a 400. */
function knownBetas(
  header: string,
  { betas = [], betaNames = {} }: Pick<Endpoint, 'betas' | 'betaNames'>,
  warnings: WarningList,
): readonly string[] {
  const known = new Set<string>()
  for (const flag of header.split(',').map((each) => each.trim())) {
    const name = Object.hasOwn(betaNames, flag) ? (betaNames[flag] ?? flag) : flag
    if (betas.includes(name)) known.add(name)
    else if (flag !== '') warnings.add('beta_dropped', `/anthropic-beta${pointerStep(flag)}`)
  }
  return [...known]
}

const toolUse = Buffer.from('"tool_use"')

/**
 * Some hosts refuse tool calls in a history whose tools are not defined. Defines the called tools by name, and forbids
 * calling them, because the caller offers none.
 */
function stubTools(body: Uint8Array, members: JsonMembers): object | undefined {
  const messages = members.find('messages')
  if (!messages || !hasBytes(body, toolUse) || offersTools(body, members.find('tools'))) return undefined
  const choice = parsed(body, members.find('tool_choice'))
  // A caller that demands a call of no tool is wrong, and the host says so.
  if (isRecord(choice) && (choice.type === 'any' || choice.type === 'tool')) return undefined
  const names = new Set(calledNames(parsed(body, messages)))
  if (names.size === 0) return undefined
  const tools = [...names].map((name) => ({ name, input_schema: { type: 'object' } }))
  return { tools, tool_choice: { type: 'none' } }
}

function offersTools(body: Uint8Array, tools: JsonMember | undefined): boolean {
  if (!tools || memberKind(body, tools) === 'null') return false
  if (memberKind(body, tools) !== 'array') return true
  return readJsonElementsUntil(body, tools.valueStart, tools.valueEnd, () => true).length > 0
}

function calledNames(messages: unknown): string[] {
  return listOf(messages)
    .flatMap((message) => (isRecord(message) ? listOf(message.content) : []))
    .flatMap((block) =>
      isRecord(block) && block.type === 'tool_use' && typeof block.name === 'string' ? block.name : [],
    )
}

function parsed(body: Uint8Array, member: JsonMember | undefined): unknown {
  return member && JSON.parse(utf8Text(body, member.valueStart, member.valueEnd))
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The headers of the dialect have no meaning there. */
export function withoutDialectHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith('anthropic-')))
}
