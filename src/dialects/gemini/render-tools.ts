// Tools as function declarations, and which of them may or must be called. A tool for free text becomes a function with
// one string, which the reply is read back from.

import { type Conversation, placeOf, type RawJson, type Tool } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import { refuseAt, shownWord } from '../request/fields.ts'
import { chooseMode, offeredTools } from './render-tool-choice.ts'
import type { Rendering } from './rendering.ts'
import { toolParameters } from './tool-parameters.ts'

/** Declarations in one request (docs of 2026-11). */
const toolsMaxDefault = 512

const inputOnly = '{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}'

/** A function of the gateway's own that the answer is to be given through. */
export interface HiddenTool {
  readonly name: string
  readonly parameters: RawJson
  readonly description: string
}

export interface RenderedTools {
  readonly tools: RawJson | undefined
  readonly toolConfig: RawJson | undefined
  /** The caller's names of custom tools that go out as functions. */
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
  // Where the form of the answer has room for one call only, nothing is lost by it.
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

/** A function without parameters has no schema at all. */
function declaration(name: string, description: string | undefined, parameters: RawJson | undefined): RawJson {
  return jsonObject([
    ['name', jsonString(name)],
    ['description', description ? jsonString(description) : undefined],
    ['parametersJsonSchema', parameters],
  ])
}
