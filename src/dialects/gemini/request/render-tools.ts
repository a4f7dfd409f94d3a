// Renders tools as function declarations, and the tool choice. A custom tool becomes a function with one string
// argument, and its calls are mapped back in the reply.

import { type Conversation, placeOf, type RawJson, type Tool } from '../../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../../canonical/json.ts'
import { refuseAt, shownWord } from '../../request/fields.ts'
import {
  customNames,
  describedGrammar,
  isForced,
  offeredTools,
  refuseTooMany,
  refuseTwice,
  type ToolOffer,
} from '../../request/tools.ts'
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

/** Returns members of the body, and what the reply must be mapped back by. */
export function renderTools(conversation: Conversation, hidden: HiddenTool | undefined, rendering: Rendering) {
  const { rules, warnings } = rendering
  const offer = offeredTools(conversation, rules.allowedTools !== false, warnings)
  const { tools, choice } = offer
  refuseTooMany(tools.length + (hidden ? 1 : 0), rules.toolsMax ?? toolsMaxDefault)
  refuseTwice(tools)
  const declared = tools.map((tool) => renderTool(tool, rendering))
  if (hidden) declared.push(declaration(hidden.name, hidden.description, hidden.parameters))
  const mode = hidden ? hiddenMode(offer, hidden.name, rendering) : chooseMode(offer, rendering)
  const single = conversation.parallelTools === false && tools.length > 0 && choice?.kind !== 'none'
  // Nothing is lost if the caller's response format has room for one call only.
  if (single && !conversation.oneCallByForm) {
    warnings.add('parallel_tool_calls_emulated', placeOf(conversation, 'parallelTools'))
  }
  const declarations = jsonObject({ functionDeclarations: jsonArray(declared) })
  return {
    members: {
      tools: declared.length === 0 ? undefined : jsonArray([declarations]),
      toolConfig: mode && jsonObject({ functionCallingConfig: mode }),
    },
    customTools: customNames(tools),
    singleToolCall: single,
  }
}

function renderTool(tool: Tool, { names, warnings, schemas }: Rendering): RawJson {
  const name = names.sent(tool.name)
  const place = tool.place ?? '/tools'
  if (tool.kind === 'custom') {
    return declaration(name, describedGrammar(tool, warnings), inputOnly)
  }
  const parameters = toolParameters(tool.schema, schemas)
  if (typeof parameters === 'string') refuseAt(place, `The tool ${shownWord(tool.name)} cannot be used: ${parameters}.`)
  if (parameters?.loosened) warnings.add('tool_schema_loosened', place)
  return declaration(name, tool.description, parameters?.schema)
}

/** A function without parameters has no schema. */
function declaration(name: string, description: string | undefined, parameters: RawJson | undefined): RawJson {
  return jsonObject({
    name: jsonString(name),
    description: jsonString(description || undefined),
    parametersJsonSchema: parameters,
  })
}

// The tool choice, as one of the provider's modes:
//
//   AUTO       the model decides
//   NONE       no calls
//   VALIDATED  like AUTO, with arguments that follow the schema, and only the given names
//   ANY        a call is required, of one of the given names

/** undefined = omit it. */
function chooseMode(offer: ToolOffer, rendering: Rendering): RawJson | undefined {
  const { tools, choice } = offer
  if (tools.length === 0) return undefined
  const isRelaxed = isForced(choice) && rendering.rules.forcedToolChoice === false
  if (isRelaxed) rendering.warnings.add('tool_choice_relaxed', '/tool_choice')
  const names = chosenNames(offer, rendering)
  if (isForced(choice) && !isRelaxed) return writeMode('ANY', names)
  if (choice?.kind === 'none') return writeMode('NONE', undefined)
  const restricted = choice?.kind === 'allowed' ? names : undefined
  // Arguments of a required call follow the schema anyway.
  const isStrict = !isRelaxed && heldToSchema(tools, rendering)
  if (restricted || isStrict) return writeMode('VALIDATED', restricted)
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
function chosenNames({ tools, choice }: ToolOffer, { names }: Rendering): readonly string[] | undefined {
  if (choice?.kind === 'named') return [names.sent(choice.name)]
  if (choice?.kind !== 'allowed') return undefined
  return tools.flatMap(({ name }) => (choice.names.includes(name) ? [names.sent(name)] : []))
}

/** The answer must come through the hidden function; the caller's tools stay callable as requested. */
function hiddenMode(offer: ToolOffer, hidden: string, rendering: Rendering): RawJson {
  const { tools, choice } = offer
  if (tools.length === 0 || choice?.kind === 'none') return writeMode('ANY', [hidden])
  const names = chosenNames(offer, rendering)
  // The hidden function would satisfy a required call, so it is excluded.
  if (isForced(choice)) return writeMode('ANY', names ?? tools.map(({ name }) => rendering.names.sent(name)))
  return writeMode('ANY', names && [...names, hidden])
}

function writeMode(mode: 'AUTO' | 'NONE' | 'VALIDATED' | 'ANY', names: readonly string[] | undefined): RawJson {
  return jsonObject({ mode: `"${mode}"`, allowedFunctionNames: names && jsonArray(names.map(jsonString)) })
}
