// Renders tools and the tool choice.

import type { Conversation, RawJson, Tool } from '../../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../../canonical/json.ts'
import { refuseAt, shownWord } from '../../request/fields.ts'
import { functionParameters } from '../../request/schema.ts'
import {
  customToolParameters,
  isStrictFunction,
  offeredTools,
  refuseForcedChoice,
  type ToolOffer,
} from '../../request/tools.ts'
import { paramOf } from '../../request/warnings.ts'
import type { Rendering } from './context.ts'

const hiddenPurpose = 'Gives the final answer. Call it once, when the answer is complete.'

/** A tool added by the gateway, through which the model gives a JSON answer. */
export interface HiddenTool {
  readonly name: string
  readonly schema: RawJson
}

export interface RenderedTools {
  readonly tools: RawJson | undefined
  readonly toolChoice: RawJson | undefined
  readonly parallelToolCalls: RawJson | undefined
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
  const offer = offeredTools(conversation, rules.allowedTools === true, warnings)
  const { tools, choice } = offer
  refuseTooMany(tools.length + (hidden ? 1 : 0), rendering)
  const rendered = tools.map((tool) => renderTool(tool, rendering))
  if (hidden) rendered.push(renderHidden(hidden, rendering))
  if (tools.length === 0) refuseForcedChoice(choice)
  const wantsOne = conversation.parallelTools === false && tools.length > 0 && choice?.kind !== 'none'
  const hasFlag = rules.parallelFlag !== false
  if (wantsOne && !hasFlag) {
    warnings.add('parallel_tools_dropped', conversation.places?.parallelTools ?? '/parallel_tool_calls')
  }
  return {
    tools: rendered.length === 0 ? undefined : jsonArray(rendered),
    toolChoice:
      rendered.length === 0
        ? undefined
        : hidden
          ? hiddenChoice(offer, hidden, rendering)
          : renderChoice(offer, rendering),
    parallelToolCalls: wantsOne && hasFlag ? 'false' : undefined,
    customTools: new Set(tools.filter(({ kind }) => kind === 'custom' && !rules.customTools).map(({ name }) => name)),
    singleToolCall: wantsOne && !hasFlag,
  }
}

function refuseTooMany(count: number, { rules: { toolsMax: most } }: Rendering): void {
  if (most !== undefined && count > most)
    refuseAt('/tools', `This model takes at most ${most} tools; the request has ${count}.`)
}

function renderTool(tool: Tool, rendering: Rendering): RawJson {
  const { rules, names, marks } = rendering
  const name = jsonString(names.sent(tool.name))
  if (tool.kind === 'function') {
    const { parameters, description } = functionParameters(tool, rendering)
    return wrapped('function', marks.memberOf(tool), [
      ['name', name],
      ['description', textOf(description)],
      ['parameters', parameters],
      ['strict', isStrictFunction(tool, parameters, rendering) ? 'true' : undefined],
    ])
  }
  const description = textOf(tool.description)
  if (rules.customTools) {
    return wrapped('custom', marks.memberOf(tool), [
      ['name', name],
      ['description', description],
      ['format', tool.grammar],
    ])
  }
  if (tool.grammar !== undefined) {
    const place = tool.place ?? '/tools'
    return refuseAt(
      place,
      `\`${paramOf(place)}\` (${shownWord(tool.name)}) has a grammar, which this model cannot follow.`,
    )
  }
  return wrapped('function', marks.memberOf(tool), [
    ['name', name],
    ['description', description],
    ['parameters', customToolParameters],
  ])
}

function textOf(description: string | undefined): RawJson | undefined {
  return description === undefined ? undefined : jsonString(description)
}

type Members = readonly (readonly [string, RawJson | undefined])[]

function wrapped(type: 'function' | 'custom', mark: Members[number], members: Members): RawJson {
  return jsonObject([['type', `"${type}"`], [type, jsonObject(members)], mark])
}

function renderHidden({ name, schema }: HiddenTool, rendering: Rendering): RawJson {
  const { parameters, description } = functionParameters(
    { schema, description: hiddenPurpose, place: '/response_format' },
    rendering,
  )
  return wrapped(
    'function',
    ['', undefined],
    [
      ['name', jsonString(name)],
      ['description', textOf(description)],
      ['parameters', parameters],
    ],
  )
}

function renderChoice({ tools, choice }: ToolOffer, rendering: Rendering): RawJson | undefined {
  if (choice === undefined) return undefined
  if (choice.kind === 'auto' || choice.kind === 'none') return jsonString(choice.kind)
  if (rendering.rules.forcedToolChoice === false && (choice.kind !== 'allowed' || choice.force)) {
    rendering.warnings.add('tool_choice_relaxed', '/tool_choice')
    return '"auto"'
  }
  if (choice.kind === 'named') return namedTool(choice.name, tools, rendering)
  if (choice.kind !== 'allowed') return '"required"'
  const offered = choice.names.filter((allowed) => tools.some(({ name }) => name === allowed))
  const allowed = jsonObject([
    ['mode', choice.force ? '"required"' : '"auto"'],
    ['tools', jsonArray(offered.map((name) => namedTool(name, tools, rendering)))],
  ])
  return jsonObject([
    ['type', '"allowed_tools"'],
    ['allowed_tools', allowed],
  ])
}

/** The answer must come through the hidden tool; the caller's tools stay callable as requested. */
function hiddenChoice({ tools, choice }: ToolOffer, hidden: HiddenTool, rendering: Rendering): RawJson {
  if (choice?.kind === 'named') return namedTool(choice.name, tools, rendering)
  if (tools.length > 0 && choice?.kind !== 'none') return '"required"'
  return jsonObject([
    ['type', '"function"'],
    ['function', jsonObject([['name', jsonString(hidden.name)]])],
  ])
}

function namedTool(name: string, tools: readonly Tool[], { rules, names }: Rendering): RawJson {
  const custom = rules.customTools && tools.some((tool) => tool.name === name && tool.kind === 'custom')
  const type = custom ? 'custom' : 'function'
  return jsonObject([
    ['type', `"${type}"`],
    [type, jsonObject([['name', jsonString(names.sent(name))]])],
  ])
}
