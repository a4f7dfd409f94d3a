// Renders tools as function declarations, and the tool choice. A custom tool becomes a function with one string
// argument, and its calls are mapped back in the reply.

import { type Conversation, placeOf, type RawJson, type Tool, type ToolChoice } from '../../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../../canonical/json.ts'
import { refuseAt, shownWord } from '../../request/fields.ts'
import type { Rendering } from './context.ts'
import { toolParameters } from './schema.ts'

/** Declarations per request (docs of 2026-11). */
const toolsMaxDefault = 512

const inputOnly = '{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}'

/** A function added by the gateway, through which the model gives a JSON answer. */
export interface HiddenTool {
  readonly name: string
  readonly parameters: RawJson
  readonly description: string
}

export interface RenderedTools {
  readonly tools: RawJson | undefined
  readonly toolConfig: RawJson | undefined
  /** The caller's names of custom tools sent as functions. */
  readonly customTools: ReadonlySet<string>
  readonly singleToolCall: boolean
}

export function renderTools(
  conversation: Conversation,
  hidden: HiddenTool | undefined,
  rendering: Rendering,
): RenderedTools {
  const { rules, warnings } = rendering
  const tools = offeredTools(conversation, rendering)
  const count = tools.length + (hidden ? 1 : 0)
  const most = rules.toolsMax ?? toolsMaxDefault
  if (count > most) refuseAt('/tools', `This model takes at most ${most} tools; the request has ${count}.`)
  refuseTwice(tools)
  const declared = tools.map((tool) => renderTool(tool, rendering))
  if (hidden) declared.push(declaration(hidden.name, hidden.description, hidden.parameters))
  const mode = chooseMode(conversation, tools, hidden?.name, rendering)
  const single = conversation.parallelTools === false && tools.length > 0 && conversation.toolChoice?.kind !== 'none'
  // Nothing is lost if the caller's response format has room for one call only.
  if (single && !conversation.oneCallByForm) {
    warnings.add('parallel_tool_calls_emulated', placeOf(conversation, 'parallelTools'))
  }
  return {
    tools: count === 0 ? undefined : jsonArray([jsonObject([['functionDeclarations', jsonArray(declared)]])]),
    toolConfig: mode && jsonObject([['functionCallingConfig', mode]]),
    customTools: new Set(tools.flatMap(({ kind, name }) => (kind === 'custom' ? [name] : []))),
    singleToolCall: single,
  }
}

function refuseTwice(tools: readonly Tool[]): void {
  const seen = new Set<string>()
  for (const { name, place } of tools) {
    if (seen.has(name)) refuseAt(place ?? '/tools', `The tool ${shownWord(name)} stands twice in \`tools\`.`)
    seen.add(name)
  }
}

function renderTool(tool: Tool, { names, warnings, schemas }: Rendering): RawJson {
  const name = names.sent(tool.name)
  const place = tool.place ?? '/tools'
  if (tool.kind === 'custom') {
    if (tool.grammar !== undefined) {
      refuseAt(place, `The grammar of the custom tool ${shownWord(tool.name)} cannot be enforced by this model.`)
    }
    return declaration(name, tool.description, inputOnly)
  }
  const parameters = toolParameters(tool.schema, schemas)
  if (typeof parameters === 'string') refuseAt(place, `The tool ${shownWord(tool.name)} cannot be used: ${parameters}.`)
  if (parameters.loosened) warnings.add('tool_schema_loosened', place)
  return declaration(name, tool.description, parameters.schema)
}

/** A function without parameters has no schema. */
function declaration(name: string, description: string | undefined, parameters: RawJson | undefined): RawJson {
  return jsonObject([
    ['name', jsonString(name)],
    ['description', description ? jsonString(description) : undefined],
    ['parametersJsonSchema', parameters],
  ])
}

// The tool choice, as one of the provider's modes:
//
//   AUTO       the model decides
//   NONE       no calls
//   VALIDATED  like AUTO, with arguments that follow the schema, and only the given names
//   ANY        a call is required, of one of the given names

/** The declared tools: all, unless only some are allowed and the target cannot restrict the choice. */
export function offeredTools({ tools, toolChoice }: Conversation, { rules, warnings }: Rendering): readonly Tool[] {
  if (toolChoice?.kind !== 'allowed') return tools
  const allowed = tools.filter(({ name }) => toolChoice.names.includes(name))
  if (allowed.length === 0) return refuseAt('/tool_choice', '`tool_choice` allows no tool that is offered.')
  if (rules.allowedTools !== false) return tools
  if (allowed.length < tools.length) warnings.add('tools_filtered', '/tool_choice')
  return allowed
}

/** undefined = omit it. `hidden`: name of the function that carries the answer. */
export function chooseMode(
  { toolChoice }: Conversation,
  tools: readonly Tool[],
  hidden: string | undefined,
  rendering: Rendering,
): RawJson | undefined {
  refuseUnknown(toolChoice, tools)
  if (hidden !== undefined) return hiddenMode(toolChoice, tools, hidden, rendering)
  if (tools.length === 0) return undefined
  const free = freeMode(toolChoice, tools, rendering)
  const { rules, warnings } = rendering
  if (!isForced(toolChoice)) return free
  if (rules.forcedToolChoice !== false) return writeMode('ANY', chosenNames(toolChoice, tools, rendering))
  warnings.add('tool_choice_relaxed', '/tool_choice')
  return free
}

function refuseUnknown(choice: ToolChoice | undefined, tools: readonly Tool[]): void {
  if (tools.length === 0 && isForced(choice)) {
    refuseAt('/tool_choice', '`tool_choice` demands a tool call, but the request offers no tools.')
  }
  if (choice?.kind === 'named' && !tools.some(({ name }) => name === choice.name)) {
    refuseAt('/tool_choice', `\`tool_choice\` names ${shownWord(choice.name)}, which is not among the tools.`)
  }
}

function isForced(choice: ToolChoice | undefined): boolean {
  return choice?.kind === 'required' || choice?.kind === 'named' || (choice?.kind === 'allowed' && choice.force)
}

/** The mode if no call is required. */
function freeMode(choice: ToolChoice | undefined, tools: readonly Tool[], rendering: Rendering): RawJson | undefined {
  if (choice?.kind === 'none') return writeMode('NONE', undefined)
  // Arguments of a required call follow the schema anyway.
  const strict = isForced(choice) ? false : heldToSchema(tools, rendering)
  const names = choice?.kind === 'allowed' ? chosenNames(choice, tools, rendering) : undefined
  if (strict || names) return writeMode('VALIDATED', names)
  return choice === undefined ? undefined : writeMode('AUTO', undefined)
}

/** Strictness applies to all tools or none. */
function heldToSchema(tools: readonly Tool[], { rules, warnings }: Rendering): boolean {
  const strict = tools.find((tool) => tool.kind === 'function' && tool.strict)
  if (!strict) return false
  if (rules.strictTools !== false) return true
  warnings.add('strict_dropped', `${strict.place ?? '/tools'}/strict`)
  return false
}

/** Sent names; undefined = any tool. */
function chosenNames(
  choice: ToolChoice | undefined,
  tools: readonly Tool[],
  { names, rules }: Rendering,
): readonly string[] | undefined {
  if (choice?.kind === 'named') return [names.sent(choice.name)]
  if (choice?.kind !== 'allowed' || rules.allowedTools === false) return undefined
  return tools.flatMap(({ name }) => (choice.names.includes(name) ? [names.sent(name)] : []))
}

/** The answer must come through the hidden function; the caller's tools stay callable as requested. */
function hiddenMode(
  choice: ToolChoice | undefined,
  tools: readonly Tool[],
  hidden: string,
  rendering: Rendering,
): RawJson {
  if (tools.length === 0 || choice?.kind === 'none') return writeMode('ANY', [hidden])
  const names = chosenNames(choice, tools, rendering)
  // The hidden function would satisfy a required call, so it is excluded.
  if (isForced(choice)) return writeMode('ANY', names ?? tools.map(({ name }) => rendering.names.sent(name)))
  return writeMode('ANY', names && [...names, hidden])
}

function writeMode(mode: 'AUTO' | 'NONE' | 'VALIDATED' | 'ANY', names: readonly string[] | undefined): RawJson {
  return jsonObject([
    ['mode', `"${mode}"`],
    ['allowedFunctionNames', names && jsonArray(names.map(jsonString))],
  ])
}
