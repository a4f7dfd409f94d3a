// Renders tools and the tool choice. Entries are flat in this dialect, and `strict` is always explicit, because the
// provider tries to be strict by default.

import { type Conversation, type CustomTool, placeOf, type RawJson, type Tool } from '../../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString, rawJsonAt } from '../../canonical/json.ts'
import { refuseAt } from '../../request/fields.ts'
import { functionParameters } from '../../request/schema.ts'
import {
  customToolParameters,
  isStrictFunction,
  offeredTools,
  refuseForcedChoice,
  type ToolOffer,
} from '../../request/tools.ts'
import { paramOf } from '../../request/warnings.ts'
import { type Rendering, takesCustom } from './context.ts'

const toolsMaxDefault = 128

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
  const offer = offeredTools(conversation, rules.allowedTools !== false, warnings)
  const { tools, choice } = offer
  if (tools.length === 0) {
    refuseForcedChoice(choice)
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

function customAsFunctions({ tools }: ToolOffer, { rules }: Rendering): ReadonlySet<string> {
  if (takesCustom(rules)) return new Set()
  return new Set(tools.filter(({ kind }) => kind === 'custom').map(({ name }) => name))
}

function renderTool(tool: Tool, rendering: Rendering): RawJson {
  if (tool.kind === 'custom') return renderCustom(tool, rendering)
  const { parameters, description } = functionParameters(tool, rendering)
  return renderFunction({ ...tool, description }, parameters, isStrictFunction(tool, parameters, rendering), rendering)
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

function renderCustom(tool: CustomTool, rendering: Rendering): RawJson {
  const { grammar, name, place = '/tools' } = tool
  if (takesCustom(rendering.rules)) {
    const format = grammar === undefined ? undefined : renderGrammar(grammar)
    return jsonObject([['type', '"custom"'], ...nameMembers(tool, rendering), ['format', format]])
  }
  if (grammar !== undefined) {
    return refuseAt(place, `\`${paramOf(place)}\` (${name}) has a grammar, which this model cannot follow.`)
  }
  return renderFunction(tool, customToolParameters, false, rendering)
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

export function renderChoice({ tools, choice }: ToolOffer, rendering: Rendering): RawJson | undefined {
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
