// The tools of a request as the target can take them. Entries are flat in this dialect, and strictness is always spelled
// out: the provider tries to be strict where nothing is said.

import {
  type Conversation,
  type CustomTool,
  type FunctionTool,
  placeOf,
  type RawJson,
  type Tool,
  type ToolChoice,
} from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString, rawJsonAt } from '../canonical/json.ts'
import { refuseAt } from '../request/fields.ts'
import { functionParameters, isStrictSchema } from '../request/schema.ts'
import { paramOf } from '../request/warnings.ts'
import { type Offer, offerOf, renderChoice } from './render-tool-choice.ts'
import { type Rendering, takesCustom } from './rendering.ts'

const toolsMaxDefault = 128

/** A custom tool takes free text; as a function it takes one string. */
const inputParameters =
  '{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}'

export interface RenderedTools {
  readonly tools: RawJson | undefined
  readonly toolChoice: RawJson | undefined
  readonly parallelToolCalls: RawJson | undefined
  /** The caller's names of custom tools that go out as functions. */
  readonly customTools: ReadonlySet<string>
  readonly singleToolCall: boolean
}

const nothing: RenderedTools = {
  tools: undefined,
  toolChoice: undefined,
  parallelToolCalls: undefined,
  customTools: new Set(),
  singleToolCall: false,
}

export function renderTools(conversation: Conversation, rendering: Rendering): RenderedTools {
  const { rules, warnings } = rendering
  const offer = offerOf(conversation, rendering)
  const { tools, choice } = offer
  if (tools.length === 0) {
    refuseForced(choice)
    return nothing
  }
  const most = rules.toolsMax ?? toolsMaxDefault
  if (tools.length > most) {
    return refuseAt('/tools', `This model takes at most ${most} tools; the request has ${tools.length}.`)
  }
  const wantsOne = conversation.parallelTools === false && choice?.kind !== 'none'
  const hasFlag = rules.parallelFlag !== false
  if (wantsOne && !hasFlag) warnings.add('parallel_tools_dropped', placeOf(conversation, 'parallelTools'))
  return {
    tools: jsonArray(tools.map((tool) => renderTool(tool, rendering))),
    toolChoice: renderChoice(offer, rendering),
    parallelToolCalls: wantsOne && hasFlag ? 'false' : undefined,
    customTools: customAsFunctions(offer, rendering),
    singleToolCall: wantsOne && !hasFlag,
  }
}

function refuseForced(choice: ToolChoice | undefined): void {
  if (choice === undefined || choice.kind === 'auto' || choice.kind === 'none') return
  refuseAt('/tool_choice', '`tool_choice` demands a tool call, but the request offers no tools.')
}

function customAsFunctions({ tools }: Offer, { rules }: Rendering): ReadonlySet<string> {
  if (takesCustom(rules)) return new Set()
  return new Set(tools.filter(({ kind }) => kind === 'custom').map(({ name }) => name))
}

function renderTool(tool: Tool, rendering: Rendering): RawJson {
  if (tool.kind === 'custom') return renderCustom(tool, rendering)
  const { parameters, description } = functionParameters(tool, rendering)
  return renderFunction({ ...tool, description }, parameters, isStrict(tool, parameters, rendering), rendering)
}

function renderFunction(tool: Tool, parameters: RawJson, strict: boolean, rendering: Rendering): RawJson {
  return jsonObject([
    ['type', '"function"'],
    ...nameMembers(tool, rendering),
    ['parameters', parameters],
    ['strict', String(strict)],
  ])
}

function nameMembers({ name, description }: Tool, { names }: Rendering): (readonly [string, RawJson | undefined])[] {
  return [
    ['name', jsonString(names.sent(name))],
    ['description', description === undefined ? undefined : jsonString(description)],
  ]
}

function isStrict({ strict, place }: FunctionTool, parameters: RawJson, { rules, warnings }: Rendering): boolean {
  if (!strict) return false
  if (rules.strictTools !== false && isStrictSchema(parameters)) return true
  warnings.add('strict_dropped', `${place ?? '/tools'}/strict`)
  return false
}

function renderCustom(tool: CustomTool, rendering: Rendering): RawJson {
  const { grammar, name, place = '/tools' } = tool
  if (takesCustom(rendering.rules)) {
    const format = grammar === undefined ? undefined : renderGrammar(grammar)
    return jsonObject([['type', '"custom"'], ...nameMembers(tool, rendering), ['format', format]])
  }
  if (grammar !== undefined) {
    return refuseAt(place, `\`${paramOf(place)}\` (${name}) has a grammar, which this model cannot follow.`)
  }
  return renderFunction(tool, inputParameters, false, rendering)
}

/** Other dialects wrap what defines the grammar into an object of its own; here it stands beside the type. */
function renderGrammar(grammar: RawJson): RawJson {
  const inside = (name: string) => rawJsonAt(grammar, ['grammar', name]) ?? rawJsonAt(grammar, [name])
  return jsonObject([
    ['type', '"grammar"'],
    ['syntax', inside('syntax')],
    ['definition', inside('definition')],
  ])
}
