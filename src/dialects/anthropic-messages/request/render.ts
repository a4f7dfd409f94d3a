// Renders a Conversation as a Messages body. A pure function of conversation and target, without clock or randomness:
// the same history always gives the same bytes, on which prompt caches and signed thinking depend.

import { Failure } from '../../../kernel/failure.ts'
import { type Conversation, placeOf, type RawJson } from '../../canonical/conversation.ts'
import { filledArray, filledObject, jsonObject, jsonString } from '../../canonical/json.ts'
import type { RenderedRequest, Target } from '../../canonical/translation.ts'
import { limitMarks, writeCacheControl } from '../../request/cache-marks.ts'
import { readRequest, refuse } from '../../request/fields.ts'
import { warnHints } from '../../request/settings.ts'
import { ArgumentNames, customNames, offeredTools, pairTools, ToolNames, toolNamesIn } from '../../request/tools.ts'
import { reportUnsupported, WarningList } from '../../request/warnings.ts'
import { writeBlock } from './context.ts'
import { isReasoning, renderReasoning, restoreThinking, writeThinking } from './reasoning.ts'
import {
  checkPrefill,
  type HistoryContext,
  renderMessages,
  renderSystem,
  type WireMessage,
  writeMessages,
} from './render-messages.ts'
import { chooseOutput, renderServing, renderStop, samplingMembers } from './render-settings.ts'
import {
  demandsOneOfSeveral,
  jsonToolChoice,
  relaxChoice,
  renderTools,
  StrictBudget,
  type ToolContext,
  writeChoice,
  writeTool,
} from './render-tools.ts'
import { MergeBudget } from './schema.ts'

const idRule = { pattern: /^[A-Za-z0-9_-]{1,64}$/, max: 64 }
const toolNameUsualMax = 64
const usualVersion = '2023-06-01'
const usualOutputCap = 4096
const bindingBeta = 'thinking-binding-controls-2026-08-01'

export function renderRequest(conversation: Conversation, target: Target): RenderedRequest | Failure {
  return readRequest(() => render(conversation, target))
}

function render(conversation: Conversation, target: Target): RenderedRequest {
  const { rules } = target
  const warnings = new WarningList()
  const refused = reportUnsupported(conversation.unsupported, warnings)
  if (refused) refuse(refused)
  warnHints(conversation, warnings)
  const names = new ToolNames(toolNamesIn(conversation), rules.toolNameMax ?? toolNameUsualMax)
  const context: ToolContext = {
    ...{ rules, names, argumentNames: new ArgumentNames(), warnings },
    ...{ strictBudget: new StrictBudget(), merges: new MergeBudget() },
  }

  const offer = offeredTools(conversation, false, warnings)
  const output = chooseOutput(conversation, context, { mustCallOwn: demandsOneOfSeveral(offer) })
  const tools = [...renderTools(offer.tools, context), ...(output.tool ? [output.tool] : [])]
  const system = renderSystem(conversation, warnings)
  const messages = renderHistory(conversation, target, { ...context, isInstructed: system.length > 0 })
  const maxTokens = outputCap(conversation, target, warnings)
  const answersByTool = output.tool !== undefined
  const thinking = renderReasoning(conversation, { rules, maxTokens, messages, answersByTool, warnings })
  const choice = output.tool
    ? jsonToolChoice(offer, output.tool.name, warnings)
    : relaxChoice(offer.choice, { rules, thinking: thinking.mode === 'enabled' }, warnings)
  const { json: toolChoice, single } = writeChoice(choice, { conversation, tools, context })
  const sampling = samplingMembers(conversation.sampling, { rules, reasoning: isReasoning(thinking, rules) }, warnings)
  const stop = renderStop(conversation, rules, warnings)
  const serving = renderServing(conversation, rules, warnings)

  const supported = rules.cacheStyle === undefined || rules.cacheStyle === 'cache-control'
  const marked = [...tools, ...system, ...messages.flatMap(({ blocks }) => blocks)]
  const automatic = limitMarks(marked, { automatic: conversation.automaticCache, supported }, warnings)
  // Requested from the first turn on: what precedes the messages must not change when thinking comes back.
  const dropStale = rules.thinkingBindingControls === true && isReasoning(thinking, {})
  const body = jsonObject({
    model: jsonString(target.upstreamModel),
    max_tokens: String(maxTokens),
    stream: 'true',
    system: filledArray(system.map(writeBlock)),
    tools: filledArray(tools.map(writeTool)),
    tool_choice: toolChoice,
    thinking: writeThinking(thinking, dropStale),
    output_config: filledObject({ effort: jsonString(thinking.effort), format: output.format }),
    ...sampling,
    stop_sequences: stop.json,
    ...serving.members,
    cache_control: writeCacheControl(automatic),
    messages: writeMessages(messages),
  })
  // Only the oldest version supports sampling settings.
  const version = Object.keys(sampling).length > 0 ? usualVersion : (rules.dialectVersion ?? usualVersion)
  const betas = [...serving.betas, ...(dropStale ? [bindingBeta] : [])]
  return {
    body: encode(body),
    headers: { 'anthropic-version': version, ...(betas.length > 0 ? { 'anthropic-beta': betas.join(',') } : {}) },
    warnings: warnings.list,
    mapping: {
      toolNames: names.callerNames,
      argumentNames: context.argumentNames.callerNames,
      customTools: customNames(offer.tools),
      jsonTool: output.tool?.name,
      stop: stop.matched,
      singleToolCall: single,
    },
  }
}

function renderHistory(conversation: Conversation, target: Target, context: HistoryContext): WireMessage[] {
  const { rules, issuer } = target
  const { warnings } = context
  const paired = pairTools(conversation.turns, idRuleFor(target), warnings)
  if (paired instanceof Failure) return refuse(paired)
  const turns = restoreThinking(paired, issuer, warnings)
  const messages = renderMessages(turns, context)
  checkPrefill(messages, rules, conversation)
  return messages
}

function idRuleFor({ rules }: Target) {
  return { pattern: rules.toolIdPattern ?? idRule.pattern, max: rules.toolIdMax ?? idRule.max }
}

function outputCap(conversation: Conversation, target: Target, warnings: WarningList): number {
  const { defaultOutputCap, maxOutputTokens } = target
  const wanted = conversation.outputCap ?? defaultOutputCap ?? maxOutputTokens ?? usualOutputCap
  if (maxOutputTokens === undefined || wanted <= maxOutputTokens) return wanted
  if (conversation.outputCap !== undefined) warnings.add('max_tokens_clamped', placeOf(conversation, 'outputCap'))
  return maxOutputTokens
}

/** A lone surrogate has no UTF-8 bytes; inside JSON it can only be written as an escape. */
function encode(body: RawJson): Uint8Array<ArrayBuffer> {
  const lone = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g
  const text = body.isWellFormed() ? body : body.replaceAll(lone, (half) => `\\u${half.charCodeAt(0).toString(16)}`)
  return new TextEncoder().encode(text)
}
