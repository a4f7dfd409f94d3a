// Which functions the model may or must call, as one of the provider's modes:
//
//   AUTO       as the model sees fit                       NONE   none
//   VALIDATED  the same, with arguments held to the schema and among the names given
//   ANY        some call must be made, among the names given

import type { Conversation, RawJson, Tool, ToolChoice } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import { refuseAt, shownWord } from '../request/fields.ts'
import type { Rendering } from './rendering.ts'

/** The tools that are declared: all, unless only some are allowed and the target has no way to say so. */
export function offeredTools({ tools, toolChoice }: Conversation, { rules, warnings }: Rendering): readonly Tool[] {
  if (toolChoice?.kind !== 'allowed') return tools
  const allowed = tools.filter(({ name }) => toolChoice.names.includes(name))
  if (allowed.length === 0) return refuseAt('/tool_choice', '`tool_choice` allows no tool that is offered.')
  if (rules.allowedTools !== false) return tools
  if (allowed.length < tools.length) warnings.add('tools_filtered', '/tool_choice')
  return allowed
}

/** undefined = nothing is said. `hidden`: the name of the function that stands for the answer. */
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

/** What is said where no call is demanded. */
function freeMode(choice: ToolChoice | undefined, tools: readonly Tool[], rendering: Rendering): RawJson | undefined {
  if (choice?.kind === 'none') return writeMode('NONE', undefined)
  // Arguments of a call that is demanded are held to the schema anyway.
  const strict = isForced(choice) ? false : heldToSchema(tools, rendering)
  const names = choice?.kind === 'allowed' ? chosenNames(choice, tools, rendering) : undefined
  if (strict || names) return writeMode('VALIDATED', names)
  return choice === undefined ? undefined : writeMode('AUTO', undefined)
}

/** Strictness is had for all tools or none. */
function heldToSchema(tools: readonly Tool[], { rules, warnings }: Rendering): boolean {
  const strict = tools.find((tool) => tool.kind === 'function' && tool.strict)
  if (!strict) return false
  if (rules.strictTools !== false) return true
  warnings.add('strict_dropped', `${strict.place ?? '/tools'}/strict`)
  return false
}

/** As they are sent; undefined = any of them. */
function chosenNames(
  choice: ToolChoice | undefined,
  tools: readonly Tool[],
  { names, rules }: Rendering,
): readonly string[] | undefined {
  if (choice?.kind === 'named') return [names.sent(choice.name)]
  if (choice?.kind !== 'allowed' || rules.allowedTools === false) return undefined
  return tools.flatMap(({ name }) => (choice.names.includes(name) ? [names.sent(name)] : []))
}

/** The answer must come through the hidden function, and the caller's own stay as callable as it wanted them. */
function hiddenMode(
  choice: ToolChoice | undefined,
  tools: readonly Tool[],
  hidden: string,
  rendering: Rendering,
): RawJson {
  if (tools.length === 0 || choice?.kind === 'none') return writeMode('ANY', [hidden])
  const names = chosenNames(choice, tools, rendering)
  // The hidden one would do for any call that is demanded, so that it is not among the names then.
  if (isForced(choice)) return writeMode('ANY', names ?? tools.map(({ name }) => rendering.names.sent(name)))
  return writeMode('ANY', names && [...names, hidden])
}

function writeMode(mode: 'AUTO' | 'NONE' | 'VALIDATED' | 'ANY', names: readonly string[] | undefined): RawJson {
  return jsonObject([
    ['mode', `"${mode}"`],
    ['allowedFunctionNames', names && jsonArray(names.map(jsonString))],
  ])
}
