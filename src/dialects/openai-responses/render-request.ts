// A Conversation as a Responses body. A pure function of the conversation and the target: the same history always gives
// the same bytes. What grows from turn to turn stands last, so that the bytes before it stay the same.

import { Failure } from '../../kernel/failure.ts'
import type { Conversation, RawJson, TextBlock, Turn } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import type { RenderedRequest, Target } from '../canonical/translation.ts'
import { readRequest, refuse, refuseAt, refusePrefill } from '../request/fields.ts'
import { SchemaBudget } from '../request/schema.ts'
import { pairTools, ToolNames, toolNamesIn } from '../request/tools.ts'
import { reportUnsupported, WarningList } from '../request/warnings.ts'
import { renderFormat } from './render-format.ts'
import { joinedText, renderMessages, renderSystem } from './render-messages.ts'
import { renderReasoning } from './render-reasoning.ts'
import {
  renderCacheOptions,
  renderEndUser,
  renderOutputCap,
  renderSampling,
  renderServiceTier,
} from './render-settings.ts'
import { renderTools } from './render-tools.ts'
import { chooseMarks, type Rendering, reasons, takesCustom } from './rendering.ts'
import { restoreThinking } from './restore-thinking.ts'

const toolNameMaxDefault = 64
const toolIdMaxDefault = 64

export function renderRequest(conversation: Conversation, target: Target): RenderedRequest | Failure {
  return readRequest(() => render(conversation, target))
}

function render(conversation: Conversation, target: Target): RenderedRequest {
  const { rules } = target
  const warnings = new WarningList()
  const turns = checkedTurns(conversation, target, warnings)
  const names = new ToolNames(toolNamesIn(conversation), rules.toolNameMax ?? toolNameMaxDefault)
  const marks = chooseMarks({ ...conversation, turns }, rules, warnings)
  const rendering: Rendering = {
    rules,
    warnings,
    names,
    marks,
    customCalls: customCallsIn(turns, target),
    schemas: new SchemaBudget(),
  }
  const format = renderFormat(conversation, rendering)
  const { reasoning, effort } = renderReasoning(conversation, rendering)
  const tools = renderTools(conversation, rendering)
  const prompt = renderPrompt(systemWith(conversation.system, format.instruction), turns, format.isAnyObject, rendering)
  const body = jsonObject([
    ['model', jsonString(target.upstreamModel)],
    ['stream', 'true'],
    // Kept nowhere, the reasoning has to come along, sealed.
    ['store', 'false'],
    ['include', reasons(rules) ? '["reasoning.encrypted_content"]' : undefined],
    renderOutputCap(conversation, target, rendering),
    ['reasoning', reasoning],
    ...renderSampling(conversation, effort, rendering),
    ['text', format.text],
    renderEndUser(conversation, rendering),
    [
      'prompt_cache_key',
      conversation.promptCacheKey === undefined ? undefined : jsonString(conversation.promptCacheKey),
    ],
    renderCacheOptions(conversation, rendering),
    renderServiceTier(conversation, rendering),
    ['tools', tools.tools],
    ['tool_choice', tools.toolChoice],
    ['parallel_tool_calls', tools.parallelToolCalls],
    ['instructions', prompt.instructions],
    ['input', jsonArray(prompt.input)],
  ])
  return {
    body: new TextEncoder().encode(body),
    headers: {},
    warnings: warnings.list,
    mapping: {
      toolNames: names.callerNames,
      customTools: tools.customTools,
      jsonTool: undefined,
      // The dialect has no stop sequences.
      stop: conversation.stop.filter((sequence) => sequence !== ''),
      singleToolCall: tools.singleToolCall,
    },
  }
}

/** The turns with every call answered, ids as the target takes them, and the reasoning it will know again. */
function checkedTurns(conversation: Conversation, { rules, issuer }: Target, warnings: WarningList): Turn[] {
  const failure = reportUnsupported(conversation.unsupported, warnings)
  if (failure) return refuse(failure)
  const last = conversation.turns.at(-1)
  if (last?.role === 'assistant' && !rules.prefill && !last.blocks.some(({ kind }) => kind === 'tool-call')) {
    return refusePrefill(last)
  }
  const idRule = { pattern: rules.toolIdPattern ?? /^[\s\S]+$/, max: rules.toolIdMax ?? toolIdMaxDefault }
  // Proofs name calls by the ids that the caller has, so they are read before those change.
  const turns = pairTools(restoreThinking(conversation.turns, issuer, warnings), idRule, warnings)
  return turns instanceof Failure ? refuse(turns) : turns
}

function customCallsIn(turns: readonly Turn[], { rules }: Target): ReadonlySet<string> {
  if (!takesCustom(rules)) return new Set()
  const blocks = turns.flatMap((turn) => (turn.role === 'assistant' ? turn.blocks : []))
  return new Set(blocks.flatMap((block) => (block.kind === 'tool-call' && block.custom ? [block.id] : [])))
}

interface Prompt {
  readonly instructions: RawJson | undefined
  readonly input: readonly RawJson[]
}

/** The system prompt has a member of its own, but is a message of the input where only that will do. */
function renderPrompt(
  system: readonly TextBlock[],
  turns: readonly Turn[],
  isAnyObject: boolean,
  rendering: Rendering,
): Prompt {
  const items = renderMessages(turns, rendering)
  const text = joinedText(system)
  if (text === '' && items.length === 0) return refuseAt('/messages', '`messages` has nothing to answer.')
  // Marks stand on parts of messages; an answer in JSON must have been spoken of in the input, and input must there be.
  const isMessage = rendering.marks.inUse || isAnyObject || items.length === 0
  if (isMessage) return { instructions: undefined, input: [...renderSystem(system, rendering), ...items] }
  return { instructions: text === '' ? undefined : jsonString(text), input: items }
}

function systemWith(system: readonly TextBlock[], instruction: string | undefined): readonly TextBlock[] {
  return instruction === undefined ? system : [...system, { kind: 'text', text: instruction }]
}
