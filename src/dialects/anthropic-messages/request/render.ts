// Renders a Conversation as a Messages body. A pure function of conversation and target, without clock or randomness:
// the same history always gives the same bytes, on which prompt caches and signed thinking depend.

import {
  type CacheMark,
  type Conversation,
  type FunctionTool,
  type OutputFormat,
  pointerTo,
  type RawJson,
  type Tool,
  type ToolChoice,
} from '../../canonical/conversation.ts'
import {
  filledArray,
  filledObject,
  jsonObject,
  jsonString,
  listOf,
  type Members,
  parseJson,
  recordOf,
} from '../../canonical/json.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import { tierWordsOf } from '../../canonical/tiers.ts'
import { type RenderedRequest, type ReplyMapping, renderedRequest, type Target } from '../../canonical/translation.ts'
import { limitMarks, writeCacheControl } from '../../request/cache-marks.ts'
import { refuseAt, refusing, reportUnsupported, shownWord, WarningList } from '../../request/fields.ts'
import { schemasIn, toolSchema } from '../../request/schema.ts'
import { hashedId, renderSampling, type SamplingRow, warnHints } from '../../request/settings.ts'
import {
  ArgumentNames,
  customNames,
  customToolSchema,
  describedGrammar,
  isForced,
  offeredTools,
  pairTools,
  refuseTooMany,
  refuseTwice,
  ToolNames,
  type ToolOffer,
  toolNamesIn,
  wantsSingleCall,
} from '../../request/tools.ts'
import { fastBeta, fastSpeed, hostTiers } from '../tiers.ts'
import { isReasoning, renderReasoning, restoreThinking, writeThinking } from './reasoning.ts'
import {
  checkPrefill,
  type HistoryContext,
  renderMessages,
  renderSystem,
  type WireMessage,
  writeBlock,
  writeMessages,
} from './render-messages.ts'
import { fitsSubset, holders, MergeBudget, subsetSchema } from './schema.ts'

const idRule = { pattern: /^[A-Za-z0-9_-]{1,64}$/, max: 64 }
const toolNameUsualMax = 64
const usualOutputCap = 4096
const bindingBeta = 'thinking-binding-controls-2026-08-01'
/** Every host knows this version, and no later one supports sampling settings. One object, so that it is prepared once. */
const plainHeaders = Object.freeze({ 'anthropic-version': '2023-06-01' })

export const renderRequest = refusing(render)

function render(conversation: Conversation, target: Target): RenderedRequest {
  const { rules } = target
  const warnings = new WarningList()
  reportUnsupported(conversation.unsupported, warnings)
  warnHints(conversation, warnings)
  const names = new ToolNames(toolNamesIn(conversation), rules.toolNameMax ?? toolNameUsualMax)
  const context: ToolContext = {
    ...{ rules, names, argumentNames: new ArgumentNames(), warnings },
    ...{ strictBudget: new StrictBudget(), merges: new MergeBudget() },
  }

  const offer = offeredTools(conversation, false, warnings)
  const output = chooseOutput(conversation, context, demandsOneOfSeveral(offer))
  const tools = [...renderTools(offer.tools, context), ...(output.tool ? [output.tool] : [])]
  const system = renderSystem(conversation, warnings)
  const messages = renderHistory(conversation, target, {
    ...context,
    isInstructed: system.length > 0,
    pointer: pointerTo(conversation, 'turns'),
  })
  const maxTokens = outputCap(conversation, target, warnings)
  const answersByTool = output.tool !== undefined
  const thinking = renderReasoning(conversation, { rules, maxTokens, messages, answersByTool, warnings })
  const choice = output.tool
    ? jsonToolChoice(offer, output.tool.name, warnings)
    : relaxChoice(offer.choice, { rules, thinking: thinking.mode === 'enabled' }, warnings)
  const toolChoice = writeChoice(choice, { conversation, tools, context })
  // Most models accept no sampling settings, or none while they reason.
  const isAccepted = rules.sampling !== 'none' && !isReasoning(thinking, rules)
  const sampling = renderSampling(conversation.sampling, samplingRows, {
    rules,
    warnings,
    isAccepted,
    temperatureMax: 1,
  })
  const stop = renderStop(conversation, rules, warnings)
  const serving = renderServing(conversation, rules, warnings)

  const marked = [...tools, ...system, ...messages.flatMap(({ blocks }) => blocks)]
  const automatic = limitMarks(marked, conversation.automaticCache, warnings)
  const { promptCacheOptions: cacheOptions } = conversation
  const isUnmarked = !automatic && marked.every(({ mark }) => mark === undefined)
  if (rules.cachesOnlyMarked && cacheOptions && !cacheOptions.onlyMarked && isUnmarked) {
    warnings.add('prompt_cache_options_dropped', '/prompt_cache_options')
  }
  // Requested from the first turn on: what precedes the messages must not change when thinking comes back.
  const dropStale = rules.thinkingBindingControls === true && isReasoning(thinking, {})
  const body = jsonObject({
    model: jsonString(target.upstreamModel),
    max_tokens: String(maxTokens),
    stream: String(!target.wantsWhole),
    system: filledArray(system.map(writeBlock)),
    tools: filledArray(tools.map(writeTool)),
    tool_choice: toolChoice,
    thinking: writeThinking(thinking, dropStale),
    output_config: filledObject({ effort: jsonString(thinking.effort), format: output.format }),
    ...sampling,
    stop_sequences: stop.json,
    ...serving,
    cache_control: writeCacheControl(automatic),
    messages: writeMessages(messages),
  })
  const mapping: ReplyMapping = {
    toolNames: names.callerNames,
    argumentNames: context.argumentNames.callerNames,
    customTools: customNames(offer.tools),
    jsonTool: output.tool?.name,
    stop: stop.matched,
  }
  const betas = [...(dropStale ? [bindingBeta] : []), ...(serving.speed === undefined ? [] : [fastBeta])]
  const headers = betas.length > 0 ? { ...plainHeaders, 'anthropic-beta': betas.join(',') } : plainHeaders
  return renderedRequest(withEscapedHalves(body), warnings.list, mapping, headers)
}

function renderHistory(conversation: Conversation, target: Target, context: HistoryContext): WireMessage[] {
  const { rules, issuer } = target
  const { warnings } = context
  const { toolIdPattern: pattern = idRule.pattern, toolIdMax: max = idRule.max } = rules
  const paired = pairTools(conversation.turns, { pattern, max }, warnings)
  const messages = renderMessages(restoreThinking(paired, issuer, warnings), context)
  checkPrefill(messages, rules, conversation)
  return messages
}

function outputCap(conversation: Conversation, target: Target, warnings: WarningList): number {
  const { defaultOutputCap, maxOutputTokens } = target
  const wanted = conversation.outputCap ?? defaultOutputCap ?? maxOutputTokens ?? usualOutputCap
  if (maxOutputTokens === undefined || wanted <= maxOutputTokens) return wanted
  if (conversation.outputCap !== undefined) warnings.add('max_tokens_clamped', pointerTo(conversation, 'outputCap'))
  return maxOutputTokens
}

/** A lone surrogate has no UTF-8 bytes; inside JSON it can only be written as an escape. */
function withEscapedHalves(body: RawJson): RawJson {
  const lone = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g
  return body.isWellFormed() ? body : body.replaceAll(lone, (half) => `\\u${half.charCodeAt(0).toString(16)}`)
}

// Sampling, stop sequences, end user, tier and output format, as far as the target supports them.

const samplingRows: readonly SamplingRow[] = [
  { setting: 'frequencyPenalty' },
  { setting: 'presencePenalty' },
  { setting: 'seed' },
  { setting: 'logitBias' },
  { setting: 'temperature', member: 'temperature' },
  // From 0.99 on, top_p makes no difference here.
  { setting: 'topP', member: 'top_p', isDefault: (value) => Number(value) >= 0.99 },
  { setting: 'topK', member: 'top_k', when: ({ topK }) => topK !== false },
]

/** The documented limit of `user_id` (2026-11). */
const userIdUsualMax = 256

function renderServing(conversation: Conversation, rules: TargetRules, warnings: WarningList): Members {
  const { serviceTier, endUserId } = conversation
  const word = serviceTier && tierWordsOf(rules, hostTiers)[serviceTier]
  if (serviceTier && word === undefined && serviceTier !== 'auto' && serviceTier !== 'standard') {
    warnings.add('service_tier_dropped', pointerTo(conversation, 'serviceTier'))
  }
  const max = rules.endUserIdMax ?? userIdUsualMax
  const userId = endUserId && endUserId.length > max ? hashedId(endUserId, max) : endUserId
  return {
    metadata: userId ? jsonObject({ user_id: jsonString(userId) }) : undefined,
    [word === fastSpeed ? 'speed' : 'service_tier']: jsonString(word),
  }
}

/** The provider refuses blank sequences. `matched`: all sequences, if the target cannot match them itself. */
function renderStop(conversation: Conversation, { stopMax }: TargetRules, warnings: WarningList) {
  const kept = conversation.stop.filter((sequence) => sequence.trim() !== '')
  if (kept.length < conversation.stop.length) warnings.add('stop_dropped', pointerTo(conversation, 'stop'))
  const sent = kept.slice(0, stopMax)
  return { json: filledArray(sent.map(jsonString)), matched: sent.length < kept.length ? kept : [] }
}

// The output format: a schema that the provider enforces, or a tool of ours that the model must call with the answer.

/**
 * A native schema counts against the budget of strict tools, so it is chosen before them. `mustCallOwn`: the model must
 * call one of several tools of the caller's, and could call ours instead.
 */
function chooseOutput(
  conversation: Conversation,
  context: ToolContext,
  mustCallOwn: boolean,
): { readonly format?: RawJson; readonly tool?: WireTool } {
  const { rules, warnings } = context
  const format = conversation.outputFormat
  if (format?.kind !== 'json-schema') return {}
  const pointer = pointerTo(conversation, 'outputFormat')
  const byTool = () => ({ tool: jsonTool(format, pointer, context) })
  if (rules.jsonOutput !== undefined && rules.jsonOutput !== 'schema') {
    if (rules.forcedToolChoice === false) refuseAt(pointer, 'This model cannot be held to a JSON schema.')
    return byTool()
  }
  const result = subsetSchema(format.schema, context.merges)
  const isTaken = 'schema' in result && (!result.tightened || mustCallOwn) && context.strictBudget.take(result.schema)
  // A tool accepts objects with any fields and recursive schemas, and is not compiled by the provider.
  const canBeTool = !isTaken && rules.forcedToolChoice !== false && !('why' in result && !result.isValid)
  const input = canBeTool ? toolSchema(format) : undefined
  if (typeof input === 'object') {
    if (format.strict) warnings.add('strict_dropped', pointer)
    if (input.folded) warnings.add('output_schema_loosened', pointer)
    return byTool()
  }
  if ('why' in result) return refuseAt(pointer, `The schema of the output format cannot be used: ${result.why}.`)
  if (format.description) warnings.add('description_dropped', pointer)
  if (result.loosened) warnings.add('output_schema_loosened', pointer)
  if (result.tightened) warnings.add('output_schema_tightened', pointer)
  return { format: jsonObject({ type: '"json_schema"', schema: result.schema }) }
}

// Renders tools and the tool choice. Tools are functions with an object schema. A custom tool becomes a function with
// one string argument, and its calls are mapped back in the reply.

interface WireTool {
  /** The caller's name. */
  readonly name: string
  readonly members: Members
  mark: CacheMark | undefined
}

interface ToolContext {
  readonly rules: TargetRules
  readonly names: ToolNames
  readonly argumentNames: ArgumentNames
  readonly warnings: WarningList
  /** The budget left for strict tools after the output format. */
  readonly strictBudget: StrictBudget
  readonly merges: MergeBudget
}

function renderTools(tools: readonly Tool[], context: ToolContext): WireTool[] {
  refuseTooMany(tools.length, context.rules.toolsMax)
  refuseTwice(tools)
  return tools.map((tool, i) => {
    if (tool.kind === 'function') return renderFunction(tool, tool.pointer ?? `/tools/${i}`, context)
    const description = describedGrammar(tool, context.warnings)
    return wireTool({ ...tool, description, schema: customToolSchema }, context)
  })
}

function renderFunction(tool: FunctionTool, pointer: string, context: ToolContext): WireTool {
  const { rules, warnings, strictBudget, merges } = context
  const merged = toolSchema(tool)
  if (typeof merged === 'string')
    return refuseAt(pointer, `The tool ${shownWord(tool.name)} cannot be used: ${merged}.`)
  const { schema, description, folded } = merged
  if (folded) warnings.add('tool_schema_merged', pointer)
  const strict =
    tool.strict === true && rules.strictTools === true && fitsSubset(schema, merges) && strictBudget.takeTool(schema)
  if (tool.strict && !strict) warnings.add('strict_dropped', pointer)
  return wireTool({ ...tool, description, schema, strict }, context)
}

/** The tool that emulates a JSON output format for models without schema support. */
function jsonTool(
  { schema, description }: OutputFormat & { readonly kind: 'json-schema' },
  pointer: string,
  context: ToolContext,
): WireTool {
  const purpose = description || 'Call this tool to answer; its input is the answer.'
  const merged = toolSchema({ schema, description: purpose })
  if (typeof merged === 'string')
    return refuseAt(pointer, `The output format cannot be used with this model: ${merged}.`)
  return wireTool({ name: context.names.unused('json'), ...merged }, context)
}

function wireTool(
  tool: Pick<Tool, 'name' | 'description' | 'cacheMark'> & { readonly schema: RawJson; readonly strict?: boolean },
  { names, argumentNames }: ToolContext,
): WireTool {
  const sent = names.sent(tool.name)
  const members = {
    name: jsonString(sent),
    description: jsonString(tool.description || undefined),
    input_schema: argumentNames.inSchema(sent, tool.schema),
    strict: tool.strict ? 'true' : undefined,
  }
  return { name: tool.name, members, mark: tool.cacheMark }
}

function writeTool({ members, mark }: WireTool): RawJson {
  return jsonObject({ ...members, cache_control: writeCacheControl(mark) })
}

// The tool choice, and how many calls at once. A model that cannot be forced is left free, with a warning.

/** `thinking`: the kind of reasoning that excludes forcing is requested. */
function relaxChoice(
  choice: ToolChoice | undefined,
  { rules, thinking }: { rules: TargetRules; thinking: boolean },
  warnings: WarningList,
): ToolChoice | undefined {
  if (!isForced(choice) || (rules.forcedToolChoice !== false && !thinking)) return choice
  warnings.add('tool_choice_relaxed', '/tool_choice')
  return { kind: 'auto' }
}

/** A call of any of several caller's tools is required. */
function demandsOneOfSeveral({ tools, choice }: ToolOffer): boolean {
  return choice?.kind === 'required' && tools.length > 1
}

/** The answer must be a call of the tool `json`; the caller's tools may still be called before. */
function jsonToolChoice(offer: ToolOffer, json: string, warnings: WarningList): ToolChoice {
  const { tools, choice } = offer
  const [only] = tools
  if (choice?.kind === 'required' && tools.length === 1 && only) return { kind: 'named', name: only.name }
  // The model may answer at once, because the answering tool is among those it must choose from.
  if (demandsOneOfSeveral(offer)) warnings.add('tool_choice_relaxed', '/tool_choice')
  if (choice && isForced(choice)) return choice
  return tools.length > 0 && choice?.kind !== 'none' ? { kind: 'required' } : { kind: 'named', name: json }
}

const choiceTypes = { auto: '"auto"', none: '"none"', required: '"any"', named: '"tool"', allowed: '"auto"' }

function writeChoice(
  choice: ToolChoice | undefined,
  { conversation, tools, context }: { conversation: Conversation; tools: readonly WireTool[]; context: ToolContext },
): RawJson | undefined {
  const isSingle = wantsSingleCall(conversation, { tools, choice })
  if (tools.length === 0 || (!choice && !isSingle)) return undefined
  return jsonObject({
    type: choiceTypes[choice?.kind ?? 'auto'],
    name: choice?.kind === 'named' ? jsonString(context.names.sent(choice.name)) : undefined,
    disable_parallel_tool_use: isSingle ? 'true' : undefined,
  })
}

// Limits for all strict schemas of a request together. The provider compiles them into one grammar and refuses a
// request beyond these numbers (docs of 2026-11).

class StrictBudget {
  #tools = 20
  #optional = 24
  #unions = 16

  /** Returns false, and takes nothing, if it would exceed the limit. */
  takeTool(schema: RawJson): boolean {
    if (this.#tools === 0 || !this.take(schema)) return false
    this.#tools--
    return true
  }

  /** For the schema of the output format. */
  take(schema: RawJson): boolean {
    const { optional, unions } = costOf(schema)
    if (optional > this.#optional || unions > this.#unions) return false
    this.#optional -= optional
    this.#unions -= unions
    return true
  }
}

/** Counts optional fields and unions, at any depth. */
function costOf(schema: RawJson): { optional: number; unions: number } {
  let optional = 0
  let unions = 0
  for (const { properties, required, anyOf, type } of schemasIn(parseJson(schema), holders)) {
    const needed = new Set(listOf(required))
    optional += Object.keys(recordOf(properties)).filter((name) => !needed.has(name)).length
    if (anyOf !== undefined || Array.isArray(type)) unions++
  }
  return { optional, unions }
}
