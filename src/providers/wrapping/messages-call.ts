// A Messages call in a host's own form: the model goes into the path and the version into the body. Members are copied byte
// for byte, except those that need a beta flag the host does not know. `messages` goes last, so that the part that stays
// the same from turn to turn comes first: one host looks up cached prompts by the beginning of the body
// (anthropics/anthropic-sdk-python#1927, 2026-09).

import { isRecord, listOf } from '../../dialects/canonical/json.ts'
import type { Warning } from '../../dialects/canonical/translation.ts'
import { pointerStep, WarningList } from '../../dialects/request/fields.ts'
import { assert, type Failure } from '../../kernel/failure.ts'
import { hasBytes } from '../../wire/bytes.ts'
import { JsonEdits, JsonFault, type JsonNode, readJson } from '../../wire/json.ts'
import type { Endpoint, UpstreamResponse } from '../provider.ts'

export interface WrappedCall {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
}

/** A call in the host's form, and what of the caller's it could not take. */
export interface HostCall extends WrappedCall {
  readonly warnings: readonly Warning[]
  /** Why it must not be sent: the host supports less than the request needs. */
  readonly refused?: Failure
}

export interface Wrapping {
  /** undefined = the host has no such call. */
  wrap(call: WrappedCall, endpoint: Endpoint): HostCall | undefined
  /** The dialect's own reply again, as it comes. */
  unwrap(response: UpstreamResponse): UpstreamResponse
}

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
  const edits = new JsonEdits(given)
  const asked = rootOf(given)
  for (const place of removeLocked(asked, betas, edits)) {
    warnings.add(`${place.slice(place.lastIndexOf('/') + 1)}_dropped`, place)
  }
  const root = edits.isEmpty ? asked : rootOf(edits.apply())
  return {
    model: root.get('model')?.string ?? '',
    isStreamed: root.get('stream')?.kind === 'true',
    betas,
    warnings: warnings.list,
    stubTools: () => stubTools(root),
    bodyWith(first, except) {
      const left = new Set([...except, ...Object.keys(first)])
      const kept = (root.members() ?? []).filter(({ name }) => !left.has(name))
      const last = kept.filter(({ name }) => name === 'messages')
      const pieces: Uint8Array[] = [new TextEncoder().encode(JSON.stringify(first).slice(0, -1))]
      for (const { nameStart, end } of [...kept.filter((each) => !last.includes(each)), ...last]) {
        pieces.push(comma, root.bytes.subarray(nameStart, end))
      }
      return new Uint8Array(Buffer.concat([...pieces, closing]))
    },
  }
}

const comma = new TextEncoder().encode(',')
const closing = new TextEncoder().encode('}')

function rootOf(body: Uint8Array): JsonNode {
  const root = readJson(body)
  assert(!(root instanceof JsonFault), 'a body that was checked or rendered here')
  return root
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
function stubTools(root: JsonNode): object | undefined {
  const messages = root.get('messages')
  const tools = root.get('tools')
  const offersTools = tools && tools.kind !== 'null' && !(tools.kind === 'array' && tools.isEmpty)
  if (!messages || !hasBytes(root.bytes, toolUse) || offersTools) return undefined
  const choice = root.get('tool_choice')?.value()
  // A caller that demands a call of no tool is wrong, and the host says so.
  if (isRecord(choice) && (choice.type === 'any' || choice.type === 'tool')) return undefined
  const names = new Set(calledNames(messages.value()))
  if (names.size === 0) return undefined
  const stubs = [...names].map((name) => ({ name, input_schema: { type: 'object' } }))
  return { tools: stubs, tool_choice: { type: 'none' } }
}

function calledNames(messages: unknown): string[] {
  return listOf(messages)
    .flatMap((message) => (isRecord(message) ? listOf(message.content) : []))
    .flatMap((block) =>
      isRecord(block) && block.type === 'tool_use' && typeof block.name === 'string' ? block.name : [],
    )
}

/** The headers of the dialect have no meaning there. */
export function withoutDialectHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith('anthropic-')))
}

// Members of a Messages body that need a beta flag. A host refuses the member without the flag, so both are sent or
// neither is. Only tuning and hints are dropped, with a warning; for a member that promises something, such as tools that
// the provider calls, the host's refusal is the right answer.

interface Lock {
  /** From the body inwards; of a list, each element. */
  readonly path: readonly [string, ...string[]]
  /** Prefixes of the flags that unlock it. */
  readonly flags: readonly string[]
}

const scopeFlags = ['prompt-caching-scope-']

/**
 * Sources: the beta types of @anthropic-ai/sdk 1.8.0; NVIDIA/OpenShell#2465 and anthropics/claude-code#82539 saw the first
 * two refused (2026-07), anthropics/claude-code#33180 the one of tools.
 */
const locks: readonly Lock[] = [
  { path: ['context_management'], flags: ['context-management-'] },
  { path: ['diagnostics'], flags: ['cache-diagnosis-'] },
  { path: ['speed'], flags: ['fast-mode-'] },
  { path: ['fallbacks'], flags: ['server-side-fallback-'] },
  { path: ['fallback_credit_token'], flags: ['fallback-credit-'] },
  { path: ['thinking', 'block_binding'], flags: ['thinking-binding-controls-'] },
  { path: ['output_config', 'task_budget'], flags: ['task-budgets-'] },
  { path: ['tools', 'eager_input_streaming'], flags: ['fine-grained-tool-streaming-'] },
  { path: ['tools', 'defer_loading'], flags: ['tool-search-tool-', 'advanced-tool-use-'] },
  // Claude Code shares the cached part of its prompt between sessions.
  { path: ['tools', 'cache_control', 'scope'], flags: scopeFlags },
  { path: ['system', 'cache_control', 'scope'], flags: scopeFlags },
]

/** Names of members to remove, or what to remove inside the member of that name. */
type Removals = Map<string, 'remove' | Removals>

/** Returns the JSON pointers of those that asked for something. `betas`: the flags that go to the host. */
function removeLocked(root: JsonNode, betas: readonly string[], edits: JsonEdits): readonly string[] {
  const lost: string[] = []
  // The host judges values that are not objects or that repeat a name.
  const inObject = (object: JsonNode, removals: Removals, pointer: string): void => {
    for (const member of object.members() ?? []) {
      const found = removals.get(member.name)
      const place = pointer + pointerStep(member.name)
      if (found === 'remove') {
        edits.remove(member)
        if (member.kind !== 'false' && member.kind !== 'null') lost.push(place)
      } else if (found && mayName(member, found)) {
        inObject(member, found, place)
        for (const [i, element] of (member.elements() ?? []).entries()) inObject(element, found, place + pointerStep(i))
      }
    }
  }
  inObject(root, removalsFor(betas), '')
  return lost
}

function removalsFor(betas: readonly string[]): Removals {
  const removals: Removals = new Map()
  for (const { path, flags } of locks) {
    if (betas.some((beta) => flags.some((flag) => beta.startsWith(flag)))) continue
    let level = removals
    for (const name of path.slice(0, -1)) {
      const next = level.get(name)
      const deeper: Removals = next instanceof Map ? next : new Map()
      level.set(name, deeper)
      level = deeper
    }
    level.set(path.at(-1) ?? '', 'remove')
  }
  return removals
}

const escaped = Buffer.from('\\u00')

/** Long lists are only taken apart where there is something to find; a name can be written with escapes. */
function mayName(value: JsonNode, removals: Removals): boolean {
  if (value.includes(escaped)) return true
  return [...removals].some(([name, inner]) =>
    inner === 'remove' ? value.includes(Buffer.from(name)) : mayName(value, inner),
  )
}
