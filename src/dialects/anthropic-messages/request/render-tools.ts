// Renders tools and the tool choice. Tools are functions with an object schema. A custom tool becomes a function with
// one string argument, and its calls are mapped back in the reply.

import {
  type CacheMark,
  type Conversation,
  type FunctionTool,
  type OutputFormat,
  placeOf,
  type RawJson,
  type Tool,
  type ToolChoice,
} from '../../canonical/conversation.ts'
import { jsonObject, jsonString, type Members, parseJson, recordOf } from '../../canonical/json.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import { writeCacheControl } from '../../request/cache-marks.ts'
import { refuseAt, shownWord } from '../../request/fields.ts'
import { schemasIn, toolSchema } from '../../request/schema.ts'
import {
  type ArgumentNames,
  describedGrammar,
  isForced,
  refuseTooMany,
  refuseTwice,
  type ToolNames,
  type ToolOffer,
} from '../../request/tools.ts'
import type { WarningList } from '../../request/warnings.ts'
import { fitsSubset, holders, type MergeBudget } from './schema.ts'

export interface WireTool {
  /** The caller's name. */
  readonly name: string
  readonly members: Members
  mark: CacheMark | undefined
}

export interface ToolContext {
  readonly rules: TargetRules
  readonly names: ToolNames
  readonly argumentNames: ArgumentNames
  readonly warnings: WarningList
  /** The budget left for strict tools after the output format. */
  readonly strictBudget: StrictBudget
  readonly merges: MergeBudget
}

const inputOnly = '{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}'

export function renderTools(tools: readonly Tool[], context: ToolContext): WireTool[] {
  refuseTooMany(tools.length, context.rules.toolsMax)
  refuseTwice(tools)
  return tools.map((tool, i) => {
    if (tool.kind === 'function') return renderFunction(tool, tool.place ?? `/tools/${i}`, context)
    const description = describedGrammar(tool, context.warnings)
    return wireTool({ ...tool, description, schema: inputOnly }, context)
  })
}

function renderFunction(tool: FunctionTool, place: string, context: ToolContext): WireTool {
  const { rules, warnings, strictBudget, merges } = context
  const merged = toolSchema(tool)
  if (typeof merged === 'string') return refuseAt(place, `The tool ${shownWord(tool.name)} cannot be used: ${merged}.`)
  const { schema, description, folded } = merged
  if (folded) warnings.add('tool_schema_merged', place)
  const strict =
    tool.strict === true && rules.strictTools === true && fitsSubset(schema, merges) && strictBudget.takeTool(schema)
  if (tool.strict && !strict) warnings.add('strict_dropped', place)
  return wireTool({ ...tool, description, schema, strict }, context)
}

/** The tool that emulates a JSON output format for models without schema support. */
export function jsonTool(
  { schema, description }: OutputFormat & { readonly kind: 'json-schema' },
  place: string,
  context: ToolContext,
): WireTool {
  const purpose = description || 'Call this tool to answer; its input is the answer.'
  const merged = toolSchema({ schema, description: purpose })
  if (typeof merged === 'string') return refuseAt(place, `The output format cannot be used with this model: ${merged}.`)
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

export function writeTool({ members, mark }: WireTool): RawJson {
  return jsonObject({ ...members, cache_control: writeCacheControl(mark) })
}

// The tool choice, and how many calls at once. A model that cannot be forced is left free, with a warning.

/** `thinking`: the kind of reasoning that excludes forcing is requested. */
export function relaxChoice(
  choice: ToolChoice | undefined,
  { rules, thinking }: { rules: TargetRules; thinking: boolean },
  warnings: WarningList,
): ToolChoice | undefined {
  if (!isForced(choice) || (rules.forcedToolChoice !== false && !thinking)) return choice
  warnings.add('tool_choice_relaxed', '/tool_choice')
  return { kind: 'auto' }
}

/** A call of any of several caller's tools is required. */
export function demandsOneOfSeveral({ tools, choice }: ToolOffer): boolean {
  return choice?.kind === 'required' && tools.length > 1
}

/** The answer must be a call of the tool `json`; the caller's tools may still be called before. */
export function jsonToolChoice(offer: ToolOffer, json: string, warnings: WarningList): ToolChoice {
  const { tools, choice } = offer
  const [only] = tools
  if (choice?.kind === 'required' && tools.length === 1 && only) return { kind: 'named', name: only.name }
  // The model may answer at once, because the answering tool is among those it must choose from.
  if (demandsOneOfSeveral(offer)) warnings.add('tool_choice_relaxed', '/tool_choice')
  if (choice && isForced(choice)) return choice
  return tools.length > 0 && choice?.kind !== 'none' ? { kind: 'required' } : { kind: 'named', name: json }
}

const choiceTypes = { auto: '"auto"', none: '"none"', required: '"any"', named: '"tool"', allowed: '"auto"' }

/** `single`: the provider cannot be limited to one call, so only the first is passed on. */
export function writeChoice(
  choice: ToolChoice | undefined,
  { conversation, tools, context }: { conversation: Conversation; tools: readonly WireTool[]; context: ToolContext },
): { json: RawJson | undefined; single: boolean } {
  const { rules, names, warnings } = context
  const one = conversation.parallelTools === false && tools.length > 0 && choice?.kind !== 'none'
  const single = one && rules.parallelFlag === false
  // Nothing is lost if the caller's response format has room for one call only.
  if (single && !conversation.oneCallByForm) {
    warnings.add('parallel_tool_calls_emulated', placeOf(conversation, 'parallelTools'))
  }
  const isFlagged = one && !single
  if (tools.length === 0 || (!choice && !isFlagged)) return { json: undefined, single }
  const json = jsonObject({
    type: choiceTypes[choice?.kind ?? 'auto'],
    name: choice?.kind === 'named' ? jsonString(names.sent(choice.name)) : undefined,
    disable_parallel_tool_use: isFlagged ? 'true' : undefined,
  })
  return { json, single }
}

// Limits for all strict schemas of a request together. The provider compiles them into one grammar and refuses a
// request beyond these numbers (docs of 2026-11).

export class StrictBudget {
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
    const needed = new Set<unknown>(Array.isArray(required) ? required : [])
    optional += Object.keys(recordOf(properties)).filter((name) => !needed.has(name)).length
    if (anyOf !== undefined || Array.isArray(type)) unions++
  }
  return { optional, unions }
}
