// Tool calls, names and arguments in the form a target accepts.
//
// Pairing joins tool results with their calls. Providers refuse a call without a result and a result without a call, so
// both are refused here, by name, before anything is sent.

import { JsonNode } from '../../wire/json.ts'
import {
  type Conversation,
  type CustomTool,
  pointerTo,
  type RawJson,
  type Tool,
  type ToolCallBlock,
  type ToolChoice,
  type ToolResultBlock,
  type Turn,
  turnPointer,
  type UserBlock,
} from '../canonical/conversation.ts'
import { isRecord, jsonArray, jsonMembers, jsonString, parseJson, recordOf, textOf } from '../canonical/json.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { refuseAt, refusePrefill, reportUnsupported, shownCallId, shownWord, type WarningList } from './fields.ts'
import { asWritten, SchemaBudget } from './schema.ts'

/**
 * Joins results with the calls that are still open, not with all earlier ids, because some models use one id for every
 * call. A second result for a call is omitted with a warning.
 */
export function pairTools(turns: readonly Turn[], rule: ToolIdRule, warnings: WarningList): readonly Turn[] {
  if (!turns.some(usesTools)) return turns
  const open = new OpenCalls(rule)
  let pointer = '/messages'
  const refuseUnanswered = (): void => {
    const id = open.unanswered()
    if (id === undefined) return
    const rule = 'Each call must be answered before the next assistant message.'
    refuseAt(pointer, `The tool call ${shownCallId(id)} has no tool result. ${rule}`)
  }
  const paired = turns.map((turn, index): Turn => {
    if (turn.role === 'user') {
      if (!turn.blocks.some(({ kind }) => kind === 'tool-result')) return turn
      const pair = (block: UserBlock): UserBlock[] =>
        block.kind === 'tool-result' ? pairResult(block, open, turn, warnings) : [block]
      return { ...turn, blocks: turn.blocks.flatMap(pair) }
    }
    if (turn.role === 'system') return turn
    // Consecutive assistant turns are one turn to the model; their calls are answered after the last one.
    if (turns[index - 1]?.role !== 'assistant') {
      refuseUnanswered()
      open.clear()
      pointer = turnPointer(turn)
    }
    const blocks = turn.blocks.map((block) =>
      block.kind === 'tool-call' ? { ...block, id: open.add(block.id, index) } : block,
    )
    return { ...turn, blocks }
  })
  refuseUnanswered()
  return paired
}

function usesTools({ blocks }: Turn): boolean {
  return blocks.some(({ kind }) => kind === 'tool-call' || kind === 'tool-result')
}

/** Empty if the call already has a result. */
function pairResult(
  block: ToolResultBlock,
  open: OpenCalls,
  { pointer = '/messages' }: Turn,
  warnings: WarningList,
): ToolResultBlock[] {
  if (!open.has(block.callId)) {
    const id = shownCallId(block.callId)
    return refuseAt(pointer, `The tool result for ${id} answers no tool call of the assistant message before it.`)
  }
  const callId = open.answer(block.callId)
  if (callId === undefined) {
    warnings.add('duplicate_tool_result_dropped', pointer)
    return []
  }
  return [{ ...block, callId }]
}

/** Pairs the turns of a conversation, and refuses what cannot be sent to the target at all. */
export function preparedTurns(
  conversation: Conversation,
  { rules, toolIdMax, warnings }: { rules: TargetRules; toolIdMax: number; warnings: WarningList },
  restoreReasoning: (turns: readonly Turn[]) => readonly Turn[],
): readonly Turn[] {
  reportUnsupported(conversation.unsupported, warnings)
  const last = conversation.turns.at(-1)
  if (last?.role === 'assistant' && !rules.prefill && !last.blocks.some(({ kind }) => kind === 'tool-call')) {
    return refusePrefill(last)
  }
  // Signatures refer to the caller's call ids, so reasoning is restored before ids change.
  const turns = restoreReasoning(conversation.turns)
  return pairTools(turns, { pattern: rules.toolIdPattern ?? anyId, max: toolIdMax }, warnings)
}

// Tool call ids. A rewritten id depends only on the calls before it, so a growing conversation keeps its ids without
// stored state.

export interface ToolIdRule {
  /** The id must match this as a whole. */
  readonly pattern: RegExp
  readonly max: number
}

export const anyId = /^[\s\S]+$/

/** A lower limit leaves no room for unique ids: such a host ignores ids, so longer ones do no harm. */
const idLengthMin = 8

/** The calls that may be answered, which are those of the last assistant turn, and the ids that are sent for them. */
export class OpenCalls {
  readonly #ids: ToolIds
  /** By the caller's id, which several calls may share: the sent ids of those without a result. */
  readonly #unanswered = new Map<string, string[]>()

  constructor(rule: ToolIdRule) {
    this.#ids = new ToolIds(rule)
  }

  /** Before the calls of the next assistant turn. */
  clear(): void {
    this.#unanswered.clear()
  }

  /** Returns the id that is sent for a call of a turn. */
  add(id: string, turn: number): string {
    const sent = this.#ids.take(id, turn)
    const others = this.#unanswered.get(id)
    if (others) others.push(sent)
    else this.#unanswered.set(id, [sent])
    return sent
  }

  has(id: string): boolean {
    return this.#unanswered.has(id)
  }

  /** The id that is sent for a result; undefined = no call with this id is without one. */
  answer(id: string): string | undefined {
    return this.#unanswered.get(id)?.shift()
  }

  /** The id of a call without a result. */
  unanswered(): string | undefined {
    for (const [id, sent] of this.#unanswered) if (sent.length > 0) return id
    return undefined
  }
}

/** Assigns unique ids in the order of the calls. */
export class ToolIds {
  readonly #used = new Set<string>()
  /** Number of calls by turn and id. */
  readonly #repeated = new Map<string, number>()
  readonly #max: number

  constructor(private readonly rule: ToolIdRule) {
    this.#max = Math.max(rule.max, idLengthMin)
  }

  /** The id sent for a call; `turn` distinguishes calls with the same id. */
  take(id: string, turn: number): string {
    let taken = this.#legal(id)
    if (this.#used.has(taken)) {
      const key = `${turn} ${id}`
      let n = this.#repeated.get(key) ?? 0
      for (; this.#used.has(taken); n++) taken = this.#legal(`${id}_${turn}${n === 0 ? '' : `_${n}`}`)
      this.#repeated.set(key, n)
    }
    this.#used.add(taken)
    return taken
  }

  #fits(id: string): boolean {
    return id.length <= this.#max && this.rule.pattern.test(id)
  }

  /** The id if it fits, otherwise part of it with a hash, or only a hash if ids are short. */
  #legal(id: string): string {
    if (this.#fits(id)) return id
    const hash = hashOf(id)
    const readable = `${withoutSigns(id).slice(0, Math.max(0, this.#max - 9))}_${hash.slice(0, 8)}`
    return this.#fits(readable) ? readable : hash.slice(0, this.#max)
  }
}

function hashOf(text: string): string {
  return new Bun.CryptoHasher('sha256').update(text).digest('hex')
}

function withoutSigns(text: string): string {
  return text.replaceAll(/[^\w-]/g, '_')
}

// Tool names. A legal name is kept. Any other gets a hash of itself as a suffix, so the result depends on nothing else
// in the conversation and two names never collide.

/** Every tool name in a request: in its tools, history and tool choice. */
export function toolNamesIn({ tools, turns, toolChoice }: Conversation): string[] {
  const called = turns.flatMap((turn) =>
    turn.role === 'assistant' ? turn.blocks.flatMap((block) => (block.kind === 'tool-call' ? [block.name] : [])) : [],
  )
  const chosen = toolChoice?.kind === 'named' ? [toolChoice.name] : []
  return [...tools.map(({ name }) => name), ...called, ...chosen]
}

export class ToolNames {
  readonly #sent = new Map<string, string>()
  readonly #taken: ReadonlySet<string>

  /** `names`: every name in the request. `legal`: may refuse digits and hyphens at the start. */
  constructor(
    names: Iterable<string>,
    private readonly max: number,
    private readonly legal = /^[\w-]+$/,
  ) {
    const all = [...names]
    this.#taken = new Set(all.filter((name) => this.#isLegal(name)))
    for (const name of all) this.#sent.set(name, this.#nameFor(name))
  }

  sent(name: string): string {
    return this.#sent.get(name) ?? this.#nameFor(name)
  }

  /** Sent name → the caller's, where they differ. */
  get callerNames(): ReadonlyMap<string, string> {
    return reversed(this.#sent)
  }

  /** A name for a tool that the gateway adds, not used by any of the caller's tools. */
  unused(name: string): string {
    let unused = name
    for (let n = 2; this.#taken.has(unused); n++) unused = `${name}_${n}`
    return unused
  }

  #isLegal(name: string): boolean {
    return name.length <= this.max && this.legal.test(name)
  }

  #nameFor(name: string): string {
    if (this.#isLegal(name)) return name
    const hash = hashOf(name)
    const plain = withoutSigns(name)
    const readable = plain === '' || this.legal.test(plain) ? plain : `_${plain}`
    // Eight digits avoid collisions, unless a caller chose such a name on purpose.
    for (let digits = 8; ; digits += 8) {
      const sent = `${readable.slice(0, this.max - digits - 1)}_${hash.slice(0, digits)}`
      if (!this.#taken.has(sent) || digits >= 32) return sent
    }
  }
}

// Argument names in the form Anthropic accepts. One illegal name (`$filter`, `filter[id]`) in one tool is a 400 for the
// whole request. Anthropic only checks names at the root, so only those are renamed, in the schema and in the calls of
// the history.

/** https://github.com/decocms/studio/pull/6874, 2026-09 */
const argumentNameMax = 64
const legalArgument = /^[\w.-]{1,64}$/

/** The caller's field name → the sent one. Fields that the schema does not name are not renamed. */
type SentNames = ReadonlyMap<string, string>

export class ArgumentNames {
  readonly #byTool = new Map<string, SentNames>()
  readonly #schemas = new SchemaBudget()

  /** The schema of a tool with legal names; the original text if all names are legal. `tool` is the sent name. */
  inSchema(tool: string, schema: RawJson): RawJson {
    const all = Object.keys(recordOf(recordOf(parseJson(schema)).properties))
    // Each new name costs a hash. Over budget, the provider will refuse the names.
    if (all.every((name) => legalArgument.test(name)) || this.#schemas.take(schema) !== undefined) return schema
    const root = JsonNode.of(schema)
    const fields = root.get('properties')?.members()
    // Duplicate names: leave the error to the provider.
    if (!fields) return schema
    const legalNames = new ToolNames(all, argumentNameMax, legalArgument)
    const names = new Map(all.map((name) => [name, legalNames.sent(name)] as const))
    this.#byTool.set(tool, names)
    const required = root
      .get('required')
      ?.elements()
      ?.map(({ string: name, text }) => (name === undefined ? text : jsonString(names.get(name) ?? name)))
    const members = new Map(asWritten(root.members()))
    members.set('properties', renamedFields(fields, names))
    if (required) members.set('required', jsonArray(required))
    return jsonMembers([...members])
  }

  /** The arguments of a call of a tool. */
  inCall(tool: string, input: RawJson): RawJson {
    const names = this.#byTool.get(tool)
    const fields = names && JsonNode.of(input).members()
    return fields ? renamedFields(fields, names) : input
  }

  /** Sent tool name → sent field name → the caller's. */
  get callerNames(): ReadonlyMap<string, ReadonlyMap<string, string>> {
    return new Map([...this.#byTool].map(([tool, names]) => [tool, reversed(names)]))
  }
}

function reversed(names: SentNames): ReadonlyMap<string, string> {
  return new Map([...names].flatMap(([name, sent]) => (name === sent ? [] : [[sent, name] as const])))
}

function renamedFields(fields: readonly JsonNode[], names: SentNames): RawJson {
  return jsonMembers(fields.map(({ name, text }) => [names.get(name) ?? name, text] as const))
}

// The arguments of a tool call, which models write as text, as dialects need them: JSON text or an object. The model's
// text is spliced in, never re-serialised.

/** Unwraps an object that was encoded twice, as a string holding its text. Anything else stays. */
export function unwrapArguments(text: string): string {
  const inner = parseJson(text)
  return typeof inner === 'string' && isRecord(parseJson(inner)) ? inner : text
}

/** The arguments as an object, whatever the model wrote. */
export function argumentsObject(text: string): RawJson {
  if (text.trim() === '') return '{}'
  const unwrapped = unwrapArguments(text).trim()
  const value = parseJson(unwrapped)
  if (isRecord(value)) return unwrapped
  return jsonMembers([value === undefined ? ['raw_arguments', jsonString(text)] : ['value', unwrapped]])
}

/** The arguments of a call in the history as an object; those of a custom tool as the one that stands for it. */
export function callInput(call: ToolCallBlock, pointer: string, warnings: WarningList): RawJson {
  if (call.custom) return jsonMembers([['input', jsonString(call.arguments)]])
  const input = argumentsObject(call.arguments)
  if (input.startsWith('{"raw_arguments":') && input !== call.arguments.trim()) {
    warnings.add('invalid_arguments_wrapped', pointer)
  }
  return input
}

/** The schema of a custom tool that is sent as a function. */
export const customToolSchema = '{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}'

// The offered tools and the tool choice, after applying the target's rules.

export interface ToolOffer {
  readonly tools: readonly Tool[]
  readonly choice: ToolChoice | undefined
}

/**
 * `canRestrict`: the target can restrict the choice to some tools. For others, the tools not allowed are omitted, which
 * changes the prompt prefix, and with it what is cached and what thinking is bound to.
 */
export function offeredTools(
  { tools, toolChoice }: Conversation,
  canRestrict: boolean,
  warnings: WarningList,
): ToolOffer {
  if (tools.length === 0 && isForced(toolChoice)) {
    return refuseAt('/tool_choice', '`tool_choice` demands a tool call, but the request offers no tools.')
  }
  if (toolChoice?.kind === 'named' && !tools.some(({ name }) => name === toolChoice.name)) {
    const name = shownWord(toolChoice.name)
    return refuseAt('/tool_choice', `\`tool_choice\` names ${name}, which is not among the tools.`)
  }
  if (toolChoice?.kind !== 'allowed') return { tools, choice: toolChoice }
  const allowed = tools.filter(({ name }) => toolChoice.names.includes(name))
  const [only] = allowed
  if (!only) return refuseAt('/tool_choice', '`tool_choice` allows no tool that is offered.')
  if (canRestrict) {
    const names = toolChoice.names.filter((each) => allowed.some(({ name }) => name === each))
    return { tools, choice: { ...toolChoice, names } }
  }
  if (allowed.length < tools.length) warnings.add('tools_filtered', '/tool_choice')
  if (!toolChoice.force) return { tools: allowed, choice: { kind: 'auto' } }
  return { tools: allowed, choice: allowed.length === 1 ? { kind: 'named', name: only.name } : { kind: 'required' } }
}

/** A call is required. */
export function isForced(choice: ToolChoice | undefined): boolean {
  return choice?.kind === 'required' || choice?.kind === 'named' || (choice?.kind === 'allowed' && choice.force)
}

/** The caller wants one call at a time, and calls are possible. */
export function wantsSingleCall(
  { parallelTools }: Conversation,
  { tools, choice }: { readonly tools: readonly unknown[]; readonly choice: ToolChoice | undefined },
): boolean {
  return parallelTools === false && tools.length > 0 && choice?.kind !== 'none'
}

/** For targets that cannot be limited to one call. Nothing is lost if the caller's format has room for only one. */
export function warnSingleCall(conversation: Conversation, warnings: WarningList): void {
  if (conversation.oneCallByForm) return
  warnings.add('parallel_tool_calls_emulated', pointerTo(conversation, 'parallelTools'))
}

/** `count` includes the tool that the gateway adds. */
export function refuseTooMany(count: number, max: number | undefined): void {
  if (max === undefined || count <= max) return
  refuseAt('/tools', `This model takes at most ${max} tools; the request has ${count}.`)
}

/** For providers that refuse two tools with one name. */
export function refuseTwice(tools: readonly Tool[]): void {
  if (tools.length < 2) return
  const seen = new Set<string>()
  for (const [i, { name, pointer = `/tools/${i}` }] of tools.entries()) {
    if (seen.has(name)) refuseAt(pointer, `The tool ${shownWord(name)} appears twice in \`tools\`.`)
    seen.add(name)
  }
}

/**
 * The description of a custom tool that is sent as a function with one string argument, where its grammar cannot be
 * enforced.
 */
export function describedGrammar(tool: CustomTool, warnings: WarningList): string | undefined {
  const { name, description, grammar, isGrammarAdvice, pointer = '/tools' } = tool
  if (grammar === undefined) return description
  if (!isGrammarAdvice) {
    return refuseAt(pointer, `The grammar of the custom tool ${shownWord(name)} cannot be enforced by this model.`)
  }
  warnings.add('grammar_not_enforced', pointer)
  const { syntax, definition } = recordOf(recordOf(parseJson(grammar)).grammar)
  const rule = `\`input\` must match this ${textOf(syntax) || 'lark'} grammar:\n${textOf(definition)}`
  return description ? `${description}\n\n${rule}` : rule
}

/** The caller's names of custom tools. */
export function customNames(tools: readonly Tool[]): ReadonlySet<string> {
  return new Set(tools.filter(({ kind }) => kind === 'custom').map(({ name }) => name))
}
