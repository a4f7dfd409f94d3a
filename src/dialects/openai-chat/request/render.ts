// Renders a Conversation as a Chat Completions body. A stream is requested with usage, because the gateway reads it. The
// part that grows from turn to turn comes last, so the bytes before it stay the same.

import type { Failure } from '../../../kernel/failure.ts'
import { type Conversation, type Effort, placeOf } from '../../canonical/conversation.ts'
import { filledArray, jsonArray, jsonObject, jsonString } from '../../canonical/json.ts'
import { noHeaders, type RenderedRequest, type Target } from '../../canonical/translation.ts'
import { chooseMarks } from '../../request/cache-marks.ts'
import { readRequest, refuseAt, refuseEmpty } from '../../request/fields.ts'
import {
  type HiddenTool,
  type RenderedFormat,
  renderFormat,
  renderTools,
  samplingMembers,
  servingMembers,
} from '../../request/openai.ts'
import { fitEffort } from '../../request/reasoning.ts'
import { SchemaBudget } from '../../request/schema.ts'
import { renderOutputCap, splitStop, withInstruction } from '../../request/settings.ts'
import { preparedTurns, ToolNames, toolNamesIn } from '../../request/tools.ts'
import { WarningList } from '../../request/warnings.ts'
import { chatForm, markRules, type Rendering } from './context.ts'
import { renderMessages } from './render-messages.ts'

const toolNameMaxDefault = 64
const toolIdMaxDefault = 40
const stopMaxDefault = 4

export function renderRequest(conversation: Conversation, target: Target): RenderedRequest | Failure {
  return readRequest(() => render(conversation, target))
}

function render(conversation: Conversation, target: Target): RenderedRequest {
  const { rules, issuer } = target
  const warnings = new WarningList()
  const turns = preparedTurns(conversation, { rules, toolIdMax: rules.toolIdMax ?? toolIdMaxDefault, warnings })
  const names = new ToolNames(toolNamesIn(conversation), rules.toolNameMax ?? toolNameMaxDefault)
  const marks = chooseMarks({ ...conversation, turns }, markRules(rules), warnings)
  const rendering: Rendering = { form: chatForm, rules, issuer, warnings, names, marks, schemas: new SchemaBudget() }
  const { format, instruction, hidden } = chooseFormat(conversation, rendering)
  const effort = renderEffort(conversation, conversation.tools.length > 0 || hidden !== undefined, rendering)
  const tools = renderTools(conversation, { toolsMax: rules.toolsMax, hidden }, rendering)
  const stop = splitStop(conversation.stop, rules.stopMax ?? stopMaxDefault)
  const messages = renderMessages(withInstruction(conversation.system, instruction), turns, rendering)
  if (messages.length === 0) refuseEmpty(conversation)
  const body = jsonObject({
    model: jsonString(target.upstreamModel),
    stream: String(!target.wantsWhole),
    stream_options: target.wantsWhole || rules.streamUsage === false ? undefined : '{"include_usage":true}',
    [rules.outputCapName ?? 'max_tokens']: renderOutputCap(conversation, target, warnings),
    reasoning_effort: jsonString(effort),
    ...samplingMembers(conversation, effort, rendering),
    stop: filledArray(stop.sent.map(jsonString)),
    response_format: format,
    verbosity: jsonString(conversation.verbosity),
    ...servingMembers(conversation, rendering),
    ...tools.members,
    messages: jsonArray(messages),
  })
  return {
    body: new TextEncoder().encode(body),
    headers: noHeaders,
    warnings: warnings.list,
    mapping: {
      toolNames: names.callerNames,
      customTools: tools.customTools,
      jsonTool: hidden?.name,
      stop: stop.matched,
      singleToolCall: tools.singleToolCall,
    },
  }
}

/** Where the host has no JSON output, the model answers through a hidden tool. */
function chooseFormat(
  conversation: Conversation,
  rendering: Rendering,
): RenderedFormat & { readonly hidden?: HiddenTool } {
  const { outputFormat } = conversation
  const { rules, names } = rendering
  if (!outputFormat || rules.jsonOutput !== 'emulated') return renderFormat(conversation, rendering)
  if (rules.forcedToolChoice === false) {
    return refuseAt(placeOf(conversation, 'outputFormat'), 'This model cannot be held to a JSON form.')
  }
  const schema = outputFormat.kind === 'json-schema' ? outputFormat.schema : '{"type":"object"}'
  return { hidden: { name: names.unused('json_output'), schema } }
}

/** The effort to send; undefined = none. `offersTools`: the request has tools, the caller's or ours. */
function renderEffort(conversation: Conversation, offersTools: boolean, rendering: Rendering): Effort | undefined {
  const { rules, warnings } = rendering
  const wanted = fitEffort(conversation, rendering)
  if (!offersTools || rules.toolsWithReasoning !== false || wanted === 'none') return wanted
  if (wanted === undefined && !rules.thinksByDefault) return undefined
  // The host refuses tools while the model reasons, and the caller needs the tools more.
  warnings.add('reasoning_dropped', wanted === undefined ? '/tools' : placeOf(conversation, 'reasoning'))
  return 'none'
}
