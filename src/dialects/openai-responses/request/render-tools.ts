// Renders tools and the tool choice. Entries are flat in this dialect, and `strict` is always explicit, because the
// provider tries to be strict by default.

import {
  type Conversation,
  type CustomTool,
  type FunctionTool,
  placeOf,
  type RawJson,
  type Tool,
  type ToolChoice,
} from '../../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString, rawJsonAt } from '../../canonical/json.ts'
import { refuseAt, shownWord } from '../../request/fields.ts'
import { functionParameters, isStrictSchema } from '../../request/schema.ts'
import { paramOf } from '../../request/warnings.ts'
import { type Rendering, takesCustom } from './context.ts'

const toolsMaxDefault = 128

/** Parameters of a custom tool that is sent as a function: one string. */
const inputParameters =
  '{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}'

export interface RenderedTools {
  readonly tools: RawJson | undefined
  readonly toolChoice: RawJson | undefined
  readonly parallelToolCalls: RawJson | undefined
  /** The caller's names of custom tools sent as functions. */
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

/** Other dialects wrap the grammar definition into an object; here it stands beside the type. */
function renderGrammar(grammar: RawJson): RawJson {
  const inside = (name: string) => rawJsonAt(grammar, ['grammar', name]) ?? rawJsonAt(grammar, [name])
  return jsonObject([
    ['type', '"grammar"'],
    ['syntax', inside('syntax')],
    ['definition', inside('definition')],
  ])
}

/** The tools and the choice after applying the target's rules. */
export interface Offer {
  readonly tools: readonly Tool[]
  readonly choice: ToolChoice | undefined
}

/** For hosts that cannot restrict the choice, the other tools are omitted. */
export function offerOf({ tools, toolChoice }: Conversation, { rules, warnings }: Rendering): Offer {
  if (toolChoice?.kind === 'named' && tools.length > 0 && !tools.some(({ name }) => name === toolChoice.name)) {
    return refuseAt(
      '/tool_choice',
      `\`tool_choice\` names ${shownWord(toolChoice.name)}, which is not among the tools.`,
    )
  }
  if (toolChoice?.kind !== 'allowed') return { tools, choice: toolChoice }
  const allowed = tools.filter(({ name }) => toolChoice.names.includes(name))
  if (allowed.length === 0) return refuseAt('/tool_choice', '`tool_choice` allows no tool that is offered.')
  if (rules.allowedTools !== false) return { tools, choice: toolChoice }
  if (allowed.length < tools.length) warnings.add('tools_filtered', '/tool_choice')
  if (!toolChoice.force) return { tools: allowed, choice: { kind: 'auto' } }
  const [only, ...more] = allowed
  const isOne = only !== undefined && more.length === 0
  return { tools: allowed, choice: isOne ? { kind: 'named', name: only.name } : { kind: 'required' } }
}

export function renderChoice({ tools, choice }: Offer, rendering: Rendering): RawJson | undefined {
  if (choice === undefined) return undefined
  if (choice.kind === 'auto' || choice.kind === 'none') return jsonString(choice.kind)
  const isForced = choice.kind !== 'allowed' || choice.force
  const isRelaxed = isForced && rendering.rules.forcedToolChoice === false
  if (isRelaxed) rendering.warnings.add('tool_choice_relaxed', '/tool_choice')
  if (choice.kind === 'allowed') {
    const offered = choice.names.filter((allowed) => tools.some(({ name }) => name === allowed))
    return jsonObject([
      ['type', '"allowed_tools"'],
      ['mode', choice.force && !isRelaxed ? '"required"' : '"auto"'],
      ['tools', jsonArray(offered.map((name) => named(name, tools, rendering)))],
    ])
  }
  if (isRelaxed) return '"auto"'
  return choice.kind === 'named' ? named(choice.name, tools, rendering) : '"required"'
}

function named(name: string, tools: readonly Tool[], { rules, names }: Rendering): RawJson {
  const isCustom = takesCustom(rules) && tools.some((tool) => tool.name === name && tool.kind === 'custom')
  return jsonObject([
    ['type', isCustom ? '"custom"' : '"function"'],
    ['name', jsonString(names.sent(name))],
  ])
}
