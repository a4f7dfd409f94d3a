// Renders a Conversation as a Chat Completions body. Always streamed, with usage, because the gateway reads the reply.
// The part that grows from turn to turn comes last, so the bytes before it stay the same.

import type { Failure } from '../../../kernel/failure.ts'
import type { Conversation, RawJson, TextBlock, Turn } from '../../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../../canonical/json.ts'
import type { RenderedRequest, Target } from '../../canonical/translation.ts'
import { chooseMarks } from '../../request/cache-marks.ts'
import { readRequest, refuse, refuseAt, refusePrefill } from '../../request/fields.ts'
import { SchemaBudget } from '../../request/schema.ts'
import { pairTools, ToolNames, toolNamesIn } from '../../request/tools.ts'
import { reportUnsupported, WarningList } from '../../request/warnings.ts'
import { markRules, type Rendering } from './context.ts'
import { renderMessages } from './render-messages.ts'
import {
  renderCacheOptions,
  renderEffort,
  renderEndUser,
  renderFormat,
  renderOutputCap,
  renderSampling,
  renderServiceTier,
} from './render-settings.ts'
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
  const turns = checkedTurns(conversation, target, warnings)
  const names = new ToolNames(toolNamesIn(conversation), rules.toolNameMax ?? toolNameMaxDefault)
  const marks = chooseMarks({ ...conversation, turns }, markRules(rules), warnings)
  const rendering: Rendering = { rules, issuer: target.issuer, warnings, names, marks, schemas: new SchemaBudget() }
  const format = renderFormat(conversation, rendering)
  const offersTools = conversation.tools.length > 0 || format.hiddenTool !== undefined
  const effort = renderEffort(conversation, offersTools, rendering)
  const tools = renderTools(conversation, format.hiddenTool, rendering)
  const stop = splitStop(conversation.stop, rules.stopMax ?? stopMaxDefault)
  const messages = renderMessages(systemWith(conversation.system, format.instruction), turns, rendering)
  if (messages.length === 0) refuseAt('/messages', '`messages` has nothing to answer.')
  const body = jsonObject([
    ['model', jsonString(target.upstreamModel)],
    ['stream', 'true'],
    ['stream_options', rules.streamUsage === false ? undefined : '{"include_usage":true}'],
    renderOutputCap(conversation, target, rendering),
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

/** The turns with results paired to calls and ids the target accepts. Refuses what cannot be sent. */
function checkedTurns(conversation: Conversation, { rules }: Target, warnings: WarningList): Turn[] {
  const failure = reportUnsupported(conversation.unsupported, warnings)
  if (failure) return refuse(failure)
  const last = conversation.turns.at(-1)
  if (last?.role === 'assistant' && !rules.prefill && !last.blocks.some(({ kind }) => kind === 'tool-call')) {
    return refusePrefill(last)
  }
  const idRule = { pattern: rules.toolIdPattern ?? /^[\s\S]+$/, max: rules.toolIdMax ?? toolIdMaxDefault }
  const turns = pairTools(conversation.turns, idRule, warnings)
  return Array.isArray(turns) ? turns : refuse(turns)
}

/**
 * If there are more sequences than the target accepts, the gateway matches all of them, so that the earliest match
 * counts.
 */
function splitStop(stop: readonly string[], most: number): { sent: readonly string[]; matched: readonly string[] } {
  const real = stop.filter((sequence) => sequence !== '')
  return real.length <= most ? { sent: real, matched: [] } : { sent: [], matched: real }
}

function systemWith(system: readonly TextBlock[], instruction: string | undefined): readonly TextBlock[] {
  return instruction === undefined ? system : [...system, { kind: 'text', text: instruction }]
}

function text(value: string | undefined): RawJson | undefined {
  return value === undefined ? undefined : jsonString(value)
}
