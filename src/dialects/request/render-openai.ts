// The parts that both OpenAI dialects render alike: settings, output format, tools and content parts. They differ in names
// and nesting, which each states in a Form.

import {
  type AssistantBlock,
  type ContentBlock,
  type Conversation,
  type DocumentBlock,
  type Effort,
  type MediaSource,
  pointerTo,
  type RawJson,
  type TextBlock,
  type Tool,
  type ToolCallBlock,
  type ToolResultBlock,
  type Turn,
  turnPointer,
} from '../canonical/conversation.ts'
import { filledArray, jsonArray, jsonObject, jsonString, type Members } from '../canonical/json.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { type TierWords, tierWordsOf } from '../canonical/tiers.ts'
import type { Target } from '../canonical/translation.ts'
import { chooseMarks, type FoundMark, type MarkRules, warnCacheOptions } from './cache-marks.ts'
import { refuseAt, WarningList } from './fields.ts'
import { refuseMediaUrl } from './media.ts'
import { functionParameters, isStrictSchema, SchemaBudget } from './schema.ts'
import { acceptsSampling, hashedId, renderSampling, type SamplingRow } from './settings.ts'
import {
  customNames,
  describedGrammar,
  isForced,
  offeredTools,
  preparedTurns,
  refuseTooMany,
  ToolNames,
  type ToolOffer,
  toolNamesIn,
  wantsSingleCall,
} from './tools.ts'

export interface OpenaiForm {
  /** Members are in an object named after the type of a tool or format, instead of beside the type. */
  readonly isNested: boolean
  /** `strict` is written even if false, because the provider is strict by default. */
  readonly writesStrict: boolean
  readonly endUserName: 'user' | 'safety_identifier'
  /** What hosts know of `service_tier`. */
  readonly tierWords: TierWords
  /** System messages are usually accepted inside the conversation. */
  readonly midSystem: boolean
  /** If the target has no rule. */
  readonly toolsMax?: number
  readonly toolIdMax: number
  readonly textType: string
  readonly image: (url: string) => Members
  /** The parts of a document by value or by URL. */
  readonly document: (document: DocumentBlock, source: MediaSource, rules: TargetRules, pointer: string) => Members[]
  /** Custom tools are accepted as such. */
  readonly takesCustom: (rules: TargetRules) => boolean
  /** The choice can be restricted to some tools. */
  readonly canRestrict: (rules: TargetRules) => boolean
  readonly grammar: (grammar: RawJson) => RawJson
  readonly sampling: readonly SamplingRow[]
  /** Whether a tool or block can carry its cache mark. */
  readonly canCarry: (found: FoundMark, rules: TargetRules) => boolean
}

export type OpenaiRendering = ReturnType<typeof openRendering>

const toolNameMaxDefault = 64

/** The turns to render, and what rendering them needs. */
export function openRendering(
  form: OpenaiForm,
  conversation: Conversation,
  { rules, issuer, namesTier }: Target,
  restoreReasoning?: (turns: readonly Turn[], issuer: string, warnings: WarningList) => readonly Turn[],
) {
  const warnings = new WarningList()
  const turns = preparedTurns(conversation, { rules, toolIdMax: rules.toolIdMax ?? form.toolIdMax, warnings }, (all) =>
    restoreReasoning ? restoreReasoning(all, issuer, warnings) : all,
  )
  const names = new ToolNames(toolNamesIn(conversation), rules.toolNameMax ?? toolNameMaxDefault)
  const markRules: MarkRules = {
    isAccepted: rules.cacheStyle === 'breakpoint',
    // Hosts with a style cache implicitly.
    isImplicit: rules.cacheStyle !== undefined,
    canCarry: (found) => form.canCarry(found, rules),
  }
  const marks = chooseMarks({ ...conversation, turns }, markRules, warnings)
  return { form, rules, issuer, namesTier, warnings, turns, names, marks, schemas: new SchemaBudget() }
}

/** An entry with a type, in either nesting. */
function typed({ isNested }: OpenaiForm, type: string, members: Members, mark: Members = {}): RawJson {
  if (!isNested) return jsonObject({ type: jsonString(type), ...members, ...mark })
  return jsonObject({ type: jsonString(type), [type]: jsonObject(members), ...mark })
}

/** `effort`: the requested one; undefined = none. */
export function samplingMembers(
  { sampling }: Conversation,
  effort: Effort | undefined,
  { form, rules, warnings }: OpenaiRendering,
): Members {
  const isReasoning = effort === undefined ? rules.thinksByDefault === true : effort !== 'none'
  const isAccepted = acceptsSampling(rules, isReasoning)
  return renderSampling(sampling, form.sampling, { rules, warnings, isAccepted, temperatureMax: 2 })
}

/** The members that say who asks, and how to cache and serve the request. */
export function servingMembers(conversation: Conversation, rendering: OpenaiRendering): Members {
  return {
    ...endUserMember(conversation, rendering),
    prompt_cache_key: cacheKey(conversation, rendering),
    prompt_cache_options: cacheOptions(conversation, rendering),
    service_tier: serviceTier(conversation, rendering),
  }
}

function endUserMember(conversation: Conversation, { form, rules, warnings }: OpenaiRendering): Members {
  const { endUserId } = conversation
  if (endUserId === undefined) return {}
  if (rules.endUserId === false) {
    warnings.add('end_user_id_dropped', pointerTo(conversation, 'endUserId'))
    return {}
  }
  const name = rules.endUserIdName ?? form.endUserName
  const max = rules.endUserIdMax ?? (name === 'user' ? 64 : 128)
  // Email addresses should not be shared.
  const isSent = endUserId.length <= max && !endUserId.includes('@')
  return { [name]: jsonString(isSent ? endUserId : hashedId(endUserId, max)) }
}

function cacheKey({ promptCacheKey }: Conversation, { rules, warnings }: OpenaiRendering): RawJson | undefined {
  if (promptCacheKey === undefined || rules.promptCacheKey !== false) return jsonString(promptCacheKey)
  warnings.add('prompt_cache_key_dropped', '/prompt_cache_key')
  return undefined
}

function cacheOptions(conversation: Conversation, { rules, warnings }: OpenaiRendering): RawJson | undefined {
  if (rules.cacheStyle === 'breakpoint') return conversation.promptCacheOptions?.written
  warnCacheOptions(conversation, warnings)
  return undefined
}

function serviceTier(
  conversation: Conversation,
  { form, rules, warnings, namesTier }: OpenaiRendering,
): RawJson | undefined {
  const { serviceTier: tier } = conversation
  const words = tierWordsOf(rules, form.tierWords)
  if (tier === undefined) return namesTier ? jsonString(words.unasked) : undefined
  const word = words[tier]
  // Hosts without tiers serve everything as standard, and some refuse the field.
  if (word === undefined && tier !== 'auto' && tier !== 'standard') {
    warnings.add('service_tier_dropped', pointerTo(conversation, 'serviceTier'))
  }
  return jsonString(word)
}

// The output format: native where the target supports it, otherwise requested by instruction, with a warning.

export const anyObjectFormat = '{"type":"json_object"}'

/** `instruction`: appended to the system prompt. */
export function renderFormat(conversation: Conversation, { form, rules, warnings }: OpenaiRendering) {
  const { outputFormat } = conversation
  if (!outputFormat) return {}
  const pointer = pointerTo(conversation, 'outputFormat')
  if (outputFormat.kind === 'json-object') return { format: anyObjectFormat }
  if (rules.jsonOutput === 'object') {
    warnings.add('json_schema_emulated', pointer)
    const instruction = `Answer with a single JSON object that follows this JSON Schema:\n${outputFormat.schema}`
    return { format: anyObjectFormat, instruction }
  }
  const { name, description, schema, strict } = outputFormat
  const canBeStrict = isStrictSchema(schema)
  if (strict && !canBeStrict) warnings.add('strict_dropped', pointer)
  return {
    format: typed(form, 'json_schema', {
      // A required label without meaning.
      name: jsonString(name?.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'output'),
      description: jsonString(description),
      schema,
      strict: String((strict ?? true) && canBeStrict),
    }),
  }
}

// Tools and the tool choice.

/** Parameters of a custom tool that is sent as a function: one string. */
const customToolParameters =
  '{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}'

/** Returns members of the body, and how the calls of the reply are mapped back. */
export function renderTools(conversation: Conversation, rendering: OpenaiRendering) {
  const { form, rules, warnings } = rendering
  const offer = offeredTools(conversation, form.canRestrict(rules), warnings)
  const { tools } = offer
  refuseTooMany(tools.length, rules.toolsMax ?? form.toolsMax)
  const rendered = tools.map((tool) => renderTool(tool, rendering))
  const isSingle = wantsSingleCall(conversation, offer)
  const hasFlag = rules.parallelFlag !== false
  if (isSingle && !hasFlag) warnings.add('parallel_tools_dropped', pointerTo(conversation, 'parallelTools'))
  return {
    members: {
      tools: filledArray(rendered),
      tool_choice: tools.length === 0 ? undefined : renderChoice(offer, rendering),
      parallel_tool_calls: isSingle && hasFlag ? 'false' : undefined,
    },
    mapping: {
      toolNames: rendering.names.callerNames,
      customTools: form.takesCustom(rules) ? new Set<string>() : customNames(tools),
      singleToolCall: isSingle && !hasFlag,
    },
  }
}

function renderTool(tool: Tool, rendering: OpenaiRendering): RawJson {
  const { form, rules, names, marks, warnings } = rendering
  const name = jsonString(names.sent(tool.name))
  const mark = marks.memberOf(tool)
  if (tool.kind === 'custom') {
    const description = jsonString(tool.description)
    if (form.takesCustom(rules)) {
      const format = tool.grammar === undefined ? undefined : form.grammar(tool.grammar)
      return typed(form, 'custom', { name, description, format }, mark)
    }
    const strict = form.writesStrict ? 'false' : undefined
    const described = jsonString(describedGrammar(tool, warnings))
    return typed(form, 'function', { name, description: described, parameters: customToolParameters, strict }, mark)
  }
  const { parameters, description } = functionParameters(tool, rendering)
  const isStrict = tool.strict === true && rules.strictTools !== false && isStrictSchema(parameters)
  if (tool.strict && !isStrict) warnings.add('strict_dropped', `${tool.pointer ?? '/tools'}/strict`)
  const strict = isStrict || form.writesStrict ? String(isStrict) : undefined
  return typed(form, 'function', { name, description: jsonString(description), parameters, strict }, mark)
}

function renderChoice({ tools, choice }: ToolOffer, rendering: OpenaiRendering): RawJson | undefined {
  if (choice === undefined) return undefined
  const isRelaxed = isForced(choice) && rendering.rules.forcedToolChoice === false
  if (isRelaxed) rendering.warnings.add('tool_choice_relaxed', '/tool_choice')
  if (choice.kind === 'allowed') {
    return typed(rendering.form, 'allowed_tools', {
      mode: choice.force && !isRelaxed ? '"required"' : '"auto"',
      tools: jsonArray(choice.names.map((name) => namedTool(name, tools, rendering))),
    })
  }
  if (isRelaxed) return '"auto"'
  return choice.kind === 'named' ? namedTool(choice.name, tools, rendering) : jsonString(choice.kind)
}

function namedTool(name: string, tools: readonly Tool[], { form, rules, names }: OpenaiRendering): RawJson {
  const isCustom = form.takesCustom(rules) && customNames(tools).has(name)
  return typed(form, isCustom ? 'custom' : 'function', { name: jsonString(names.sent(name)) })
}

// Calls and results.

/** The dialects have no field for a failed call. */
export const errorMark = '[tool error] '

/** The arguments as the model wrote them, except that not every host can parse empty ones. */
export function argumentText(call: ToolCallBlock): string {
  if (call.custom) return jsonObject({ input: jsonString(call.arguments) })
  return call.arguments.trim() === '' ? '{}' : call.arguments
}

/** A result as text, with a stub for each of its media. */
export function resultText({ isError, content }: ToolResultBlock): string {
  return (isError ? errorMark : '') + content.map((block) => textIn(block) ?? `[${block.kind}]`).join('\n')
}

/** Media of a result, for a user message, after a label with the call they belong to. */
export function mediaOutside(
  media: readonly ContentBlock[],
  callId: string,
  rendering: OpenaiRendering,
  pointer: string,
): RawJson[] {
  if (media.length === 0) return []
  const label: TextBlock = { kind: 'text', text: `From the result of tool call ${callId}:` }
  return [label, ...media].flatMap((block) => renderParts(block, rendering, pointer))
}

// Turns. Calls must be answered by the next messages. So an assistant turn that follows calls is joined with them, and of
// the other turns up to the next assistant turn all results come first, then the rest, in order.

export interface TurnWriter {
  assistant(blocks: readonly AssistantBlock[], pointer: string): void
  /** Returns the media for a user message. */
  result(result: ToolResultBlock, pointer: string): readonly RawJson[]
  /** `media`: parts before the blocks. Both may be empty. */
  user(blocks: readonly ContentBlock[], pointer: string, media: readonly RawJson[]): void
  system(blocks: readonly TextBlock[]): void
  /** Where a host accepts system messages only at the front, a later one stays in place as tagged user text. */
  inlinedSystem(text: string, blocks: readonly TextBlock[], pointer: string): void
}

export function writeTurns(writer: TurnWriter, rendering: OpenaiRendering): void {
  const { turns } = rendering
  for (let at = 0, end = 0; at < turns.length; at = end) {
    const isAssistant = turns[at]?.role === 'assistant'
    end = at + 1
    while (end < turns.length && (isAssistant ? continuesCalls(turns, end) : turns[end]?.role !== 'assistant')) end++
    const run = turns.slice(at, end)
    if (!isAssistant) writeOthers(run, writer, rendering)
    else
      writer.assistant(
        run.flatMap((turn) => (turn.role === 'assistant' ? turn.blocks : [])),
        turnPointer(run[0]),
      )
  }
}

function continuesCalls(turns: readonly Turn[], i: number): boolean {
  return turns[i]?.role === 'assistant' && turns[i - 1]?.blocks.some(({ kind }) => kind === 'tool-call') === true
}

function writeOthers(run: readonly Turn[], writer: TurnWriter, { form, rules, warnings }: OpenaiRendering): void {
  const results = run.flatMap((turn) =>
    turn.blocks.flatMap((block) => (block.kind === 'tool-result' ? [{ block, turn }] : [])),
  )
  const media = results.flatMap(({ block, turn }) => writer.result(block, turnPointer(turn)))
  for (const turn of run) {
    const pointer = turnPointer(turn)
    if (turn.role === 'user') {
      const said = turn.blocks.filter((block) => block.kind !== 'tool-result')
      // Media go with the turn of the last result, which later turns cannot change.
      writer.user(said, pointer, turn === results.at(-1)?.turn ? media : [])
    } else if (turn.role === 'system') {
      const text = joinedText(turn.blocks)
      if (text === '') continue
      if (rules.midSystem ?? form.midSystem) writer.system(turn.blocks)
      else {
        warnings.add('system_inlined', pointer)
        writer.inlinedSystem(`<system>\n${text}\n</system>`, turn.blocks, pointer)
      }
    }
  }
}

// Content blocks as parts, in any position.

/** Hosts refuse empty text. */
export function isFilled(block: ContentBlock): boolean {
  return block.kind !== 'text' || block.text !== ''
}

/** The text of a block; undefined for media. */
export function textIn(block: ContentBlock): string | undefined {
  if (block.kind === 'text') return block.text
  if (block.kind === 'image' || block.source.kind !== 'text') return undefined
  return [block.title, block.source.text, block.context].filter((line) => line !== undefined).join('\n\n')
}

/** `ended`: everything that ends with this block and may be marked, such as the result whose last part it is. */
export function renderParts(
  block: ContentBlock,
  rendering: OpenaiRendering,
  pointer: string,
  ended: readonly (ContentBlock | ToolResultBlock)[] = [block],
): RawJson[] {
  const parts = partsOf(block, rendering, pointer)
  // A mark covers the whole block, so it goes on its last part.
  const mark = rendering.marks.memberOf(...ended)
  return parts.map((part, i) => jsonObject(i === parts.length - 1 ? { ...part, ...mark } : part))
}

function partsOf(block: ContentBlock, { form, rules }: OpenaiRendering, pointer: string): Members[] {
  const text = textIn(block)
  if (text !== undefined) return [textMembers(text, form)]
  if (block.kind === 'image') {
    if (rules.images === false) return refuseAt(pointer, 'This model does not take images.')
    refuseMediaUrl(block.source, rules, pointer)
    return [form.image(block.source.kind === 'url' ? block.source.url : dataUrl(block.source))]
  }
  return form.document(block as DocumentBlock, (block as DocumentBlock).source as MediaSource, rules, pointer)
}

export function textMembers(text: string, { textType }: Pick<OpenaiForm, 'textType'>): Members {
  return { type: jsonString(textType), text: jsonString(text) }
}

export function dataUrl({ mediaType, base64 }: { readonly mediaType: string; readonly base64: string }): string {
  return `data:${mediaType};base64,${base64}`
}

export function joinedText(blocks: readonly TextBlock[]): string {
  return blocks
    .map(({ text }) => text)
    .filter((text) => text !== '')
    .join('\n\n')
}

export function message(role: string, content: RawJson): RawJson {
  return jsonObject({ role: jsonString(role), content })
}
