// Renders tools and the tool choice. Tools are functions with an object schema. A custom tool becomes a function with
// one string argument, and its calls are mapped back in the reply.

import { JsonNode } from '../../../wire/json-node.ts'
import {
  type CacheMark,
  type Conversation,
  type FunctionTool,
  type OutputFormat,
  placeOf,
  type RawJson,
  type Tool,
} from '../../canonical/conversation.ts'
import { jsonMembers, jsonObject, jsonString } from '../../canonical/json.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import { writeCacheControl } from '../../request/cache-marks.ts'
import { refuseAt, shownWord } from '../../request/fields.ts'
import { toolSchema } from '../../request/schema.ts'
import type { ArgumentNames, ToolNames } from '../../request/tools.ts'
import type { WarningList } from '../../request/warnings.ts'
import { fitsSubset, type MergeBudget, schemasIn } from './schema.ts'

export interface WireTool {
  /** The caller's name. */
  readonly name: string
  readonly members: readonly (readonly [name: string, value: RawJson | undefined])[]
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

export function renderTools(tools: readonly Tool[], context: ToolContext): WireTool[] {
  const { toolsMax } = context.rules
  if (toolsMax !== undefined && tools.length > toolsMax) {
    refuseAt('/tools', `This model takes at most ${toolsMax} tools; the request has ${tools.length}.`)
  }
  const seen = new Set<string>()
  return tools.map((tool, i) => {
    const place = tool.place ?? `/tools/${i}`
    if (seen.has(tool.name)) refuseAt(place, `The tool ${shownWord(tool.name)} stands twice in \`tools\`.`)
    seen.add(tool.name)
    if (tool.kind === 'function') return renderFunction(tool, place, context)
    if (tool.grammar !== undefined) {
      refuseAt(place, `The grammar of the custom tool ${shownWord(tool.name)} cannot be enforced by this model.`)
    }
    return wireTool(tool, inputOnly, tool.description, context)
  })
}

const inputOnly = '{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}'

function renderFunction(tool: FunctionTool, place: string, context: ToolContext): WireTool {
  const { rules, warnings, strictBudget, merges } = context
  const { schema, note } = objectSchema(tool, place, warnings)
  const wanted = tool.strict === true
  const strict = wanted && rules.strictTools === true && fitsSubset(schema, merges) && strictBudget.takeTool(schema)
  if (wanted && !strict) warnings.add('strict_dropped', place)
  const description = note === undefined ? tool.description : [tool.description, note].filter(Boolean).join('\n\n')
  const rendered = wireTool(tool, schema, description, context)
  return strict ? { ...rendered, members: [...rendered.members, ['strict', 'true']] } : rendered
}

function objectSchema(tool: FunctionTool, place: string, warnings: WarningList): { schema: RawJson; note?: string } {
  const result = toolSchema(tool.schema)
  if (typeof result === 'string') return refuseAt(place, `The tool ${shownWord(tool.name)} cannot be used: ${result}.`)
  if (result.folded) warnings.add('tool_schema_merged', place)
  return result
}

function wireTool(
  tool: Tool,
  schema: RawJson,
  description: string | undefined,
  { names, argumentNames }: ToolContext,
): WireTool {
  const name = names.sent(tool.name)
  return {
    name: tool.name,
    members: [
      ['name', jsonString(name)],
      ['description', description ? jsonString(description) : undefined],
      ['input_schema', argumentNames.inSchema(name, schema)],
    ],
    mark: tool.cacheMark,
  }
}

/** The tool that emulates a JSON output format for models without schema support. */
export function jsonTool(
  { schema, description }: OutputFormat & { readonly kind: 'json-schema' },
  place: string,
  { names, argumentNames }: ToolContext,
): WireTool {
  const name = names.unused('json')
  const result = toolSchema(schema)
  if (typeof result === 'string') return refuseAt(place, `The output format cannot be used with this model: ${result}.`)
  const text = [description || 'Call this tool to answer; its input is the answer.', result.note].filter(Boolean)
  return {
    name,
    members: [
      ['name', jsonString(name)],
      ['description', jsonString(text.join('\n\n'))],
      ['input_schema', argumentNames.inSchema(name, result.schema)],
    ],
    mark: undefined,
  }
}

export function writeTool({ members, mark }: WireTool): RawJson {
  return jsonMembers([...members, ['cache_control', writeCacheControl(mark)]])
}

// The tool choice, and how many calls at once. A model that cannot be forced is left free, with a warning.

export interface WireChoice {
  readonly type: 'auto' | 'any' | 'tool' | 'none'
  /** The caller's name. */
  readonly name?: string
}

/** The offered tools: all, unless the caller allowed only some. */
export function offeredTools({ tools, toolChoice }: Conversation, warnings: WarningList): readonly Tool[] {
  if (toolChoice?.kind !== 'allowed') return tools
  const allowed = new Set(toolChoice.names)
  const offered = tools.filter(({ name }) => allowed.has(name))
  if (offered.length === 0) refuseAt('/tool_choice', '`tool_choice` allows none of the tools in `tools`.')
  // This changes the prompt prefix, and with it what is cached and what thinking is bound to.
  if (offered.length < tools.length) warnings.add('tools_filtered', '/tool_choice')
  return offered
}

/** undefined = omit it; the model is free to call any offered tool. */
export function chooseTool(conversation: Conversation, offered: readonly Tool[]): WireChoice | undefined {
  const { toolChoice } = conversation
  if (offered.length === 0) {
    if (toolChoice?.kind === 'required' || toolChoice?.kind === 'named') {
      refuseAt('/tool_choice', '`tool_choice` demands a tool call, but there are no `tools`.')
    }
    return undefined
  }
  switch (toolChoice?.kind) {
    case undefined:
      return undefined
    case 'auto':
    case 'none':
      return { type: toolChoice.kind }
    case 'required':
      return { type: 'any' }
    case 'named':
      if (offered.some(({ name }) => name === toolChoice.name)) return { type: 'tool', name: toolChoice.name }
      return refuseAt(
        '/tool_choice',
        `\`tool_choice\` names ${shownWord(toolChoice.name)}, which is not among the tools.`,
      )
    case 'allowed': {
      if (!toolChoice.force) return { type: 'auto' }
      const [only] = offered
      return offered.length === 1 && only ? { type: 'tool', name: only.name } : { type: 'any' }
    }
  }
}

function isForced(choice: WireChoice | undefined): boolean {
  return choice?.type === 'any' || choice?.type === 'tool'
}

/** `thinking`: the kind of reasoning that excludes forcing is requested. */
export function relaxChoice(
  choice: WireChoice | undefined,
  { rules, thinking }: { rules: TargetRules; thinking: boolean },
  warnings: WarningList,
): WireChoice | undefined {
  if (!isForced(choice) || (rules.forcedToolChoice !== false && !thinking)) return choice
  warnings.add('tool_choice_relaxed', '/tool_choice')
  return { type: 'auto' }
}

/** A call of any of several caller's tools is required. */
export function demandsOneOfSeveral(wanted: WireChoice | undefined, offered: readonly Tool[]): boolean {
  return wanted?.type === 'any' && offered.length > 1
}

/** The answer must be a call of the tool `json`; the caller's tools may still be called before. */
export function jsonToolChoice(
  wanted: WireChoice | undefined,
  json: string,
  { offered, warnings }: { offered: readonly Tool[]; warnings: WarningList },
): WireChoice {
  const [only] = offered
  if (wanted?.type === 'any' && offered.length === 1 && only) return { type: 'tool', name: only.name }
  // The model may answer at once, because the answering tool is among those it must choose from.
  if (demandsOneOfSeveral(wanted, offered)) warnings.add('tool_choice_relaxed', '/tool_choice')
  if (wanted && isForced(wanted)) return wanted
  return offered.length > 0 && wanted?.type !== 'none' ? { type: 'any' } : { type: 'tool', name: json }
}

/** `single`: the provider cannot be limited to one call, so only the first is passed on. */
export function writeChoice(
  choice: WireChoice | undefined,
  { conversation, tools, context }: { conversation: Conversation; tools: readonly WireTool[]; context: ToolContext },
): { json: RawJson | undefined; single: boolean } {
  const { rules, names, warnings } = context
  const one = conversation.parallelTools === false && tools.length > 0 && choice?.type !== 'none'
  const single = one && rules.parallelFlag === false
  // Nothing is lost if the caller's response format has room for one call only.
  if (single && !conversation.oneCallByForm) {
    warnings.add('parallel_tool_calls_emulated', placeOf(conversation, 'parallelTools'))
  }
  const flagged = one && !single
  if (!choice && !flagged) return { json: undefined, single }
  const json = jsonObject({
    type: jsonString(choice?.type ?? 'auto'),
    name: choice?.name === undefined ? undefined : jsonString(names.sent(choice.name)),
    disable_parallel_tool_use: flagged ? 'true' : undefined,
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
  for (const node of schemasIn(JsonNode.of(schema))) {
    const required = new Set(
      node
        .member('required')
        ?.elements()
        ?.map(({ text }) => JSON.parse(text) as unknown),
    )
    const fields = node.member('properties')?.members() ?? []
    optional += fields.filter(([name]) => !required.has(name)).length
    if (node.member('anyOf') || node.member('type')?.elements()) unions++
  }
  return { optional, unions }
}
