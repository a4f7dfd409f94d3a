// Renders a Conversation as a Chat Completions body. Always streamed, with usage, because the gateway reads the reply.
// The part that grows from turn to turn comes last, so the bytes before it stay the same.

import type { Failure } from '../../../kernel/failure.ts'
import type { Conversation, RawJson } from '../../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../../canonical/json.ts'
import type { RenderedRequest, Target } from '../../canonical/translation.ts'
import { chooseMarks } from '../../request/cache-marks.ts'
import { readRequest, refuseAt } from '../../request/fields.ts'
import { SchemaBudget } from '../../request/schema.ts'
import { renderOutputCap, renderServiceTier, splitStop, withInstruction } from '../../request/settings.ts'
import { preparedTurns, ToolNames, toolNamesIn } from '../../request/tools.ts'
import { WarningList } from '../../request/warnings.ts'
import { markRules, type Rendering } from './context.ts'
import { renderMessages } from './render-messages.ts'
import { renderCacheOptions, renderEffort, renderEndUser, renderFormat, renderSampling } from './render-settings.ts'
import { renderTools } from './render-tools.ts'

const toolNameMaxDefault = 64
const toolIdMaxDefault = 40
const stopMaxDefault = 4

export function renderRequest(conversation: Conversation, target: Target): RenderedRequest | Failure {
  return readRequest(() => render(conversation, target))
}

function render(conversation: Conversation, target: Target): RenderedRequest {
  const { rules } = target
  const warnings = new WarningList()
  const toolIdMax = rules.toolIdMax ?? toolIdMaxDefault
  const turns = preparedTurns(conversation, { rules, toolIdMax, warnings })
  const names = new ToolNames(toolNamesIn(conversation), rules.toolNameMax ?? toolNameMaxDefault)
  const marks = chooseMarks({ ...conversation, turns }, markRules(rules), warnings)
  const rendering: Rendering = { rules, issuer: target.issuer, warnings, names, marks, schemas: new SchemaBudget() }
  const format = renderFormat(conversation, rendering)
  const offersTools = conversation.tools.length > 0 || format.hiddenTool !== undefined
  const effort = renderEffort(conversation, offersTools, rendering)
  const tools = renderTools(conversation, format.hiddenTool, rendering)
  const stop = splitStop(conversation.stop, rules.stopMax ?? stopMaxDefault)
  const messages = renderMessages(withInstruction(conversation.system, format.instruction), turns, rendering)
  if (messages.length === 0) refuseAt('/messages', '`messages` has nothing to answer.')
  const body = jsonObject([
    ['model', jsonString(target.upstreamModel)],
    ['stream', 'true'],
    ['stream_options', rules.streamUsage === false ? undefined : '{"include_usage":true}'],
    renderOutputCap(rules.outputCapName ?? 'max_tokens', conversation, target, warnings),
    ['reasoning_effort', effort && jsonString(effort)],
    ...renderSampling(conversation, effort, rendering),
    ['stop', stop.sent.length === 0 ? undefined : jsonArray(stop.sent.map(jsonString))],
    ['response_format', format.responseFormat],
    ['verbosity', text(conversation.verbosity)],
    renderEndUser(conversation, rendering),
    ['prompt_cache_key', text(conversation.promptCacheKey)],
    renderCacheOptions(conversation, rendering),
    renderServiceTier(conversation, rendering),
    ['tools', tools.tools],
    ['tool_choice', tools.toolChoice],
    ['parallel_tool_calls', tools.parallelToolCalls],
    ['messages', jsonArray(messages)],
  ])
  return {
    body: new TextEncoder().encode(body),
    headers: {},
    warnings: warnings.list,
    mapping: {
      toolNames: names.callerNames,
      customTools: tools.customTools,
      jsonTool: format.hiddenTool?.name,
      stop: stop.matched,
      singleToolCall: tools.singleToolCall,
    },
  }
}

function text(value: string | undefined): RawJson | undefined {
  return value === undefined ? undefined : jsonString(value)
}
